package consumequeue

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Queue is the consume queue of one topic and queue id. A [Table] makes it.
//
// One goroutine at a time may append, set, truncate, delete and repair. Any number may read meanwhile, and one may sync.
type Queue struct {
	table *Table
	topic string
	id    int32
	dir   string
	segs  *mappedfile.Queue

	loadMu sync.Mutex
	loaded atomic.Bool // max is known; set once, under loadMu

	// Queue offsets of the first unit to be read and behind the last one. They are stored under loadMu until loaded is
	// set, and then only by the appending goroutine. While a queue is begun in the middle of a file, min is already where
	// its first unit will be and max is still less.
	min, max atomic.Int64

	edges atomic.Pointer[edges]
	// untidy: something else than zeros lies behind the end that was searched.
	untidy atomic.Bool

	holes atomic.Int64 // units filled because their queue offsets were skipped
	dirty atomic.Bool  // the queue is in the table's list of queues to sync
	files bool         // there is a segment; of the appending goroutine
	short bool         // the last segment must be repaired first; of the appending goroutine

	patched atomic.Bool // units were set in place since the queue was synced
	removed atomic.Bool // the table has removed it

	scratch [UnitSize]byte // of the appending goroutine: keeps the unit's bytes off the heap

	_    [64]byte // whoever hands out offsets runs ahead of the appending goroutine, on another processor
	next int64    // see NextOffset
	_    [64]byte
}

// Topic is the topic's name, as the folder has it.
func (q *Queue) Topic() string { return q.topic }

// ID is the queue id.
func (q *Queue) ID() int32 { return q.id }

// Dir is the folder of the queue's files, inside the store directory.
func (q *Queue) Dir() string { return q.dir }

// Removed says whether [Table.Remove] was called for the queue: who keeps a queue asks before using it again.
func (q *Queue) Removed() bool { return q.removed.Load() }

// Segments lists the queue's files.
func (q *Queue) Segments() []mappedfile.SegmentInfo { return q.segs.Segments() }

// HolesFilled is how many units this queue got since it was opened because queue offsets were skipped (R-E-043).
func (q *Queue) HolesFilled() int64 { return q.holes.Load() }

// NextOffset is the queue offset that the next message of this queue gets. It runs ahead of the queue, since a message is
// queued after it was logged. It is kept here for whoever assigns offsets and is not touched by this package; it starts
// at 0. NextOffset, Advance and SetNext are called under one lock of the caller's.
func (q *Queue) NextOffset() int64 { return q.next }

// Advance hands out n queue offsets.
func (q *Queue) Advance(n int64) { q.next += n }

// SetNext sets the queue offset that the next message gets.
func (q *Queue) SetNext(n int64) { q.next = n }

// Bounds gives the queue offsets of the first unit and behind the last one; they are equal when there is none. The first
// is that of the first file until [Queue.SetMin] raises it. When the end cannot be found out, because the files cannot be
// read, both are the start of the first file; reading gives the error then.
func (q *Queue) Bounds() (first, end int64) {
	if err := q.load(); err != nil {
		start, _ := q.segs.Bounds()
		return start / UnitSize, start / UnitSize
	}
	first = q.min.Load()
	return first, max(first, q.max.Load())
}

// Get gives the unit with a queue offset. An offset that no file holds, or that lies behind the end, gives
// [mappedfile.ErrOutOfRange]. It does not allocate.
func (q *Queue) Get(index int64) (Unit, error) {
	if err := q.load(); err != nil {
		return Unit{}, err
	}
	if index < 0 || index >= q.max.Load() {
		return Unit{}, q.outOfRange(index)
	}
	if u, ok := q.edges.Load().unit(index); ok {
		return u, nil
	}
	return q.unit(index)
}

// unit is Get from the file, without the test against the end.
func (q *Queue) unit(index int64) (Unit, error) {
	v, err := q.segs.View(index*UnitSize, UnitSize)
	if err != nil {
		return Unit{}, q.fail(index, err)
	}
	defer v.Release()
	var u Unit
	err = mappedfile.Guard(v.File(), func() error {
		u = decode(v.Bytes())
		return nil
	})
	return u, err
}

// Read fills dst with the units from a queue offset on and gives their number: fewer than len(dst) when the queue ends or
// a file is missing behind them, 0 at the end. From that no file holds, or that lies behind the end, gives
// [mappedfile.ErrOutOfRange]. It does not allocate.
func (q *Queue) Read(from int64, dst []Unit) (int, error) {
	if err := q.load(); err != nil {
		return 0, err
	}
	end := q.max.Load()
	if from < 0 || from > max(end, q.min.Load()) {
		return 0, q.outOfRange(from)
	}
	n := 0
	for n < len(dst) && from < end {
		got, err := q.readSegment(from, dst[n:min(int64(len(dst)), int64(n)+end-from)])
		if err != nil {
			if n > 0 && errors.Is(err, mappedfile.ErrOutOfRange) {
				break
			}
			return n, err
		}
		n += got
		from += int64(got)
	}
	return n, nil
}

// readSegment reads units up to the end of the segment that holds the first.
func (q *Queue) readSegment(from int64, dst []Unit) (int, error) {
	v, err := q.segs.ViewFrom(from * UnitSize)
	if err != nil {
		return 0, q.fail(from, err)
	}
	defer v.Release()
	n := min(len(dst), len(v.Bytes())/UnitSize)
	if n == 0 {
		return 0, q.outOfRange(from)
	}
	err = mappedfile.Guard(v.File(), func() error {
		b := v.Bytes()
		for i := range dst[:n] {
			dst[i] = decode(b[i*UnitSize:])
		}
		return nil
	})
	return n, err
}

// MaxPhysical is the byte position in the commit log behind the record of the last unit that is no filler, -1 when there
// is none or the files cannot be read.
func (q *Queue) MaxPhysical() int64 {
	if err := q.load(); err != nil {
		q.table.opts.Logger.Warn("read the last unit of a queue", "topic", q.topic, "queue", q.id, "err", err)
		return -1
	}
	end := q.max.Load()
	if u, ok := q.edges.Load().unit(end - 1); ok && u.real() {
		return u.End()
	}
	u, ok, err := q.lastReal(0, end)
	if err != nil {
		q.table.opts.Logger.Warn("read the last unit of a queue", "topic", q.topic, "queue", q.id, "err", err)
	}
	if !ok {
		return -1
	}
	return u.End()
}

// Sync makes appended and set units durable, when at least that many 4096-byte pages of them are not (or a file is full);
// 0 means all. The first failure is final: it is returned by every later Sync and Append.
func (q *Queue) Sync(leastPages int) error {
	if err := q.segs.Sync(leastPages); err != nil {
		return fmt.Errorf("sync queue %s/%d: %w", q.topic, q.id, err)
	}
	return nil
}

// Settle is for a queue that is about to get many units: it makes the names of new files durable, which else is done when the
// next file is made, and takes longer the more the files hold by then. Errors are those of [Queue.Sync].
func (q *Queue) Settle() error {
	if err := q.segs.Settle(); err != nil {
		return fmt.Errorf("sync queue %s/%d: %w", q.topic, q.id, err)
	}
	return nil
}

// load finds out where the queue ends, once.
func (q *Queue) load() error {
	if q.loaded.Load() {
		return nil
	}
	q.loadMu.Lock()
	defer q.loadMu.Unlock()
	if q.loaded.Load() {
		return nil
	}
	end, e, err := q.findEnd()
	if err != nil {
		return err
	}
	if err := q.endAt(end); err != nil {
		return err
	}
	q.edges.Store(e)
	return nil
}

// endAt makes index the end of the queue. The caller holds loadMu.
func (q *Queue) endAt(index int64) error {
	if err := q.segs.SetEnd(index * UnitSize); err != nil {
		return q.fail(index, err)
	}
	if q.max.Swap(index) != index {
		q.edges.Store(nil)
	}
	if q.min.Load() > index {
		q.min.Store(index)
	}
	q.loaded.Store(true)
	return nil
}

// SetMax makes index the end of the queue, in memory only: units from it on stay on disk, are not read, and are written
// over by what is appended. It is for recovery and for readers that know better than [Queue.FindEnd]; before appending,
// [Queue.TruncateAfter] is right. An index outside the files gives [mappedfile.ErrOutOfRange].
func (q *Queue) SetMax(index int64) error {
	if index < 0 {
		return q.outOfRange(index)
	}
	q.loadMu.Lock()
	defer q.loadMu.Unlock()
	return q.endAt(index)
}

// outOfRange says that no file holds a unit, or that it lies behind the end.
func (q *Queue) outOfRange(index int64) error { return q.fail(index, mappedfile.ErrOutOfRange) }

// fail adds to an error which queue and unit it was about.
func (q *Queue) fail(index int64, err error) error {
	return fmt.Errorf("queue %s/%d: unit %d: %w", q.topic, q.id, index, err)
}
