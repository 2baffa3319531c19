package inspect

import (
	"context"
	"iter"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// openTransactions makes ready what of the transactions of 3.1 is asked for.
func (b *builder) openTransactions(to mappedfile.FS, o RebuildOptions, sizes Sizes) (err error) {
	if o.Redo {
		if b.redo, err = redolog.Open(to, redolog.Dir, &redolog.Options{SegmentSize: firstOf(o.Sizes.RedoLog, sizes.RedoLog)}); err != nil {
			return err
		}
		b.sinks = append(b.sinks, recovery.NewRedoSink(b.redo, 0))
	}
	if o.States {
		b.states, err = txstate.Open(to, txstate.Dir, &txstate.Options{SegmentSize: firstOf(o.Sizes.StateTable, sizes.StateTable)})
	}
	return err
}

// makeStates makes the state table from the events of the log, each record under the number that its message carries. It
// reads the log once more.
func (b *builder) makeStates(ctx context.Context, d *Dir, report func(Finding)) error {
	l := &recordReader{dir: d}
	defer l.close()
	if err := recovery.MakeStates(ctx, l, d.events(ctx), 0, b.states, reporter(report)); err != nil {
		return err
	}
	return b.states.Sync(0)
}

// events are the redo units of the log's records. What is damaged was reported before.
func (d *Dir) events(ctx context.Context) iter.Seq2[redolog.Entry, error] {
	return func(yield func(redolog.Entry, error) bool) {
		n := int64(0)
		for r, err := range d.Log(ctx, LogRange{}, func(Finding) {}) {
			var u redolog.Unit
			if err == nil {
				var ok bool
				if u, ok = recovery.Event(&r.Record); !ok || r.Damaged != "" {
					continue
				}
			}
			if !yield(redolog.Entry{Index: n, Unit: u}, err) {
				return
			}
			n++
		}
	}
}

// Read implements recovery.Records. The record's slices are valid until the next call.
func (l *recordReader) Read(off int64) (commitlog.Record, mappedfile.View, error) {
	r, err := l.at(off)
	if err == nil && r == nil {
		err = mappedfile.ErrOutOfRange
	}
	if err != nil {
		return commitlog.Record{}, mappedfile.View{}, err
	}
	return *r, mappedfile.View{}, nil
}

// Peek implements recovery.Records.
func (l *recordReader) Peek(off int64) (commitlog.Header, error) {
	r, _, err := l.Read(off)
	return commitlog.Header{
		Size: r.Size, QueueID: r.QueueID, QueueOffset: r.QueueOffset, SysFlag: r.SysFlag, StoreTimestamp: r.StoreTimestamp,
	}, err
}
