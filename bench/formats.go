package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// many is how many operations a step of the fast cases does, so that taking the time costs little.
const many = 100

// repeat makes a step of many.
func repeat(f func() error) func(int) error {
	return func(int) error {
		for range many {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
}

// codecCases work on memory alone.
func codecCases(*Options) []Case {
	const body = 1 << 10
	m := (&Workload{Body: body}).Message(1)
	var buf []byte
	record, recordErr := commitlog.AppendMessage(nil, m, dialect.V49(), 0)
	codec := func(name string, bytes int64, f func() error) Case {
		return Case{Name: "codec/op=" + name, Ops: many, Bytes: bytes, open: func(context.Context, string) (*Run, error) {
			return &Run{Step: repeat(f), Close: func() error { return nil }}, recordErr
		}}
	}
	decode := func(check bool) func() error {
		return func() error {
			r, err := commitlog.Decode(record)
			if err == nil && check {
				err = r.CheckBody()
			}
			return err
		}
	}
	sum := int32(0)
	return []Case{
		codec("encode", body, func() (err error) {
			buf, err = commitlog.AppendMessage(buf[:0], m, dialect.V49(), 0)
			return err
		}),
		codec("decode", body, decode(false)),
		codec("decode-and-check", body, decode(true)),
		codec("key-hash", 0, func() error {
			sum += message.HashString("Bench#k123456789")
			return nil
		}),
	}
}

// queueCases append units in turn to a number of queues, and read them.
func queueCases(o *Options) []Case {
	counts := []int{1, 1000}
	if o.Wide {
		counts = append(counts, 10_000)
	}
	var cases []Case
	for _, queues := range counts {
		cases = append(cases, Case{
			Name: fmt.Sprintf("queue/op=append/queues=%d", queues), Ops: many, Bytes: consumequeue.UnitSize,
			open: func(_ context.Context, dir string) (*Run, error) { return openQueues(dir, queues, false) },
		})
	}
	return append(cases, Case{
		Name: "queue/op=scan", Ops: many, Bytes: consumequeue.UnitSize,
		open: func(_ context.Context, dir string) (*Run, error) { return openQueues(dir, 1, true) },
	})
}

func openQueues(dir string, queues int, scan bool) (*Run, error) {
	fsys, err := mappedfile.OpenDir(dir, nil)
	if err != nil {
		return nil, err
	}
	t, err := consumequeue.OpenTable(fsys, "consumequeue", &consumequeue.Options{SegmentSize: 600_000})
	if err != nil {
		return nil, err
	}
	all := make([]*consumequeue.Queue, queues)
	for i := range all {
		if all[i], err = t.Ensure(fmt.Sprint("Topic", i/4), int32(i%4)); err != nil {
			return nil, errors.Join(err, t.Abandon())
		}
	}
	n := int64(0)
	put := func() error {
		q := all[n%int64(queues)]
		n++
		return q.Append((n-1)/int64(queues), consumequeue.Unit{PhysicalOffset: n * 1200, Size: 1200, TagsCode: 7})
	}
	run := &Run{Step: repeat(put), Close: t.Abandon}
	if !scan {
		return run, nil
	}
	for range 100_000 / many {
		if err := run.Step(0); err != nil {
			return nil, errors.Join(err, t.Abandon())
		}
	}
	var units [many]consumequeue.Unit
	at := int64(0)
	run.Step = func(int) error {
		got, err := all[0].Read(at, units[:])
		at = (at + int64(got)) % 100_000
		return err
	}
	return run, nil
}

// indexCases put keys, and ask for them.
func indexCases(o *Options) []Case {
	keys := int64(100_000)
	if o.Wide {
		keys = 1_000_000
	}
	put := func(dir string, fill int64) (*index.Index, func() error, error) {
		fsys, err := mappedfile.OpenDir(dir, nil)
		if err != nil {
			return nil, nil, err
		}
		x, err := index.Open(fsys, "index", &index.Options{Slots: 1 << 20, Entries: 4 << 20})
		if err != nil {
			return nil, nil, err
		}
		topic, n, key := []byte("Bench"), int64(0), []byte(nil)
		one := func() error {
			key = fmt.Appendf(key[:0], "k%d", n)
			n++
			return x.Put(index.Keys{Topic: topic, Keys: key, PhysicalOffset: n * 1200, StoreTimestamp: 1_700_000_000_000 + n/1000})
		}
		for range fill {
			if err := one(); err != nil {
				return nil, nil, errors.Join(err, x.Abandon())
			}
		}
		return x, one, nil
	}
	return []Case{
		{Name: "index/op=put", Ops: many, open: func(_ context.Context, dir string) (*Run, error) {
			x, one, err := put(dir, 0)
			if err != nil {
				return nil, err
			}
			return &Run{Step: repeat(one), Close: x.Abandon}, nil
		}},
		{Name: fmt.Sprintf("index/op=query/keys=%d", keys), Ops: 1, open: func(_ context.Context, dir string) (*Run, error) {
			x, _, err := put(dir, keys)
			if err != nil {
				return nil, err
			}
			var w Workload
			state := uint64(3)
			return &Run{Close: x.Abandon, Step: func(int) error {
				state = state*6364136223846793005 + 1442695040888963407
				for _, err := range x.Query("Bench", w.Key(int64(state>>33)%keys), 0, 1<<62) {
					return err
				}
				return errors.New("a key is not in the index")
			}}, nil
		}},
	}
}

// txCases work on the two structures of 3.1 alone.
func txCases(*Options) []Case {
	states := func(update bool) func(context.Context, string) (*Run, error) {
		return func(_ context.Context, dir string) (*Run, error) {
			fsys, err := mappedfile.OpenDir(dir, nil)
			if err != nil {
				return nil, err
			}
			t, err := txstate.Open(fsys, txstate.Dir, nil)
			if err != nil {
				return nil, err
			}
			n := int64(0)
			return &Run{Close: t.Abandon, Step: repeat(func() error {
				err := t.Append(n, txstate.Record{CommitOffset: n * 1200, Size: 1200, GroupHash: 1, State: txstate.Prepared})
				if n++; err == nil && update {
					_, err = t.Update(n-1, (n-1)*1200, 1, txstate.Committed)
				}
				return err
			})}, nil
		}
	}
	return []Case{
		{Name: "tx/op=prepare", Ops: many, Bytes: txstate.RecordSize, open: states(false)},
		{Name: "tx/op=prepare-and-commit", Ops: many, Bytes: txstate.RecordSize, open: states(true)},
		{Name: "tx/op=redo-append", Ops: many, Bytes: redolog.UnitSize, open: func(_ context.Context, dir string) (*Run, error) {
			l, _, err := openRedo(dir, 0)
			if err != nil {
				return nil, err
			}
			n := int64(0)
			return &Run{Close: l.Abandon, Step: repeat(func() error {
				n++
				_, err := l.Append(redolog.Unit{PhysicalOffset: n * 1200, Size: 1200, TagsCode: redolog.Prepared})
				return err
			})}, nil
		}},
		{Name: "tx/op=redo-replay", Ops: many * many, Bytes: redolog.UnitSize, open: func(_ context.Context, dir string) (*Run, error) {
			l, first, err := openRedo(dir, many*many)
			if err != nil {
				return nil, err
			}
			return &Run{Close: l.Abandon, Step: func(int) error {
				for _, err := range l.Replay(first) {
					if err != nil {
						return err
					}
				}
				return nil
			}}, nil
		}},
	}
}

// openRedo makes a redo log with so many units.
func openRedo(dir string, units int64) (l *redolog.Log, first int64, err error) {
	fsys, err := mappedfile.OpenDir(dir, nil)
	if err != nil {
		return nil, 0, err
	}
	if l, err = redolog.Open(fsys, redolog.Dir, nil); err != nil {
		return nil, 0, err
	}
	for n := range units {
		if _, err := l.Append(redolog.Unit{PhysicalOffset: (n + 1) * 1200, Size: 1200, TagsCode: redolog.Prepared}); err != nil {
			return nil, 0, errors.Join(err, l.Abandon())
		}
	}
	first, _ = l.Bounds()
	return l, first, nil
}
