package rocketstore

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// ExpireOptions say what [Store.Expire] deletes.
type ExpireOptions struct {
	// OlderThan lets commit log files go that were last changed so long ago. Default: Retention.MaxAge, at any hour.
	OlderThan time.Duration
	// MaxBytes lets them go while all of them together are longer. Default: Retention.MaxBytes.
	MaxBytes int64
	// Files is how many of them go at most. Default: no limit.
	Files int
	// DryRun changes nothing: the result is what would go. It works on a store that is opened read-only, too.
	DryRun bool
}

// Expired is what went, or with DryRun would.
type Expired struct {
	LogStart int64         // physical offset at which the log begins then
	Files    []ExpiredFile // in the order in which they go: commit log, queues, index, redo log, state table
	Queues   []string      // folders of queues that go wholly, in the store
	Bytes    int64         // length of all files together; sparse ones take less
	Messages int64         // queue offsets that cannot be read any more, over all queues
}

// ExpiredFile is one file that goes.
type ExpiredFile struct {
	Name  string // path in the store
	Bytes int64  // its length
}

// Expire deletes the oldest files of the commit log, up to the first that is not due, and lets everything derived follow:
// whole files of queues, index, redo log and state table that only know of what is gone, and queues that have no record
// any more. The minimum offsets rise; a [Store.Get] below gives OffsetTooSmall with the new minimum as Next. What readers
// hold stays valid until they release it. The zero options only let the rest follow what is gone already.
//
// The log goes first, and its tail and all that is derived are durable before: a stop at any moment leaves a store that
// recovery takes as it is. When ctx ends, what was deleted until then is in the result.
func (s *Store) Expire(ctx context.Context, o ExpireOptions) (Expired, error) {
	switch {
	case s.closed.Load():
		return Expired{}, ErrClosed
	case s.opts.ReadOnly && !o.DryRun:
		return Expired{}, mappedfile.ErrReadOnly
	}
	err := s.readable(ctx) // while the dispatch stands still, what it has done may go
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if ctx.Err() != nil || errors.Is(err, ErrClosed) {
		return Expired{}, err
	}
	if o.OlderThan == 0 {
		o.OlderThan = s.opts.Retention.MaxAge
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = s.opts.Retention.MaxBytes
	}
	now := time.UnixMilli(s.now())
	run := &expiry{files: o.Files, sweep: !s.opts.Retention.KeepQueues, always: true}
	run.due = func(f mappedfile.SegmentInfo, total int64) bool {
		return o.OlderThan > 0 && hasAge(f, now, o.OlderThan) || o.MaxBytes > 0 && total > o.MaxBytes
	}
	s.retainer.mu.Lock()
	defer s.retainer.mu.Unlock()
	if o.DryRun {
		return run.Expired, s.preview(run, &run.Expired)
	}
	err = s.expire(ctx, run)
	return run.Expired, err
}

// expiry is one run of deletion.
type expiry struct {
	due    func(f mappedfile.SegmentInfo, total int64) bool // whether a log file goes; total is the length of those from it on
	files  int                                              // log files at most, 0: no limit
	sweep  bool                                             // look for queues without records
	always bool                                             // let the rest follow even when the log's start is where it was
	Expired
}

// expire does a run. The caller holds the retainer's lock.
func (s *Store) expire(ctx context.Context, run *expiry) error {
	errs := []error{s.deleteLog(ctx, run)}
	run.LogStart, _ = s.log.Bounds()
	if run.always || run.LogStart != s.retainer.cascaded {
		err := s.cascade(ctx, run)
		if err == nil {
			s.retainer.cascaded = run.LogStart
		}
		errs = append(errs, err)
	}
	if run.sweep && ctx.Err() == nil {
		errs = append(errs, s.sweep(ctx, run))
	}
	return errors.Join(errs...)
}

// logFiles lists the log's segments with their modification times of now, and their length together. What lies behind the
// log's end holds nothing: the segment that a writer made ahead, when there is a writer or one was killed.
func (s *Store) logFiles() (files []mappedfile.SegmentInfo, total int64, err error) {
	entries, err := s.fsys.ReadDir(recovery.CommitLogDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	changed := make(map[string]time.Time, len(entries))
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			changed[e.Name()] = info.ModTime()
		}
	}
	_, end := s.log.Bounds()
	files = slices.DeleteFunc(s.log.Queue().Segments(), func(f mappedfile.SegmentInfo) bool { return f.Start >= end })
	for i, f := range files {
		if t, ok := changed[path.Base(f.Name)]; ok {
			files[i].ModTime = t
		}
		total += f.Length
	}
	return files, total, nil
}

// dueFiles yields the log's files that are to go, oldest first.
func (s *Store) dueFiles(run *expiry, yield func(mappedfile.SegmentInfo) error) error {
	files, total, err := s.logFiles()
	for n, f := range files[:max(0, len(files)-1)] {
		if run.files > 0 && n >= run.files || !run.due(f, total) {
			break
		}
		if err := yield(f); err != nil {
			return err
		}
		total -= f.Length
	}
	return err
}

// errEnough ends dueFiles early.
var errEnough = errors.New("no more")

// deleteLog deletes log files, one by one.
func (s *Store) deleteLog(ctx context.Context, run *expiry) error {
	safe, pause := int64(-1), time.Duration(0)
	err := s.dueFiles(run, func(f mappedfile.SegmentInfo) error {
		if err := s.pause(ctx, pause); err != nil {
			return err
		}
		pause = s.opts.Retention.Interval
		end := f.Start + s.log.SegmentSize()
		if end > safe {
			var err error
			if safe, err = s.syncDerived(ctx); err != nil {
				return err
			}
		}
		if end > safe {
			return errEnough
		}
		names, err := s.log.DeleteBefore(end)
		s.note(run, names, f.Length)
		if err == nil && len(names) == 0 {
			err = errEnough // the log ends there
		}
		return err
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// syncDerived makes the log and what is derived from it durable, and gives the physical offset up to which the latter has
// everything. Queue offsets stand in the log and in the queues: before the one goes the other must be safe.
func (s *Store) syncDerived(ctx context.Context) (int64, error) {
	upTo := s.dispatched.Load()
	if _, _, err := s.log.Sync(); err != nil {
		return 0, err
	}
	return upTo, s.live.Sync(ctx)
}

// pause waits, unless ctx or the store ends.
func (s *Store) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.retainer.done:
		return ErrClosed
	case <-timer.C:
		return nil
	}
}

// note enters deleted files, each of that length, into the result, and tells of them.
func (s *Store) note(run *expiry, names []string, length int64) {
	if len(names) == 0 {
		return
	}
	for _, n := range names {
		run.Files = append(run.Files, ExpiredFile{n, length})
		run.Bytes += length
	}
	s.tell(names)
}

func (s *Store) tell(names []string) {
	s.opts.Logger.Info("deleted", "files", names)
	if s.opts.Retention.OnDelete != nil {
		s.opts.Retention.OnDelete(names)
	}
}

// queueBatch is how many queues the dispatch goroutine looks at before it goes on with what was put.
const queueBatch = 64

// cascade lets all that is derived follow the start of the log: queues first, the state table last.
func (s *Store) cascade(ctx context.Context, run *expiry) error {
	start := run.LogStart
	for batch := range slices.Chunk(slices.Collect(s.queues.All()), queueBatch) {
		var names []string
		err := s.onDispatch(ctx, func() error {
			for _, q := range batch {
				gone, lost, err := followLog(q, start)
				names, run.Messages = append(names, gone...), run.Messages+lost
				if err != nil {
					return err
				}
			}
			return nil
		})
		s.note(run, names, s.queues.SegmentSize())
		if err != nil {
			return err
		}
	}
	type step struct {
		length int64
		delete func(logStart int64) ([]string, error)
	}
	var steps []step
	if s.index != nil {
		steps = append(steps, step{s.indexLength(), s.index.DeleteBefore})
	}
	if s.tx != nil {
		steps = append(steps, step{s.tx.Redo.SegmentSize(), s.tx.Redo.DeleteBefore}, step{s.tx.States.SegmentSize(), s.tx.States.DeleteBefore})
	}
	for _, do := range steps {
		var names []string
		err := s.onDispatch(ctx, func() (err error) {
			names, err = do.delete(start)
			return err
		})
		s.note(run, names, do.length)
		if err != nil {
			return err
		}
	}
	return nil
}

// followLog deletes the files of a queue that lie before the start of the log, and corrects its minimum. It gives the names
// and how many queue offsets are gone.
func followLog(q *consumequeue.Queue, start int64) (names []string, gone int64, err error) {
	before, _ := q.Bounds()
	if names, err = q.DeleteBefore(start); err == nil {
		err = q.SetMin(start)
	}
	after, _ := q.Bounds()
	return names, max(0, after-before), err
}

func (s *Store) indexLength() int64 {
	if files := s.index.Files(); len(files) > 0 {
		return files[0].Size()
	}
	return 0
}

// isIdle says whether all records of a queue lie before the start of the log, and its files may go. Where the store itself
// reads a queue by offsets that other structures hold, it stays.
func isIdle(q *consumequeue.Queue, start int64) bool {
	switch q.Topic() {
	case recovery.ScheduleTopic, HalfTopicName, OpTopicName:
		return false
	}
	end := q.MaxPhysical()
	return end >= 0 && end <= start && len(q.Segments()) > 0
}

// sweep removes the queues without records. Where they go on is noted before.
func (s *Store) sweep(ctx context.Context, run *expiry) error {
	var found []*consumequeue.Queue
	for q := range s.queues.All() {
		if isIdle(q, run.LogStart) {
			found = append(found, q)
			_, end := q.Bounds()
			s.retainer.idle[config.IdleKey(q.Topic(), q.ID())] = end
		}
	}
	if len(found) == 0 {
		return nil
	}
	if err := config.SaveIdleQueues[mappedfile.File](s.fsys, s.retainer.idle); err != nil {
		return err
	}
	for _, q := range found {
		var files []mappedfile.SegmentInfo
		err := s.onDispatch(ctx, func() error {
			_, end := q.Bounds()
			if !isIdle(q, run.LogStart) || s.retainer.idle[config.IdleKey(q.Topic(), q.ID())] != end {
				return nil // there are messages again
			}
			files = q.Segments()
			return q.Retire()
		})
		if err != nil {
			return err
		}
		if len(files) == 0 {
			continue
		}
		run.Queues = append(run.Queues, q.Dir())
		names := make([]string, 0, len(files)+1)
		for _, f := range files {
			run.Files, run.Bytes = append(run.Files, ExpiredFile{f.Name, f.Length}), run.Bytes+f.Length
			names = append(names, f.Name)
		}
		s.tell(append(names, q.Dir()))
	}
	return nil
}

// preview says what a run would delete.
func (s *Store) preview(run *expiry, out *Expired) error {
	add := func(files []mappedfile.SegmentInfo) {
		for _, f := range files {
			out.Files, out.Bytes = append(out.Files, ExpiredFile{f.Name, f.Length}), out.Bytes+f.Length
		}
	}
	out.LogStart, _ = s.log.Bounds()
	err := s.dueFiles(run, func(f mappedfile.SegmentInfo) error {
		out.LogStart = f.Start + s.log.SegmentSize()
		add([]mappedfile.SegmentInfo{f})
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range s.log.Queue().Segments() { // behind a gap, if there is one
		if f.Start >= out.LogStart {
			out.LogStart = f.Start
			break
		}
	}
	if err := s.previewQueues(run, out, add); err != nil {
		return err
	}
	if s.index != nil {
		for _, f := range s.index.DeletableBefore(out.LogStart) {
			add([]mappedfile.SegmentInfo{{Name: path.Join(recovery.IndexDir, f.Name), Length: f.Size()}})
		}
	}
	if s.tx == nil {
		return nil
	}
	for _, list := range []func(int64) ([]mappedfile.SegmentInfo, error){s.tx.Redo.DeletableBefore, s.tx.States.DeletableBefore} {
		files, err := list(out.LogStart)
		if err != nil {
			return err
		}
		add(files)
	}
	return nil
}

func (s *Store) previewQueues(run *expiry, out *Expired, add func([]mappedfile.SegmentInfo)) error {
	for q := range s.queues.All() {
		before, _ := q.Bounds()
		after, err := q.MinFor(out.LogStart)
		if err != nil {
			return err
		}
		out.Messages += max(0, after-before)
		if run.sweep && isIdle(q, out.LogStart) {
			out.Queues = append(out.Queues, q.Dir())
			add(q.Segments())
			continue
		}
		files, err := q.DeletableBefore(out.LogStart)
		if err != nil {
			return err
		}
		add(files)
	}
	return nil
}
