package mappedfile

import (
	"sync"
	"sync/atomic"
)

// Budget is a limit on mapped segments, and with them on open files, that many queues share. When a segment has to be
// mapped and the limit is reached, segments that nobody looks at are unmapped and their files closed, those first that
// were not used for longest (second chance). Segments with views out are left alone, so the limit may be exceeded while
// more views than that are out. A dirty segment that was unmapped is synced through a newly opened file. All methods may be called from many goroutines.
type Budget struct {
	max int

	mu    sync.Mutex
	hand  *handle // a ring of all open handles; the hand points at the next candidate
	count int
	bytes int64
	over  atomic.Bool // more are mapped than should be, since views are out; stored with mu held
}

// NewBudget gives a budget of maxMapped segments; less than 1 counts as 1.
func NewBudget(maxMapped int) *Budget { return &Budget{max: max(maxMapped, 1)} }

// Stats gives the number of segments that are mapped now, and their length in bytes.
func (b *Budget) Stats() (mapped int, bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count, b.bytes
}

// add enters h, which is in use, and unmaps others while there are too many.
func (b *Budget) add(h *handle) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hand == nil {
		h.prev, h.next = h, h
		b.hand = h
	} else {
		h.prev, h.next = b.hand.prev, b.hand
		h.prev.next, h.next.prev = h, h
	}
	b.count++
	b.bytes += int64(len(h.bytes))
	b.evict()
}

// released is told that a handle is no longer in use. It makes up for what could not be unmapped before.
func (b *Budget) released() {
	if !b.over.Load() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evict()
}

// evict unmaps segments while there are too many. The caller holds mu, which is let go in between.
func (b *Budget) evict() {
	// Twice around is enough: the first round takes the marks away.
	for tries := 2 * b.count; b.count > b.max && tries > 0; tries-- {
		v := b.hand
		b.hand = v.next
		if v.used.Swap(false) || v.refs.Load() != 1 {
			continue
		}
		if v.seg.h.CompareAndSwap(v, nil) { // now the segment's own reference is ours to drop
			b.mu.Unlock()
			v.seg.q.evicted.Add(1)
			v.release()
			b.mu.Lock()
		}
	}
	b.over.Store(b.count > b.max)
}

// remove takes h out when its mapping has ended.
func (b *Budget) remove(h *handle) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hand == h {
		b.hand = h.next
	}
	if h.next == h {
		b.hand = nil
	}
	h.prev.next, h.next.prev = h.next, h.prev
	h.prev, h.next = nil, nil
	b.count--
	b.bytes -= int64(len(h.bytes))
	b.over.Store(b.count > b.max)
}
