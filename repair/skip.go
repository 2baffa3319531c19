package repair

import (
	"context"
	"fmt"
	"slices"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/recovery"
)

// Skip passes over all damage in the middle of the commit log: records that count as rolled back take its place, or a blank
// where no record follows in the file, and the queue units of what lay there become fillers. So every line of RocketMQ
// reads on behind it. Damage at the end of the log stays: opening cuts it.
func (r *Repair) Skip(ctx context.Context) (*Journal, error) {
	damage, err := r.damage(ctx)
	if err != nil {
		return nil, err
	}
	segs, _, err := r.dir.Segments(func(inspect.Finding) {})
	if err != nil {
		return nil, err
	}
	times, err := r.timesBefore(ctx, damage)
	if err != nil {
		return nil, err
	}
	p := &plan{Repair: r}
	var holes []inspect.Finding
	for _, f := range damage {
		i := slices.IndexFunc(segs, func(s inspect.Segment) bool { return s.File == f.File })
		switch {
		case i < 0 || f.To <= f.From || f.To >= segs[len(segs)-1].End(): // the end of the log
			continue
		case f.To >= segs[i].End():
			p.blank(segs[i], f)
		case f.To-f.From < commitlog.MinRecordSize:
			return nil, fmt.Errorf("%s: offset %d: %d bytes, no record that fills the hole is so short: cut there, or restore them", f.File, f.Offset, f.To-f.From)
		default:
			p.fill(segs[i], f, times[f.From])
		}
		holes = append(holes, f)
	}
	if err := p.blankUnits(ctx, holes); err != nil {
		return nil, err
	}
	if len(holes) > 0 {
		p.unclean()
	}
	if p.err != nil {
		return nil, p.err
	}
	return r.run(ctx, "skip", nextOpen, p.steps)
}

// timesBefore gives, for each stretch of damage, the store time of the last good record before it.
func (r *Repair) timesBefore(ctx context.Context, damage []inspect.Finding) (map[int64]int64, error) {
	times := make(map[int64]int64, len(damage))
	last, next := int64(0), 0
	for rec, err := range r.dir.Log(ctx, inspect.LogRange{}, func(inspect.Finding) {}) {
		if err != nil {
			return nil, err
		}
		for ; next < len(damage) && damage[next].From <= rec.PhysicalOffset; next++ {
			times[damage[next].From] = last
		}
		if rec.Damaged == "" {
			last = rec.StoreTimestamp
		}
	}
	for ; next < len(damage); next++ {
		times[damage[next].From] = last
	}
	return times, nil
}

// fillPart is how many bytes one step fills, so that a hole as long as a segment needs no such memory.
const fillPart = 4 << 20

// fill puts records into a hole.
func (p *plan) fill(s inspect.Segment, f inspect.Finding, storeTime int64) {
	for from := f.From; from < f.To; {
		to := f.To
		if to-from > 2*fillPart {
			to = from + fillPart
		}
		p.steps = append(p.steps, Step{
			Op: Patch, File: s.File, Offset: from - s.Start, Length: to - from, content: recovery.Fillers(from, to, storeTime),
			Why: "records that count as rolled back in place of " + string(f.Kind),
		})
		from = to
	}
}

// blank ends a segment at damage behind which it has no record.
func (p *plan) blank(s inspect.Segment, f inspect.Finding) {
	left := s.End() - f.From
	if left < commitlog.BlankSize {
		return // no record has room there either
	}
	p.steps = append(p.steps, Step{
		Op: Patch, File: s.File, Offset: f.From - s.Start, Length: commitlog.BlankSize, content: commitlog.AppendBlank(nil, int(left)),
		Why: "the log goes on in the next file",
	})
}

// blankUnits makes fillers of the units that point into holes.
func (p *plan) blankUnits(ctx context.Context, holes []inspect.Finding) error {
	if len(holes) == 0 {
		return nil
	}
	filler := consumequeue.Filler().AppendTo(nil)
	for u, err := range p.dir.Queues(ctx, inspect.QueueFilter{}, func(inspect.Finding) {}) {
		if err != nil {
			return err
		}
		if u.Batch != nil || u.IsFiller() || !slices.ContainsFunc(holes, func(f inspect.Finding) bool { return f.From <= u.PhysicalOffset && u.PhysicalOffset < f.To }) {
			continue
		}
		p.steps = append(p.steps, Step{
			Op: Patch, File: u.File, Offset: u.Offset, Length: consumequeue.UnitSize, content: filler,
			Why: fmt.Sprintf("unit %d of %s/%d, its record at %d is passed over", u.Index, u.Topic, u.QueueID, u.PhysicalOffset),
		})
	}
	return ctx.Err()
}
