package commitlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// Errors that callers branch on, besides those of package mappedfile.
var (
	// ErrSyncTimeout says that the record is stored but was not known to be durable in time. Java: FLUSH_DISK_TIMEOUT.
	ErrSyncTimeout = errors.New("stored, but not synced in time")
	// ErrNotAtEnd says that bytes of a replica do not start where the log ends.
	ErrNotAtEnd = errors.New("offset is not the end of the log")
)

// Sequence hands out the queue offsets of one queue. [Log.Append] calls it with the append lock held, so in log order.
type Sequence interface {
	// NextOffset is the offset that the next record gets.
	NextOffset() int64
	// Advance moves it on by n, once the records are in the log.
	Advance(n int64)
}

// Result says where an append went.
type Result struct {
	PhysicalOffset int64 // of the first record
	Size           int   // bytes, of all records together
	QueueOffset    int64 // of the first record
	Records        int
	StoreTimestamp int64 // ms, of all of them
}

// Log is an append-only run of segments. Its methods may be called from many goroutines.
// Lock order: appendMu before any lock of package mappedfile.
type Log struct {
	opts  Options // set by Open, read-only after it
	queue *mappedfile.Queue
	group *group
	grown chan struct{} // one place: something was appended since it was last taken
	// gathers: appends that wait leave their bytes in a buffer of the queue, which the sync that they wait for writes at once.
	gathers bool

	appendMu sync.Mutex // held by Append, Truncate and the roll to a new segment
	lastTime int64      // guarded by appendMu: store time of the last record appended, 0 before the first
	closed   bool       // guarded by appendMu
	sealed   bool       // guarded by appendMu: nothing is appended any more

	foreign atomic.Bool // AppendRaw was called: what is there was not all made here

	stop    context.CancelFunc
	flusher sync.WaitGroup
}

// Open opens the log in fsys as it lies; it does not recover. Until [Log.SetEnd] the log ends where its last file ends.
func Open(fsys mappedfile.FS, o *Options) (*Log, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Log{opts: opts, grown: make(chan struct{}, 1), gathers: opts.Sync == SyncGroup && opts.Write == mappedfile.Pwrite}
	if l.gathers {
		opts.Write = mappedfile.Staged
	}
	q, err := mappedfile.Open(fsys, opts.Dir, &mappedfile.Options{
		SegmentSize: opts.SegmentSize, ReadOnly: opts.ReadOnly, Reserve: opts.Reserve, Ahead: !opts.NoAhead, Populate: opts.Populate, ZeroAhead: opts.ZeroAhead,
		Mode: opts.Write, Committed: l.signalGrown, Budget: opts.Budget, FileMode: opts.FileMode, DirMode: opts.DirMode, Logger: opts.Logger,
		// Size and magic come last: 3.1.4's recovery accepts a record of which a killed process wrote all but the end.
		HeadLast: BlankSize,
	})
	if err != nil {
		return nil, err
	}
	l.queue = q
	l.group = newGroup(func() (int64, error) {
		err := q.Sync(0)
		return q.Flushed(), err
	})
	return l, nil
}

// Start begins the background sync. The owner calls it once, after recovery.
func (l *Log) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	l.flusher.Go(func() { l.flush(ctx) })
}

func (l *Log) flush(ctx context.Context) {
	tick := time.NewTicker(l.opts.FlushEvery)
	defer tick.Stop()
	last := time.Now()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pages := l.opts.FlushPages
		if now := time.Now(); now.Sub(last) >= l.opts.FlushThorough {
			pages, last = 0, now
		}
		if err := l.queue.Sync(pages); err != nil && !failed {
			failed = true
			l.opts.Logger.Error("commit log sync failed; later appends are refused", "err", err)
		}
	}
}

// Queue is the run of segments below the log, for recovery, retention and forensics.
func (l *Log) Queue() *mappedfile.Queue { return l.queue }

// SegmentSize is the length of each segment in bytes.
func (l *Log) SegmentSize() int64 { return l.opts.SegmentSize }

// Bounds gives the offset of the first byte that the log still has, and the offset behind the last record.
func (l *Log) Bounds() (start, end int64) { return l.queue.Bounds() }

// Flushed is the offset up to which everything is durable.
func (l *Log) Flushed() int64 { return l.queue.Flushed() }

// SetEnd tells a log that was opened where it ends; recovery found out. lastTime is the last record's store time, 0 if there is none.
func (l *Log) SetEnd(end, lastTime int64) error {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	l.lastTime = lastTime
	return l.queue.SetEnd(end)
}

// Truncate cuts everything from end on, on disk as well. lastTime is as in SetEnd.
func (l *Log) Truncate(end, lastTime int64) error {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	l.lastTime = lastTime
	return l.queue.TruncateAfter(end)
}

// Begin makes an empty log start at offset: where a replica's first bytes lie, or where an emptied log went on.
func (l *Log) Begin(offset int64) error {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	return l.queue.Begin(offset)
}

// Append writes one record, or several that follow one another in run, at the end of the log: all or none, in one
// segment. Run is what [AppendMessage] made; its queue offsets, physical offsets and store times are filled in here, in
// the caller's bytes, and birth times that are [BornWhenStored]. With seq nil the queue offsets stay as they are. Under [SyncGroup], and with wait, it returns after
// the records are durable.
//
// A [LimitError] means that run cannot fit a segment. A full disk matches syscall.ENOSPC: nothing was written, and a
// later append may succeed. ErrSyncTimeout and the context's error mean that the records are stored. After a failed sync
// every append fails with its error.
func (l *Log) Append(ctx context.Context, run []byte, seq Sequence, wait bool) (Result, error) {
	if int64(len(run))+BlankSize > l.opts.SegmentSize {
		return Result{}, &LimitError{What: "record", Size: int64(len(run)), Limit: l.opts.SegmentSize - BlankSize}
	}
	l.appendMu.Lock()
	res, err := l.append(run, seq)
	l.appendMu.Unlock()
	if err != nil {
		return Result{}, err
	}
	if err := l.arrive(wait); err != nil {
		return Result{}, err
	}
	if wait {
		err = l.Wait(ctx, res.PhysicalOffset+int64(res.Size))
	}
	return res, err
}

// arrive is called behind each append: the dispatcher has work, and what nobody waits for has to be in the file, where the
// death of the process does not reach it.
func (l *Log) arrive(waits bool) error {
	switch {
	case !l.gathers:
		l.signalGrown()
	case !waits:
		return l.queue.Commit()
	}
	return nil
}

func (l *Log) append(run []byte, seq Sequence) (Result, error) {
	if err := l.refused(); err != nil {
		return Result{}, err
	}
	if left := l.queue.Remaining(); int64(len(run))+BlankSize > left {
		var blank [BlankSize]byte
		if err := l.queue.Fill(AppendBlank(blank[:0], int(left))); err != nil {
			return Result{}, err
		}
	}
	res := Result{PhysicalOffset: l.queue.Written(), Size: len(run), StoreTimestamp: l.opts.Now(), QueueOffset: -1}
	if seq != nil {
		res.QueueOffset = seq.NextOffset()
	}
	res.Records = stamp(run, res.PhysicalOffset, res.StoreTimestamp, res.QueueOffset)
	if seq == nil {
		res.QueueOffset = int64(binary.BigEndian.Uint64(run[posQueueOffset:]))
	}
	if _, err := l.queue.Append(run); err != nil {
		return Result{}, err
	}
	l.lastTime = res.StoreTimestamp
	if seq != nil {
		seq.Advance(int64(res.Records))
	}
	return res, nil
}

// Wait returns when everything before the offset upTo is durable, under [SyncGroup]; under another policy at once. The
// errors are those of Append.
func (l *Log) Wait(ctx context.Context, upTo int64) error {
	if l.opts.Sync != SyncGroup {
		return nil
	}
	err := l.group.Wait(ctx, upTo, l.opts.SyncTimeout)
	if err != nil && l.gathers { // who gives up has stored it all the same
		if err := l.queue.Commit(); err != nil {
			return err
		}
	}
	return err
}

// refused says why nothing is appended, if so. The caller holds appendMu.
func (l *Log) refused() error {
	switch {
	case l.closed, l.sealed:
		return mappedfile.ErrClosed
	case l.opts.ReadOnly:
		return mappedfile.ErrReadOnly
	}
	return nil
}

// Seal refuses all appends from now on and gives the offset where the log then ends for good.
func (l *Log) Seal() int64 {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	l.sealed = true
	return l.queue.Written()
}

// BornWhenStored as a BornTimestamp has [Log.Append] put the store time there. A clock costs as much as copying a small record.
const BornWhenStored = math.MinInt64

// stamp fills in what only the append lock can know, and counts the records of run. A negative queue offset is none.
func stamp(run []byte, offset, storeTime, queueOffset int64) int {
	n := 0
	for at := 0; at < len(run); n++ {
		r := run[at:]
		if queueOffset >= 0 {
			binary.BigEndian.PutUint64(r[posQueueOffset:], uint64(queueOffset+int64(n)))
		}
		binary.BigEndian.PutUint64(r[posPhysicalOffset:], uint64(offset+int64(at)))
		binary.BigEndian.PutUint64(r[storeTimePosition(r):], uint64(storeTime))
		if born := r[posBornTimestamp:]; int64(binary.BigEndian.Uint64(born)) == BornWhenStored {
			binary.BigEndian.PutUint64(born, uint64(storeTime))
		}
		at += int(binary.BigEndian.Uint32(r))
	}
	return n
}

// storeTimePosition is where the store time lies in a record.
func storeTimePosition(r []byte) int {
	if message.SysFlag(binary.BigEndian.Uint32(r[posSysFlag:])).Has(message.FlagBornHostIPv6) {
		return posStoreTimestamp + ipv6Extra
	}
	return posStoreTimestamp
}

// AppendRaw appends bytes of another log as they are, at the offset where they lay there: a replica's feed, cut anywhere,
// blanks included. It gives ErrNotAtEnd when offset is not the end of this log; an empty log begins at the first offset.
func (l *Log) AppendRaw(ctx context.Context, offset int64, b []byte, wait bool) error {
	l.foreign.Store(true) // before anybody can read them
	l.appendMu.Lock()
	err := l.appendRaw(offset, b)
	l.appendMu.Unlock()
	if err == nil {
		err = l.arrive(wait)
	}
	if err != nil {
		return err
	}
	if wait {
		return l.Wait(ctx, offset+int64(len(b)))
	}
	return nil
}

func (l *Log) appendRaw(offset int64, b []byte) error {
	if err := l.refused(); err != nil {
		return err
	}
	if len(l.queue.Segments()) == 0 && offset != l.queue.Written() {
		if err := l.queue.Begin(offset); err != nil {
			return err
		}
	}
	if end := l.queue.Written(); offset != end {
		return fmt.Errorf("%w: bytes for %d, the log ends at %d", ErrNotAtEnd, offset, end)
	}
	for len(b) > 0 {
		n := min(int64(len(b)), l.queue.Remaining())
		if _, err := l.queue.Append(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	l.lastTime = 0 // not known: the records are another clock's
	return nil
}

// Grown is signalled, with one place, when something was appended, and when staged bytes can be read. It is for the one
// dispatcher.
func (l *Log) Grown() <-chan struct{} { return l.grown }

func (l *Log) signalGrown() {
	select {
	case l.grown <- struct{}{}:
	default:
	}
}

// Sync makes everything that was appended before the call durable. It returns the end of the log and the store time of
// its last record (0 if unknown) as they were then: what a checkpoint may claim.
func (l *Log) Sync() (end, storeTime int64, err error) {
	l.appendMu.Lock()
	end, storeTime = l.queue.Written(), l.lastTime
	l.appendMu.Unlock()
	return end, storeTime, l.queue.Sync(0)
}

// Close syncs, stops the background and closes. A second call does nothing.
func (l *Log) Close() error {
	if !l.shut() {
		return nil
	}
	var err error
	if !l.opts.ReadOnly {
		err = l.queue.Sync(0)
	}
	return errors.Join(err, l.queue.Close())
}

// Abandon closes as a killed process would: nothing is synced or removed.
func (l *Log) Abandon() error {
	if !l.shut() {
		return nil
	}
	return l.queue.Abandon()
}

func (l *Log) shut() bool {
	l.appendMu.Lock()
	was := l.closed
	l.closed = true
	l.appendMu.Unlock()
	if was {
		return false
	}
	if l.stop != nil {
		l.stop()
	}
	l.flusher.Wait()
	l.group.Settle()
	return true
}
