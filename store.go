package rocketstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// ErrClosed is returned by a store that was closed.
var ErrClosed = mappedfile.ErrClosed

// Store is one open store directory. Its methods may be called from many goroutines.
type Store struct {
	opts    Options // set by Open, read-only after it
	dialect *dialect.Dialect
	fsys    mappedfile.FS
	lock    io.Closer // nil when read-only
	log     *commitlog.Log
	queues  *consumequeue.Table
	index   *index.Index           // nil: none is kept
	tx      *recovery.Transactions // nil: the engine is not StateTable
	engine  engine
	checks  *checkService // nil: none
	derive  *recovery.Deriver
	report  *recovery.Report
	shape   shape
	buffers sync.Pool // of *[]byte: encoded records
	spares  sync.Pool // of *spare: the slices of results of Get

	retainer   retainer
	live       *recovery.Dispatcher  // used by the dispatch goroutine alone, until Close has stopped it
	trouble    atomic.Pointer[error] // why the dispatch stands still; puts are refused meanwhile
	waitMu     sync.Mutex            // guards waiters' sleep on caughtUp
	caughtUp   *sync.Cond            // dispatched or trouble changed
	waiters    atomic.Int32          // how many sleep
	checkMu    sync.Mutex            // held while a checkpoint is made
	checkpoint recovery.Checkpoint   // guarded by checkMu
	saveMu     sync.Mutex            // held while the two tables are written; before configMu
	configMu   sync.Mutex            // guards offsets and delayed; never held while the device is waited for
	offsets    *config.ConsumerOffsets
	delayed    *config.DelayOffsets
	notices    []recovery.Warning // of loading them; set by Open
	noted      config.IdleQueues  // as the note of them was; set by Open
	closed     atomic.Bool
	closing    sync.Mutex // held by Close
	stop       context.CancelFunc
	background sync.WaitGroup

	_          [64]byte     // what puts look at lies above
	dispatched atomic.Int64 // all records before it are in the derived structures; stored by the dispatch goroutine, never goes back
}

// Open opens the store in dir, or makes a new one there. For writing it takes the writer's lock and recovers; it gives
// mappedfile.ErrLocked when another writer has the directory, a [*recovery.RefusedError] when the log is damaged in a way
// that needs a decision ([Options].Recovery), and a [*mappedfile.CorruptError] when files contradict the options. In each
// of these cases nothing was changed.
func Open(dir string, o *Options) (*Store, error) { return OpenContext(context.Background(), dir, o) }

// OpenContext is Open with a context that ends the recovery. A store whose recovery was ended is recovered by the next one.
func OpenContext(ctx context.Context, dir string, o *Options) (*Store, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{opts: opts, fsys: opts.FS, retainer: newRetainer()}
	s.caughtUp = sync.NewCond(&s.waitMu)
	s.buffers.New = func() any { b := make([]byte, 0, 8<<10); return &b }
	s.spares.New = func() any { return &spare{pool: &s.spares} }
	if s.fsys == nil {
		if s.fsys, err = mappedfile.OpenDir(dir, &mappedfile.DirOptions{ReadOnly: opts.ReadOnly}); err != nil {
			return nil, err
		}
	}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

// Plan says what opening dir for writing would do, and changes nothing: it runs the code that opening runs, up to the first
// change. The list are the files that would change.
func Plan(ctx context.Context, dir string, o *Options) (*recovery.Decision, []recovery.Change, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	opts.ReadOnly = false // what can be read only is told
	s := &Store{opts: opts, fsys: opts.FS}
	if s.fsys == nil {
		if s.fsys, err = mappedfile.OpenDir(dir, &mappedfile.DirOptions{ReadOnly: true}); err != nil {
			return nil, nil, err
		}
	}
	defer func() { _ = s.release() }() // nothing was written
	if err := s.checkPlaces(); err != nil {
		return nil, nil, err
	}
	if err := s.identify(); err != nil {
		return nil, nil, err
	}
	if err := s.loadConfig(); err != nil {
		return nil, nil, err
	}
	s.opts.ReadOnly, s.opts.Recovery.Foresee = true, true
	parts, err := s.openParts()
	if err != nil {
		return nil, nil, err
	}
	d, err := recovery.Plan(ctx, parts, &s.opts.Recovery)
	if err != nil {
		return nil, nil, err
	}
	changes, err := d.Changes(ctx, parts)
	return d, changes, err
}

// open does the steps of opening; on an error the caller releases what was taken.
func (s *Store) open(ctx context.Context) error {
	if !s.opts.ReadOnly {
		if err := s.checkPlaces(); err != nil {
			return err
		}
		if err := s.takeLock(); err != nil {
			return err
		}
	}
	if err := s.identify(); err != nil {
		return err
	}
	if err := s.loadConfig(); err != nil {
		return err
	}
	parts, err := s.openParts()
	if err != nil {
		return err
	}
	if s.opts.ReadOnly {
		d, err := recovery.Plan(ctx, parts, &s.opts.Recovery)
		if err != nil {
			return err
		}
		s.report = &d.Report
		s.report.Warnings = append(s.report.Warnings, s.notices...)
		s.dispatched.Store(d.LogEnd)
		return errors.Join(recovery.Adopt(parts, d), s.startEngine())
	}
	report, live, err := recovery.Run(ctx, parts, &s.opts.Recovery)
	s.report = report
	if err != nil {
		return err
	}
	s.report.Warnings = append(s.report.Warnings, s.notices...)
	s.live, s.checkpoint = live, parts.Checkpoint
	s.dispatched.Store(live.Offset())
	// What recovery replayed is durable, so our note may say so.
	begun := &recovery.Hint{LogEnd: -1, LastRecord: -1, Dispatched: live.Offset(), RedoEnd: s.redoEnd()}
	if begun.Index, err = s.resumedMark(parts.Hint); err != nil {
		return err
	}
	// The note goes before the folders of a state table, which alone would show a store of 3.1.
	if err := errors.Join(s.resumeIdle(), s.saveMarker(begun), s.startEngine()); err != nil {
		return err
	}
	s.lowerDelayProgress()
	s.start()
	return nil
}

// resumedMark is what our note says of the last index file when the store has just been opened. When it is believed as we left
// it, none of that file is read for it.
func (s *Store) resumedMark(h *recovery.Hint) (*index.Mark, error) {
	if s.index != nil && s.report.Trusted {
		s.index.Resume(h.Index)
		return h.Index, nil
	}
	return s.indexMark()
}

// takeLock takes the writer's lock and writes what RocketMQ writes into the file.
func (s *Store) takeLock() error {
	lock, err := s.fsys.Lock(recovery.LockFile)
	if err != nil {
		return err
	}
	s.lock = lock
	f, err := s.fsys.OpenFile(recovery.LockFile, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	size, err := f.Size()
	if err == nil && size == 0 {
		_, err = f.WriteAt([]byte("lock"), 0)
	}
	return errors.Join(err, f.Close())
}

// openParts opens log, queues and index as they lie.
func (s *Store) openParts() (*recovery.Parts, error) {
	budget := mappedfile.NewBudget(s.opts.MaxMapped)
	flushEvery := s.opts.FlushEvery
	if flushEvery == 0 {
		flushEvery = time.Duration(s.dialect.AsyncFlushMillis) * time.Millisecond
	}
	var err error
	s.log, err = commitlog.Open(s.fsys, &commitlog.Options{
		SegmentSize: s.shape.segment, ReadOnly: s.opts.ReadOnly, Sync: s.opts.Sync, SyncTimeout: s.opts.SyncTimeout, FlushEvery: flushEvery, Write: s.opts.Write,
		FlushThorough: 1, // each time all: a few bytes that wait for a fourth page are no less worth than many
		Sparse:        s.opts.Sparse, Now: s.opts.Now, Budget: budget, Logger: s.opts.Logger, Populate: s.populate(), ZeroAhead: s.zeroAhead(),
	})
	if err != nil {
		return nil, err
	}
	s.queues, err = consumequeue.OpenTable(s.fsys, recovery.QueueDir, &consumequeue.Options{
		MaxHole: recovery.MaxHole, SegmentSize: s.shape.queueSegment, ReadOnly: s.opts.ReadOnly, Budget: budget, Logger: s.opts.Logger,
	})
	if err == nil {
		err = s.queues.Load()
	}
	if err != nil {
		return nil, err
	}
	if !s.opts.NoIndex {
		s.index, err = index.Open(s.fsys, recovery.IndexDir, &index.Options{
			Slots: s.shape.indexSlots, Entries: s.shape.indexEntries, Dialect: s.dialect, ReadOnly: s.opts.ReadOnly, Logger: s.opts.Logger,
		})
		if err != nil {
			return nil, err
		}
	}
	if s.shape.engine == StateTable {
		if err := s.openTransactions(budget); err != nil {
			return nil, err
		}
	}
	if s.derive, err = recovery.NewDeriver(s.dialect, s.opts.DelayLevels); err != nil {
		return nil, err
	}
	p := &recovery.Parts{FS: s.fsys, Log: s.log, Queues: s.queues, Index: s.index, Tx: s.tx, Derive: s.derive, Hint: s.shape.hint}
	if p.Checkpoint, p.Damaged, err = recovery.ReadCheckpoint(s.fsys); err != nil {
		return nil, err
	}
	p.Unclean, err = recovery.Aborted(s.fsys)
	return p, err
}

// now is the store's clock.
func (s *Store) now() int64 {
	if s.opts.Now != nil {
		return s.opts.Now()
	}
	return time.Now().UnixMilli()
}

// populateAhead is how much of the log is faulted in ahead of the end. A page fault costs a put more than all else that it
// does (docs/performance.md).
const populateAhead = 16 << 20

// populate is that many bytes where puts copy into the mapping and no sync waits for what lies ahead.
func (s *Store) populate() int64 {
	if s.opts.Write != mappedfile.Mapped || s.opts.Sync != commitlog.SyncInterval || s.opts.Sparse {
		return 0
	}
	return populateAhead
}

// zeroAhead is how much of the log is written with zeros ahead of the end, where each put waits for a sync of bytes that were
// written by pwrite: over blocks that were written before it is up to twice as fast (docs/performance.md).
func (s *Store) zeroAhead() int64 {
	if s.opts.Write != mappedfile.Pwrite || s.opts.Sync != commitlog.SyncGroup || s.opts.Sparse {
		return 0
	}
	return 1 << 20
}

// openTransactions opens the state table and the redo log as they lie.
func (s *Store) openTransactions(budget *mappedfile.Budget) error {
	states, err := txstate.Open(s.fsys, txstate.Dir, &txstate.Options{
		SegmentSize: s.shape.stateSegment, ReadOnly: s.opts.ReadOnly, Budget: budget, Logger: s.opts.Logger,
	})
	if err != nil {
		return err
	}
	s.tx = &recovery.Transactions{States: states}
	s.tx.Redo, err = redolog.Open(s.fsys, redolog.Dir, &redolog.Options{
		SegmentSize: s.shape.redoSegment, ReadOnly: s.opts.ReadOnly, Budget: budget, Logger: s.opts.Logger,
	})
	return err
}

// startEngine makes the engine ready, once the store is recovered. A new store of the state table gets its folders at
// once, since they are what shows its line.
func (s *Store) startEngine() error {
	if s.tx == nil {
		s.engine = newHalfEngine(s)
		return nil
	}
	s.engine = newStateEngine(s)
	if s.opts.ReadOnly {
		return nil
	}
	for _, dir := range []string{txstate.Dir, redolog.Dir} {
		if err := s.fsys.MkdirAll(dir, dirPerm); err != nil {
			return err
		}
		for dir != "." { // whoever makes files in it later finds it there, and syncs its own names only
			dir = path.Dir(dir)
			if err := s.fsys.SyncDir(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// Report says what opening found and did.
func (s *Store) Report() *recovery.Report { return s.report }

// Dialect is the line of RocketMQ whose rules the store follows.
func (s *Store) Dialect() *dialect.Dialect { return s.dialect }

// Bounds gives the physical offset of the first byte that the log still has, and the offset behind the last record.
func (s *Store) Bounds() (start, end int64) { return s.log.Bounds() }

// Sync makes everything that was put before the call durable, in the log.
func (s *Store) Sync() error {
	if s.closed.Load() {
		return ErrClosed
	}
	_, _, err := s.log.Sync()
	return err
}

// Close ends the store: it waits until everything put is dispatched, syncs all, writes the checkpoint, removes the abort
// file as the last step and gives the lock back. When ctx ends first, or something cannot be made durable, the abort file
// stays and the next opening recovers. A second call does nothing.
func (s *Store) Close(ctx context.Context) error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed.Swap(true) {
		return nil
	}
	if s.opts.ReadOnly {
		return s.release()
	}
	end := s.log.Seal()
	// What is noted at the end needs room, on a full disk that of the segment made ahead, which goes anyway.
	_, err := s.log.Queue().DropAhead()
	if err == nil {
		_, _, err = s.log.Sync()
	}
	if err == nil {
		err = s.waitDispatched(ctx, end)
	}
	s.halt()
	if err == nil {
		err = s.settle(ctx)
	}
	err = errors.Join(err, s.release())
	if err == nil {
		err = recovery.MarkClosed(s.fsys)
	}
	return errors.Join(err, s.unlock())
}

// settle makes everything durable and notes that it is.
func (s *Store) settle(ctx context.Context) error {
	if err := errors.Join(s.Checkpoint(ctx), s.saveConfig(), s.forgetIdle()); err != nil {
		return err
	}
	mark, err := s.indexMark() // the checkpoint has synced it
	if err != nil {
		return err
	}
	_, end := s.log.Bounds()
	return s.saveMarker(&recovery.Hint{
		LogEnd: end, LastRecord: s.lastRecord(), Dispatched: end, RedoEnd: s.redoEnd(), Index: mark,
		Fingerprint: recovery.Fingerprint(s.queues, s.index, s.tx),
	})
}

// lastRecord is the physical offset of the log's last record, -1 for none.
func (s *Store) lastRecord() int64 {
	if at := s.live.Last(); at >= 0 {
		return at
	}
	return s.report.LastRecord
}

// Abandon ends the store as the death of its process would: nothing is synced, the abort file stays. It is for tests of
// recovery, and for an owner whose disk has failed.
func (s *Store) Abandon() error {
	s.closing.Lock()
	defer s.closing.Unlock()
	if s.closed.Swap(true) {
		return nil
	}
	s.halt()
	errs := []error{s.log.Abandon(), s.queues.Abandon()}
	if s.index != nil {
		errs = append(errs, s.index.Abandon())
	}
	if s.tx != nil {
		errs = append(errs, s.tx.States.Abandon(), s.tx.Redo.Abandon())
	}
	return errors.Join(append(errs, s.unlock())...)
}

// halt stops the background.
func (s *Store) halt() {
	if s.stop != nil {
		s.stop()
	}
	s.background.Wait()
	s.retainer.mu.Lock()   // an Expire that is under way ends at its next step
	s.retainer.mu.Unlock() //nolint:staticcheck // only waited for
	if s.live != nil {
		s.live.Close()
	}
	s.wake()
}

// release closes whatever is open; without a background it gives the lock back as well.
func (s *Store) release() error {
	var errs []error
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	if s.queues != nil {
		errs = append(errs, s.queues.Close())
	}
	if s.index != nil {
		errs = append(errs, s.index.Close())
	}
	if s.tx != nil {
		errs = append(errs, s.tx.States.Close())
		if s.tx.Redo != nil {
			errs = append(errs, s.tx.Redo.Close())
		}
	}
	if s.stop == nil {
		errs = append(errs, s.unlock())
	}
	return errors.Join(errs...)
}

func (s *Store) unlock() error {
	if s.lock == nil {
		return nil
	}
	err := s.lock.Close()
	s.lock = nil
	if err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}
