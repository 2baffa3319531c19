package rocketstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// Retention says when the oldest files of the commit log are deleted, with everything that hangs on them. The zero value
// deletes nothing, unlike a broker of RocketMQ, which by default deletes after 72 hours at 4 o'clock: a library does not
// throw away what it was not told to. Deletion runs by itself once MaxAge, MaxBytes or one of the ratios is set;
// [Store.Expire] runs it by hand.
//
// Only whole files go, from the oldest on, up to the first that no rule takes; the one that is written stays. See
// docs/recovery.md for the order in which the rest follows.
type Retention struct {
	// MaxAge is how long after its last change a file is kept, by its modification time. 0: files do not age.
	// Java: fileReservedTime, 72 h.
	MaxAge time.Duration
	// Hours are the hours of the day, 0 to 23, in which aged files go. Default 4 o'clock; [EveryHour] has all.
	// Java: deleteWhen.
	Hours []int
	// Location is where these hours are told. Default time.Local.
	Location *time.Location
	// MaxBytes bounds the length of all commit log files together, at any hour. 0: no bound.
	MaxBytes int64

	// The ratios, from 0 to 1, are of what the file system has in use. When one is set the others have their defaults, never
	// below the one before; 1 means never. Where it is not known how full the disk is, as on other systems than Linux, they
	// have no effect.

	// DiskRatio is from where on aged files go at any hour; without MaxAge, any file. Default 0.75. Java:
	// diskMaxUsedSpaceRatio.
	DiskRatio float64
	// ForceRatio is from where on files go whatever their age. Default 0.85.
	ForceRatio float64
	// RefuseRatio is from where on puts are refused with a [*DiskFullError], until there is room again. Default 0.90.
	RefuseRatio float64
	// Usage says how full the file system is. Default: as the file layer says, see mappedfile.DiskUsage.
	Usage func() (mappedfile.Usage, error)

	// Every is the time between two rounds; the first comes a minute after the store is opened. Default 10 s.
	// Java: cleanResourceInterval.
	Every time.Duration
	// FilesPerRound is how many commit log files one round deletes at most. Default 10. Java: deleteFileBatchMax.
	FilesPerRound int
	// Interval is the time between two of them. Default 100 ms. Java: deleteCommitLogFilesInterval.
	Interval time.Duration
	// KeepQueues leaves the last file of queues whose records are all gone. Else such queues are removed once an hour, except
	// those that the store itself keeps, and go on at their old offset when there are messages again; only a real broker
	// that is given the directory begins them at 0, as it does after its own cleaning.
	KeepQueues bool
	// OnDelete is told of what was deleted, files and folders by their paths in the store, after each step. It must not call
	// the store.
	OnDelete func(names []string)
}

// EveryHour is all hours of the day, for [Retention].Hours.
func EveryHour() []int {
	hours := make([]int, 24)
	for h := range hours {
		hours[h] = h
	}
	return hours
}

// The defaults of the ratios.
const (
	defaultDiskRatio   = 0.75
	defaultForceRatio  = 0.85
	defaultRefuseRatio = 0.90
)

const (
	firstRound = time.Minute // after the start
	sweepEvery = time.Hour   // queues without records
)

// byDisk says whether the rules on disk use are on.
func (r *Retention) byDisk() bool { return r.DiskRatio > 0 || r.ForceRatio > 0 || r.RefuseRatio > 0 }

// automatic says whether anything is deleted or refused without being asked for.
func (r *Retention) automatic() bool { return r.MaxAge > 0 || r.MaxBytes > 0 || r.byDisk() }

// withDefaults fills in what is left open, and says what is wrong.
func (r *Retention) withDefaults() (Retention, []error) {
	c := *r
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("rocketstore: Retention."+format, args...))
	}
	if len(c.Hours) == 0 {
		c.Hours = []int{4}
	}
	for _, h := range c.Hours {
		if h < 0 || h > 23 {
			wrong("Hours has %d, want 0 to 23", h)
		}
	}
	if c.Location == nil {
		c.Location = time.Local
	}
	if c.byDisk() {
		low := 0.0
		for _, ratio := range []struct {
			name     string
			value    *float64
			standard float64
		}{{"DiskRatio", &c.DiskRatio, defaultDiskRatio}, {"ForceRatio", &c.ForceRatio, defaultForceRatio}, {"RefuseRatio", &c.RefuseRatio, defaultRefuseRatio}} {
			if *ratio.value == 0 {
				*ratio.value = max(ratio.standard, low)
			}
			if *ratio.value < low || *ratio.value > 1 || math.IsNaN(*ratio.value) {
				wrong("%s is %v, want %v to 1", ratio.name, *ratio.value, low)
			}
			low = *ratio.value
		}
	}
	if c.Every == 0 {
		c.Every = 10 * time.Second
	}
	if c.FilesPerRound == 0 {
		c.FilesPerRound = 10
	}
	if c.Interval == 0 {
		c.Interval = 100 * time.Millisecond
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"MaxAge", int64(c.MaxAge)},
		{"MaxBytes", c.MaxBytes},
		{"Every", int64(c.Every)},
		{"FilesPerRound", int64(c.FilesPerRound)},
		{"Interval", int64(c.Interval)},
	} {
		if n.value < 0 {
			wrong("%s is %d, want 0 or more", n.name, n.value)
		}
	}
	return c, errs
}

// ErrDiskFull is the class of a [*DiskFullError].
var ErrDiskFull = errors.New("disk full")

// DiskFullError says that puts are refused because too much of the disk is in use ([Retention].RefuseRatio). It matches
// [ErrDiskFull] and syscall.ENOSPC.
type DiskFullError struct {
	Usage mappedfile.Usage // as it was when that was found
	Limit float64
}

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("%v: puts are refused: %.1f %% of it is in use, the limit is %.1f %%", ErrDiskFull, 100*e.Usage.Ratio(), 100*e.Limit)
}

// Unwrap lets errors.Is find the class, and what a disk that is really full gives.
func (e *DiskFullError) Unwrap() []error { return []error{ErrDiskFull, syscall.ENOSPC} }

// retainer is what deletion keeps while the store is open.
type retainer struct {
	// jobs are run by the dispatch goroutine between two records, since it alone may change what is derived. done is closed
	// when that goroutine has ended.
	jobs chan func()
	done chan struct{}
	full atomic.Pointer[DiskFullError] // why puts are refused; stored by the background

	mu       sync.Mutex        // held by one run at a time
	cascaded int64             // guarded by mu: the start of the log when all that is derived was last made to follow; -1: not yet
	swept    time.Time         // guarded by mu: when queues without records were last looked for
	idle     config.IdleQueues // guarded by mu: where queues go on whose files were removed
}

func newRetainer() retainer {
	return retainer{jobs: make(chan func()), done: make(chan struct{}), cascaded: -1, swept: time.Now(), idle: config.IdleQueues{}}
}

// onDispatch runs a job in the dispatch goroutine.
func (s *Store) onDispatch(ctx context.Context, job func() error) error {
	result := make(chan error, 1)
	select {
	case s.retainer.jobs <- func() { result <- job() }:
		return <-result
	case <-s.retainer.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// serveJobs runs the jobs that wait. It is for the dispatch goroutine, also while it has much to do.
func (s *Store) serveJobs() {
	for {
		select {
		case job := <-s.retainer.jobs:
			job()
		default:
			return
		}
	}
}

// putable says why nothing can be put, if so.
func (s *Store) putable() error {
	if err := s.writable(); err != nil {
		return err
	}
	if full := s.retainer.full.Load(); full != nil {
		return full
	}
	return nil
}

// retain deletes by the rules until ctx ends.
func (s *Store) retain(ctx context.Context) {
	if _, err := s.usage(); err != nil && s.opts.Retention.byDisk() {
		s.opts.Logger.Warn("it is not known how full the disk is; no rule on it has an effect", "err", err)
	}
	s.lookAtDisk()
	timer := time.NewTimer(firstRound)
	defer timer.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := s.round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			last = ""
		case err.Error() != last:
			last = err.Error()
			s.opts.Logger.Error("old messages not deleted", "err", err)
		}
		timer.Reset(s.opts.Retention.Every)
	}
}

// round is one look at the rules.
func (s *Store) round(ctx context.Context) error {
	s.retainer.mu.Lock()
	defer s.retainer.mu.Unlock()
	s.lookAtDisk()
	defer s.lookAtDisk()
	o := &s.opts.Retention
	run := &expiry{due: s.byRules(time.UnixMilli(s.now())), files: o.FilesPerRound}
	if now := time.Now(); !o.KeepQueues && now.Sub(s.retainer.swept) >= sweepEvery {
		s.retainer.swept, run.sweep = now, true
	}
	return s.expire(ctx, run)
}

// byRules says of a file, with the length of all files from it on, whether it is to go at that time.
func (s *Store) byRules(now time.Time) func(f mappedfile.SegmentInfo, total int64) bool {
	o := &s.opts.Retention
	hour := slices.Contains(o.Hours, now.In(o.Location).Hour())
	return func(f mappedfile.SegmentInfo, total int64) bool {
		aged := o.MaxAge > 0 && hasAge(f, now, o.MaxAge)
		if aged && hour || o.MaxBytes > 0 && total > o.MaxBytes {
			return true
		}
		if !o.byDisk() {
			return false
		}
		u, err := s.usage()
		if err != nil {
			return false
		}
		ratio := u.Ratio()
		return ratio > o.ForceRatio || ratio > o.DiskRatio && (aged || o.MaxAge == 0)
	}
}

// hasAge says whether a file was last changed so long ago, to the millisecond as in Java.
func hasAge(f mappedfile.SegmentInfo, now time.Time, age time.Duration) bool {
	return now.UnixMilli() >= f.ModTime.UnixMilli()+age.Milliseconds()
}

func (s *Store) usage() (mappedfile.Usage, error) {
	if s.opts.Retention.Usage != nil {
		return s.opts.Retention.Usage()
	}
	return mappedfile.DiskUsage(s.fsys)
}

// lookAtDisk refuses puts, or takes them again.
func (s *Store) lookAtDisk() {
	if !s.opts.Retention.byDisk() {
		return
	}
	var full *DiskFullError
	if u, err := s.usage(); err == nil && u.Ratio() > s.opts.Retention.RefuseRatio {
		full = &DiskFullError{Usage: u, Limit: s.opts.Retention.RefuseRatio}
	}
	switch was := s.retainer.full.Swap(full); {
	case was == nil && full != nil:
		s.opts.Logger.Error("puts are refused", "err", full)
	case was != nil && full == nil:
		s.opts.Logger.Info("there is room on the disk, puts are taken again")
	}
}
