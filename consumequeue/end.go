package consumequeue

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// stepBack is how many units before the end that a binary search found are looked at again: two pages. So zeros between
// the end and stale units behind them are seen when they are near.
const stepBack = 2 * mappedfile.PageSize / UnitSize

// javaRecoverSegments is how many files at the end of a queue Java's recovery reads (formats.md 9.2).
const javaRecoverSegments = 3

// FindEnd gives the queue offset behind the last unit that is written, from the files alone. A queue without files ends
// at 0.
//
// When not thorough it takes for granted that in the last file units are followed by zeros only, as they are after a clean
// stop, and searches the border. When thorough it reads the last three files and ends at the first unit that is impossible
// (as Java's recovery does, formats.md 9.2) or that points before the end of the record of the unit before it: such a one
// is left over from before an earlier cut, since Java zeroes nothing.
func (q *Queue) FindEnd(thorough bool) (int64, error) {
	if thorough {
		return q.findEndThoroughly()
	}
	end, _, err := q.findEnd()
	return end, err
}

// edges are the first and the last unit of a queue as they were when its end was searched, so that what opening a store
// asks of each queue needs no file again. They are forgotten when units are changed, cut or deleted.
type edges struct {
	first, last         int64 // queue offsets; -1: not known
	firstUnit, lastUnit Unit
}

// Untidy says whether the search of the queue's end saw something else than zeros behind it: what no reader takes for
// units, but stands in the way of other programs. [Queue.TruncateAfter] makes zeros of it.
func (q *Queue) Untidy() bool { return q.load() == nil && q.untidy.Load() }

// unit gives the unit with a queue offset, and false when it is not known here.
func (e *edges) unit(index int64) (Unit, bool) {
	switch {
	case e == nil:
	case index == e.last:
		return e.lastUnit, true
	case index == e.first:
		return e.firstUnit, true
	}
	return Unit{}, false
}

// findEnd is the quick search. It reads the files instead of mapping them: touching a sparse mapping fills the page cache
// with zeros, which is what opening 100 000 queues would mostly do.
func (q *Queue) findEnd() (int64, *edges, error) {
	segments := q.segs.Segments()
	for i, s := range slices.Backward(segments) {
		start := s.Start / UnitSize
		e := &edges{first: -1, last: -1}
		end, err := q.searchFile(s, e)
		if err != nil {
			return 0, nil, fmt.Errorf("end of queue %s/%d: %w", q.topic, q.id, err)
		}
		if end == 0 && i > 0 {
			continue
		}
		if end > 0 {
			e.last = start + end - 1
		}
		if end > 0 && i == 0 {
			e.first = start
		}
		return start + end, e, nil
	}
	return 0, nil, nil
}

// searchFile gives the number of units of a file before its zeros, and the first and the last of them.
func (q *Queue) searchFile(s mappedfile.SegmentInfo, e *edges) (end int64, err error) {
	if s.Length < UnitSize {
		return 0, nil
	}
	f, err := q.table.fsys.OpenFile(s.Name, os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := make([]byte, min(stepBack, s.Length/UnitSize)*UnitSize)
	from, end, untidy, err := searchEnd(f, b, s.Length)
	if untidy {
		q.untidy.Store(true)
	}
	if end == 0 || err != nil {
		return 0, err
	}
	if from == end { // what was read begins at the end
		from = end - 1
		if err := readZeroed(f, b[:UnitSize], from*UnitSize); err != nil {
			return 0, err
		}
	}
	e.lastUnit = decode(b[(end-1-from)*UnitSize:])
	if from > 0 {
		if err := readZeroed(f, b[:UnitSize], 0); err != nil {
			return 0, err
		}
	}
	e.firstUnit = decode(b)
	return end, nil
}

// searchEnd gives the number of units of a file before its zeros, and in b, which is room for stepBack units or for all,
// the units before it from from on. Untidy: near the end there is something else than zeros behind it.
func searchEnd(f mappedfile.File, b []byte, size int64) (from, end int64, untidy bool, err error) {
	// Most often the border lies in the last pages that are no hole.
	n := min(dataEnd(f, size)/UnitSize+1, size/UnitSize)
	from = max(0, n-stepBack)
	end, untidy, err = firstBad(f, b, from, n)
	if err != nil || from == 0 || end > from {
		return from, end, untidy, err
	}
	border := int64(sort.Search(int(from), func(i int) bool {
		if err == nil {
			err = readZeroed(f, b[:UnitSize], int64(i)*UnitSize)
		}
		return err != nil || mappedfile.AllZero(b[:UnitSize])
	}))
	if err != nil {
		return 0, 0, false, err
	}
	from = max(0, border-stepBack)
	end, more, err := firstBad(f, b, from, border)
	return from, end, untidy || more, err
}

// firstBad gives the first unit of a file in [from, to) that is impossible, else to, and whether any byte from there on is
// not zero. b is room for them.
func firstBad(f io.ReaderAt, b []byte, from, to int64) (bad int64, untidy bool, err error) {
	b = b[:(to-from)*UnitSize]
	if err := readZeroed(f, b, from*UnitSize); err != nil {
		return 0, false, err
	}
	for ; from < to && decode(b).Valid(); b = b[UnitSize:] {
		from++
	}
	return from, !mappedfile.AllZero(b), nil
}

// readZeroed fills b from a file; what the file lacks is zero.
func readZeroed(f io.ReaderAt, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	clear(b[n:])
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// dataEnd gives a position from which on a file has holes only, as near as the file system tells.
func dataEnd(f mappedfile.File, size int64) int64 {
	seeker, ok := f.(interface {
		NextData(off int64) (int64, bool)
	})
	if !ok {
		return size
	}
	empty := func(page int64) bool { // from there on
		next, more := seeker.NextData(page * mappedfile.PageSize)
		return !more || next >= size
	}
	// Most queues are short: double the step before halving it.
	lo, hi := int64(0), int64(1)
	for hi*mappedfile.PageSize < size && !empty(hi) {
		lo, hi = hi, hi*2
	}
	hi = min(hi, (size+mappedfile.PageSize-1)/mappedfile.PageSize)
	page := lo + int64(sort.Search(int(hi-lo), func(i int) bool { return empty(lo + int64(i)) }))
	return min(page*mappedfile.PageSize, size)
}

func (q *Queue) findEndThoroughly() (int64, error) {
	segments := q.segs.Segments()
	if len(segments) == 0 {
		return 0, nil
	}
	end, physical := int64(0), int64(0)
	for _, s := range segments[max(0, len(segments)-javaRecoverSegments):] {
		good, n := int64(0), int64(0)
		err := q.withSegment(s.Start, func(b []byte) error {
			n = int64(len(b) / UnitSize)
			for ; good < n; good++ {
				u := decode(b[good*UnitSize:])
				if !u.Valid() || u.real() && u.PhysicalOffset < physical {
					break
				}
				if u.real() {
					physical = u.End()
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		if end = s.Start/UnitSize + good; good < n {
			break
		}
	}
	return end, nil
}
