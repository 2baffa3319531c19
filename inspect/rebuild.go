package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// Derived chooses structures that are made from the commit log. States and Redo are those of 3.1.
type Derived struct {
	Queues, Index, States, Redo, Checkpoint bool
}

// RebuildOptions steer [Dir.Rebuild].
type RebuildOptions struct {
	Derived
	// Dialect is the line whose rules are followed. Default: the line that wrote the directory.
	Dialect string
	// Sizes are the sizes of the files made. A field that is 0 is as in the directory, or RocketMQ's default.
	Sizes Sizes
	// DelayLevels is messageDelayLevel. Default: the dialect's.
	DelayLevels string
	// RebuiltPart bounds what is made again. The zero value is all.
	RebuiltPart
}

// Rebuilt says what a rebuild made.
type Rebuilt struct {
	Records    int64 `json:"records"` // of the log, that were taken up
	Queues     int   `json:"queues"`
	Units      int64 `json:"units"`
	IndexFiles int   `json:"indexFiles"`
	Keys       int64 `json:"keys"`
	States     int64 `json:"states"` // records of the state table
	RedoUnits  int64 `json:"redoUnits"`
	// LastStoreTime is the store time of the last record, ms; the checkpoint holds it.
	LastStoreTime int64 `json:"-"`
}

// Rebuild makes structures anew from the commit log, in another, empty directory; this one is only read. Damage in the log
// is reported and passed over, as by [Dir.Log].
func (d *Dir) Rebuild(ctx context.Context, to mappedfile.FS, o RebuildOptions, report func(Finding)) (*Rebuilt, error) {
	if entries, err := to.ReadDir("."); err != nil || len(entries) > 0 {
		return nil, errors.Join(err, errors.New("the directory to make the files in is not empty"))
	}
	if err := o.check(o.Derived); err != nil {
		return nil, err
	}
	b, err := d.builder(to, o, report)
	if err == nil {
		err = b.run(ctx, d, report)
	}
	if err == nil && b.states != nil {
		err = b.makeStates(ctx, d, report)
	}
	if err == nil && o.Checkpoint {
		t := b.made.LastStoreTime
		err = recovery.WriteCheckpoint(to, recovery.Checkpoint{Physic: t, Logics: t, Index: t}, 0o640)
	}
	if err == nil {
		b.count()
		err = o.save(to)
	}
	return &b.made, errors.Join(err, b.close())
}

// builder is one rebuild.
type builder struct {
	queues *consumequeue.Table
	index  *index.Index
	states *txstate.Table
	redo   *redolog.Log
	sinks  []recovery.Sink
	part   RebuiltPart
	made   Rebuilt
}

func (d *Dir) builder(to mappedfile.FS, o RebuildOptions, report func(Finding)) (b *builder, err error) {
	b = &builder{part: o.RebuiltPart}
	sizes, err := d.Sizes()
	if err != nil {
		return b, err
	}
	if o.Dialect == "" {
		id, err := d.lineOf()
		if err != nil {
			return b, err
		}
		o.Dialect = id.Line
	}
	rules, err := dialect.Parse(o.Dialect)
	if err != nil {
		return b, err
	}
	derive, err := recovery.NewDeriver(rules, o.DelayLevels)
	if err != nil {
		return b, err
	}
	if err := b.openTransactions(to, o, sizes); err != nil {
		return b, err
	}
	if o.Queues {
		b.queues, err = consumequeue.OpenTable(to, recovery.QueueDir, &consumequeue.Options{MaxHole: recovery.MaxHole, SegmentSize: firstOf(o.Sizes.Queue, sizes.Queue)})
		if err != nil {
			return b, err
		}
		b.sinks = append(b.sinks, recovery.NewQueueSink(b.queues, derive, 0, reporter(report), func(*consumequeue.Queue, int64, consumequeue.Unit) bool { return true }))
	}
	if o.Index {
		b.index, err = index.Open(to, recovery.IndexDir, &index.Options{
			Slots: firstOf(o.Sizes.IndexSlots, sizes.IndexSlots), Entries: firstOf(o.Sizes.IndexEntries, sizes.IndexEntries), Dialect: rules,
		})
		if err != nil {
			return b, err
		}
		b.sinks = append(b.sinks, recovery.NewIndexSink(b.index, derive, 0))
	}
	return b, nil
}

// reporter makes findings of what the sinks come upon.
func reporter(report func(Finding)) func(recovery.Warning) {
	return func(w recovery.Warning) {
		report(Finding{Kind: Kind(w.Kind), Severity: Warning, File: w.File, Offset: w.Offset, From: w.From, To: w.To, Text: w.Text})
	}
}

func firstOf[T int32 | int64](asked, shown T) T {
	if asked != 0 {
		return asked
	}
	return shown
}

// run feeds the log to what is made, and makes that durable.
func (b *builder) run(ctx context.Context, d *Dir, report func(Finding)) error {
	for r, err := range d.Log(ctx, LogRange{From: b.part.From, To: b.part.To}, report) {
		if err != nil {
			return err
		}
		if b.part.Topic != "" && (string(r.Topic) != b.part.Topic || b.part.Queue != nil && r.QueueID != *b.part.Queue) {
			continue
		}
		if r.Damaged != "" {
			report(Finding{Kind: BadCRC, Severity: Error, File: r.File, Text: fmt.Sprintf("record at %d is damaged (%s); it is in nothing that was made", r.PhysicalOffset, r.Damaged)})
			continue
		}
		if err := b.apply(&r.Record); err != nil {
			return err
		}
	}
	for _, s := range b.sinks {
		if err := s.Sync(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) apply(r *commitlog.Record) error {
	for _, s := range b.sinks {
		if err := s.Apply(r); err != nil {
			return fmt.Errorf("%s: record at %d: %w", s.Name(), r.PhysicalOffset, err)
		}
	}
	b.made.Records++
	b.made.LastStoreTime = max(b.made.LastStoreTime, r.StoreTimestamp)
	return nil
}

func (b *builder) count() {
	if b.queues != nil {
		for q := range b.queues.All() {
			first, end := q.Bounds()
			b.made.Queues++
			b.made.Units += end - first
		}
	}
	if b.index != nil {
		for _, f := range b.index.Files() {
			b.made.IndexFiles++
			b.made.Keys += int64(f.Header.Keys())
		}
	}
	if b.states != nil {
		first, next := b.states.Bounds()
		b.made.States = next - first
	}
	if b.redo != nil {
		first, next := b.redo.Bounds()
		b.made.RedoUnits = next - first
	}
}

func (b *builder) close() error {
	var errs []error
	if b.queues != nil {
		errs = append(errs, b.queues.Close())
	}
	if b.index != nil {
		errs = append(errs, b.index.Close())
	}
	if b.states != nil {
		errs = append(errs, b.states.Close())
	}
	if b.redo != nil {
		errs = append(errs, b.redo.Close())
	}
	return errors.Join(errs...)
}
