package mappedfile

import (
	"path"

	"github.com/rocketstore/rocketstore/internal/invariant"
)

// Sync makes durable what was appended, committed or overwritten before the call, if at least leastPages pages of 4096
// bytes are dirty or a segment is full; 0 means anything. [Staged] bytes are committed first. Appending may go on
// meanwhile; what it adds need not be covered. The length and the name of a new segment are made durable before its
// bytes count. The first failure is kept and returned by all later calls of Sync and Append.
func (q *Queue) Sync(leastPages int) error {
	q.syncMu.Lock()
	defer q.syncMu.Unlock()
	if err := q.writable(); err != nil {
		return err
	}
	if q.opts.Mode == Staged {
		if err := q.Commit(); err != nil {
			return err
		}
	}
	if !q.worthSyncing(leastPages) {
		return nil
	}
	q.syncs.Add(1)
	return q.syncTo(q.committed.Load())
}

// worthSyncing says whether enough is dirty.
func (q *Queue) worthSyncing(leastPages int) bool {
	flushed, end := q.flushed.Load(), q.committed.Load()
	if leastPages <= 0 {
		return flushed < end || q.anyDirty.Load() || q.anyFresh.Load()
	}
	if flushed/q.opts.SegmentSize < end/q.opts.SegmentSize {
		return true
	}
	pages := int((end+PageSize-1)/PageSize - flushed/PageSize)
	if flushed == end {
		pages = 0
	}
	if pages >= leastPages || !q.anyDirty.Load() {
		return pages >= leastPages
	}
	q.dirtyMu.Lock()
	defer q.dirtyMu.Unlock()
	for _, s := range q.list() {
		// Pages from flushed on are counted already.
		pages += s.dirty.count(min(flushed-s.start, q.opts.SegmentSize))
	}
	return pages >= leastPages
}

// syncTo makes everything before end durable, and what was overwritten. The caller holds syncMu.
func (q *Queue) syncTo(end int64) error {
	// Before any byte: names and lengths, so that flushed never counts bytes of a file that may vanish.
	if err := q.settle(); err != nil {
		return err
	}
	anyDirty := q.anyDirty.Swap(false)
	for _, s := range q.list() {
		from := max(q.flushed.Load()-s.start, 0)
		to := min(end-s.start, q.opts.SegmentSize)
		if from >= to && !anyDirty {
			continue
		}
		if err := q.syncSegment(s, from, to); err != nil {
			return q.fail(err)
		}
		if to > from {
			q.flushed.Store(s.start + to)
		}
	}
	if q.flushed.Load() < end { // the end is behind a gap
		q.flushed.Store(end)
	}
	invariant.Check(q.flushed.Load() <= q.committed.Load(), "flushed <= written")
	return nil
}

// syncSegment makes the bytes [from, to) of s durable, and its dirty pages.
func (q *Queue) syncSegment(s *segment, from, to int64) error {
	q.dirtyMu.Lock()
	lo, hi := s.dirty.take()
	q.dirtyMu.Unlock()
	switch {
	case from >= to && hi == 0:
		return nil
	case from >= to:
		from, to = lo, hi
	case hi > 0:
		from, to = min(from, lo), max(to, hi)
	}
	h, err := s.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	if q.opts.Mode != Mapped {
		return h.file.Sync()
	}
	if hi == 0 && to-from >= worthUnmapping {
		// What was appended is written no more, and a sync of mapped pages interrupts all processors for each page of 4096 bytes
		// that it takes; this does so once for many. Readers map it again, sixteen pages at a time. A refusal is no harm.
		_ = h.m.Advise(int(from), int(to-from), DontNeed)
	}
	return h.m.SyncRange(int(from), int(to-from))
}

// worthUnmapping is the length in bytes from which on a range is taken out of the page tables before it is synced.
const worthUnmapping = 64 << 10

// Settle makes the lengths and names of new segments durable, which the making of the next segment waits for. Whoever writes
// much calls it while a new segment has little in it yet: for lack of a narrower call, what is in it becomes durable as well.
// The first failure is kept, as with [Queue.Sync].
func (q *Queue) Settle() error {
	if err := q.writable(); err != nil {
		return err
	}
	return q.settle()
}

// settle is Settle without the test.
func (q *Queue) settle() error {
	if !q.anyFresh.Load() {
		return nil
	}
	q.freshMu.Lock()
	defer q.freshMu.Unlock()
	if len(q.fresh) == 0 {
		return nil
	}
	for _, s := range q.fresh {
		h, err := s.acquire()
		if err != nil {
			return q.fail(err)
		}
		err = h.file.Sync()
		h.release()
		if err != nil {
			return q.fail(err)
		}
	}
	if err := q.syncNames(); err != nil {
		return q.fail(err)
	}
	clear(q.fresh)
	q.fresh = q.fresh[:0]
	q.anyFresh.Store(false)
	return nil
}

// syncDir makes the names in the directory durable.
func (q *Queue) syncDir() error {
	q.freshMu.Lock()
	defer q.freshMu.Unlock()
	return q.syncNames()
}

// syncNames syncs the directory, and its parents when we made it. The caller holds freshMu.
func (q *Queue) syncNames() error {
	if err := q.fsys.SyncDir(q.dir); err != nil {
		return err
	}
	if !q.newDirs {
		return nil
	}
	for d := q.dir; d != "."; {
		d = path.Dir(d)
		if err := q.fsys.SyncDir(d); err != nil {
			return err
		}
	}
	q.newDirs = false
	return nil
}
