package consumequeue

import (
	"fmt"
	"math"
	"path"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Retire removes all files of a queue, the oldest first, its folder and that of the topic when nothing else is in them. It is
// for a queue whose records are all gone from the log. The queue stays in the table and goes on at the offset where it ended;
// after the next opening it does so only when [Queue.Resume] says where.
func (q *Queue) Retire() error {
	if err := q.load(); err != nil {
		return err
	}
	end := q.max.Load()
	if q.table.opts.ReadOnly {
		return q.fail(end, mappedfile.ErrReadOnly)
	}
	q.edges.Store(nil)
	q.min.Store(end)
	if err := q.segs.Clear(q.segmentOf(end)); err != nil {
		return q.fail(end, err)
	}
	q.files, q.short = false, false
	_, err := q.table.removeIfEmpty(path.Dir(q.dir))
	return err
}

// Resume makes a queue without files go on at a queue offset, and hand out from there, as it did before [Queue.Retire]. Like
// NextOffset it is called under the caller's lock, if anybody puts meanwhile.
func (q *Queue) Resume(index int64) error {
	q.loadMu.Lock()
	defer q.loadMu.Unlock()
	if q.files || index < 0 || index > math.MaxInt64/UnitSize-1 {
		return fmt.Errorf("resume queue %s/%d at %d: %w", q.topic, q.id, index, mappedfile.ErrOutOfRange)
	}
	if err := q.segs.Begin(q.segmentOf(index)); err != nil {
		return q.fail(index, err)
	}
	q.edges.Store(nil)
	q.min.Store(index)
	q.max.Store(index)
	q.loaded.Store(true)
	q.next = index
	return nil
}

// segmentOf is the byte at which the file that holds a unit begins.
func (q *Queue) segmentOf(index int64) int64 {
	return index*UnitSize - index*UnitSize%q.segs.SegmentSize()
}

// DeletableBefore lists the files that [Queue.DeleteBefore] removes. It may be called next to everything that reads.
func (q *Queue) DeletableBefore(logMin int64) ([]mappedfile.SegmentInfo, error) {
	if err := q.load(); err != nil {
		return nil, err
	}
	segments := q.segs.Segments()
	keep := 0
	for ; keep < len(segments)-1; keep++ {
		s := segments[keep]
		first := s.Start / UnitSize
		u, ok, err := q.lastReal(first, min(first+s.Length/UnitSize, q.max.Load()))
		if err != nil {
			return nil, err
		}
		if first+s.Length/UnitSize > q.max.Load() || ok && u.PhysicalOffset >= logMin {
			break
		}
	}
	return segments[:keep], nil
}
