package recovery_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

var seed = flag.Uint64("seed", 0, "of the random tests; 0: another each time")

func random(t *testing.T) *rand.Rand {
	n := cmp.Or(*seed, rand.Uint64())
	t.Logf("-seed %d", n)
	return rand.New(rand.NewPCG(n, 0))
}

func host(t *testing.T, s string) message.Host {
	h, err := message.ParseHost(s)
	require.NoError(t, err)
	return h
}

const logSegment = 16 << 10

// feed makes records such as a dispatch may come upon, in a log that it appends them to.
type feed struct {
	rng  *rand.Rand
	log  *commitlog.Log
	at   int64
	next map[string]int64 // queue offset of each queue
	// once: no record has two places in one queue. Of those that have, what a second dispatch makes is not defined.
	once bool
}

// queueOffset is mostly the next one of a queue, sometimes one that was, one behind a hole, or one that cannot be.
func (f *feed) queueOffset(queue string) int64 {
	n, ok := f.next[queue]
	if !ok {
		n = f.rng.Int64N(2) * f.rng.Int64N(20) // of an old queue the first ones are gone
	}
	switch f.rng.IntN(60) {
	case 0:
		return max(0, n-1-f.rng.Int64N(4))
	case 1:
		n += 1 + f.rng.Int64N(8)
	case 2:
		return n + 1<<22
	case 3:
		return []int64{-1, 1 << 55, 1 << 48}[f.rng.IntN(3)]
	}
	f.next[queue] = n + 1
	return n
}

func (f *feed) record(t *testing.T) commitlog.Record {
	r := commitlog.Record{Magic: commitlog.MagicV1, PhysicalOffset: f.at, StoreTimestamp: 1_700_000_000_000 + f.at, Body: make([]byte, f.rng.IntN(300))}
	r.BodyCRC, r.BornHost, r.StoreHost = message.CRC(r.Body), host(t, "10.0.0.1:1"), host(t, "10.0.0.2:2")
	topic := []string{"A", "A", "A", "B", "Topic", recovery.ScheduleTopic, "..", fmt.Sprint("many", f.rng.IntN(150))}[f.rng.IntN(8)]
	r.Topic, r.QueueID = []byte(topic), f.rng.Int32N(3)
	r.QueueOffset = f.queueOffset(fmt.Sprint(topic, r.QueueID))
	p := []string{message.PropertyTags, fmt.Sprint("tag", f.rng.IntN(5))}
	switch f.rng.IntN(4) {
	case 0:
		p = append(p, message.PropertyKeys, strings.Repeat(fmt.Sprint("key", f.rng.IntN(100), " "), 1+f.rng.IntN(6)*f.rng.IntN(6)))
	case 1:
		p = append(p, message.PropertyKeys, "one", message.PropertyUniqueKey, fmt.Sprint("unique", f.at))
	}
	if topic == recovery.ScheduleTopic {
		p = append(p, message.PropertyDelay, strconv.Itoa(f.rng.IntN(20)))
	}
	switch f.rng.IntN(20) {
	case 0:
		r.SysFlag = message.FlagPrepared
	case 1:
		r.SysFlag = message.FlagRollback
	case 2:
		r.SysFlag = message.FlagCommit
	case 3:
		if f.once && topic == "B" {
			break
		}
		a, b := f.queueOffset("%LMQ%a"), f.queueOffset("B0")
		p = append(p, message.PropertyMultiDispatch, "%LMQ%a,B", message.PropertyMultiQueueOffset, fmt.Sprint(a, ",", b))
	}
	for i := 0; i < len(p); i += 2 {
		r.Properties = append(r.Properties, p[i]+"\x01"+p[i+1]+"\x02"...)
	}
	return r
}

// put appends n records, over the ends of segments.
func (f *feed) put(t *testing.T, n int) {
	for range n {
		r := f.record(t)
		left := logSegment - f.at%logSegment
		if int64(r.EncodedSize()+commitlog.BlankSize) > left {
			blank := make([]byte, left)
			copy(blank, commitlog.AppendBlank(nil, int(left)))
			require.NoError(t, f.log.AppendRaw(t.Context(), f.at, blank, false))
			f.at += left
			r.PhysicalOffset = f.at
		}
		b := r.AppendTo(nil)
		require.NoError(t, f.log.AppendRaw(t.Context(), f.at, b, false))
		f.at += int64(len(b))
	}
}

// derived are queues and index on a disk of their own, and what was warned of.
type derived struct {
	fsys         *memfs.FS
	queues       *consumequeue.Table
	queue, index recovery.Sink
	derive       *recovery.Deriver
	warnings     []recovery.Warning
}

func newDerived(t *testing.T) *derived {
	d := &derived{fsys: memfs.New()}
	var err error
	d.derive, err = recovery.NewDeriver(dialect.V49(), "")
	require.NoError(t, err)
	d.queues, err = consumequeue.OpenTable(d.fsys, "consumequeue", &consumequeue.Options{SegmentSize: 50 * consumequeue.UnitSize, MaxHole: recovery.MaxHole})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.queues.Abandon()) })
	x, err := index.Open(d.fsys, "index", &index.Options{Slots: 50, Entries: 300})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Abandon()) })
	belongs := func(_ *consumequeue.Queue, at int64, _ consumequeue.Unit) bool { return at%2 == 0 }
	d.queue = recovery.NewQueueSink(d.queues, d.derive, 0, func(w recovery.Warning) { d.warnings = append(d.warnings, w) }, belongs)
	d.index = recovery.NewIndexSink(x, d.derive, 100) // the first records are in it
	return d
}

// files gives all bytes below a directory.
func files(t *testing.T, fsys mappedfile.FS, dir string) map[string]string {
	all := map[string]string{}
	entries, err := fsys.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			maps.Copy(all, files(t, fsys, name))
			continue
		}
		all[name] = golden.ReadFile(t, fsys, name)
	}
	return all
}

// same compares with what the sinks make of the log's records when each has taken one before it gets the next.
func (d *derived) same(t *testing.T, log *commitlog.Log, warnings bool) {
	t.Helper()
	want := newDerived(t)
	for r, err := range log.Records(0) {
		require.NoError(t, err)
		require.NoError(t, want.queue.Apply(r))
		require.NoError(t, want.index.Apply(r))
	}
	if warnings {
		require.Equal(t, want.warnings, d.warnings)
	}
	have := files(t, d.fsys, ".")
	for name, b := range files(t, want.fsys, ".") {
		if b != have[name] { // they are long
			require.Fail(t, "other bytes", name)
		}
		delete(have, name)
	}
	require.Empty(t, have)
}

func newFeed(t *testing.T) *feed {
	log, err := commitlog.Open(memfs.New(), &commitlog.Options{SegmentSize: logSegment, NoAhead: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Abandon()) })
	return &feed{rng: random(t), log: log, next: map[string]int64{}}
}

// However many records a dispatch takes at a time, queues and index get the same bytes, and the same is warned of: queues that go on,
// begin, have holes and repeated or absurd offsets, units of delayed messages and of light queues, records in none, and the ends of
// segments of log, queues and index (R-E-042, R-E-043).
func TestBatchesMakeWhatRecordsOneByOneMake(t *testing.T) {
	for range 4 {
		f, d := newFeed(t), newDerived(t)
		live := recovery.NewDispatcher(f.log, d.derive, 0, d.queue, d.index)
		defer live.Close()
		var told, reached []int64
		live.OnApplied(func(r *commitlog.Record, _ *recovery.Derived) { told = append(told, r.PhysicalOffset) })
		live.OnProgress(func(offset int64) { reached = append(reached, offset) })
		for _, most := range []int{1, 3, 70, 2000} {
			for range 8 {
				f.put(t, 1+f.rng.IntN(most))
				require.NoError(t, live.CatchUp(t.Context()))
				require.Equal(t, f.at, live.Offset())
			}
		}
		d.same(t, f.log, true)
		i := 0
		for r, err := range f.log.Records(0) {
			require.NoError(t, err)
			require.Equal(t, r.PhysicalOffset, told[i])
			i++
		}
		require.Len(t, told, i)
		require.EqualValues(t, i, live.Count())
		require.Equal(t, told[i-1], live.Last())
		require.Len(t, reached, i/1024)
	}
}

// A record is dispatched as soon as it is there, and nothing waits for more.
func TestOneRecordIsDispatchedAtOnce(t *testing.T) {
	f, d := newFeed(t), newDerived(t)
	live := recovery.NewDispatcher(f.log, d.derive, 0, d.queue, d.index)
	defer live.Close()
	told := 0
	live.OnApplied(func(_ *commitlog.Record, _ *recovery.Derived) { told++ })
	for i := range int64(5) {
		r := commitlog.Record{
			Magic: commitlog.MagicV1, PhysicalOffset: f.at, QueueOffset: i, Topic: []byte("T"), BornHost: host(t, "10.0.0.1:1"), StoreHost: host(t, "10.0.0.1:1"),
		}
		b := r.AppendTo(nil)
		require.NoError(t, f.log.AppendRaw(t.Context(), f.at, b, false))
		f.at += int64(len(b))
		require.NoError(t, live.CatchUp(t.Context()))
		u, err := d.queues.Lookup("T", 0).Get(i)
		require.NoError(t, err)
		require.Equal(t, r.PhysicalOffset, u.PhysicalOffset)
		require.EqualValues(t, i+1, told)
	}
}

// A dispatch that finds the disk full within a batch stands at the record that failed, which neither Offset nor OnApplied tell of, and with
// more room goes on to the same end.
func TestBatchThatFailsIsTakenUpAgain(t *testing.T) {
	f := newFeed(t)
	f.once = true
	f.put(t, 800)
	failures := 0
	for limit := int64(0); ; limit += 20 << 10 {
		d := newDerived(t)
		live := recovery.NewDispatcher(f.log, d.derive, 0, d.queue, d.index)
		defer live.Close()
		var told []int64
		live.OnApplied(func(r *commitlog.Record, _ *recovery.Derived) { told = append(told, r.PhysicalOffset) })
		d.fsys.Limit(max(1, limit))
		err := live.CatchUp(t.Context())
		if err == nil {
			break
		}
		failures++
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, fmt.Sprintf("record at %d: ", placesBefore(t, f.log, f.at)[len(told)]))
		require.Equal(t, told, placesBefore(t, f.log, live.Offset()))
		require.ErrorIs(t, live.CatchUp(t.Context()), syscall.ENOSPC)
		require.Equal(t, told, placesBefore(t, f.log, live.Offset()))
		d.fsys.Limit(0)
		require.NoError(t, live.CatchUp(t.Context()))
		require.Equal(t, f.at, live.Offset())
		require.Equal(t, told, placesBefore(t, f.log, f.at))
		d.same(t, f.log, false)
	}
	require.Greater(t, failures, 10)
}

func placesBefore(t *testing.T, log *commitlog.Log, offset int64) (places []int64) {
	for r, err := range log.Records(0) {
		require.NoError(t, err)
		if r.PhysicalOffset < offset {
			places = append(places, r.PhysicalOffset)
		}
	}
	return places
}

// eager is a sink that takes records one by one.
type eager struct {
	name string
	seen *[]string
	fail func(r *commitlog.Record) error
}

func (e *eager) Name() string               { return e.name }
func (e *eager) Durable() int64             { return 0 }
func (e *eager) Sync(context.Context) error { return nil }

func (e *eager) Apply(r *commitlog.Record) error {
	if err := e.fail(r); err != nil {
		return err
	}
	*e.seen = append(*e.seen, fmt.Sprint(e.name, r.PhysicalOffset))
	return nil
}

// Sinks that follow each other and know no batches take each record before the next one, as state table and redo log must (R-B-23). After an
// error of one the record comes again.
func TestSinksWithoutBatchesTakeEachRecordInTurn(t *testing.T) {
	f, d := newFeed(t), newDerived(t)
	f.put(t, 300)
	places := placesBefore(t, f.log, f.at)
	var seen, want []string
	broken := errors.New("broken")
	ok := func(*commitlog.Record) error { return nil }
	times := 0
	breaks := func(r *commitlog.Record) error {
		if r.PhysicalOffset == places[100] && times < 3 { // in a batch, and then alone
			times++
			return broken
		}
		return nil
	}
	live := recovery.NewDispatcher(f.log, d.derive, 0, d.queue, &eager{"a", &seen, ok}, &eager{"b", &seen, breaks}, d.index)
	defer live.Close()
	for range 2 {
		err := live.CatchUp(t.Context())
		require.ErrorIs(t, err, broken)
		require.ErrorContains(t, err, fmt.Sprintf("b: record at %d", places[100]))
		require.Equal(t, places[100], live.Offset())
		require.EqualValues(t, 100, live.Count())
	}
	seen = seen[:0]
	require.NoError(t, live.CatchUp(t.Context()))
	for _, at := range places[100:] {
		want = append(want, fmt.Sprint("a", at), fmt.Sprint("b", at))
	}
	require.Equal(t, want, seen)
	d.same(t, f.log, false)
}
