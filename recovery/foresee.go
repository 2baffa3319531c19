package recovery

import (
	"context"
	"errors"
	"iter"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/redolog"
)

// foresee adds what the replay would warn of, as far as that can be told without doing it: topics that cannot be folders, and all about
// a state table that is made again. What shows only when a unit meets those before it (wrong units, offsets that are there
// twice, holes) it cannot tell.
func (p *planner) foresee(ctx context.Context) error {
	if p.d.Refused != nil || p.d.Trusted || p.d.anew || p.w == nil {
		return nil
	}
	for _, k := range p.w.sortedQueues() {
		if err := consumequeue.CheckName(k.topic, k.id); err != nil {
			p.d.warn(Warning{Kind: KindUnsafeTopic, File: "commitlog", Offset: p.w.queues[k].firstPhysical, Text: err.Error()})
		}
	}
	if p.Tx == nil || !p.d.remakeStates {
		return nil
	}
	first, end := p.Tx.Redo.Bounds()
	rows, err := foldRedo(ctx, p.Log, p.eventsToBe(first), int(end-first), p.d.warn)
	settle(rows, p.Tx.States.SegmentSize(), p.d.warn)
	return err
}

// eventsToBe are the units of the redo log as the replay will have mended it: those that are kept, and those that it lacks.
func (p *planner) eventsToBe(first int64) iter.Seq2[redolog.Entry, error] {
	return func(yield func(redolog.Entry, error) bool) {
		for e, err := range p.Tx.Redo.Replay(first) {
			if e.Index >= p.d.redoCut || errors.Is(err, mappedfile.ErrCorrupt) {
				break
			}
			if !yield(e, err) {
				return
			}
		}
		for i, u := range p.w.redo.lacking {
			if !yield(redolog.Entry{Index: p.d.redoCut + int64(i), Unit: u}, nil) {
				return
			}
		}
	}
}
