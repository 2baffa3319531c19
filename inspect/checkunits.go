package inspect

import (
	"errors"
	"io"
	"math"
	"slices"
	"sort"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/recovery"
)

// runs are stretches of numbers, in order and apart.
type runs struct {
	list []run
	full bool // there were more than are kept; what was not kept is not there
}

// run is a stretch from from up to and without to.
type run struct{ from, to int64 }

// maxRuns bounds the stretches that are kept of one queue. A healthy one has one.
const maxRuns = 1 << 14

// find is the place of the first run that ends behind i.
func (r *runs) find(i int64) int {
	return sort.Search(len(r.list), func(k int) bool { return r.list[k].to > i })
}

func (r *runs) has(i int64) bool {
	if n := len(r.list); n == 0 || r.list[n-1].to <= i {
		return false // as nearly always
	}
	k := r.find(i)
	return k < len(r.list) && r.list[k].from <= i
}

func (r *runs) add(i int64) {
	if n := len(r.list); n > 0 && r.list[n-1].to == i {
		r.list[n-1].to++
		return
	}
	k := r.find(i)
	switch {
	case k < len(r.list) && r.list[k].from <= i:
		return
	case k > 0 && r.list[k-1].to == i:
		r.list[k-1].to++
		if k < len(r.list) && r.list[k].from == i+1 {
			r.list[k-1].to = r.list[k].to
			r.list = slices.Delete(r.list, k, k+1)
		}
	case k < len(r.list) && r.list[k].from == i+1:
		r.list[k].from = i
	case len(r.list) >= maxRuns:
		r.full = true
	default:
		r.list = slices.Insert(r.list, k, run{i, i + 1})
	}
}

// unitFile reads units of one queue, most of them one behind the other.
type unitFile struct {
	dir  *Dir
	segs []Segment
	seg  int // of f
	f    *file
	at   int64 // where in the queue buf is from
	end  int64 // of the file that buf is of, in the queue
	buf  []byte
}

// unitWindow is how many bytes a unitFile reads at a time, a multiple of the unit's size.
const unitWindow = 512 * consumequeue.UnitSize

// segment gives the number of the file with the byte at pos of the queue.
func segmentOf(segs []Segment, pos int64) (int, bool) {
	i := sort.Search(len(segs), func(k int) bool { return segs[k].End() > pos })
	return i, i < len(segs) && segs[i].Start <= pos
}

// unit reads the unit with an index. Ok is false when no file has it.
func (u *unitFile) unit(index int64) (unit consumequeue.Unit, ok bool, err error) {
	pos := index * consumequeue.UnitSize
	if index < 0 || pos/consumequeue.UnitSize != index {
		return unit, false, nil
	}
	b, err := u.bytes(pos, consumequeue.UnitSize)
	if err != nil || len(b) < consumequeue.UnitSize {
		return unit, false, err
	}
	unit, err = consumequeue.Decode(b)
	return unit, err == nil, err
}

// bytes gives at least n bytes from the byte at pos of the queue on, or what is left of the file there; none when no file
// has it. They are valid until the next call.
func (u *unitFile) bytes(pos int64, n int) ([]byte, error) {
	if i := pos - u.at; i >= 0 && i+int64(n) <= int64(len(u.buf)) && pos < u.end { // as nearly always
		return u.buf[i:], nil
	}
	seg, ok := segmentOf(u.segs, pos)
	if !ok {
		return nil, nil
	}
	if u.f == nil || u.seg != seg {
		u.close()
		var err error
		if u.f, err = u.dir.open(u.segs[seg].File); err != nil {
			return nil, err
		}
		u.seg = seg
	}
	u.buf = slices.Grow(u.buf[:0], max(n, unitWindow))
	got, err := u.f.ReadAt(u.buf[:cap(u.buf)], pos-u.segs[seg].Start)
	if err != nil && !errors.Is(err, io.EOF) {
		u.buf = u.buf[:0]
		return nil, err
	}
	u.at, u.end, u.buf = pos, u.segs[seg].End(), u.buf[:got]
	return u.buf, nil
}

// extUnit reads the extension unit at pos of the queue's extension. Its size is 0 when there is none.
func (u *unitFile) extUnit(pos int64) (consumequeue.ExtUnit, error) {
	b, err := u.bytes(pos, 256)
	if err != nil {
		return consumequeue.ExtUnit{}, err
	}
	e, bad := consumequeue.DecodeExt(b)
	if bad == nil {
		return e, nil
	}
	if b, err = u.bytes(pos, math.MaxInt16); err != nil {
		return consumequeue.ExtUnit{}, err
	}
	if e, bad = consumequeue.DecodeExt(b); bad != nil {
		return consumequeue.ExtUnit{}, nil
	}
	return e, nil
}

// again has the next unit read from the file, since a running broker may have written it.
func (u *unitFile) again() { u.buf = u.buf[:0] }

func (u *unitFile) close() {
	if u.f != nil {
		u.f.close()
		u.f = nil
	}
	u.at, u.end, u.buf = 0, 0, nil
}

// next takes the unit that follows the last one taken when it lies in the bytes that were read, and is that of the record. So it is
// with nearly all; what is not so simple is for place.
func (c *checkQueues) next(q *queueCheck, r *LogRecord, x *recovery.Derived) bool {
	n := len(q.found.list)
	at := unitPos(r.QueueOffset) - q.units.at
	if n == 0 || q.found.list[n-1].to != r.QueueOffset || at < 0 || at > int64(len(q.units.buf))-consumequeue.UnitSize {
		return false
	}
	u, err := consumequeue.Decode(q.units.buf[at:])
	if err != nil || u != x.Unit || q.used == 0 || q.units.at+at >= q.units.end {
		return false
	}
	c.tick++
	q.used = c.tick
	q.found.list[n-1].to++
	q.logged, q.logEnd, q.recordEnd = true, max(q.logEnd, r.QueueOffset+1), r.PhysicalOffset+int64(r.Size)
	return true
}
