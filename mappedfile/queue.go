package mappedfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore/internal/invariant"
)

// Queue is the run of segments in one directory. The package comment says what may be called next to what.
// Lock order: syncMu, mu, freshMu, segment.openMu, dirtyMu or Budget.mu.
type Queue struct {
	fsys    FS
	dir     string
	opts    Options
	bg      *background                // nil when there is nothing for it to do
	notices []Notice                   // of Open
	segs    atomic.Pointer[[]*segment] // ascending by start; a new slice for each change, stored under mu
	failed  atomic.Pointer[error]      // the first failed sync, or ErrClosed
	closed  atomic.Bool

	_ [64]byte // what follows changes with each append, what is above with none: readers on other processors look at it all the time

	mu        sync.Mutex // held by whatever changes bytes or the list
	dirExists bool       // guarded by mu until the first segment is there, then constant
	stage     stage      // guarded by mu
	asked     int64      // guarded by mu; start of the segment that bg was last asked for
	// All positions are offsets. Only goroutines that hold mu (flushed: syncMu) store them.
	written   atomic.Int64 // end of what was appended
	committed atomic.Int64 // end of what readers see; the same but for Staged

	_ [64]byte

	flushed  atomic.Int64 // all before it is durable
	syncMu   sync.Mutex   // held by Sync and by whatever removes files
	dirtyMu  sync.Mutex   // guards segment.dirty
	anyDirty atomic.Bool  // some segment's dirty set is not empty
	freshMu  sync.Mutex   // guards fresh, and is held while they are made durable
	fresh    []*segment   // made, but length and name not durable yet
	anyFresh atomic.Bool  // fresh is not empty
	newDirs  bool         // guarded by freshMu; the directory itself was made by us and its name is not durable

	syncs, madeAhead, made, evicted, mapped, mappedBytes atomic.Int64
}

// SegmentInfo describes one file of a queue.
type SegmentInfo struct {
	Start   int64  // offset of its first byte
	Length  int64  // bytes on disk
	Name    string // path inside the store directory
	ModTime time.Time
}

// Stats are counters of a [Queue] since it was opened, and how much it holds now.
type Stats struct {
	Segments    int   // files in the list
	Mapped      int   // segments mapped now, also by views only
	MappedBytes int64 // their length
	Syncs       int64 // calls of Sync that had something to do
	Made        int64 // segments made in all
	MadeAhead   int64 // of these, made by the background and taken by a roll
	Evicted     int64 // segments unmapped because of the budget
}

// Notices gives what Open found odd.
func (q *Queue) Notices() []Notice { return slices.Clone(q.notices) }

// Dir is the directory inside the store directory.
func (q *Queue) Dir() string { return q.dir }

// SegmentSize is the length in bytes of each file.
func (q *Queue) SegmentSize() int64 { return q.opts.SegmentSize }

// Segments lists the files, oldest first; also those behind the end, but not one that the background has made ahead.
func (q *Queue) Segments() []SegmentInfo {
	segs := q.list()
	infos := make([]SegmentInfo, len(segs))
	for i, s := range segs {
		infos[i] = SegmentInfo{Start: s.start, Length: s.length.Load(), Name: s.name, ModTime: s.modTime}
	}
	return infos
}

// Bounds gives the offset of the first segment and the end of what readers see. An empty queue has both the same: 0, or
// where it will begin after [Queue.Begin] or when all was truncated.
func (q *Queue) Bounds() (start, end int64) {
	// The end first: it is never below the start of a list that is loaded later, unless all was deleted in between.
	end = q.committed.Load()
	segs := q.list()
	if len(segs) == 0 {
		return end, end
	}
	return segs[0].start, max(end, segs[0].start)
}

// Written is the end of what was appended, staged bytes included.
func (q *Queue) Written() int64 { return q.written.Load() }

// Flushed is the offset before which all is durable. It is never above the end of [Queue.Bounds].
func (q *Queue) Flushed() int64 { return q.flushed.Load() }

// Remaining gives the bytes left in the last segment; the whole segment size when the next byte opens a new one.
func (q *Queue) Remaining() int64 {
	return q.opts.SegmentSize - q.written.Load()%q.opts.SegmentSize
}

// Stats gives the counters.
func (q *Queue) Stats() Stats {
	return Stats{
		Segments: len(q.list()), Mapped: int(q.mapped.Load()), MappedBytes: q.mappedBytes.Load(),
		Syncs: q.syncs.Load(), Made: q.made.Load(), MadeAhead: q.madeAhead.Load(), Evicted: q.evicted.Load(),
	}
}

// SetEnd says where the data ends, as the owner found out: all positions are set there, nothing is written. The offset
// must lie in a segment or at the end of one, else ErrOutOfRange. Segments behind it are used again by rolling into
// them, so they must hold zeros; else call [Queue.TruncateAfter].
func (q *Queue) SetEnd(off int64) error {
	q.syncMu.Lock()
	defer q.syncMu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Load() {
		return ErrClosed
	}
	if !q.holds(off) {
		return fmt.Errorf("%w: end %d of %s", ErrOutOfRange, off, q.dir)
	}
	q.setPositions(off, off)
	return nil
}

// Begin makes an empty queue start at off: its first segment will be the one that holds off, and the bytes of it
// before off are zero. It is ErrOutOfRange for a queue that is not empty.
func (q *Queue) Begin(off int64) error {
	q.syncMu.Lock()
	defer q.syncMu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.writable(); err != nil {
		return err
	}
	if off < 0 || len(q.list()) > 0 {
		return fmt.Errorf("%w: %s cannot begin at %d", ErrOutOfRange, q.dir, off)
	}
	q.setPositions(off, off)
	return nil
}

// Close stops the background, commits staged bytes, removes a segment that was made ahead and not used, and closes the
// files; mappings end with their last view. It does not sync: call Sync(0) first. A second call does nothing.
func (q *Queue) Close() error {
	q.bg.stop()
	q.mu.Lock()
	var err error
	if !q.closed.Load() && q.opts.Mode == Staged {
		err = q.commitLocked()
	}
	if ahead := q.bg.takeAny(); ahead != nil {
		if rerr := q.removeFile(ahead, ErrClosed); rerr != nil && err == nil {
			err = rerr
		}
	}
	q.mu.Unlock()
	q.end()
	return err
}

// DropAhead removes the segment that the background made ahead and nothing was written to, and says whether there was one:
// on a full disk others need its blocks more. The next append at a border makes its segment itself.
func (q *Queue) DropAhead() (dropped bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.writable(); err != nil {
		return false, err
	}
	ahead := q.bg.takeAny()
	if ahead == nil {
		return false, nil
	}
	return true, q.removeFile(ahead, ErrOutOfRange)
}

// Abandon ends the queue as a crash would, without syncing, committing or removing anything, but gives back memory,
// files and goroutines.
func (q *Queue) Abandon() error {
	q.bg.stop()
	if ahead := q.bg.takeAny(); ahead != nil {
		ahead.retire(ErrClosed)
	}
	q.end()
	return nil
}

// Destroy closes the queue and removes its files, the newest first. The directory stays.
func (q *Queue) Destroy() error {
	if q.opts.ReadOnly {
		return ErrReadOnly
	}
	if err := q.Close(); err != nil {
		return err
	}
	q.syncMu.Lock()
	defer q.syncMu.Unlock()
	for _, s := range slices.Backward(q.list()) {
		if err := q.removeFile(s, ErrClosed); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queue) end() {
	q.syncMu.Lock()
	defer q.syncMu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed.Swap(true) {
		return
	}
	for _, s := range q.list() {
		s.retire(ErrClosed)
	}
}

func (q *Queue) list() []*segment {
	if p := q.segs.Load(); p != nil {
		return *p
	}
	return nil
}

// setPositions moves the end to off, and flushed too. The caller holds syncMu and mu.
func (q *Queue) setPositions(off, flushed int64) {
	q.stage.reset(off)
	q.asked = -1
	// Going down flushed goes first, going up last, so that it never passes the end.
	if flushed < q.flushed.Load() {
		q.flushed.Store(flushed)
	}
	q.written.Store(off)
	q.committed.Store(off)
	q.flushed.Store(flushed)
}

// advance moves the end after an append. The caller holds mu.
func (q *Queue) advance(off int64) {
	invariant.Check(off >= q.written.Load(), "the end only grows by appending")
	q.written.Store(off)
	if q.opts.Mode != Staged {
		q.committed.Store(off)
	}
}

// writable says why nothing may be written.
func (q *Queue) writable() error {
	if q.closed.Load() {
		return ErrClosed
	}
	if q.opts.ReadOnly {
		return ErrReadOnly
	}
	return q.failure()
}

func (q *Queue) failure() error {
	if p := q.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// fail keeps the first error that makes further writing unsafe, and returns it.
func (q *Queue) fail(err error) error {
	if q.failed.CompareAndSwap(nil, &err) {
		q.opts.Logger.Error("no further writing after this", "file", q.dir, "err", err)
	}
	return q.failure()
}

// find gives the segment whose range holds off, nil if there is none.
func (q *Queue) find(off int64) *segment {
	segs, size := q.list(), q.opts.SegmentSize
	if len(segs) == 0 || off < segs[0].start {
		return nil
	}
	// Without gaps it is where arithmetic says.
	if i := (off - segs[0].start) / size; i < int64(len(segs)) && segs[i].start <= off && off-segs[i].start < size {
		return segs[i]
	}
	i, found := slices.BinarySearchFunc(segs, off, func(s *segment, off int64) int {
		switch {
		case off < s.start:
			return 1
		case off-s.start >= size:
			return -1
		}
		return 0
	})
	if !found {
		return nil
	}
	return segs[i]
}

// holds says whether off is in a segment or at the end of one, as far as the file goes.
func (q *Queue) holds(off int64) bool {
	segs := q.list()
	if len(segs) == 0 {
		return off == q.written.Load()
	}
	if s := q.find(off); s != nil {
		return off-s.start <= s.length.Load()
	}
	prev := q.find(off - 1)
	return prev != nil && off-prev.start <= prev.length.Load()
}

// insert puts s into the list. The caller holds mu.
func (q *Queue) insert(s *segment) {
	old := q.list()
	i, _ := slices.BinarySearchFunc(old, s.start, func(e *segment, start int64) int {
		return int(min(max(e.start-start, -1), 1))
	})
	segs := make([]*segment, 0, len(old)+1)
	segs = append(append(append(segs, old[:i]...), s), old[i:]...)
	q.segs.Store(&segs)
}

// remove takes s out of the list. The caller holds mu.
func (q *Queue) remove(s *segment) {
	segs := slices.DeleteFunc(slices.Clone(q.list()), func(e *segment) bool { return e == s })
	q.segs.Store(&segs)
}

func (q *Queue) pathOf(start int64) string { return path.Join(q.dir, SegmentName(start)) }

// removeFile retires s, deletes its file and makes that durable, so that names go in this order whatever happens.
func (q *Queue) removeFile(s *segment, why error) error {
	s.retire(why)
	q.freshMu.Lock()
	defer q.freshMu.Unlock()
	q.fresh = slices.DeleteFunc(q.fresh, func(e *segment) bool { return e == s })
	q.anyFresh.Store(len(q.fresh) > 0)
	if err := q.fsys.Remove(s.name); err != nil && !isNotExist(err) {
		return err
	}
	return q.fsys.SyncDir(q.dir)
}

func isNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }
