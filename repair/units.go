package repair

import (
	"context"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/redolog"
)

// stretch is a run of units in one file.
type stretch struct {
	file     string
	from, to int64 // bytes
}

// tail goes over the units of one queue and remembers those that are stale since the last one that is not.
type tail struct {
	plan *plan
	unit int64 // bytes
	why  string
	// fill is what takes the place of a stale unit between others; nil: it stays.
	fill    []byte
	pending []stretch
}

// add notes a unit.
func (t *tail) add(file string, offset int64, stale, message bool) {
	n := len(t.pending)
	switch {
	case !stale && message:
		t.between()
	case !stale:
		// A filler among stale ones goes with them.
	case n > 0 && t.pending[n-1].file == file && t.pending[n-1].to == offset:
		t.pending[n-1].to += t.unit
		return
	}
	if stale {
		t.pending = append(t.pending, stretch{file, offset, offset + t.unit})
	}
}

// between turns the stale units noted so far into fillers, since others follow.
func (t *tail) between() {
	for _, s := range t.pending {
		if t.fill == nil {
			continue
		}
		b := make([]byte, 0, s.to-s.from)
		for at := s.from; at < s.to; at += t.unit {
			b = append(b, t.fill...)
		}
		t.plan.steps = append(t.plan.steps, Step{Op: Patch, File: s.file, Offset: s.from, Length: s.to - s.from, content: b, Why: t.why + "; fillers, since others follow"})
	}
	t.pending = t.pending[:0]
}

// end zeroes the stale units at the end: from the first on, in each file.
func (t *tail) end() {
	for i := 0; i < len(t.pending); {
		s := t.pending[i]
		for ; i < len(t.pending) && t.pending[i].file == s.file; i++ {
			s.to = t.pending[i].to
		}
		t.plan.steps = append(t.plan.steps, Step{Op: Patch, File: s.file, Offset: s.from, Length: s.to - s.from, Why: t.why})
	}
	t.pending = t.pending[:0]
}

// cutQueues drops the queue units that point to a physical offset or behind.
func (p *plan) cutQueues(ctx context.Context, at int64) error {
	var t *tail
	topic, id := "", int32(-1)
	for u, err := range p.dir.Queues(ctx, inspect.QueueFilter{}, func(inspect.Finding) {}) {
		if err != nil {
			return err
		}
		if t == nil || u.Topic != topic || u.QueueID != id || (u.Batch != nil) != (t.fill == nil) {
			if t != nil {
				t.end()
			}
			topic, id = u.Topic, u.QueueID
			t = &tail{plan: p, unit: consumequeue.UnitSize, why: "the records are not in the log", fill: consumequeue.Filler().AppendTo(nil)}
			if u.Batch != nil {
				t.unit, t.fill = consumequeue.BatchUnitSize, nil
			}
		}
		t.add(u.File, u.Offset, !u.IsFiller() && u.Valid() && u.PhysicalOffset >= at, !u.IsFiller())
	}
	if t != nil {
		t.end()
	}
	return ctx.Err()
}

// cutRedo drops the units at the end of the redo log of 3.1 that point to a physical offset or behind.
func (p *plan) cutRedo(ctx context.Context, at int64) error {
	t := &tail{plan: p, unit: redolog.UnitSize, why: "the records are not in the log"}
	for u, err := range p.dir.RedoLog(ctx, func(inspect.Finding) {}) {
		if err != nil {
			return err
		}
		t.add(u.File, u.Offset, u.PhysicalOffset >= at, true)
	}
	t.end()
	return ctx.Err()
}

// Drop drops what points behind the end of the commit log: queue units, and units at the end of the redo log. A stale unit
// between others becomes a filler.
func (r *Repair) Drop(ctx context.Context) (*Journal, error) {
	stats := &inspect.CheckStats{}
	for _, err := range r.dir.Check(ctx, inspect.CheckOptions{Stats: stats}) {
		if err != nil {
			return nil, err
		}
	}
	p := &plan{Repair: r}
	if err := p.cutQueues(ctx, stats.LogEnd); err != nil {
		return nil, err
	}
	if err := p.cutRedo(ctx, stats.LogEnd); err != nil {
		return nil, err
	}
	return r.run(ctx, "drop", "check the store again; index entries of that sort go with a new index (storectl rebuild, storectl swap)", p.steps)
}
