package recovery

import (
	"fmt"
	"path"

	"github.com/rocketstore/rocketstore/consumequeue"
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
func (d *Decision) Changes(p *Parts) []Change {
	if d.Refused != nil || d.Trusted {
		return nil
	}
	var changes []Change
	add := func(file, format string, args ...any) {
		changes = append(changes, Change{file, fmt.Sprintf(format, args...)})
	}
	for _, s := range p.Log.Queue().Segments() {
		switch end := s.Start + p.Log.SegmentSize(); {
		case s.Start >= d.LogEnd:
			add(s.Name, "removed: it lies behind the end of the log")
		case s.Length < p.Log.SegmentSize():
			add(s.Name, "extended from %d to %d bytes", s.Length, p.Log.SegmentSize())
		case d.TruncatedAt >= s.Start && d.TruncatedAt < end:
			add(s.Name, "zeroed from byte %d on", d.TruncatedAt-s.Start)
		}
	}
	if d.keep.Records > 0 {
		add(path.Join(LostAndFound, CommitLogDir), "made: it keeps %d records of %d bytes that are cut", d.keep.Records, d.keep.Bytes)
	}
	for _, q := range d.queues {
		switch _, found := q.queue.Bounds(); {
		case d.anew:
			add(q.queue.Dir(), "removed")
		case q.end < found:
			add(q.queue.Dir(), "cut at unit %d (byte %d); it has %d", q.end, q.end*consumequeue.UnitSize, found)
		}
	}
	for _, c := range d.missing {
		add(c.File, "%s", c.What)
	}
	if d.indexFrom < d.LogEnd {
		add(IndexDir, "made again from physical offset %d on", d.indexFrom)
	}
	if p.Tx == nil {
		return changes
	}
	if _, end := p.Tx.Redo.Bounds(); d.redoCut < end {
		add(redolog.Dir, "cut at unit %d (byte %d); it has %d", d.redoCut, d.redoCut*redolog.UnitSize, end)
	}
	if d.remakeStates {
		add(txstate.Dir, "made again from redo log and messages")
	}
	return changes
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
		if q == nil {
			p.d.missing = append(p.d.missing, Change{dir, fmt.Sprintf("made, with units up to %d", sp.last)})
			continue
		}
		if _, end := q.Bounds(); end <= sp.last {
			p.d.missing = append(p.d.missing, Change{dir, fmt.Sprintf("units %d to %d added", end, sp.last)})
		}
	}
}
