package recovery

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rocketstore/rocketstore/commitlog"
)

// batchSize is how many records the sinks get at a time, when so many are there: few enough for the processor's nearest memory.
const batchSize = 64

// Dispatcher feeds the records of a log to sinks, in order. It is for one goroutine.
type Dispatcher struct {
	reader  *commitlog.Reader
	derive  *Deriver
	sinks   []Sink
	stages  []stage // of the sinks
	records [batchSize]commitlog.Record
	derived [batchSize]Derived
	batch   batch // of the records at hand
	singly  int64 // up to this physical offset records are taken one at a time, since a batch failed
	count   int64
	last    int64        // physical offset of the last record, -1 before the first
	time    atomic.Int64 // store time of the last record; stored by CatchUp
	// progress is called now and then with the physical offset reached.
	progress func(offset int64)
	applied  func(r *commitlog.Record, x *Derived)
}

// stage is a sink that takes batches, or sinks that follow each other and do not: these take each record before the next one.
type stage struct {
	batch batchSink
	each  []Sink
}

// NewDispatcher makes a dispatcher that starts at the record at from. Derive says what records mean for the sinks.
func NewDispatcher(log *commitlog.Log, derive *Deriver, from int64, sinks ...Sink) *Dispatcher {
	d := &Dispatcher{reader: log.NewReader(from), derive: derive, sinks: sinks, last: -1}
	for _, s := range sinks {
		if b, ok := s.(batchSink); ok {
			d.stages = append(d.stages, stage{batch: b})
			continue
		}
		if n := len(d.stages); n == 0 || d.stages[n-1].batch != nil {
			d.stages = append(d.stages, stage{})
		}
		last := &d.stages[len(d.stages)-1]
		last.each = append(last.each, s)
	}
	return d
}

// trust says whether the bodies' CRCs are taken as checked.
func (d *Dispatcher) trust(checked bool) {
	d.reader.TrustCRC = checked
	d.reader.SeekTo(d.reader.Offset())
}

// TrustOwn has the dispatcher, which has all that was in the log when it was opened, believe the bodies that are appended from now on
// by this process: they were in memory a moment ago, and reads check them.
func (d *Dispatcher) TrustOwn() { d.reader.TrustOwn = true }

// CatchUp dispatches what is in the log and not yet dispatched, as many records at a time as are there. After an error it can be called
// again: the record that failed is then given to all sinks once more, and so may be some that come after it.
func (d *Dispatcher) CatchUp(ctx context.Context) error {
	for {
		at, room := d.reader.Offset(), batchSize
		if at < d.singly {
			room = 1
		}
		n, err := d.reader.Read(d.records[:room])
		if err != nil || n == 0 {
			return err
		}
		d.batch = batch{d.records[:n], d.derived[:n]}
		if err := d.reader.Guard(d.apply); err != nil {
			d.singly = max(d.singly, d.reader.Offset())
			d.reader.SeekTo(at)
			if n == 1 {
				return err
			}
			continue // one by one they show which of them it is, and those before it are done
		}
		if err := d.finish(ctx); err != nil {
			return err
		}
	}
}

// apply gives the batch to all sinks.
func (d *Dispatcher) apply() error {
	b := &d.batch
	for i := range b.records {
		d.derive.Derive(&b.records[i], &b.derived[i])
	}
	for i := range d.stages {
		st := &d.stages[i]
		if st.batch != nil {
			if err := st.batch.applyBatch(b); err != nil {
				return failed(st.batch, &b.records[0], err)
			}
			continue
		}
		for k := range b.records {
			for _, s := range st.each {
				if err := s.Apply(&b.records[k]); err != nil {
					return failed(s, &b.records[k], err)
				}
			}
		}
	}
	return nil
}

func failed(s Sink, r *commitlog.Record, err error) error {
	return fmt.Errorf("%s: record at %d: %w", s.Name(), r.PhysicalOffset, err)
}

// finish tells of the batch, which all sinks have.
func (d *Dispatcher) finish(ctx context.Context) error {
	b := &d.batch
	n := len(b.records)
	var fault error
	if d.applied != nil {
		n = 0
		fault = d.reader.Guard(func() error {
			for ; n < len(b.records); n++ {
				d.applied(&b.records[n], &b.derived[n])
			}
			return nil
		})
	}
	if fault != nil {
		d.reader.SeekTo(b.records[n].PhysicalOffset)
	}
	if n == 0 {
		return fault
	}
	last := &b.records[n-1]
	if err := d.step(ctx, n, last.PhysicalOffset, last.StoreTimestamp); fault == nil {
		return err
	}
	return fault
}

// step notes n more records that all sinks have, and says now and then where the last one is.
func (d *Dispatcher) step(ctx context.Context, n int, physicalOffset, storeTime int64) error {
	const often = 1024
	d.last = physicalOffset
	d.time.Store(storeTime)
	before := d.count
	if d.count += int64(n); d.count/often == before/often {
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

// OnApplied has f called, from CatchUp, for each record that all sinks have taken, with what it means. The slices are not valid afterwards.
func (d *Dispatcher) OnApplied(f func(r *commitlog.Record, x *Derived)) { d.applied = f }

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
