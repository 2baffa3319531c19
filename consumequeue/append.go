package consumequeue

import (
	"fmt"
	"math"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// fillChunk is how many fillers are written at a time.
const fillChunk = 3276

// Append puts u at the queue offset index (R-E-042, R-E-043):
//
//   - at the end of the queue: it is written;
//   - before the end: nothing is done when the unit there is equal, so that records can be dispatched again; else a
//     [*MismatchError] says what is there. Where no file holds that unit any more the error is [mappedfile.ErrOutOfRange];
//   - behind the end of a queue that has units: the units between become fillers and count as [Queue.HolesFilled]. More
//     than Options.MaxHole of them are refused with [ErrHole];
//   - in a queue without units, at any offset: the first file is the one that holds index, its units before index become
//     fillers, and the queue's first offset is index.
//
// A full disk is an error that matches syscall.ENOSPC; u is not written then, and may be appended again later. After a
// failed sync that error is returned. It does not allocate.
func (q *Queue) Append(index int64, u Unit) error {
	if err := q.load(); err != nil {
		return err
	}
	if q.table.opts.ReadOnly {
		return q.fail(index, mappedfile.ErrReadOnly)
	}
	if index < 0 || index > math.MaxInt64/UnitSize-1 {
		return q.outOfRange(index)
	}
	end := q.max.Load()
	if index < end {
		return q.compare(index, u)
	}
	if q.short {
		if err := q.mend(); err != nil {
			return err
		}
	}
	if index > end || !q.files {
		if err := q.fillTo(index); err != nil {
			return err
		}
	}
	u.put(q.scratch[:])
	if err := q.appendBytes(q.scratch[:]); err != nil {
		return q.fail(index, err)
	}
	q.max.Store(index + 1)
	q.markDirty()
	return nil
}

// AppendRun is Append for units of consecutive queue offsets from index on, which must be the end of a queue that has units;
// b holds them as [Unit.AppendTo] makes them. After an error those that come first may be there: [Queue.Bounds] says how many.
func (q *Queue) AppendRun(index int64, b []byte) error {
	if err := q.load(); err != nil {
		return err
	}
	if q.table.opts.ReadOnly {
		return q.fail(index, mappedfile.ErrReadOnly)
	}
	if len(b)%UnitSize != 0 || index != q.max.Load() || index <= q.min.Load() || index+int64(len(b)/UnitSize) > math.MaxInt64/UnitSize {
		return q.outOfRange(index)
	}
	if q.short {
		if err := q.mend(); err != nil {
			return err
		}
	}
	if err := q.appendUnits(index, b); err != nil {
		return q.fail(index, err)
	}
	return nil
}

// appendUnits writes whole units at index, the end, over the ends of files. After an error those that come first may be there.
func (q *Queue) appendUnits(index int64, b []byte) error {
	for len(b) > 0 {
		n := min(int64(len(b)), q.segs.Remaining()/UnitSize*UnitSize)
		if err := q.appendBytes(b[:n]); err != nil {
			return err
		}
		b = b[n:]
		index += n / UnitSize
		q.max.Store(index)
		q.markDirty() // when the bytes are there: a sync before that takes the mark away
	}
	return nil
}

// appendBytes writes at the end of the segments.
func (q *Queue) appendBytes(b []byte) error {
	_, err := q.segs.Append(b)
	if !q.files { // after a failure too, the file may have been made
		q.files = len(q.segs.Segments()) > 0
	}
	return err
}

// compare is Append where a unit already is.
func (q *Queue) compare(index int64, want Unit) error {
	have, err := q.unit(index)
	if err != nil {
		return err
	}
	if have != want {
		return &MismatchError{Topic: q.topic, ID: q.id, Index: index, Have: have, Want: want}
	}
	return nil
}

// fillTo makes index the end of the queue, with fillers before it.
func (q *Queue) fillTo(index int64) error {
	end := q.max.Load()
	perSegment := q.segs.SegmentSize() / UnitSize
	first := index - index%perSegment // of the segment that holds index
	hole := index - end
	if q.min.Load() >= end { // no units
		hole = 0
		if err := q.beginAt(first); err != nil {
			return q.fail(index, err)
		}
		q.min.Store(index)
		end = max(q.max.Load(), first)
	}
	if hole > q.table.opts.MaxHole {
		return fmt.Errorf("%w: queue %s/%d: unit %d, end %d", ErrHole, q.topic, q.id, index, end)
	}
	if hole > 0 {
		q.table.opts.Logger.Warn("queue offsets were skipped, the units are filled",
			"topic", q.topic, "queue", q.id, "from", end, "to", index)
	}
	if err := q.fill(end, index); err != nil {
		return q.fail(index, err)
	}
	q.holes.Add(hole)
	q.table.holes.Add(hole)
	return nil
}

// beginAt makes a queue without units end in the segment that starts at unit first, without changing what that segment
// already has.
func (q *Queue) beginAt(first int64) error {
	if q.files && q.max.Load() >= first {
		return nil // it lies there already
	}
	q.edges.Store(nil)
	if q.files { // in other segments nothing lives
		start, _ := q.segs.Bounds()
		if err := q.segs.TruncateAfter(start); err != nil {
			return err
		}
		q.files = false
	}
	if err := q.segs.Begin(first * UnitSize); err != nil {
		return err
	}
	q.max.Store(first)
	return nil
}

// fill appends fillers from end to index.
func (q *Queue) fill(end, index int64) error {
	if end >= index {
		return nil
	}
	b := make([]byte, 0, min(index-end, fillChunk)*UnitSize)
	for len(b) < cap(b) {
		b = Filler().AppendTo(b)
	}
	for end < index {
		n := min(index-end, fillChunk)
		if err := q.appendUnits(end, b[:n*UnitSize]); err != nil {
			return err
		}
		end += n
	}
	return nil
}

// Set overwrites the unit with a queue offset in place. Nobody may read that unit meanwhile. An offset that no file holds,
// or that lies behind the end, gives [mappedfile.ErrOutOfRange].
func (q *Queue) Set(index int64, u Unit) error {
	if err := q.load(); err != nil {
		return err
	}
	if q.table.opts.ReadOnly {
		return q.fail(index, mappedfile.ErrReadOnly)
	}
	if index < 0 || index >= q.max.Load() {
		return q.outOfRange(index)
	}
	q.edges.Store(nil)
	u.put(q.scratch[:])
	if err := q.segs.WriteAt(q.scratch[:], index*UnitSize); err != nil {
		return q.fail(index, err)
	}
	q.patched.Store(true)
	q.markDirty()
	return nil
}
