package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/bench"
)

// benchFlags are those of bench.
type benchFlags struct {
	options bench.Options
	each    time.Duration
	html    string
	quiet   bool
}

func (a *app) bench() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench DIR [--each 300ms] [--html FILE]",
		Short: "Measure a disk and say which settings suit it",
		Long: `Measure the disk that DIR is on, and this machine, and say which settings suit them.

DIR must exist; what is written goes into folders of its own in it, which are removed again. At most
about 2 GB are there at a time, more with --each. The figures are those of a busy machine when it is
busy; --each makes them steadier. --html writes one page with plots, for people to keep.

With --json the lines are {"result":{…}}, {"advice":{…}} and {"host":{…}}; times are in ns.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runBench(cmd.Context(), args[0], &f) },
	}
	cmd.Flags().DurationVar(&f.each, "each", 300*time.Millisecond, "for how long each case is driven")
	cmd.Flags().Int64Var(&f.options.SegmentSize, "segment-size", 64<<20, "length of the files in bytes")
	cmd.Flags().IntSliceVar(&f.options.Pages, "pages", nil, "pages of 4096 bytes that a ranged sync covers (default 1,4,16,64,256)")
	cmd.Flags().BoolVar(&f.options.Wide, "wide", false, "more body sizes, writers and queues")
	cmd.Flags().StringVar(&f.html, "html", "", "write the report as a page to this file")
	cmd.Flags().BoolVar(&f.quiet, "quiet", false, "no progress bar")
	return cmd
}

func (f *benchFlags) validate(dir string) error {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return errors.Join(fmt.Errorf("%s is no directory to measure in", dir), err)
	}
	if f.each <= 0 || f.options.SegmentSize < 1<<20 {
		return fmt.Errorf("--each is %v and --segment-size %d: want more than 0, and at least %d", f.each, f.options.SegmentSize, 1<<20)
	}
	for _, n := range f.options.Pages {
		if n <= 0 || n > 1<<16 {
			return fmt.Errorf("--pages has %d, want 1 to %d", n, 1<<16)
		}
	}
	return nil
}

func (a *app) runBench(ctx context.Context, dir string, f *benchFlags) error {
	if err := f.validate(dir); err != nil {
		return err
	}
	progress := a.errOut
	if f.quiet || a.json {
		progress = io.Discard
	}
	bar := progressbar.NewOptions(len(bench.Cases(&f.options)), progressbar.OptionSetWriter(progress), progressbar.OptionSetWidth(20),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
	r := bench.Runner{
		Dir: dir, Each: f.each,
		Before: func(c *bench.Case) { bar.Describe(fmt.Sprintf("%-60.60s", c.Name)) },
		After:  func(*bench.Result) { _ = bar.Add(1) }, // it only draws
	}
	report, err := r.Run(ctx, &f.options)
	_ = bar.Finish()
	if err == nil && f.html != "" {
		err = writePage(f.html, report)
	}
	return errors.Join(err, a.benchReport(report))
}

func writePage(name string, r *bench.Report) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(r.WriteHTML(f), f.Close())
}

// benchReport prints where, what and the advice.
func (a *app) benchReport(r *bench.Report) error {
	if a.json {
		if err := a.line(map[string]any{"host": r.Host, "began": r.Began, "segmentSize": r.Segment}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(a.out, "cpu: %s, %d cores\n", printable(r.Host.CPU), r.Host.Cores)
		for _, l := range r.Host.Lines() {
			fmt.Fprintf(a.out, "%s: %s\n", l[0], printable(l[1]))
		}
		fmt.Fprintf(a.out, "segment: %d\n\n", r.Segment)
	}
	t := a.table(column{"case", 60}, column{"ops/s", -12}, column{"MB/s", -8}, column{"p50", -10}, column{"p99", -10}, column{"p999", -10}, column{"syncs/op", -8})
	for _, x := range r.Results {
		err := t.row(map[string]any{"result": x}, x.Name, fmt.Sprintf("%.0f", x.Rate), fmt.Sprintf("%.1f", x.Bytes/1e6), x.P50, x.P99, x.P999, fmt.Sprintf("%.3g", x.Syncs))
		if err != nil {
			return err
		}
	}
	if !a.json && len(r.Advice) > 0 {
		fmt.Fprintln(a.out, "\nadvice")
	}
	for _, x := range r.Advice {
		if a.json {
			if err := a.line(map[string]any{"advice": x}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(a.out, "  %s: %s\n    %s\n", x.Setting, x.Value, x.Why)
	}
	return nil
}
