package consumequeue

import (
	"fmt"
	"slices"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// TruncateAfter makes index the end of the queue: the units from it on are zeroed on disk, with whatever lies behind them,
// their files are removed, and that is durable when it returns. An index behind the end counts as the end, one in a gap
// between files as the gap's start. When the first file starts at index that file stays, empty, since its name is the
// memory of the queue's offsets.
func (q *Queue) TruncateAfter(index int64) error {
	if err := q.load(); err != nil {
		return err
	}
	if q.table.opts.ReadOnly {
		return q.fail(index, mappedfile.ErrReadOnly)
	}
	if index < 0 {
		return q.outOfRange(index)
	}
	if q.short {
		if err := q.mend(); err != nil {
			return err
		}
	}
	index = q.holdable(min(index, q.max.Load()))
	q.edges.Store(nil)
	q.max.Store(index)
	if q.min.Load() > index {
		q.min.Store(index)
	}
	if err := q.cutSegments(index * UnitSize); err != nil {
		return q.fail(index, fmt.Errorf("truncate: %w", err))
	}
	q.files = len(q.segs.Segments()) > 0
	return nil
}

// holdable gives index, or the end of the file before the gap in which index lies.
func (q *Queue) holdable(index int64) int64 {
	for _, s := range slices.Backward(q.segs.Segments()) {
		if s.Start < index*UnitSize {
			return min(index, (s.Start+s.Length)/UnitSize)
		}
	}
	return index
}

// cutSegments removes what lies from byte off on.
func (q *Queue) cutSegments(off int64) error {
	segments := q.segs.Segments()
	if len(segments) == 0 {
		return nil
	}
	first := segments[0]
	if off != first.Start || off == 0 || first.Length < UnitSize {
		return q.segs.TruncateAfter(max(off, first.Start))
	}
	// Keep the file: cut behind its first unit, and zero that one.
	clear(q.scratch[:])
	for _, step := range []func() error{
		func() error { return q.segs.SetEnd(max(q.segs.Written(), off+UnitSize)) },
		func() error { return q.segs.TruncateAfter(off + UnitSize) },
		func() error { return q.segs.WriteAt(q.scratch[:], off) },
		func() error { return q.segs.Sync(0) },
		func() error { return q.segs.SetEnd(off) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Repair makes the files whole after a crash, or a copy, cut the last one short: it is extended with zeros to its size, an
// empty one is removed. It says what it changed. Append and TruncateAfter do it when it is needed; [Table.Notices] has
// such files.
func (q *Queue) Repair() ([]mappedfile.Notice, error) {
	if q.table.opts.ReadOnly {
		return nil, fmt.Errorf("repair queue %s/%d: %w", q.topic, q.id, mappedfile.ErrReadOnly)
	}
	if !q.short {
		return nil, nil
	}
	if err := q.load(); err != nil {
		return nil, err
	}
	notices, err := q.segs.Repair()
	if err == nil { // zeros where the file was cut in a unit
		err = q.cutSegments(q.max.Load() * UnitSize)
	}
	if err != nil {
		return notices, fmt.Errorf("repair queue %s/%d: %w", q.topic, q.id, err)
	}
	q.short, q.files = false, len(q.segs.Segments()) > 0
	return notices, nil
}

// mend repairs and logs what that changed.
func (q *Queue) mend() error {
	notices, err := q.Repair()
	for _, n := range notices {
		q.table.opts.Logger.Warn("repaired a queue", "file", n.File, "text", n.Text)
	}
	return err
}
