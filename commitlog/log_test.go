package commitlog_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

func record(t testing.TB, body string) []byte {
	t.Helper()
	b, err := commitlog.AppendMessage(nil, &message.Message{Topic: "T", Body: []byte(body)}, dialect.V49(), 0)
	require.NoError(t, err)
	return b
}

func openLog(t testing.TB, fsys mappedfile.FS, o commitlog.Options) *commitlog.Log {
	t.Helper()
	if o.SegmentSize == 0 {
		o.SegmentSize = 4096
	}
	l, err := commitlog.Open(fsys, &o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Abandon() })
	return l
}

// Records roll to the next segment where size + 8 does not fit, behind a blank (R-E-023).
func TestAppendRollsWhenARecordDoesNotFit(t *testing.T) {
	l := openLog(t, memfs.New(), commitlog.Options{})
	exact := make([]byte, 4096-8-commitlog.MinRecordSize-1)
	res, err := l.Append(t.Context(), record(t, string(exact)), nil, false)
	require.NoError(t, err)
	require.Equal(t, 4096-8, res.Size)
	res, err = l.Append(t.Context(), record(t, "next"), nil, false)
	require.NoError(t, err)
	require.EqualValues(t, 4096, res.PhysicalOffset)
	_, err = l.Append(t.Context(), record(t, string(exact)+"x"), nil, false)
	require.ErrorIs(t, err, commitlog.ErrMessageIllegal)
	n := 0
	for r, err := range l.Records(0) {
		require.NoError(t, err)
		require.Contains(t, []int64{0, 4096}, r.PhysicalOffset)
		n++
	}
	require.Equal(t, 2, n)
}

// What is read together is what is read one by one, up to the first record that is damaged, not there or not where it says; what was not
// given is not held (R-E-036).
func TestRecordsAreReadTogetherUpToTheFirstThatCannotBe(t *testing.T) {
	fsys := memfs.New()
	l := openLog(t, fsys, commitlog.Options{})
	var places []commitlog.Place
	for i := range 40 {
		res, err := l.Append(t.Context(), record(t, fmt.Sprintf("message %d%s", i, make([]byte, 10*i))), given(int64(i)), false)
		require.NoError(t, err)
		places = append(places, commitlog.Place{Offset: res.PhysicalOffset, Size: int32(res.Size)})
	}
	require.Greater(t, places[39].Offset, int64(2*4096), "several segments")
	_, end := l.Bounds()
	damaged := slices.Clone(places)
	require.NoError(t, l.Queue().WriteAt([]byte("?"), places[30].Offset+90))
	lying := slices.Clone(places[:20])
	lying[3].Size, lying[7].Size, lying[8].Size = -1, 1<<30, 0 // sizes are but what the queue says
	const nothing, bodies, all = commitlog.TrustNothing, commitlog.TrustBodies, commitlog.TrustAll
	behind := append(slices.Clone(places[:5]), commitlog.Place{Offset: end, Size: 100})
	inside := []commitlog.Place{places[0], {Offset: places[1].Offset + 1, Size: places[1].Size}, places[2]}
	for name, tt := range map[string]struct {
		places []commitlog.Place
		trust  commitlog.Trust
		good   int
	}{
		"all": {places[:30], nothing, 30}, "none": {nil, nothing, 0}, "damaged": {damaged, nothing, 30}, "wrong sizes": {lying, nothing, 20},
		"behind the end":   {behind, nothing, 5},
		"far away":         {append(slices.Clone(places[:5]), commitlog.Place{Offset: 1 << 50, Size: 100}, places[6]), nothing, 5},
		"inside a record":  {inside, nothing, 1},
		"before the start": {[]commitlog.Place{{Offset: -1, Size: 100}, places[0]}, nothing, 0},
		"backwards":        {[]commitlog.Place{places[29], places[3], places[4], places[2]}, nothing, 4},

		"damaged, trusting bodies":         {damaged, bodies, 40},
		"inside a record, trusting bodies": {inside, bodies, 1},
		"damaged, trusting all":            {damaged, all, 40},
		"inside a record, trusting all":    {inside, all, 3},
		"wrong sizes, trusting all":        {lying, all, 3},
		"behind the end, trusting all":     {behind, all, 5},
	} {
		t.Run(name, func(t *testing.T) {
			records, views := l.ReadMany(tt.places, tt.trust, make([]commitlog.Record, 1, 8), make([]mappedfile.View, 2, 8))
			require.Len(t, records, 1+tt.good)
			require.Len(t, views, 2+tt.good)
			for i, got := range records[1:] {
				b := views[2+i].Bytes()
				want := commitlog.Record{PhysicalOffset: tt.places[i].Offset, Size: tt.places[i].Size}
				if tt.trust == all {
					require.GreaterOrEqual(t, len(b), int(want.Size))
				} else {
					var err error
					want, err = commitlog.Decode(b)
					require.NoError(t, err)
				}
				require.Equal(t, want, got)
			}
			for _, v := range views {
				v.Release()
			}
			if tt.good < len(tt.places) && tt.trust == nothing {
				_, _, err := l.Read(tt.places[tt.good].Offset)
				require.Error(t, err)
			}
		})
	}
	require.NoError(t, l.Abandon())
	require.Zero(t, fsys.Mappings(), "nobody holds a segment")
}

// A dispatch need not check again what was encoded a moment ago, but what another store has sent.
func TestAReaderThatTrustsItsOwnChecksWhatCameFromElsewhere(t *testing.T) {
	source := openLog(t, memfs.New(), commitlog.Options{})
	res, err := source.Append(t.Context(), record(t, "its body"), nil, false)
	require.NoError(t, err)
	require.NoError(t, source.Queue().WriteAt([]byte("?"), 90))
	own := source.NewReader(0)
	defer own.Close()
	own.TrustOwn = true
	r, err := own.Next()
	require.NoError(t, err)
	require.EqualValues(t, res.Size, r.Size)

	v, err := source.Queue().View(0, res.Size)
	require.NoError(t, err)
	defer v.Release()
	replica := openLog(t, memfs.New(), commitlog.Options{})
	fed := replica.NewReader(0)
	defer fed.Close()
	fed.TrustOwn = true
	require.NoError(t, replica.AppendRaw(t.Context(), 0, v.Bytes(), false))
	_, err = fed.Next()
	require.ErrorIs(t, err, commitlog.ErrCRC)
}

// A run of records is one whole: it moves to the next segment together (R-E-034, R-D-097).
func TestBatchIsAppendedAsAWhole(t *testing.T) {
	l := openLog(t, memfs.New(), commitlog.Options{})
	_, err := l.Append(t.Context(), record(t, string(make([]byte, 3000))), nil, false)
	require.NoError(t, err)
	run := append(record(t, string(make([]byte, 400))), record(t, string(make([]byte, 700)))...)
	res, err := l.Append(t.Context(), run, given(7), false)
	require.NoError(t, err)
	require.EqualValues(t, 4096, res.PhysicalOffset)
	require.Equal(t, 2, res.Records)
	var offsets []int64
	for r, err := range l.Records(4096) {
		require.NoError(t, err)
		offsets = append(offsets, r.QueueOffset)
	}
	require.Equal(t, []int64{7, 8}, offsets)
}

// Many goroutines append at once; every record is whole, in one order, without a gap (R-E-029), also for a reader that
// follows (R-E-033).
func TestConcurrentAppendsAreWholeAndInOrder(t *testing.T) {
	l := openLog(t, memfs.New(), commitlog.Options{SegmentSize: 16 << 10})
	const writers, each = 8, 200
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				_, err := l.Append(context.Background(), record(t, fmt.Sprintf("%d-%d", w, i)), nil, false)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := make(map[string]int)
	reader := l.NewReader(0)
	defer reader.Close()
	for n := 0; n < writers*each; {
		r, err := reader.Next()
		require.NoError(t, err)
		if r == nil {
			<-l.Grown()
			continue
		}
		var w string
		var i int
		_, err = fmt.Sscanf(string(r.Body), "%1s-%d", &w, &i)
		require.NoError(t, err)
		require.Equal(t, next[w], i)
		next[w]++
		n++
	}
	group.Wait()
}

// Bytes of a replica are taken at the end only, cut anywhere, and read when they are whole (R-E-035).
func TestAppendRawTakesAReplicasFeed(t *testing.T) {
	source := openLog(t, memfs.New(), commitlog.Options{})
	for i := range 100 {
		_, err := source.Append(t.Context(), record(t, fmt.Sprint("message ", i)), nil, false)
		require.NoError(t, err)
	}
	replica := openLog(t, memfs.New(), commitlog.Options{})
	start := int64(4096) // an empty replica is fed from its master's last file or any other
	_, end := source.Bounds()
	reader := replica.NewReader(start)
	defer reader.Close()
	got := 0
	for at := start; at < end; {
		v, err := source.Queue().ViewFrom(at)
		require.NoError(t, err)
		b := v.Bytes()[:min(len(v.Bytes()), 333)]
		require.NoError(t, replica.AppendRaw(t.Context(), at, b, false))
		require.ErrorIs(t, replica.AppendRaw(t.Context(), at, b, false), commitlog.ErrNotAtEnd)
		at += int64(len(b))
		v.Release()
		for {
			r, err := reader.Next()
			require.NoError(t, err)
			if r == nil {
				break
			}
			got++
		}
	}
	want := 0
	for _, err := range source.Records(start) {
		require.NoError(t, err)
		want++
	}
	require.Equal(t, want, got)
}

// slowFS makes each sync of a mapping take 4 ms of the bubble's time.
type slowFS struct {
	mappedfile.FS
	syncs *int
}

func (s slowFS) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	f, err := s.FS.OpenFile(name, flag, perm)
	return slowFile{f, s.syncs}, err
}

type slowFile struct {
	mappedfile.File
	syncs *int
}

func (s slowFile) Map(size int64, access mappedfile.Access) (mappedfile.Mapping, error) {
	m, err := s.File.Map(size, access)
	return slowMapping{m, s.syncs}, err
}

type slowMapping struct {
	mappedfile.Mapping
	syncs *int
}

func (s slowMapping) SyncRange(off, n int) error {
	time.Sleep(4 * time.Millisecond)
	*s.syncs++
	return s.Mapping.SyncRange(off, n)
}

// One sync serves all who wait by then (R-E-030).
func TestWaitersShareOneSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		syncs := 0
		l := openLog(t, slowFS{memfs.New(), &syncs}, commitlog.Options{Sync: commitlog.SyncGroup, NoAhead: true, SegmentSize: 64 << 10})
		errs := make(chan error, 10)
		put := func() {
			_, err := l.Append(context.Background(), record(t, "x"), nil, true)
			errs <- err
		}
		go put()
		synctest.Wait() // the first sync is under way
		for range 9 {
			go put()
		}
		for range 10 {
			require.NoError(t, <-errs)
		}
		require.Equal(t, 2, syncs) // ten waiters, two syncs
		_, end := l.Bounds()
		require.Equal(t, end, l.Flushed())
	})
}

// An append gives up after the time-out or with its context, whether it was the first or found a sync under way; its record is
// stored all the same, and durable when the device has answered (R-E-030, R-D-136).
func TestWaiterGivesUpAndTheRecordStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		device := &hungFS{FS: memfs.New(), answer: make(chan struct{})}
		l := openLog(t, device, commitlog.Options{Sync: commitlog.SyncGroup, NoAhead: true})
		began := time.Now()
		_, err := l.Append(t.Context(), record(t, "first"), nil, true)
		require.ErrorIs(t, err, commitlog.ErrSyncTimeout)
		require.Equal(t, 5*time.Second, time.Since(began))
		_, err = l.Append(t.Context(), record(t, "second"), nil, true)
		require.ErrorIs(t, err, commitlog.ErrSyncTimeout)
		require.Equal(t, 10*time.Second, time.Since(began))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = l.Append(ctx, record(t, "cancelled"), nil, true)
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, l.Flushed())

		done, patient := make(chan error, 1), record(t, "patient")
		go func() {
			_, err := l.Append(context.Background(), patient, nil, true)
			done <- err
		}()
		synctest.Wait()
		close(device.answer)
		require.NoError(t, <-done)
		_, end := l.Bounds()
		require.Equal(t, end, l.Flushed())
		n := 0
		for _, err := range l.Records(0) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 4, n)
	})
}

// hungFS answers no sync of a mapping before its channel is closed.
type hungFS struct {
	mappedfile.FS
	answer chan struct{}
}

func (h *hungFS) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	f, err := h.FS.OpenFile(name, flag, perm)
	return hungFile{f, h}, err
}

type hungFile struct {
	mappedfile.File
	fsys *hungFS
}

func (h hungFile) Map(size int64, access mappedfile.Access) (mappedfile.Mapping, error) {
	m, err := h.File.Map(size, access)
	return hungMapping{m, h.fsys}, err
}

type hungMapping struct {
	mappedfile.Mapping
	fsys *hungFS
}

func (h hungMapping) SyncRange(off, n int) error {
	<-h.fsys.answer
	return h.Mapping.SyncRange(off, n)
}

// A full disk is an error, nothing is written, and appends go on when there is room (R-E-038).
func TestFullDiskIsAnErrorAndPasses(t *testing.T) {
	fsys := memfs.New()
	fsys.Limit(3 * 4096)
	l := openLog(t, fsys, commitlog.Options{NoAhead: true})
	var err error
	stored := 0
	for err == nil {
		if _, err = l.Append(t.Context(), record(t, string(make([]byte, 900))), nil, false); err == nil {
			stored++
		}
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	fsys.Limit(1 << 20)
	_, err = l.Append(t.Context(), record(t, "room again"), nil, false)
	require.NoError(t, err)
	n := 0
	for _, err := range l.Records(0) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, stored+1, n)
}

// The first failed sync is final: later appends are refused with it, reads go on (design.md 4.5).
func TestFailedSyncIsFinal(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	l := openLog(t, fsys, commitlog.Options{Sync: commitlog.SyncGroup, NoAhead: true})
	_, err := l.Append(t.Context(), record(t, "kept"), nil, true)
	require.NoError(t, err)
	broken := errors.New("the device is gone")
	fsys.Fail(crashfs.OpSyncRange, "", broken)
	_, err = l.Append(t.Context(), record(t, "not acknowledged"), nil, true)
	require.ErrorIs(t, err, broken)
	_, err = l.Append(t.Context(), record(t, "refused"), nil, false)
	require.ErrorIs(t, err, broken)
	r, v, err := l.Read(0)
	require.NoError(t, err)
	require.Equal(t, "kept", string(r.Body))
	v.Release()
}

// The time of a record is the system's, to the millisecond, whenever it is asked for.
func TestRecordsAreStampedWithTheSystemsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, memfs.New(), commitlog.Options{SegmentSize: 1 << 20, NoAhead: true})
		for i := range 2000 {
			res, err := l.Append(t.Context(), record(t, "x"), nil, false)
			require.NoError(t, err)
			require.Equal(t, time.Now().UnixMilli(), res.StoreTimestamp)
			time.Sleep(time.Duration(i*i*7919) % (1200 * time.Microsecond))
		}
	})
}

// Nothing per message allocates, whatever the policy (R-E-091).
func TestAppendDoesNotAllocate(t *testing.T) {
	for _, policy := range []commitlog.SyncPolicy{commitlog.SyncInterval, commitlog.SyncGroup} {
		l := openLog(t, memfs.New(), commitlog.Options{SegmentSize: 64 << 20, Sync: policy, NoAhead: true})
		run := record(t, string(make([]byte, 1024)))
		ctx := t.Context()
		_, err := l.Append(ctx, run, nil, true)
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if _, err := l.Append(ctx, run, nil, true); err != nil {
				t.Error(err)
			}
		}))
	}
}

// Every limit has its own error, and nothing is written (R-E-025).
func TestLimitsAreRefused(t *testing.T) {
	long := func(n int) string { return string(make([]byte, n)) }
	v6, err := message.ParseHost("[fd00::1]:10911")
	require.NoError(t, err)
	for _, tt := range []struct {
		name, want string
		d          *dialect.Dialect
		m          message.Message
	}{
		{"no topic", "topic: it is empty", dialect.V49(), message.Message{}},
		{"long topic", "topic: 128 bytes, the limit is 127", dialect.V49(), message.Message{Topic: long(128)}},
		{"long retry topic", "topic: 256 bytes, the limit is 255", dialect.V53(), message.Message{Topic: "%RETRY%" + long(249)}},
		{"properties", "properties: 32768 bytes, the limit is 32767", dialect.V49(), message.Message{Topic: "T", Properties: message.Properties(long(32768))}},
		{"queue id", "queue id: -1 is negative", dialect.V49(), message.Message{Topic: "T", QueueID: -1}},
		{"IPv6 in 3.1", "dialect 3.1 has no IPv6 addresses", dialect.V31(), message.Message{Topic: "T", BornHost: v6}},
		{"record in 3.1", "record: 1025 bytes, the limit is 1024", dialect.V31(), message.Message{Topic: "T", Body: make([]byte, 1025-92)}},
		{"body in 4.9", "body: 1025 bytes, the limit is 1024", dialect.V49(), message.Message{Topic: "T", Body: make([]byte, 1025)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, err := commitlog.AppendMessage([]byte("before"), &tt.m, tt.d, 1024)
			require.ErrorIs(t, err, commitlog.ErrMessageIllegal)
			require.ErrorContains(t, err, tt.want)
			require.Equal(t, "before", string(b))
		})
	}
	_, err = commitlog.AppendMessage(nil, &message.Message{Topic: "T", Body: make([]byte, 1024-92)}, dialect.V31(), 1024)
	require.NoError(t, err)
}
