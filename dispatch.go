package rocketstore

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/recovery"
)

// retryEvery is how long a dispatch that failed, on a full disk for one, waits before it tries again.
const retryEvery = 100 * time.Millisecond

// start begins the background: the log's sync, the dispatch and the checkpoints.
func (s *Store) start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.log.Start()
	s.live.TrustOwn()
	s.live.OnProgress(func(offset int64) {
		s.dispatched.Store(offset)
		s.wake()
		s.serveJobs()
	})
	if s.opts.Queued != nil {
		s.live.OnApplied(s.tellQueued)
	}
	s.background.Go(func() { s.dispatch(ctx) })
	s.background.Go(func() { s.checkpoints(ctx) })
	if !s.opts.HoldDelayed {
		s.background.Go(func() { s.deliver(ctx) })
	}
	if s.opts.Checks.Checker != nil {
		s.checks = newCheckService(s)
		s.background.Go(func() { s.checks.run(ctx) })
	}
	if s.opts.Retention.automatic() {
		s.background.Go(func() { s.retain(ctx) })
	}
}

// dispatch feeds the derived structures with what is appended. It is the loop that recovery replays with.
func (s *Store) dispatch(ctx context.Context) {
	defer close(s.retainer.done)
	retry := time.NewTimer(time.Hour)
	retry.Stop()
	for {
		err := s.live.CatchUp(ctx)
		s.dispatched.Store(s.live.Offset())
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			why := err // which the heap keeps; err, of each round, it does not
			if s.trouble.Swap(&why) == nil {
				s.opts.Logger.Error("dispatch stands still; puts are refused", "err", why)
			}
			s.makeRoom(why)
			retry.Reset(retryEvery)
		} else if s.trouble.Load() != nil { // puts look at it: nothing is stored that is there
			s.trouble.Store(nil)
			s.opts.Logger.Info("dispatch goes on")
		}
		s.wake()
		select {
		case <-ctx.Done():
			return
		case <-s.log.Grown():
		case <-retry.C:
		case job := <-s.retainer.jobs:
			job()
		}
	}
}

// makeRoom gives the blocks of the log segment that was made ahead to a dispatch that found the disk full: what can be
// deleted to make more room is only what is dispatched.
func (s *Store) makeRoom(why error) {
	if !errors.Is(why, syscall.ENOSPC) {
		return
	}
	dropped, err := s.log.Queue().DropAhead()
	if err != nil || dropped {
		s.opts.Logger.Info("the disk is full; the segment made ahead is given up", "dropped", dropped, "err", err)
	}
}

// mostBehind is how many segments of the log the dispatch may be behind before puts wait for it. So of three or more
// segments the oldest is always dispatched, and can be deleted when the disk is full.
const mostBehind = 2

// keepUp waits until the dispatch is not too far behind.
func (s *Store) keepUp(ctx context.Context) error {
	_, end := s.log.Bounds()
	upTo := end - mostBehind*s.log.SegmentSize()
	if s.dispatched.Load() >= upTo {
		return nil
	}
	if err := s.waitDispatched(ctx, upTo); err != nil {
		return fmt.Errorf("the dispatch is behind: %w", err)
	}
	return nil
}

// QueuedUnit is a message in a queue, for [Options].Queued.
type QueuedUnit struct {
	// Topic is valid during the call only.
	Topic       []byte
	QueueID     int32
	QueueOffset int64
	TagsCode    int64 // of a delayed message that waits, the time when it is due
}

func (s *Store) tellQueued(r *commitlog.Record, x *recovery.Derived) {
	_ = x.Units(r, func(p recovery.Placement) error {
		s.opts.Queued(QueuedUnit{p.Topic, p.QueueID, p.QueueOffset, p.Unit.TagsCode})
		return nil
	})
}

func (s *Store) wake() {
	if s.waiters.Load() > 0 || s.closed.Load() {
		s.waitMu.Lock()
		s.caughtUp.Broadcast()
		s.waitMu.Unlock()
	}
}

// WaitDispatched returns when all records before the physical offset upTo are in queues and index, so that every read
// sees them. It fails when the dispatch stands still, when ctx ends and when the store is closed.
func (s *Store) WaitDispatched(ctx context.Context, upTo int64) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return s.waitDispatched(ctx, upTo)
}

func (s *Store) waitDispatched(ctx context.Context, upTo int64) error {
	if s.dispatched.Load() >= upTo {
		return nil
	}
	stopWaking := context.AfterFunc(ctx, func() {
		s.waitMu.Lock()
		s.caughtUp.Broadcast()
		s.waitMu.Unlock()
	})
	defer stopWaking()
	s.waiters.Add(1)
	defer s.waiters.Add(-1)
	s.waitMu.Lock()
	defer s.waitMu.Unlock()
	for s.dispatched.Load() < upTo {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.trouble.Load(); err != nil {
			return *err
		}
		if s.live == nil {
			return ErrClosed
		}
		s.caughtUp.Wait()
	}
	return nil
}

// current waits until what the log holds at the call can be read.
func (s *Store) current(ctx context.Context) error {
	if s.closed.Load() {
		return ErrClosed
	}
	_, end := s.log.Bounds()
	return s.waitDispatched(ctx, end)
}

func (s *Store) checkpoints(ctx context.Context) {
	tick := time.NewTicker(s.opts.CheckpointEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.Checkpoint(ctx); err != nil && ctx.Err() == nil {
				s.opts.Logger.Error("checkpoint not written", "err", err)
			}
		}
	}
}

// Checkpoint syncs the log and everything derived, and notes in the checkpoint file how far that reaches: what a recovery
// has to replay is what came after it.
func (s *Store) Checkpoint(ctx context.Context) error {
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	// Read before the syncs: the checkpoint may claim only what they covered (R-E-062).
	offset, logics, redo := s.dispatched.Load(), s.live.StoreTime(), s.redoEnd()
	mark, err := s.indexMark()
	if err != nil {
		return err
	}
	_, physic, err := s.log.Sync()
	if err != nil {
		return err
	}
	if err := s.live.Sync(ctx); err != nil {
		return err
	}
	c := s.checkpoint
	if physic > 0 {
		c.Physic = physic
	}
	if logics > 0 {
		c.Logics = logics
	}
	if s.index != nil {
		c.Index = s.index.FullThrough()
	}
	if c != s.checkpoint {
		if err := recovery.WriteCheckpoint(s.fsys, c, filePerm); err != nil {
			return err
		}
		s.checkpoint = c
		return s.saveMarker(&recovery.Hint{LogEnd: -1, LastRecord: -1, Dispatched: offset, RedoEnd: redo, Index: mark})
	}
	return nil
}

// indexMark is what our note says of the last index file; nil: there is nothing to say.
func (s *Store) indexMark() (*index.Mark, error) {
	if s.index == nil {
		return nil, nil
	}
	return s.index.Mark()
}

// redoEnd is the index behind the last unit of the redo log, 0 without one.
func (s *Store) redoEnd() int64 {
	if s.tx == nil {
		return 0
	}
	_, end := s.tx.Redo.Bounds()
	return end
}
