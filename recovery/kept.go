package recovery

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/index"
)

const (
	chunkDigests = 4096 // a chunk with so many digests, or so many hashes, is followed by another
	chunkHashes  = 16384
	digestBytes  = 56 // in memory
	hashBytes    = 4
)

// keeper says how much the walkers of all segments may still keep.
type keeper struct {
	index *index.Index // nil: no index is kept
	left  atomic.Int64 // bytes; the walkers take from it
}

func newKeeper(x *index.Index, budget int64) *keeper {
	k := &keeper{index: x}
	k.left.Store(budget)
	return k
}

// digest is what queues and index need of one unit of a record, so that the replay neither decodes the record again nor reads its
// properties or hashes its keys: the walkers, which run side by side, have done that.
type digest struct {
	unit        consumequeue.Unit
	queueOffset int64
	storeTime   int64
	queue       int32  // number of the span, -1: in no queue
	keys        uint16 // how many of the chunk's hashes are the record's; properties of 32 KiB have no more
	again       bool   // one more unit of the record before: not indexed nor counted
}

// chunk is a piece of what is kept.
type chunk struct {
	digests []digest
	hashes  []int32 // as the index stores them
}

// kept is what a walk keeps of one segment: the records from its start on, all or as many as there was room for.
type kept struct {
	*keeper
	queues []*span
	chunks []chunk
	cur    *chunk
	first  int  // digest of the record at hand, in cur
	full   bool // records behind the last one are not kept
}

// begin starts a record.
func (k *kept) begin(r *commitlog.Record) {
	if k.full || k.keeper == nil {
		k.full = true
		return
	}
	if k.cur == nil || len(k.cur.digests) >= chunkDigests || len(k.cur.hashes) >= chunkHashes {
		// What the last chunk has beyond its measure counts now.
		need := int64(chunkDigests * digestBytes)
		if k.cur != nil {
			need += int64(max(0, cap(k.cur.digests)-chunkDigests)*digestBytes + cap(k.cur.hashes)*hashBytes)
		}
		if k.left.Add(-need) < 0 {
			k.full = true
			return
		}
		k.chunks = append(k.chunks, chunk{digests: make([]digest, 0, chunkDigests)})
		k.cur = &k.chunks[len(k.chunks)-1]
	}
	k.first = len(k.cur.digests)
}

// meet gives the next span its number.
func (k *kept) meet(sp *span) { k.queues = append(k.queues, sp) }

// place adds a unit of the record.
func (k *kept) place(sp *span, at Placement) {
	if k.full {
		return
	}
	again := len(k.cur.digests) > k.first
	k.cur.digests = append(k.cur.digests, digest{unit: at.Unit, queueOffset: at.QueueOffset, queue: sp.number, again: again})
}

// stop keeps nothing from the record at hand on.
func (k *kept) stop() {
	if !k.full {
		k.cur.digests = k.cur.digests[:k.first]
		k.full = true
	}
}

// end adds what is the same for all units of the record.
func (k *kept) end(r *commitlog.Record, unique, keys []byte) {
	if k.full {
		return
	}
	if len(k.cur.digests) == k.first {
		u := consumequeue.Unit{PhysicalOffset: r.PhysicalOffset, Size: r.Size}
		k.cur.digests = append(k.cur.digests, digest{unit: u, queue: -1})
	}
	d, before := &k.cur.digests[k.first], len(k.cur.hashes)
	d.storeTime = r.StoreTimestamp
	if k.index != nil {
		k.cur.hashes = k.index.AppendHashes(k.cur.hashes, index.Keys{Topic: r.Topic, UniqueKey: unique, Keys: keys})
		d.keys = uint16(len(k.cur.hashes) - before)
	}
}

// sideBySide is how many digests are worth a goroutine. Fewer are done in one order, always the same.
const sideBySide = 8192

// replayKept gives queues and index what the walk kept, side by side, and leaves the dispatcher behind it.
func (r *runner) replayKept(ctx context.Context, live *Dispatcher, queues *queueSink) error {
	all := r.d.kept
	r.d.kept = nil
	if len(r.d.holes) > 0 { // records were put into the log since
		return nil
	}
	digests := 0
	for _, k := range all {
		for _, c := range k.chunks {
			digests += len(c.digests)
		}
	}
	if digests < sideBySide {
		if err := r.indexKept(ctx, slices.Clone(all)); err != nil {
			return err
		}
		return r.queueKept(ctx, all, live, queues)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	indexed := make(chan struct{})
	go func(all []*kept) {
		defer close(indexed)
		if err := r.indexKept(ctx, all); err != nil {
			cancel(err)
		}
	}(slices.Clone(all)) // each lets the memory go as it is done with it
	if err := r.queueKept(ctx, all, live, queues); err != nil {
		cancel(err)
	}
	<-indexed
	return context.Cause(ctx)
}

// indexKept puts the keys of what the walk kept into the index.
func (r *runner) indexKept(ctx context.Context, all []*kept) error {
	if r.Index == nil {
		return nil
	}
	var records []index.Hashed
	for i, k := range all {
		for _, c := range k.chunks {
			if err := ctx.Err(); err != nil {
				return err
			}
			records = records[:0]
			hashes := c.hashes
			for i := range c.digests {
				d := &c.digests[i]
				if !d.again && d.unit.PhysicalOffset >= r.d.indexFrom {
					records = append(records, index.Hashed{Hashes: hashes[:d.keys], PhysicalOffset: d.unit.PhysicalOffset, StoreTimestamp: d.storeTime})
				}
				hashes = hashes[d.keys:]
			}
			if err := r.Index.PutRun(records); err != nil {
				return fmt.Errorf("index: records from %d on: %w", c.digests[0].unit.PhysicalOffset, err)
			}
		}
		if all[i] = nil; k.full {
			return nil
		}
	}
	return nil
}

// queueKept puts the units of what the walk kept into their queues, and counts the records.
func (r *runner) queueKept(ctx context.Context, all []*kept, live *Dispatcher, queues *queueSink) error {
	for i, k := range all {
		runs := make([]keptRun, len(k.queues))
		for _, c := range k.chunks {
			for i := range c.digests {
				d := &c.digests[i]
				if d.queue >= 0 {
					if err := runs[d.queue].put(queues, d, k.queues[d.queue]); err != nil {
						return fmt.Errorf("%s: record at %d: %w", queues.Name(), d.unit.PhysicalOffset, err)
					}
				}
				if d.again {
					continue
				}
				live.reader.SeekTo(d.unit.End())
				if err := live.step(ctx, 1, d.unit.PhysicalOffset, d.storeTime); err != nil {
					return err
				}
			}
		}
		for i := range runs {
			if err := runs[i].flush(); err != nil {
				return fmt.Errorf("%s: %w", queues.Name(), err)
			}
		}
		if all[i] = nil; k.full {
			return nil
		}
	}
	return nil
}

// longestRun is how many units are put into a queue at a time, and mostRuns for how many queues of a segment they are collected.
// After settleRuns of them a queue is worth a sync of its own.
const (
	longestRun = 128
	mostRuns   = 4096
	settleRuns = 64
)

// keptRun is the run of one queue of a segment.
type keptRun struct {
	unitRun
	settled int // of unitRun.runs
}

func (u *keptRun) put(s *queueSink, d *digest, sp *span) error {
	p := Placement{Topic: sp.topic, QueueID: sp.id, QueueOffset: d.queueOffset, Unit: d.unit}
	if u.queue == nil {
		q, err := s.find(p)
		if q == nil {
			return err
		}
		u.queue = q
	}
	long := longestRun
	if sp.number >= mostRuns {
		long = 0
	}
	if err := u.unitRun.put(s, p, long); err != nil {
		return err
	}
	if u.runs-u.settled < settleRuns {
		return nil
	}
	u.settled = u.runs
	return u.queue.Settle()
}
