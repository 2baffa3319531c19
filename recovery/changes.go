package recovery

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// Change is one thing that recovery would do to a file or folder of the store.
type Change struct {
	File string // path in the store
	What string
}

// Changes lists what doing the decision changes, besides the files that every opening for writing writes: abort, lock,
// checkpoint and config/rocketstore.json.
//
// It reads the log once more, to see which units of the queues are written again.
func (d *Decision) Changes(ctx context.Context, p *Parts) ([]Change, error) {
	if d.Refused != nil || d.Trusted {
		return nil, nil
	}
	var changes []Change
	add := func(file, format string, args ...any) {
		changes = append(changes, Change{file, fmt.Sprintf(format, args...)})
	}
	if err := d.logChanges(p, add); err != nil {
		return nil, err
	}
	for _, n := range p.Queues.Notices() {
		switch {
		case d.anew:
		case n.Kind == mappedfile.ShortSegment:
			add(n.File, "made whole with zeros, or removed when it holds no unit")
		case n.Kind == mappedfile.EmptySegment:
			add(n.File, "removed: it has no bytes")
		}
	}
	for _, q := range d.queues {
		if len(q.voids) > 0 {
			add(q.queue.Dir(), "%s", voidUnits(q.voids, "becomes a filler", "become fillers"))
		}
		switch _, found := q.queue.Bounds(); {
		case d.anew:
			add(q.queue.Dir(), "removed")
		case q.anew:
			add(q.queue.Dir(), "its files are removed, and made again from the log")
		case q.end < found:
			add(q.queue.Dir(), "cut at unit %d (byte %d); it has %d", q.end, q.end*consumequeue.UnitSize, found)
		case q.queue.Untidy():
			add(q.queue.Dir(), "zeroed behind unit %d (byte %d)", q.end, q.end*consumequeue.UnitSize)
		default:
			for i, s := range q.queue.Segments() {
				if i > 0 && q.cut && s.Start >= q.end*consumequeue.UnitSize {
					add(s.Name, "removed: it lies behind the end of the queue")
				}
			}
		}
	}
	for _, c := range d.missing {
		add(c.File, "%s", c.What)
	}
	err := d.unitChanges(ctx, p, add)
	switch {
	case d.anew && p.Index != nil && len(p.Index.Files()) > 0:
		add(IndexDir, "its files are removed")
	case d.indexFrom < d.LogEnd:
		add(IndexDir, "made again from physical offset %d on", d.indexFrom)
	case d.indexProof != nil && d.indexProof.Changed:
		add(IndexDir, "ends again where our last checkpoint left it, at physical offset %d", d.indexProof.Header.EndOffset)
	}
	if p.Tx == nil {
		return changes, err
	}
	_, end := p.Tx.Redo.Bounds()
	switch {
	case d.anew:
		add(path.Dir(txstate.Dir), "its files are removed")
		return changes, err
	case d.redoCut < end:
		add(redolog.Dir, "cut at unit %d (byte %d); it has %d", d.redoCut, d.redoCut*redolog.UnitSize, end)
	case d.redoLacks:
		add(redolog.Dir, "units from %d on added", d.redoCut)
	}
	if d.remakeStates {
		add(txstate.Dir, "made again from redo log and messages")
	}
	return changes, err
}

// logChanges tells what happens to the files of the log.
func (d *Decision) logChanges(p *Parts, add func(file, format string, args ...any)) error {
	segments := p.Log.Queue().Segments()
	for i, s := range segments {
		kept := s.Start == d.LogEnd && i > 0 && segments[i-1].Start+p.Log.SegmentSize() != d.LogEnd // behind a gap
		switch end := s.Start + p.Log.SegmentSize(); {
		case s.Start >= d.LogEnd && !kept:
			add(s.Name, "removed: it lies behind the end of the log")
		case s.Length < p.Log.SegmentSize():
			add(s.Name, "extended from %d to %d bytes", s.Length, p.Log.SegmentSize())
		case d.TruncatedAt >= s.Start && d.TruncatedAt < end:
			dirty, err := dirtyBehind(p, s.Start, d.TruncatedAt)
			if err != nil {
				return err
			}
			if dirty { // else what is cut lies in later files
				add(s.Name, "zeroed from byte %d on", d.TruncatedAt-s.Start)
			}
		}
	}
	aside := path.Join(LostAndFound, CommitLogDir)
	if d.keep.Records > 0 {
		add(aside, "made: it keeps %d records of %d bytes that are cut", d.keep.Records, d.keep.Bytes)
	}
	for _, h := range d.holes {
		add(h.why.File, "%d bytes from byte %d on are written over with what stands for lost bytes", h.to-h.from, h.from%p.Log.SegmentSize())
		add(aside, "made: it keeps these bytes")
	}
	return nil
}

// dirtyBehind says whether the segment at start has anything but zeros from an offset on.
func dirtyBehind(p *Parts, start, offset int64) (dirty bool, err error) {
	end, err := p.Log.Queue().NonZeroEnd(start, offset)
	return end > offset, err
}

// unitChanges tells which queues have units that the replay writes again, and which become fillers because their records
// are passed over.
func (d *Decision) unitChanges(ctx context.Context, p *Parts, add func(file, format string, args ...any)) error {
	if d.anew {
		return nil
	}
	ends := make(map[*consumequeue.Queue]int64, len(d.queues))
	for _, q := range d.queues {
		ends[q.queue] = q.end
	}
	told := make(map[*consumequeue.Queue]bool)
	ext := &extensions{fsys: p.FS}
	compare := func(pl Placement) error {
		q := p.Queues.LookupBytes(pl.Topic, pl.QueueID)
		if q == nil || told[q] || pl.QueueOffset >= ends[q] {
			return nil
		}
		if u, err := q.Get(pl.QueueOffset); err == nil && !sameUnit(u, pl.Unit, q, ext) {
			told[q] = true
			add(q.Dir(), "unit %d (byte %d), and maybe more, compared with its record and written again if it is wrong", pl.QueueOffset, pl.QueueOffset*consumequeue.UnitSize)
		}
		return nil
	}
	from := d.replayFrom
	for _, h := range append(slices.Clone(d.holes), hole{from: d.LogEnd, to: d.LogEnd}) {
		reader := p.Log.NewReader(from)
		for reader.Offset() < h.from {
			r, err := reader.Next()
			if err != nil || r == nil {
				break // the walk has said what is there
			}
			_ = p.Derive.Units(r, compare)
			if ctx.Err() != nil {
				reader.Close()
				return ctx.Err()
			}
		}
		reader.Close()
		from = h.to
	}
	if len(d.holes) > 0 {
		for _, l := range d.Lost {
			add(path.Join(QueueDir, queueKey{l.Topic, l.QueueID}.String()), "%s passed over",
				rangeSays("unit", l.From, l.To, "becomes a filler, if its record is", "become fillers, as far as their records are"))
		}
	}
	return nil
}

// Cut is what goes when the log is cut by choice or because its end is torn: whole records and bytes.
func (d *Decision) Cut() (records, bytes int64) {
	if d.TruncatedAt < 0 {
		return 0, 0
	}
	return d.keep.Records, d.CutBytes
}

// notePlanned remembers which queues the replay will add units to.
func (p *planner) notePlanned() {
	for _, k := range p.w.sortedQueues() {
		sp := p.w.queues[k]
		dir := path.Join(QueueDir, k.String())
		q := p.Queues.Lookup(k.topic, k.id)
		if consumequeue.CheckName(k.topic, k.id) != nil {
			continue // in no queue
		}
		if q == nil {
			p.d.missing = append(p.d.missing, Change{dir, fmt.Sprintf("made, with units up to %d", sp.last)})
			continue
		}
		if _, end := q.Bounds(); end <= sp.last {
			p.d.missing = append(p.d.missing, Change{dir, rangeText("unit", end, sp.last) + " added"})
		}
	}
}
