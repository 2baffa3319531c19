package mappedfile

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore/internal/invariant"
)

// segment is one file of a queue.
type segment struct {
	q       *Queue
	start   int64
	name    string // with the directory
	modTime time.Time
	length  atomic.Int64 // bytes on disk

	// h holds the open handle and with it the segment's own reference: who takes the pointer out drops that reference.
	h       atomic.Pointer[handle]
	handles atomic.Int32 // handles not ended, also those that only views hold
	openMu  sync.Mutex   // held while a handle is made, and by whoever must keep new ones from being made
	gone    error        // guarded by openMu; why no handle may be made any more

	whole    bool     // blocks of the whole file are reserved; guarded by Queue.mu
	reserved []uint64 // a bit per Step that is reserved; guarded by Queue.mu
	readied  int64    // so far it was zeroed or faulted in when it was made ahead; guarded by background.mu

	dirty dirtySet // guarded by Queue.dirtyMu
}

// handle is an open and mapped file. It lives until its last reference is dropped: one is the segment's own, one each
// is held by views and by whoever works with the file.
type handle struct {
	refs  atomic.Int32
	used  atomic.Bool // again after it was mapped, since the budget's hand last passed
	seg   *segment
	file  File
	m     Mapping
	bytes []byte
	// shared: the file has another name, as in a snapshot, and is open for reading only; see acquireToWrite.
	shared bool

	prev, next *handle // guarded by Budget.mu
}

// tryAcquire takes a reference unless the last one is already dropped.
func (h *handle) tryAcquire() bool {
	for {
		n := h.refs.Load()
		if n == 0 {
			return false
		}
		if h.refs.CompareAndSwap(n, n+1) {
			if !h.used.Load() {
				h.used.Store(true)
			}
			return true
		}
	}
}

// release drops a reference; the last one unmaps and closes.
func (h *handle) release() {
	n := h.refs.Add(-1)
	invariant.Check(n >= 0, "a view is released once")
	switch n {
	case 0:
		h.end()
	case 1:
		if b := h.seg.q.opts.Budget; b != nil {
			b.released()
		}
	}
}

func (h *handle) end() {
	s := h.seg
	if err := errors.Join(h.m.Unmap(), h.file.Close()); err != nil {
		s.q.opts.Logger.Warn("unmapping a segment", "file", s.name, "err", err)
	}
	s.q.mapped.Add(-1)
	s.q.mappedBytes.Add(-int64(len(h.bytes)))
	if b := s.q.opts.Budget; b != nil {
		b.remove(h)
	}
	s.handles.Add(-1)
}

// acquire gives the segment's handle with a reference for the caller, opening and mapping the file if need be.
func (s *segment) acquire() (*handle, error) {
	if h := s.h.Load(); h != nil && h.tryAcquire() {
		return h, nil
	}
	s.openMu.Lock()
	defer s.openMu.Unlock()
	if h := s.h.Load(); h != nil && h.tryAcquire() {
		return h, nil
	}
	if s.gone != nil {
		return nil, s.gone
	}
	flag, access := os.O_RDWR, ReadWrite
	if s.q.opts.ReadOnly || linked(s.q.fsys, s.name) {
		flag, access = os.O_RDONLY, ReadOnly
	}
	f, err := s.q.fsys.OpenFile(s.name, flag, 0)
	if err != nil {
		return nil, err
	}
	return s.adopt(f, access)
}

// adopt maps f and makes it the segment's handle, with a reference for the caller. It closes f on failure.
// The caller holds openMu, or nobody else knows the segment yet.
func (s *segment) adopt(f File, access Access) (*handle, error) {
	m, err := f.Map(s.length.Load(), access)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", s.name, errors.Join(err, f.Close()))
	}
	h := &handle{seg: s, file: f, m: m, bytes: m.Bytes(), shared: access == ReadOnly && !s.q.opts.ReadOnly}
	h.refs.Store(2) // the segment's and the caller's
	s.handles.Add(1)
	s.q.mapped.Add(1)
	s.q.mappedBytes.Add(int64(len(h.bytes)))
	s.h.Store(h)
	if b := s.q.opts.Budget; b != nil {
		b.add(h)
	}
	return h, nil
}

// retire ends the segment: no new handle is made, and the mapping goes with the last view. why is what callers get.
func (s *segment) retire(why error) {
	s.openMu.Lock()
	s.gone = why
	s.openMu.Unlock()
	s.drop()
}

// drop gives up the segment's own reference, so that the mapping goes with the last view. It may be mapped anew.
func (s *segment) drop() {
	if h := s.h.Swap(nil); h != nil {
		h.release()
	}
}

// reserve makes sure of the blocks under n bytes from pos on. The caller holds Queue.mu.
func (s *segment) reserve(f File, pos int64, n int) error {
	if s.whole || n == 0 {
		return nil
	}
	step, size := s.q.opts.Step, s.q.opts.SegmentSize
	if s.reserved == nil {
		s.reserved = make([]uint64, (size+step*64-1)/(step*64))
	}
	for i := pos / step; i <= (pos+int64(n)-1)/step; i++ {
		if s.hasStep(i) {
			continue
		}
		steps := s.growth(i)
		err := f.Allocate(i*step, min(steps*step, size-i*step))
		if err != nil && steps > 1 { // a full disk may have room for what is needed
			steps = 1
			err = f.Allocate(i*step, min(step, size-i*step))
		}
		if err != nil {
			return fmt.Errorf("reserve blocks of %s: %w", s.name, err)
		}
		for k := i; k < i+steps; k++ {
			s.reserved[k/64] |= 1 << (k % 64)
		}
	}
	return nil
}

// mostGrowth bounds, in bytes, what is reserved at a time.
const mostGrowth = 1 << 20

// growth is how many steps to reserve from step i on: as many as there are before it, for a file that grows long step by step
// lies on the disk in as many pieces when others grow beside it.
func (s *segment) growth(i int64) int64 {
	step := s.q.opts.Step
	most := min(mostGrowth/step, (s.q.opts.SegmentSize-1)/step+1-i)
	n := int64(0)
	for n < min(i, most) && s.hasStep(i-1-n) && !s.hasStep(i+n) {
		n++
	}
	return max(n, 1)
}

// hasStep says whether a step is reserved.
func (s *segment) hasStep(i int64) bool { return s.reserved[i/64]&(1<<(i%64)) != 0 }

// end is the offset behind the segment when it is as long as it should be.
func (s *segment) end() int64 { return s.start + s.q.opts.SegmentSize }

// dirtySet remembers which pages of a segment were overwritten in place and not synced.
type dirtySet struct {
	lo, hi int64    // bytes from the segment's start; hi 0: nothing
	pages  []uint64 // a bit per page
}

func (d *dirtySet) add(pos int64, n int, size int64) {
	if d.pages == nil {
		d.pages = make([]uint64, (size+PageSize*64-1)/(PageSize*64))
	}
	end := pos + int64(n)
	if d.hi == 0 {
		d.lo = pos
	}
	d.lo, d.hi = min(d.lo, pos), max(d.hi, end)
	for p := pos / PageSize; p <= (end-1)/PageSize; p++ {
		d.pages[p/64] |= 1 << (p % 64)
	}
}

// count gives the number of dirty pages that start below limit.
func (d *dirtySet) count(limit int64) int {
	if d.hi == 0 || limit <= d.lo/PageSize*PageSize {
		return 0
	}
	n := 0
	last := (min(limit, d.hi) - 1) / PageSize
	for w := d.lo / PageSize / 64; w <= last/64; w++ {
		word := d.pages[w]
		if w == last/64 {
			word &= ^uint64(0) >> (63 - last%64)
		}
		n += bits.OnesCount64(word)
	}
	return n
}

// take gives the range that covers the dirty pages and forgets them.
func (d *dirtySet) take() (lo, hi int64) {
	if d.hi == 0 {
		return 0, 0
	}
	lo, hi = d.lo, d.hi
	clear(d.pages[lo/PageSize/64 : (hi-1)/PageSize/64+1])
	d.lo, d.hi = 0, 0
	return lo, hi
}
