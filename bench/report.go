package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"strings"
	"time"
)

// Report is a run of the matrix.
type Report struct {
	Host    Host     `json:"host"`
	Began   string   `json:"began"` // RFC 3339, UTC
	Segment int64    `json:"segmentSize"`
	Results []Result `json:"results"`
	Advice  []Advice `json:"advice"`
}

// Runner runs cases one after the other, each in a directory of its own that goes afterwards.
type Runner struct {
	Dir  string        // on the disk to measure; it must exist
	Each time.Duration // for how long each case is driven
	// Before and After are called around each case; nil: nobody is told.
	Before func(c *Case)
	After  func(r *Result)
}

// Run runs the matrix. When ctx ends it gives what was measured by then, with the context's error.
func (r *Runner) Run(ctx context.Context, o *Options) (*Report, error) {
	opts := o.withDefaults()
	rep := &Report{Host: HostOf(r.Dir), Began: time.Now().UTC().Format(time.RFC3339), Segment: opts.SegmentSize}
	var err error
	for _, c := range Cases(o) {
		if err = ctx.Err(); err != nil {
			break
		}
		if r.Before != nil {
			r.Before(&c)
		}
		var res Result
		if res, err = r.one(ctx, &c); err != nil {
			break
		}
		rep.Results = append(rep.Results, res)
		if r.After != nil {
			r.After(&res)
		}
	}
	rep.Advice = Advise(rep.Results)
	return rep, err
}

func (r *Runner) one(ctx context.Context, c *Case) (res Result, err error) {
	dir, err := os.MkdirTemp(r.Dir, "storectl-bench-")
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return c.Measure(ctx, dir, r.Each)
}

//go:embed report.html
var page string

// bar is one line of a plot.
type bar struct {
	Result
	Label string
	Width float64 // of 100
}

// plot is the bars of one group.
type plot struct {
	Group  string
	Height int
	Bars   []bar
}

func (b bar) Rates() string {
	if b.Bytes > 0 {
		return fmt.Sprintf("%s, %.0f MB/s", perSecond(b.Rate), b.Bytes/1e6)
	}
	return perSecond(b.Rate)
}

// Times gives the percentiles for people.
func (b bar) Times() string {
	return fmt.Sprintf("%v / %v / %v", rounded(b.P50), rounded(b.P99), rounded(b.P999))
}

// Row is the place of a bar in its plot, in pixels.
func (p plot) Row(i int) int { return i*rowHeight + 4 }

const rowHeight = 22

func (r *Report) plots() []plot {
	var all []plot
	for _, x := range r.Results {
		group, label, _ := strings.Cut(x.Name, "/")
		if len(all) == 0 || all[len(all)-1].Group != group {
			all = append(all, plot{Group: group})
		}
		p := &all[len(all)-1]
		p.Bars = append(p.Bars, bar{Result: x, Label: label})
	}
	for i := range all {
		value := func(b bar) float64 {
			if b.Bytes > 0 {
				return b.Bytes
			}
			return b.Rate
		}
		top := 0.0
		for _, b := range all[i].Bars {
			top = max(top, value(b))
		}
		for j := range all[i].Bars {
			all[i].Bars[j].Width = 100 * value(all[i].Bars[j]) / top
		}
		all[i].Height = len(all[i].Bars)*rowHeight + 8
	}
	return all
}

// WriteHTML writes the report as one page that needs nothing else.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Parse(page)
	if err != nil {
		return err
	}
	return t.Execute(w, struct {
		*Report
		Plots []plot
		Lines [][2]string
	}{r, r.plots(), append([][2]string{{"cpu", r.Host.CPU}}, r.Host.Lines()...)})
}
