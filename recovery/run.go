package recovery

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// LostAndFound is the directory, in the root of a store, that keeps what a cut by choice takes away.
const LostAndFound = "lost+found"

// Permissions of files and directories that recovery makes.
const (
	filePerm fs.FileMode = 0o640
	dirPerm  fs.FileMode = 0o750
)

// Run plans and then does it: it marks the store as open, cuts, replays, syncs and writes a new checkpoint. The dispatcher
// that did the replay is given back at the end of the log, for the live records to come. A [*RefusedError] means that
// nothing was changed.
//
// It may be interrupted anywhere, by ctx or by a crash: run again, it comes to the same end.
func Run(ctx context.Context, p *Parts, o *Options) (*Report, *Dispatcher, error) {
	d, err := plan(ctx, p, o, true)
	if err != nil {
		return nil, nil, err
	}
	if d.Refused != nil {
		return &d.Report, nil, d.Refused
	}
	began := time.Now()
	r := &runner{Parts: p, d: d, opts: o.withDefaults()}
	live, err := r.run(ctx)
	d.Replaying = time.Since(began)
	return &d.Report, live, err
}

// Adopt makes the parts of a store that is opened for reading stand where a decision says they end. It changes nothing on
// disk. Of a store that would not be opened for writing all is left as it lies: what is damaged in it is not served.
func Adopt(p *Parts, d *Decision) error {
	if d.Refused != nil {
		return p.Log.SetEnd(max(d.readable, d.LogEnd), d.lastTime)
	}
	if err := p.Log.SetEnd(d.LogEnd, d.lastTime); err != nil {
		return err
	}
	for _, q := range d.queues {
		if err := q.queue.SetMax(q.readable); err != nil {
			return err
		}
		if err := q.queue.SetMin(d.LogStart); err != nil {
			return err
		}
	}
	return nil
}

type runner struct {
	*Parts
	d    *Decision
	opts Options
	over bool // the report is given away; set before the dispatcher is
}

// warn reports what the sinks come upon, in the live dispatch to the logger.
func (r *runner) warn(w Warning) {
	if r.over {
		r.opts.Logger.Warn("dispatch", "kind", w.Kind, "file", w.File, "offset", w.Offset, "text", w.Text)
		return
	}
	r.d.warn(w)
}

func (r *runner) run(ctx context.Context) (*Dispatcher, error) {
	if err := errors.Join(MarkOpen(r.FS, r.Derive.Dialect, filePerm), mappedfile.RemoveAside(r.FS)); err != nil {
		return nil, err
	}
	if err := r.cut(); err != nil {
		return nil, err
	}
	live, err := r.replay(ctx)
	if err != nil {
		return nil, err
	}
	for q := range r.Queues.All() {
		if err := q.SetMin(r.d.LogStart); err != nil {
			live.Close()
			return nil, err
		}
		_, end := q.Bounds()
		q.SetNext(end)
	}
	r.over = true
	return live, nil
}

// cut takes off what lies behind the end of the log, everywhere.
func (r *runner) cut() error {
	if r.d.Trusted {
		return Adopt(r.Parts, r.d)
	}
	if err := errors.Join(r.keepAside(), r.forgetCheckpoint()); err != nil {
		return err
	}
	if _, err := r.Log.Queue().Repair(); err != nil {
		return err
	}
	if err := r.Log.Truncate(r.d.LogEnd, r.d.lastTime); err != nil {
		return err
	}
	if err := r.fillHoles(); err != nil {
		return err
	}
	if r.d.anew {
		return r.dropAll()
	}
	for _, q := range r.d.queues {
		if q.anew {
			if err := r.Queues.Remove(q.queue); err != nil {
				return err
			}
			continue
		}
		if !q.cut {
			if err := q.queue.SetMax(q.end); err != nil {
				return err
			}
			continue
		}
		if err := q.queue.TruncateAfter(q.end); err != nil {
			return err
		}
	}
	if err := r.cutTransactions(); err != nil {
		return err
	}
	if r.Index == nil {
		return nil
	}
	if _, err := r.Index.DropTail(r.d.indexKeep); err != nil || r.d.indexProof == nil {
		return err
	}
	err := r.Index.TakeUp(r.d.indexProof)
	r.d.indexProof = nil // it is large
	return err
}

// cutTransactions ends redo log and state table where the plan says.
func (r *runner) cutTransactions() error {
	if r.Tx == nil {
		return nil
	}
	if _, err := r.Tx.Redo.Repair(); err != nil {
		return err
	}
	if err := r.Tx.Redo.TruncateAfter(r.d.redoCut); err != nil {
		return err
	}
	if r.d.remakeStates {
		return r.Tx.States.RemoveAll()
	}
	if _, err := r.Tx.States.Repair(); err != nil {
		return err
	}
	return r.Tx.States.TruncateAfter(r.Tx.States.Next())
}

func (r *runner) dropAll() error {
	for _, q := range r.d.queues {
		if err := r.Queues.Remove(q.queue); err != nil {
			return err
		}
	}
	r.d.queues = nil
	if r.Tx != nil {
		if err := errors.Join(r.Tx.States.RemoveAll(), r.Tx.Redo.RemoveAll()); err != nil {
			return err
		}
	}
	if r.Index == nil {
		return nil
	}
	_, err := r.Index.RemoveAll()
	return err
}

// replay gives the sinks what they lack.
func (r *runner) replay(ctx context.Context) (*Dispatcher, error) {
	p := &planner{Parts: r.Parts, d: r.d}
	queues := newQueueSink(r.Queues, r.Derive, r.d.replayFrom, r.warn, func(q *consumequeue.Queue, at int64, u consumequeue.Unit) bool {
		return p.judge(q, at, u) == unitRight
	})
	queues.ext = &extensions{fsys: r.FS}
	sinks := []Sink{queues}
	if r.Tx != nil { // the order of R-B-23
		sinks = append(sinks, NewStateSink(r.Log, r.Tx.States, r.d.LogEnd, r.warn), NewRedoSink(r.Tx.Redo, r.d.replayFrom))
	}
	if r.Index != nil {
		sinks = append(sinks, NewIndexSink(r.Index, r.Derive, r.d.indexFrom))
	}
	live := NewDispatcher(r.Log, r.Derive, r.d.replayFrom, sinks...)
	if r.opts.Progress != nil {
		total := r.d.LogEnd - r.d.replayFrom
		live.OnProgress(func(at int64) { r.opts.Progress("replay", at-r.d.replayFrom, total) })
	}
	live.trust(true) // the walk has checked them
	err := r.replayKept(ctx, live, queues)
	if err == nil {
		err = live.CatchUp(ctx)
	}
	live.trust(false)
	if err == nil {
		err = errors.Join(r.keepEnds(), r.fillVoids())
	}
	if err == nil && len(r.d.holes) > 0 {
		err = r.blankUnits()
	}
	r.d.Dispatched = live.Count()
	live.count = 0
	if err == nil && r.d.remakeStates {
		err = RebuildStates(ctx, r.Log, r.Tx, r.warn)
	}
	if err == nil && !r.d.Trusted {
		err = r.settle(ctx, live)
	}
	if err != nil {
		live.Close()
		return nil, err
	}
	return live, nil
}

// settle makes the outcome durable, and then says so in the checkpoint.
func (r *runner) settle(ctx context.Context, live *Dispatcher) error {
	// What a killed process wrote and never synced was read here as if it were durable.
	if err := mappedfile.SyncAll(r.FS); err != nil {
		return err
	}
	if err := live.Sync(ctx); err != nil {
		return err
	}
	c := r.Checkpoint
	if t := live.StoreTime(); t > 0 {
		c.Physic, c.Logics = t, t
	}
	if r.Index != nil {
		c.Index = r.Index.FullThrough()
	}
	r.Checkpoint = c
	return WriteCheckpoint(r.FS, c, filePerm)
}
