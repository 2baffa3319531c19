package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Options choose the cases. The zero value means the defaults.
type Options struct {
	// SegmentSize is the length in bytes of the files that are written. Default 64 MiB.
	SegmentSize int64
	// Pages are the numbers of pages of 4096 bytes that the cases of ranged syncs make durable at a time. Default 1, 4, 16, 64, 256.
	Pages []int
	// Wide takes more body sizes and writers in.
	Wide bool
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.SegmentSize == 0 {
		c.SegmentSize = 64 << 20
	}
	if len(c.Pages) == 0 {
		c.Pages = []int{1, 4, 16, 64, 256}
	}
	return c
}

// Case is one thing to measure.
type Case struct {
	Name    string
	Ops     int64 // operations of one step, at least 1
	Bytes   int64 // of one operation, 0: bytes mean nothing
	Writers int   // goroutines that make steps, at least 1
	open    func(ctx context.Context, dir string) (*Run, error)
}

// Run is a case made ready in a directory.
type Run struct {
	// Step does the operations of one step. Each writer has a number, from 0 on.
	Step func(writer int) error
	// Finish waits for what the steps have begun, within the time that is measured; nil: there is nothing.
	Finish func() error
	// Syncs counts the syncs since the start; nil: they are not counted.
	Syncs func() int64
	// Close gives everything back. The files stay.
	Close func() error
}

// Open makes a case ready in an empty directory.
func (c *Case) Open(ctx context.Context, dir string) (*Run, error) {
	r, err := c.open(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	return r, nil
}

// Group is what comes first in the case's name.
func (c *Case) Group() string { return strings.SplitN(c.Name, "/", 2)[0] }

// Result is what a case measured.
type Result struct {
	Name    string        `json:"name"`
	Ops     int64         `json:"ops"`
	Seconds float64       `json:"seconds"`
	Rate    float64       `json:"opsPerSecond"`
	Bytes   float64       `json:"bytesPerSecond"` // 0: they mean nothing
	P50     time.Duration `json:"p50"`            // of a step, ns, like the others
	P99     time.Duration `json:"p99"`
	P999    time.Duration `json:"p999"`
	Syncs   float64       `json:"syncsPerOp"`
}

// Drive makes steps until more says no; it is asked before each step with the number of steps begun so far. The result's
// figures count from the call to the end of the last step, and of what it has begun.
func (c *Case) Drive(r *Run, more func(begun int64) bool) (Result, error) {
	writers := max(c.Writers, 1)
	times := make([]Times, writers)
	errs := make([]error, writers)
	var begun atomic.Int64
	syncs := int64(0)
	if r.Syncs != nil {
		syncs = r.Syncs()
	}
	start := time.Now()
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			last := time.Since(start)
			for errs[w] == nil && more(begun.Add(1)-1) {
				errs[w] = r.Step(w)
				now := time.Since(start)
				times[w].Add(now - last)
				last = now
			}
		})
	}
	all.Wait()
	if r.Finish != nil {
		errs = append(errs, r.Finish())
	}
	took := time.Since(start).Seconds()
	sum := &times[0]
	for w := range times[1:] {
		sum.Merge(&times[w+1])
	}
	res := Result{Name: c.Name, Ops: sum.Count() * c.Ops, Seconds: took, P50: sum.At(0.5), P99: sum.At(0.99), P999: sum.At(0.999)}
	if took > 0 {
		res.Rate = float64(res.Ops) / took
		res.Bytes = res.Rate * float64(c.Bytes)
	}
	if r.Syncs != nil && res.Ops > 0 {
		res.Syncs = float64(r.Syncs()-syncs) / float64(res.Ops)
	}
	return res, errors.Join(errs...)
}

// Measure opens a case in an empty directory, drives it for a time and closes it.
func (c *Case) Measure(ctx context.Context, dir string, long time.Duration) (res Result, err error) {
	r, err := c.Open(ctx, dir)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	end := time.Now().Add(long)
	return c.Drive(r, func(begun int64) bool { return ctx.Err() == nil && (begun == 0 || time.Now().Before(end)) })
}
