package recovery

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

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

// queueSink puts units into consume queues.
type queueSink struct {
	table   *consumequeue.Table
	derive  *Deriver
	durable int64
	warn    func(Warning)                                                   // what replay mends or comes upon
	belongs func(q *consumequeue.Queue, at int64, u consumequeue.Unit) bool // whether a unit fits the record that it points to
	ext     *extensions                                                     // nil: addresses into them are believed
	place   func(Placement) error                                           // bound once, so that Apply allocates nothing
}

// NewQueueSink makes the sink for consume queues. Warn is told of what it mends. Belongs is asked whether the unit that a
// record finds in its place fits a record of its own; nil: it never does.
func NewQueueSink(t *consumequeue.Table, d *Deriver, durable int64, warn func(Warning), belongs func(*consumequeue.Queue, int64, consumequeue.Unit) bool) Sink {
	return newQueueSink(t, d, durable, warn, belongs)
}

func newQueueSink(t *consumequeue.Table, d *Deriver, durable int64, warn func(Warning), belongs func(*consumequeue.Queue, int64, consumequeue.Unit) bool) *queueSink {
	s := &queueSink{table: t, derive: d, durable: durable, warn: warn, belongs: belongs}
	s.place = s.put
	return s
}

func (s *queueSink) Name() string   { return "consume queues" }
func (s *queueSink) Durable() int64 { return s.durable }

func (s *queueSink) Apply(r *commitlog.Record) error { return s.derive.Units(r, s.place) }

func (s *queueSink) Sync(context.Context) error { return s.table.Sync(0) }

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
}

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

func (s *indexSink) Sync(context.Context) error { return s.index.Sync() }

// Dispatcher feeds the records of a log to sinks, in order. It is for one goroutine.
type Dispatcher struct {
	reader *commitlog.Reader
	sinks  []Sink
	count  int64
	last   int64        // physical offset of the last record, -1 before the first
	time   atomic.Int64 // store time of the last record; stored by CatchUp
	// progress is called now and then with the physical offset reached.
	progress func(offset int64)
	applied  func(r *commitlog.Record)
}

// NewDispatcher makes a dispatcher that starts at the record at from.
func NewDispatcher(log *commitlog.Log, from int64, sinks ...Sink) *Dispatcher {
	return &Dispatcher{reader: log.NewReader(from), sinks: sinks, last: -1}
}

// trust says whether the bodies' CRCs are taken as checked.
func (d *Dispatcher) trust(checked bool) {
	d.reader.TrustCRC = checked
	d.reader.SeekTo(d.reader.Offset())
}

// TrustOwn has the dispatcher, which has all that was in the log when it was opened, believe the bodies that are appended from now on
// by this process: they were in memory a moment ago, and reads check them.
func (d *Dispatcher) TrustOwn() { d.reader.TrustOwn = true }

// CatchUp dispatches what is in the log and not yet dispatched. After an error it can be called again: the record that
// failed is then given to all sinks once more.
func (d *Dispatcher) CatchUp(ctx context.Context) error {
	for {
		at := d.reader.Offset()
		r, err := d.reader.Next()
		if err != nil || r == nil {
			return err
		}
		for _, s := range d.sinks {
			if err := s.Apply(r); err != nil {
				d.reader.SeekTo(at)
				return fmt.Errorf("%s: record at %d: %w", s.Name(), at, err)
			}
		}
		if d.applied != nil {
			d.applied(r)
		}
		if err := d.step(ctx, r.PhysicalOffset, r.StoreTimestamp); err != nil {
			return err
		}
	}
}

// step notes a record that all sinks have, and says now and then where it is.
func (d *Dispatcher) step(ctx context.Context, physicalOffset, storeTime int64) error {
	d.last = physicalOffset
	d.time.Store(storeTime)
	if d.count++; d.count%1024 != 0 {
		return nil
	}
	if d.progress != nil {
		d.progress(physicalOffset)
	}
	return ctx.Err()
}

// Offset is the physical offset up to which all sinks have everything.
func (d *Dispatcher) Offset() int64 { return d.reader.Offset() }

// Last is the physical offset of the last record that was dispatched, -1 before the first.
func (d *Dispatcher) Last() int64 { return d.last }

// StoreTime is the store time of the last record that all sinks have, ms, 0 before the first. Any goroutine may ask.
func (d *Dispatcher) StoreTime() int64 { return d.time.Load() }

// OnProgress has f called now and then, from CatchUp, with the physical offset reached.
func (d *Dispatcher) OnProgress(f func(offset int64)) { d.progress = f }

// OnApplied has f called, from CatchUp, for each record that all sinks have taken. Its slices are not valid afterwards.
func (d *Dispatcher) OnApplied(f func(r *commitlog.Record)) { d.applied = f }

// Count is how many records were dispatched.
func (d *Dispatcher) Count() int64 { return d.count }

// Sync makes what was dispatched durable in all sinks.
func (d *Dispatcher) Sync(ctx context.Context) error {
	errs := make([]error, 0, len(d.sinks))
	for _, s := range d.sinks {
		errs = append(errs, s.Sync(ctx))
	}
	return errors.Join(errs...)
}

// Close lets go of the log.
func (d *Dispatcher) Close() { d.reader.Close() }
