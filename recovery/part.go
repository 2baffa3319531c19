package recovery

import (
	"bytes"
	"context"
	"errors"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/redolog"
)

// part is what a walk saw of one segment. Records never straddle segments, so parts are made side by side and put
// together in order.
type part struct {
	queues    map[queueKey]*span
	recent    [32]*span // of them, so that most records need no look into the map
	records   int64
	bytes     int64
	lastTime  int64
	last      int64            // physical offset of the last record, -1 none
	lastKeyed int64            // physical offset of the last record with keys, -1 none
	index     []index.FileInfo // files that do not end before the record at hand
	unindexed int64            // physical offset of the first record with keys that lies between two index files, -1 none
	events    []redolog.Unit   // of transactions
	number    int64            // the greatest of a prepared message, -1 none
	end       int64            // where the scan stopped
	goesOn    bool             // the log goes on in the next segment
	stop      error            // the damage that ends it, nil for none
	hidden    *hidden          // records behind the blank that ends it, nil for none
	err       error            // why it could not be looked at
	kept      *kept            // for the replay
	derived   Derived          // from the record at hand
}

// walkSegment scans the segment that starts at start, from offset on.
func (w *walk) walkSegment(ctx context.Context, start, offset int64) *part {
	p := &part{queues: make(map[queueKey]*span), last: -1, lastKeyed: -1, unindexed: -1, number: -1, index: w.index, kept: &kept{keeper: w.keep}}
	v, err := w.log.Queue().ViewSegment(start)
	if err != nil {
		p.err = err
		return p
	}
	defer v.Release()
	s := commitlog.NewBytesScanner(v.File(), start, v.Bytes())
	s.CheckTorn = w.unclean
	s.SeekTo(offset)
	p.err = mappedfile.Guard(v.File(), func() error {
		for s.Next() {
			p.visit(w.derive, s.Record(), w.redo != nil)
			if p.records%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return nil
	})
	if p.err != nil {
		return p
	}
	whole := int64(len(v.Bytes())) == w.log.SegmentSize()
	switch end := s.Ending(); {
	case end == commitlog.EndBlank, end == commitlog.EndOfSegment && whole:
		p.end, p.goesOn = start+w.log.SegmentSize(), true
		if end == commitlog.EndBlank {
			p.err = mappedfile.Guard(v.File(), func() error {
				w.lookBehindBlank(p, v.File(), v.Bytes(), start, s.Offset())
				return nil
			})
		}
		return p
	case end == commitlog.EndDamage && !errors.Is(s.Err(), mappedfile.ErrCorrupt):
		p.err = s.Err()
	case end == commitlog.EndDamage:
		p.stop = s.Err()
	}
	p.end = s.Offset()
	return p
}

// visit notes one good record.
func (p *part) visit(d *Deriver, r *commitlog.Record, transactions bool) {
	p.records++
	p.bytes += int64(r.Size)
	p.lastTime, p.last = r.StoreTimestamp, r.PhysicalOffset
	p.kept.begin(r)
	d.Derive(r, &p.derived)
	unique, keys := p.derived.Unique, p.derived.Keys
	_ = p.derived.Units(r, p.place)
	p.kept.end(r, unique, keys)
	if transactions {
		if u, ok := Event(r); ok {
			p.events = append(p.events, u)
			if u.TagsCode == redolog.Prepared {
				p.number = max(p.number, r.QueueOffset)
			}
		}
	}
	if len(unique)+len(keys) > 0 {
		p.lastKeyed = r.PhysicalOffset
		p.cover(r.PhysicalOffset)
	}
}

// place notes a unit of a good record.
func (p *part) place(at Placement) error {
	if at.QueueOffset < 0 || at.QueueOffset > maxQueueOffset {
		p.kept.stop()
		return nil // the replay does not believe it either
	}
	sp := p.span(at)
	if at.QueueOffset > sp.last && (at.QueueOffset == sp.last+1 || believable(at.QueueOffset-sp.last-1, sp.lastPhysical, at.Unit.PhysicalOffset)) {
		sp.reach(at.QueueOffset, at.QueueOffset, at.Unit.PhysicalOffset)
	}
	sp.lastPhysical = at.Unit.PhysicalOffset
	p.kept.place(sp, at)
	return nil
}

// span gives what was seen of the queue that a unit belongs to, which may be nothing before this unit.
func (p *part) span(at Placement) *span {
	recent := &p.recent[at.slot(len(p.recent))]
	if sp := *recent; sp != nil && sp.id == at.QueueID && bytes.Equal(sp.topic, at.Topic) {
		return sp
	}
	sp := p.queues[queueKey{string(at.Topic), at.QueueID}]
	if sp == nil {
		sp = &span{
			topic: bytes.Clone(at.Topic), id: at.QueueID, number: int32(len(p.queues)),
			first: at.QueueOffset, last: at.QueueOffset, firstPhysical: at.Unit.PhysicalOffset, lastPhysical: at.Unit.PhysicalOffset,
		}
		p.queues[queueKey{string(at.Topic), at.QueueID}] = sp
		p.kept.meet(sp)
	}
	*recent = sp
	return sp
}

// cover notes a record with keys that lies between two index files, in neither.
func (p *part) cover(offset int64) {
	for len(p.index) > 0 && p.index[0].Header.EndOffset < offset {
		p.index = p.index[1:]
	}
	if p.unindexed < 0 && len(p.index) > 0 && offset < p.index[0].Header.BeginOffset {
		p.unindexed = offset
	}
}
