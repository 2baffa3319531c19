package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocketstore/rocketstore/inspect"
)

// errTailEnd ends a tail that does not follow.
var errTailEnd = errors.New("the end of the log")

func (a *app) tail() *cobra.Command {
	var r reading
	var s selection
	var body string
	var follow bool
	var last int
	cmd := &cobra.Command{
		Use:   "tail DIR [-f]",
		Short: "Print the last records, and with -f those that come, without a consumer group",
		Long: `Print the last records of the log, and with -f go on with those that a broker stores, until Ctrl-C. It needs no
consumer group and no network, and the broker does not notice. What is half written is waited for; damage is a finding
once whole records lie behind it. With --from it begins at a physical offset instead; with --cursor where the last call
with it ended.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := s.prepare(cmd); err != nil {
				return err
			}
			return r.with(args[0], func(d *inspect.Dir) error {
				p, err := a.records(d, body)
				if err != nil {
					return err
				}
				o := inspect.TailOptions{From: s.limits.From}
				if o.From == 0 {
					if o.From, err = a.lastRecords(cmd.Context(), d, &s.filter, last); err != nil {
						return err
					}
				}
				if !follow {
					defer a.seen(d, time.Now())
					o.Wait, o.Patience = func(context.Context) error { return errTailEnd }, 1
				}
				return a.follow(cmd.Context(), d, &s, o, p)
			})
		},
	}
	r.flags(cmd)
	s.flags(cmd)
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	f.IntVarP(&last, "number", "n", 10, "how many of the last records to begin with")
	bodyFlag(cmd, &body)
	return cmd
}

// lastRecords is where the last n chosen records begin. It reads the log from its start only when it must.
func (a *app) lastRecords(ctx context.Context, d *inspect.Dir, f *inspect.Filter, n int) (int64, error) {
	segs, _, err := d.Segments(func(inspect.Finding) {})
	if err != nil || n <= 0 || len(segs) == 0 {
		return -1, err
	}
	for i := len(segs) - 1; ; i-- {
		var starts []int64
		for r, err := range d.Log(ctx, inspect.LogRange{From: segs[i].Start}, func(inspect.Finding) {}) {
			if err != nil {
				return 0, err
			}
			if d.Match(f, &r) {
				if starts = append(starts, r.PhysicalOffset); len(starts) > n {
					starts = starts[1:]
				}
			}
		}
		if len(starts) == n || i == 0 {
			if len(starts) == 0 {
				return -1, nil
			}
			return starts[0], nil
		}
	}
}

// follow prints records until the tail ends.
func (a *app) follow(ctx context.Context, d *inspect.Dir, s *selection, o inspect.TailOptions, p *records) error {
	n := int64(0)
	for r, err := range d.Tail(ctx, o, a.finding) {
		switch {
		case errors.Is(err, errTailEnd):
			return nil
		case err != nil:
			a.trouble(err)
			continue
		}
		if d.Match(&s.filter, &r) {
			err = p.print(&r)
			if n++; err == nil {
				err = a.out.Flush() // what comes is seen at once
			}
		}
		if err == nil && s.cursor != "" {
			err = s.keep(r.PhysicalOffset + int64(r.Size))
		}
		if err != nil {
			return err
		}
		if s.limit > 0 && n == s.limit {
			return nil
		}
	}
	return nil
}
