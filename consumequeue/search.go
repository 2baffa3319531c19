package consumequeue

import (
	"errors"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// MinFor gives the queue offset of the first unit whose record lies at or behind logMin, the commit log's first byte; the
// end of the queue when there is none. Fillers count as before it. It looks at few units, whatever the queue's length.
func (q *Queue) MinFor(logMin int64) (int64, error) {
	if err := q.load(); err != nil {
		return 0, err
	}
	start, _ := q.segs.Bounds()
	first, end := start/UnitSize, q.max.Load()
	if u, ok := q.edges.Load().unit(first); ok && first < end && u.real() && u.PhysicalOffset >= logMin {
		return first, nil
	}
	return q.search(first, end, func(u Unit) (bool, error) { return u.PhysicalOffset >= logMin, nil })
}

// SetMin makes the first offset that [Queue.Bounds] gives that of [Queue.MinFor] (R-E-045).
func (q *Queue) SetMin(logMin int64) error {
	first, err := q.MinFor(logMin)
	if err != nil {
		return err
	}
	q.min.Store(first)
	return nil
}

// OffsetAt gives the queue offset of the first unit whose message was stored at or after t, in milliseconds; the end of
// the queue when there is none (R-E-044). storeTime looks a unit's message up in the commit log; when the log does not go
// back that far it returns an error that matches [mappedfile.ErrOutOfRange], and the unit counts as earlier. Every other
// error ends the search and is returned. Store times must not fall along the queue; where they do, some unit with an
// earlier one before it is found.
func (q *Queue) OffsetAt(t int64, storeTime func(Unit) (int64, error)) (int64, error) {
	first, end := q.Bounds()
	if err := q.load(); err != nil {
		return 0, err
	}
	return q.search(first, end, func(u Unit) (bool, error) {
		at, err := storeTime(u)
		if errors.Is(err, mappedfile.ErrOutOfRange) {
			return false, nil
		}
		return at >= t, err
	})
}

// search gives the first offset in [lo, hi) whose unit, no filler, satisfies reached, given that all behind it do; else hi.
func (q *Queue) search(lo, hi int64, reached func(Unit) (bool, error)) (int64, error) {
	best := hi
	for lo < hi {
		mid := lo + (hi-lo)/2
		at, u, err := q.nextReal(mid, hi)
		if err != nil {
			return 0, err
		}
		if at == hi { // only fillers from mid on
			hi = mid
			continue
		}
		ok, err := reached(u)
		switch {
		case err != nil:
			return 0, err
		case ok:
			best, hi = at, mid
		default:
			lo = at + 1
		}
	}
	return best, nil
}

// nextReal gives the first unit in [from, end) that is no filler; end when there is none. Missing files are passed over.
func (q *Queue) nextReal(from, end int64) (int64, Unit, error) {
	for from < end {
		var u Unit
		found, at := false, from
		err := q.withUnits(from, func(b []byte) error {
			for ; !found && at < end && len(b) >= UnitSize; b = b[UnitSize:] {
				if u = decode(b); u.real() {
					found = true
				} else {
					at++
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, mappedfile.ErrOutOfRange) {
			return 0, u, err
		}
		if found {
			return at, u, nil
		}
		if at == from { // in a gap
			at = q.segmentBehind(from)
		}
		from = at
	}
	return end, Unit{}, nil
}

// segmentBehind is the offset of the first unit of the first file that starts behind from.
func (q *Queue) segmentBehind(from int64) int64 {
	for _, s := range q.segs.Segments() {
		if s.Start/UnitSize > from {
			return s.Start / UnitSize
		}
	}
	return 1<<63 - 1
}

// lastReal gives the last unit in [first, end) that is no filler, and false when there is none.
func (q *Queue) lastReal(first, end int64) (last Unit, ok bool, err error) {
	segments := q.segs.Segments()
	for i := len(segments) - 1; i >= 0 && !ok && err == nil; i-- {
		start := segments[i].Start / UnitSize
		if start >= end || start+segments[i].Length/UnitSize <= first {
			continue
		}
		err = q.withSegment(segments[i].Start, func(b []byte) error {
			for k := min(int64(len(b)/UnitSize), end-start) - 1; k >= max(0, first-start) && !ok; k-- {
				last = decode(b[k*UnitSize:])
				ok = last.real()
			}
			return nil
		})
	}
	return last, ok, err
}

// DeleteBefore removes whole files, oldest first, whose last unit's record lies before logMin, the commit log's first byte;
// never the last file. It gives their names. The first offset of the queue rises with it.
func (q *Queue) DeleteBefore(logMin int64) ([]string, error) {
	dead, err := q.DeletableBefore(logMin)
	if err != nil || len(dead) == 0 {
		return nil, err
	}
	keep := q.segs.Segments()[len(dead)].Start
	q.edges.Store(nil)
	if first := keep / UnitSize; q.min.Load() < first {
		q.min.Store(first)
	}
	names, err := q.segs.DeleteBefore(keep)
	if err != nil {
		return names, q.fail(keep/UnitSize, err)
	}
	return names, nil
}

// withUnits calls f with the bytes from a unit to the end of its segment or of what is written.
func (q *Queue) withUnits(from int64, f func(b []byte) error) error {
	v, err := q.segs.ViewFrom(from * UnitSize)
	if err != nil {
		return q.fail(from, err)
	}
	defer v.Release()
	return mappedfile.Guard(v.File(), func() error { return f(v.Bytes()) })
}

// withSegment calls f with the bytes of a whole file.
func (q *Queue) withSegment(start int64, f func(b []byte) error) error {
	v, err := q.segs.ViewSegment(start)
	if err != nil {
		return q.fail(start/UnitSize, err)
	}
	defer v.Release()
	return mappedfile.Guard(v.File(), func() error { return f(v.Bytes()) })
}
