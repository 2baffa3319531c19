package rocketstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/txstate"
)

// stateRounds are the rounds over the state table: each file has one schedule, made when the file is first seen and dropped
// when the file is full and none of its transactions is open, or gone (R-B-25, R-B-34).
type stateRounds struct {
	*checkService
	engine *stateEngine
	first  int64 // number of the first file that may have a schedule; those before it are done
	files  map[int64]*schedule
	counts map[int64]int // questions by number, kept only with a limit
}

// schedule is that of one file of the state table. The service's goroutine owns it, but for run.
type schedule struct {
	due     time.Time
	from    int64 // number of the record to begin at
	dropped bool
	run     *CheckRun // guarded by checkService.mu
}

func (e *stateEngine) rounds(c *checkService) rounds {
	first, next := e.tx.States.Bounds()
	r := &stateRounds{checkService: c, engine: e, files: make(map[int64]*schedule), counts: make(map[int64]int)}
	c.opts.Every = cmp.Or(c.opts.Every, e.store.checkInterval())
	c.opts.MinAge = cmp.Or(c.opts.MinAge, defaultStateAge)
	r.first = first / e.perFile()
	if next > first {
		e.lastFile.Store((next - 1) / e.perFile())
	}
	return r
}

func (e *stateEngine) perFile() int64 { return e.tx.States.SegmentSize() / txstate.RecordSize }

func (r *stateRounds) wake() <-chan struct{} { return r.engine.began }

// due runs what is due of each file, in order.
func (r *stateRounds) due(ctx context.Context, now time.Time) time.Time {
	r.schedule(now)
	next := now.Add(r.opts.Every)
	for _, file := range slices.Sorted(maps.Keys(r.files)) {
		s := r.files[file]
		if s.dropped || ctx.Err() != nil {
			continue
		}
		if !s.due.After(now) {
			r.round(ctx, file, s)
			s.due = r.after(s.due)
		}
		if !s.dropped && s.due.Before(next) {
			next = s.due
		}
	}
	return next
}

// schedule makes a schedule for each file that has none, and drops those of files that are gone.
func (r *stateRounds) schedule(now time.Time) {
	first, next := r.engine.tx.States.Bounds()
	last := r.engine.lastFile.Load()
	if next > first {
		last = max(last, (next-1)/r.engine.perFile())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first = max(r.first, first/r.engine.perFile())
	for file := r.first; file <= last; file++ {
		if r.files[file] == nil {
			r.files[file] = &schedule{due: now.Add(r.opts.Every)}
		}
	}
	maps.DeleteFunc(r.files, func(file int64, _ *schedule) bool { return file < r.first })
	for r.files[r.first] != nil && r.files[r.first].dropped {
		delete(r.files, r.first)
		r.first++
	}
}

// last gives the newest round of each file that has a schedule; the caller holds mu.
func (r *stateRounds) last() []CheckRun {
	runs := make([]CheckRun, 0, len(r.files))
	for _, file := range slices.Sorted(maps.Keys(r.files)) {
		s := r.files[file]
		if s.dropped {
			continue
		}
		run := CheckRun{File: r.name(file)}
		if s.run != nil {
			run = *s.run
		}
		runs = append(runs, run)
	}
	return runs
}

func (r *stateRounds) name(file int64) string {
	return path.Join(txstate.Dir, mappedfile.SegmentName(file*r.engine.tx.States.SegmentSize()))
}

// round walks the open transactions of one file, from the start or from where the last round stopped at its limit.
func (r *stateRounds) round(ctx context.Context, file int64, s *schedule) {
	if r.silent() {
		return
	}
	first, next := r.engine.tx.States.Bounds()
	first = max(first, file*r.engine.perFile())
	end := (file + 1) * r.engine.perFile()
	run := &CheckRun{File: r.name(file), Began: r.store.now(), Total: max(0, min(next, end)-first)}
	from := max(first, s.from)
	s.from = 0
	run.Walked = run.Total
	for e, err := range r.engine.tx.States.All(from) {
		if e.Number >= end || ctx.Err() != nil {
			break
		}
		run.Open++
		if err != nil && !errors.Is(err, mappedfile.ErrCorrupt) {
			run.Err = errors.Join(run.Err, err)
			continue
		}
		if err == nil {
			run.Young = r.young(&e, run.Began)
		}
		if run.Limited = run.asked() >= r.opts.InFlight; run.Limited && !run.Young {
			s.from = e.Number
		}
		if run.Young || run.Limited {
			run.Walked = e.Number - first
			break
		}
		r.one(ctx, run, &e, err)
	}
	if run.Open == 0 && run.Err == nil && from == first && next >= end && ctx.Err() == nil {
		s.dropped = true
	}
	r.forget(first, end)
	r.count(run)
	r.mu.Lock()
	s.run = run
	r.mu.Unlock()
}

// young says whether a transaction is too young to be asked about. Where the seconds of the record leave it open, the
// message's own time decides; a time in the future is young (R-B-31 to R-B-33).
func (r *stateRounds) young(e *txstate.Entry, now int64) bool {
	const second = 1000
	age := now - e.Seconds()*second
	least := r.opts.MinAge.Milliseconds()
	if age-second >= least || age < least {
		return age < least
	}
	h, err := r.store.log.Peek(e.CommitOffset)
	if err != nil {
		return false
	}
	return now-h.StoreTimestamp < least
}

// one asks about one transaction.
func (r *stateRounds) one(ctx context.Context, run *CheckRun, e *txstate.Entry, err error) {
	if r.opts.Max > 0 && r.counts[e.Number] >= r.opts.Max {
		if r.counts[e.Number] == r.opts.Max {
			r.counts[e.Number]++
			run.GaveUp++
		}
		return
	}
	rec := &r.record
	var view mappedfile.View
	if err == nil {
		*rec, view, err = r.store.log.Read(e.CommitOffset)
	}
	defer view.Release()
	if err == nil && rec.SysFlag.Transaction() != message.FlagPrepared {
		err = ErrNoPrepared
	}
	if err != nil {
		run.Orphans++
		r.store.opts.Logger.Warn("open transaction without its message", "number", e.Number, "offset", e.CommitOffset, "err", err)
		return
	}
	if r.opts.Max > 0 {
		r.counts[e.Number]++
	}
	r.ask(ctx, run, CheckRequest{
		Group: r.group(message.Lookup(rec.Properties, message.PropertyProducerGroup)), GroupHash: e.GroupHash, Number: e.Number,
		PhysicalOffset: e.CommitOffset, Size: rec.Size, Record: rec,
	})
}

// forget drops the counts of transactions that are not open any more.
func (r *stateRounds) forget(first, end int64) {
	maps.DeleteFunc(r.counts, func(number int64, _ int) bool {
		if number < first || number >= end {
			return false
		}
		e, err := r.engine.tx.States.Get(number)
		return err != nil || e.State != txstate.Prepared
	})
}
