package recovery

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/index"
)

// Sink takes the log's records in order, in the replay after a crash as well as live.
type Sink interface {
	// Name is for errors and logs.
	Name() string
	// Durable is the physical offset from which on the sink may lack records.
	Durable() int64
	// Apply takes one record; its slices are not valid afterwards. The same record may come again after a crash.
	Apply(r *commitlog.Record) error
	// Sync makes all that was applied durable.
	Sync(ctx context.Context) error
}

// batch is records of the log that follow each other, with what each of them means.
type batch struct {
	records []commitlog.Record
	derived []Derived
}

// batchSink is a sink that takes a batch for less than its records one by one.
type batchSink interface {
	Sink
	// applyBatch is Apply for each record. After an error it may have taken any of them, which come again then.
	applyBatch(b *batch) error
}

// recentQueues is how many queues a sink remembers, so that most records need no look into the table.
const recentQueues = 64

// queueSink puts units into consume queues.
type queueSink struct {
	table   *consumequeue.Table
	derive  *Deriver
	durable int64
	warn    func(Warning)                                                   // what replay mends or comes upon
	belongs func(q *consumequeue.Queue, at int64, u consumequeue.Unit) bool // whether a unit fits the record that it points to
	ext     *extensions                                                     // nil: addresses into them are believed
	place   func(Placement) error                                           // put; bound once, so that Apply allocates nothing
	light   func(Placement) error                                           // hold; so that applyBatch does not

	recent [recentQueues]unitRun
	held   uint64 // a bit for each of recent that holds units back; none between two batches
}

// NewQueueSink makes the sink for consume queues. Warn is told of what it mends. Belongs is asked whether the unit that a
// record finds in its place fits a record of its own; nil: it never does.
func NewQueueSink(t *consumequeue.Table, d *Deriver, durable int64, warn func(Warning), belongs func(*consumequeue.Queue, int64, consumequeue.Unit) bool) Sink {
	return newQueueSink(t, d, durable, warn, belongs)
}

func newQueueSink(t *consumequeue.Table, d *Deriver, durable int64, warn func(Warning), belongs func(*consumequeue.Queue, int64, consumequeue.Unit) bool) *queueSink {
	s := &queueSink{table: t, derive: d, durable: durable, warn: warn, belongs: belongs}
	s.place, s.light = s.put, s.hold
	return s
}

func (s *queueSink) Name() string   { return "consume queues" }
func (s *queueSink) Durable() int64 { return s.durable }

func (s *queueSink) Apply(r *commitlog.Record) error { return s.derive.Units(r, s.place) }

func (s *queueSink) Sync(context.Context) error { return s.table.Sync(0) }

// applyBatch writes the units that continue a queue at once. What stands in the queues in the end, and what is warned of, is the same as
// if they came one by one: before a unit that needs more than to be appended its queue gets those that were held back.
func (s *queueSink) applyBatch(b *batch) error {
	for ; s.held != 0; s.held &= s.held - 1 { // of a batch that failed, and now comes again
		s.recent[bits.TrailingZeros64(s.held)].forget()
	}
	for i := range b.records {
		x := &b.derived[i]
		if !x.Queued {
			continue
		}
		if err := s.hold(x.Own(&b.records[i])); err != nil {
			return err
		}
		if err := x.Light(&b.records[i], s.light); err != nil {
			return err
		}
	}
	for ; s.held != 0; s.held &= s.held - 1 {
		if err := s.recent[bits.TrailingZeros64(s.held)].flush(); err != nil {
			return err
		}
	}
	return nil
}

// hold puts a unit, or holds it back until the batch ends.
func (s *queueSink) hold(p Placement) error {
	slot := p.slot(recentQueues)
	u := &s.recent[slot]
	if u.queue == nil || u.queue.ID() != p.QueueID || u.queue.Topic() != string(p.Topic) || u.queue.Removed() {
		if err := u.flush(); err != nil {
			return err
		}
		q, err := s.find(p)
		if q == nil {
			return err
		}
		u.queue = q
	}
	if err := u.put(s, p, longestRun); err != nil {
		return err
	}
	if len(u.units) > 0 {
		s.held |= 1 << slot
	}
	return nil
}

func (s *queueSink) put(p Placement) error {
	q, err := s.find(p)
	if q == nil {
		return err
	}
	return s.putIn(q, p)
}

// find gives the queue of a placement and makes it when there is none; nil, and a warning, where it cannot be a folder.
func (s *queueSink) find(p Placement) (*consumequeue.Queue, error) {
	if q := s.table.LookupBytes(p.Topic, p.QueueID); q != nil {
		return q, nil
	}
	q, err := s.table.Ensure(string(p.Topic), p.QueueID)
	if errors.Is(err, consumequeue.ErrName) {
		s.warn(Warning{Kind: KindUnsafeTopic, File: "commitlog", Offset: p.Unit.PhysicalOffset, Text: err.Error()})
		return nil, nil
	}
	return q, err
}

func (s *queueSink) putIn(q *consumequeue.Queue, p Placement) error {
	first, end := q.Bounds()
	if end > first && p.QueueOffset > end && !believable(p.QueueOffset-end, q.MaxPhysical(), p.Unit.PhysicalOffset) ||
		p.QueueOffset < 0 || p.QueueOffset > maxQueueOffset {
		return s.putAtEnd(q, p)
	}
	switch {
	case p.QueueOffset < first && end > first:
		return nil // its file was deleted
	case p.QueueOffset >= end:
		if end > first && p.QueueOffset > end {
			s.warn(Warning{Kind: KindHole, File: q.Dir(), Offset: end * consumequeue.UnitSize, Text: rangeSays(
				"queue offset", end, p.QueueOffset-1, "has", "have") + " no record in the log"})
		}
		return q.Append(p.QueueOffset, p.Unit)
	}
	have, err := q.Get(p.QueueOffset)
	if err != nil {
		return err
	}
	if sameUnit(have, p.Unit, q, s.ext) {
		return nil
	}
	w := Warning{Kind: KindWrongUnit, File: q.Dir(), Offset: p.QueueOffset * consumequeue.UnitSize}
	if have.PhysicalOffset < p.Unit.PhysicalOffset && have.Valid() && !have.IsFiller() && s.belongs != nil && s.belongs(q, p.QueueOffset, have) {
		w.Kind = KindOffsetTwice
		w.Text = fmt.Sprintf("records at %d and %d both claim queue offset %d; the first keeps it", have.PhysicalOffset, p.Unit.PhysicalOffset, p.QueueOffset)
		s.warn(w)
		return nil
	}
	if !have.IsFiller() && have != (consumequeue.Unit{}) {
		w.Text = fmt.Sprintf("unit %d pointed to %d, its record lies at %d; written again", p.QueueOffset, have.PhysicalOffset, p.Unit.PhysicalOffset)
		s.warn(w)
	}
	return q.Set(p.QueueOffset, p.Unit)
}

// A queue offset that lies farther behind the end of its queue than MaxHole, above maxQueueOffset or below zero is not believed: no
// checksum covers the field, and filling the hole would fill the disk.
const (
	// MaxHole is for the options of the queues' table as well.
	MaxHole        = 1 << 24
	maxQueueOffset = 1 << 48
	// smallHole may be for other reasons than a loss of bytes of the log.
	smallHole = 1 << 10
)

// believable says whether so many queue offsets may be without a record between two places of the log, the end of a
// queue's last record and its next one: not more than records have room there, as in a gap. A record that lies before the
// last one cannot come after it in the queue.
func believable(hole, last, next int64) bool {
	if next < last {
		return false
	}
	return hole <= min(MaxHole, smallHole+(next-max(last, 0))/commitlog.MinRecordSize)
}

// putAtEnd puts a unit with an absurd queue offset where the queue ends, as the original does with every offset that is
// too high, so that the message can be read.
func (s *queueSink) putAtEnd(q *consumequeue.Queue, p Placement) error {
	_, end := q.Bounds()
	if p.Unit.PhysicalOffset < q.MaxPhysical() {
		return nil // there since an earlier dispatch
	}
	s.warn(Warning{Kind: KindHole, File: "commitlog", Offset: p.Unit.PhysicalOffset, Text: fmt.Sprintf(
		"the record at %d claims queue offset %d of %s, which ends at %d; it is put there", p.Unit.PhysicalOffset, p.QueueOffset, q.Dir(), end)})
	return q.Append(end, p.Unit)
}

// indexSink puts keys into the index.
type indexSink struct {
	index  *index.Index
	derive *Deriver
	from   int64
	hashes []int32        // of the batch at hand
	hashed []index.Hashed // its records
}

// mostHashes is for how many keys a sink keeps the room: a record may have 16 000.
const mostHashes = 1 << 14

// NewIndexSink makes the sink for the key index; records before from are in it already.
func NewIndexSink(x *index.Index, d *Deriver, from int64) Sink {
	return &indexSink{index: x, derive: d, from: from}
}

func (s *indexSink) Name() string   { return "index" }
func (s *indexSink) Durable() int64 { return s.from }

func (s *indexSink) Apply(r *commitlog.Record) error {
	if r.PhysicalOffset < s.from {
		return nil
	}
	unique, keys := s.derive.Keys(r)
	return s.index.Put(index.Keys{Topic: r.Topic, UniqueKey: unique, Keys: keys, PhysicalOffset: r.PhysicalOffset, StoreTimestamp: r.StoreTimestamp})
}

func (s *indexSink) applyBatch(b *batch) error {
	if cap(s.hashes) > mostHashes {
		s.hashes = nil
	}
	s.hashes, s.hashed = s.hashes[:0], s.hashed[:0]
	for i := range b.records {
		r, x := &b.records[i], &b.derived[i]
		if r.PhysicalOffset < s.from {
			continue
		}
		n := len(s.hashes)
		s.hashes = s.index.AppendHashes(s.hashes, index.Keys{Topic: r.Topic, UniqueKey: x.Unique, Keys: x.Keys})
		s.hashed = append(s.hashed, index.Hashed{Hashes: s.hashes[n:], PhysicalOffset: r.PhysicalOffset, StoreTimestamp: r.StoreTimestamp})
	}
	return s.index.PutRun(s.hashed)
}

func (s *indexSink) Sync(context.Context) error { return s.index.Sync() }
