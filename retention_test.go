package rocketstore_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// aging is a store on the heap in a bubble of time, whose files are an hour apart. A bubble begins at midnight UTC.
type aging struct {
	*rocketstore.Store
	fsys    *memfs.FS
	options rocketstore.Options
	batches [][]string // what OnDelete was told of
	times   []time.Duration
	began   time.Time
	deleted func() // called when files were deleted, in the background
}

const segmentSize = 4096

// age fills a store with that many segments, from midnight on, and calls f in the bubble.
func age(t *testing.T, segments int, r rocketstore.Retention, f func(t *testing.T, a *aging)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a := &aging{fsys: memfs.New(), began: time.Now()}
		require.Equal(t, 0, a.began.UTC().Hour())
		if r.Location == nil {
			r.Location = time.UTC
		}
		r.OnDelete = func(names []string) {
			a.batches, a.times = append(a.batches, names), append(a.times, time.Since(a.began))
			if a.deleted != nil {
				a.deleted()
			}
		}
		a.options = rocketstore.Options{
			FS: a.fsys, SegmentSize: segmentSize, QueueSegmentSize: 400, IndexSlots: 50, IndexEntries: 40, Write: mappedfile.Pwrite,
			HoldDelayed: true, FlushEvery: 12 * time.Hour, CheckpointEvery: 12 * time.Hour, Retention: r,
		}
		var err error
		a.Store, err = rocketstore.Open("", &a.options)
		require.NoError(t, err)
		t.Cleanup(func() { _ = a.Abandon() })
		for range segments {
			a.segment(t)
			time.Sleep(time.Hour)
		}
		f(t, a)
		require.NoError(t, a.Close(t.Context()))
	})
}

// segment fills a new segment.
func (a *aging) segment(t *testing.T) {
	t.Helper()
	_, end := a.Bounds()
	next := (end + segmentSize - 1) / segmentSize * segmentSize
	for end <= next+segmentSize/2 {
		_, err := a.Put(t.Context(), msg("T", 0, strings.Repeat("x", 700), "", ""))
		require.NoError(t, err)
		_, end = a.Bounds()
	}
	require.NoError(t, a.WaitDispatched(t.Context(), end))
}

// at sleeps until that long after the beginning.
func (a *aging) at(d time.Duration) { time.Sleep(time.Until(a.began.Add(d))) }

// files gives the numbers of the log's segments that are there.
func (a *aging) files(t *testing.T) []int {
	t.Helper()
	entries, err := a.fsys.ReadDir("commitlog")
	require.NoError(t, err)
	_, end := a.Bounds()
	var n []int
	for _, e := range entries {
		if start, ok := mappedfile.ParseSegmentName(e.Name()); ok && start < end { // not the one made ahead
			n = append(n, int(start/segmentSize))
		}
	}
	return n
}

func span(from, to int) []int {
	var n []int
	for i := from; i < to; i++ {
		n = append(n, i)
	}
	return n
}

// Nothing goes by itself unless a rule is set, however old it is.
func TestZeroRetentionDeletesNothing(t *testing.T) {
	age(t, 3, rocketstore.Retention{}, func(t *testing.T, a *aging) {
		a.at(2400 * time.Hour)
		require.Equal(t, span(0, 3), a.files(t))
		require.Empty(t, a.batches)
	})
}

// Files go when they are old enough and the hour has come, the one that is written never (R-G-17).
func TestAgedFilesGoAtTheirHours(t *testing.T) {
	t.Parallel()
	type look struct {
		at   time.Duration
		left []int
	}
	const day = 24 * time.Hour
	for _, tt := range []struct {
		name string
		r    rocketstore.Retention
		want []look
	}{
		// The last change of file n is at n+1 hours, when it is closed, and the round comes up to 10 s late.
		{"72 hours at 4 o'clock", rocketstore.Retention{MaxAge: 72 * time.Hour}, []look{
			{3*day + 4*time.Hour - time.Second, span(0, 8)},
			{3*day + 4*time.Hour + 20*time.Second, span(4, 8)},
			{3*day + 5*time.Hour - time.Second, span(4, 8)},
			{4*day + 4*time.Hour - time.Second, span(4, 8)},
			{4*day + 4*time.Hour + 20*time.Second, span(7, 8)},
			{8 * day, span(7, 8)},
		}},
		{"two hours", rocketstore.Retention{MaxAge: 24 * time.Hour, Hours: []int{16, 3}}, []look{
			{day + 3*time.Hour - time.Second, span(0, 8)},
			{day + 3*time.Hour + 20*time.Second, span(3, 8)},
			{day + 16*time.Hour - time.Second, span(3, 8)},
			{day + 16*time.Hour + 20*time.Second, span(7, 8)},
		}},
		{"another time zone", rocketstore.Retention{MaxAge: 24 * time.Hour, Location: time.FixedZone("", 3600)}, []look{
			{day + 3*time.Hour - time.Second, span(0, 8)},
			{day + 3*time.Hour + 20*time.Second, span(3, 8)},
		}},
		{"every hour", rocketstore.Retention{MaxAge: 24 * time.Hour, Hours: rocketstore.EveryHour()}, []look{
			{day + time.Hour - time.Second, span(0, 8)},
			{day + time.Hour + 20*time.Second, span(1, 8)},
			{day + 2*time.Hour + 20*time.Second, span(2, 8)},
			{3 * day, span(7, 8)},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Every = 10 * time.Second
			age(t, 8, tt.r, func(t *testing.T, a *aging) {
				for _, l := range tt.want {
					a.at(l.at)
					require.Equal(t, l.left, a.files(t), l.at)
				}
			})
		})
	}
}

// Deletion stops at the first file that is not due: there are no holes.
func TestDeletionStopsAtAFileThatIsNotDue(t *testing.T) {
	age(t, 6, rocketstore.Retention{MaxAge: 24 * time.Hour, Hours: rocketstore.EveryHour()}, func(t *testing.T, a *aging) {
		f, err := a.fsys.OpenFile("commitlog/"+mappedfile.SegmentName(2*segmentSize), os.O_RDWR, 0)
		require.NoError(t, err)
		b := make([]byte, 8)
		_, err = f.ReadAt(b, 0)
		require.NoError(t, err)
		_, err = f.WriteAt(b, 0) // touched at 6 h
		require.NoError(t, err)
		require.NoError(t, f.Close())
		a.at(30*time.Hour - time.Second)
		require.Equal(t, span(2, 6), a.files(t))
		a.at(30*time.Hour + 20*time.Second)
		require.Equal(t, span(5, 6), a.files(t))
	})
}

// A round deletes so many files, so far apart, and rounds are so far apart; the first one comes after a minute (R-G-17).
func TestRoundsAndTheirFiles(t *testing.T) {
	r := rocketstore.Retention{MaxBytes: 2 * segmentSize, FilesPerRound: 4, Interval: time.Second, Every: 20 * time.Second}
	age(t, 1, r, func(t *testing.T, a *aging) {
		require.NoError(t, a.Close(t.Context()))
		s, err := rocketstore.Open("", &a.options)
		require.NoError(t, err)
		a.Store, a.began = s, time.Now()
		for range 11 {
			a.segment(t)
		}
		a.at(10 * time.Minute)
		require.Equal(t, span(10, 12), a.files(t))
		var times []time.Duration
		for i, names := range a.batches {
			if strings.HasPrefix(names[0], "commitlog/") {
				require.Len(t, names, 1)
				times = append(times, a.times[i].Truncate(time.Second))
			}
		}
		const first, second, third = time.Minute, time.Minute + 23*time.Second, time.Minute + 46*time.Second
		require.Equal(t, []time.Duration{
			first, first + time.Second, first + 2*time.Second, first + 3*time.Second,
			second, second + time.Second, second + 2*time.Second, second + 3*time.Second,
			third, third + time.Second,
		}, times)
	})
}

// The disk's rules (R-G-17): above the first ratio aged files go at any hour, above the second all do until it is below,
// above the third puts are refused until there is room.
func TestDiskRules(t *testing.T) {
	type look struct {
		extra float64 // used by others
		left  []int
		full  bool
	}
	for _, tt := range []struct {
		name string
		r    rocketstore.Retention
		want []look
	}{
		// Each of the eight files is 5 % of the disk.
		{"nothing is old", rocketstore.Retention{DiskRatio: 0.75, MaxAge: 72 * time.Hour}, []look{
			{0.30, span(0, 8), false}, {0.44, span(0, 8), false}, {0.46, span(1, 8), false}, {0.52, span(2, 8), false}, {0.91, span(7, 8), true}, {0.10, span(7, 8), false},
		}},
		{"all are old", rocketstore.Retention{DiskRatio: 0.75, MaxAge: time.Hour, Hours: []int{23}}, []look{
			{0.30, span(0, 8), false}, {0.36, span(1, 8), false}, {0.44, span(2, 8), false},
		}},
		{"no age is set", rocketstore.Retention{DiskRatio: 0.75}, []look{
			{0.30, span(0, 8), false}, {0.36, span(1, 8), false}, {0.44, span(2, 8), false},
		}},
		{"never", rocketstore.Retention{DiskRatio: 1, ForceRatio: 1, RefuseRatio: 1}, []look{
			{0.60, span(0, 8), false},
		}},
		{"default ratios", rocketstore.Retention{RefuseRatio: 0.9}, []look{
			{0.30, span(0, 8), false}, {0.36, span(1, 8), false}, {0.89, span(7, 8), true},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var extra, files atomic.Int64
			tt.r.Every = 10 * time.Second
			tt.r.Usage = func() (mappedfile.Usage, error) {
				return mappedfile.Usage{Used: extra.Load() + 50*files.Load(), Total: 1000}, nil
			}
			age(t, 8, tt.r, func(t *testing.T, a *aging) {
				a.deleted = func() { files.Store(int64(len(a.files(t)))) }
				for _, l := range tt.want {
					a.deleted()
					extra.Store(int64(1000 * l.extra))
					time.Sleep(time.Minute)
					require.Equal(t, l.left, a.files(t), l.extra)
					_, err := a.Put(t.Context(), msg("T", 0, "x", "", ""))
					if !l.full {
						require.NoError(t, err)
						continue
					}
					full, ok := errors.AsType[*rocketstore.DiskFullError](err)
					require.True(t, ok, "%v", err)
					require.InDelta(t, 0.9, full.Limit, 1e-9)
					require.ErrorIs(t, err, rocketstore.ErrDiskFull)
					require.ErrorIs(t, err, syscall.ENOSPC)
					require.ErrorContains(t, err, "% of it is in use, the limit is 90.0 %")
					_, err = a.EndTransaction(t.Context(), rocketstore.TransactionEnd{})
					require.ErrorIs(t, err, rocketstore.ErrDiskFull)
				}
			})
		})
	}
}

// Where nobody knows how full the disk is, its rules are off, and the others go on.
func TestUnknownDiskUsageTurnsItsRulesOff(t *testing.T) {
	age(t, 4, rocketstore.Retention{DiskRatio: 0.01, MaxBytes: 3 * segmentSize}, func(t *testing.T, a *aging) {
		time.Sleep(time.Hour)
		require.Equal(t, span(1, 4), a.files(t))
		_, err := a.Put(t.Context(), msg("T", 0, "x", "", ""))
		require.NoError(t, err)
	})
}

// Queues whose messages are all gone lose their files once an hour, and go on at their old offset; those of the delay
// service stay (R-G-21, R-E-027).
func TestQueuesWithoutMessagesAreRemovedHourly(t *testing.T) {
	for _, keep := range []bool{false, true} {
		r := rocketstore.Retention{MaxBytes: 3 * segmentSize, KeepQueues: keep}
		age(t, 1, r, func(t *testing.T, a *aging) {
			for i := range 25 {
				res, err := a.Put(t.Context(), msg("Idle", 3, strconv.Itoa(i), "", ""))
				require.NoError(t, err)
				require.EqualValues(t, i, res.QueueOffset)
			}
			delayed := msg("Late", 0, "x", "", "")
			delayed.Properties, _ = delayed.Properties.Set("DELAY", "18")
			_, err := a.Put(t.Context(), delayed)
			require.NoError(t, err)
			for range 5 {
				a.segment(t)
				time.Sleep(20 * time.Minute)
			}
			time.Sleep(time.Hour)
			folder := func(name string) error {
				_, err := a.fsys.ReadDir("consumequeue/" + name)
				return err
			}
			require.NoError(t, folder("SCHEDULE_TOPIC_XXXX/17"))
			require.NoError(t, folder("T/0"))
			require.Equal(t, !keep, errors.Is(folder("Idle"), os.ErrNotExist))

			at := func(offset int64) (rocketstore.GetStatus, int64) {
				g, err := a.Get(t.Context(), rocketstore.GetRequest{Topic: "Idle", QueueID: 3, Offset: offset})
				require.NoError(t, err)
				g.Release()
				return g.Status, g.Next
			}
			again := func(offset int64) {
				status, next := at(7)
				require.Equal(t, rocketstore.OffsetTooSmall, status)
				require.Equal(t, offset, next)
				status, _ = at(offset)
				require.Equal(t, rocketstore.OffsetOverflowOne, status)
			}
			again(25)
			require.NoError(t, a.Close(t.Context()))
			s, err := rocketstore.Open("", &a.options)
			require.NoError(t, err)
			a.Store = s
			require.True(t, s.Report().Trusted, "%+v", s.Report())
			again(25)
			res, err := a.Put(t.Context(), msg("Idle", 3, "back", "", ""))
			require.NoError(t, err)
			require.EqualValues(t, 25, res.QueueOffset)
			status, next := at(25)
			require.Equal(t, rocketstore.Found, status)
			require.EqualValues(t, 26, next)
			require.NoError(t, a.Abandon())
			s, err = rocketstore.Open("", &a.options)
			require.NoError(t, err)
			a.Store = s
			status, _ = at(25)
			require.Equal(t, rocketstore.Found, status)
		})
	}
}

func TestRetentionOptionsAreChecked(t *testing.T) {
	for want, r := range map[string]rocketstore.Retention{
		"Retention.Hours has 24, want 0 to 23":              {Hours: []int{3, 24}},
		"Retention.MaxAge is -1, want 0 or more":            {MaxAge: -1},
		"Retention.MaxBytes is -5, want 0 or more":          {MaxBytes: -5},
		"Retention.ForceRatio is 0.5, want 0.75 to 1":       {ForceRatio: 0.5},
		"Retention.RefuseRatio is 1.5, want 0.95 to 1":      {DiskRatio: 0.95, RefuseRatio: 1.5},
		"Retention.FilesPerRound is -2, want 0 or more":     {FilesPerRound: -2},
		"Retention.Interval is -1000000000, want 0 or more": {Interval: -time.Second},
	} {
		_, err := rocketstore.Open("", &rocketstore.Options{FS: memfs.New(), Retention: r})
		require.ErrorContains(t, err, want)
	}
}

func TestExpireRefuses(t *testing.T) {
	fsys := memfs.New()
	s, err := rocketstore.Open("", &rocketstore.Options{FS: fsys, SegmentSize: segmentSize})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Expire(ctx, rocketstore.ExpireOptions{})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Close(t.Context()))
	_, err = s.Expire(t.Context(), rocketstore.ExpireOptions{})
	require.ErrorIs(t, err, rocketstore.ErrClosed)
	ro, err := rocketstore.Open("", &rocketstore.Options{FS: fsys, ReadOnly: true})
	require.NoError(t, err)
	_, err = ro.Expire(t.Context(), rocketstore.ExpireOptions{})
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	none, err := ro.Expire(t.Context(), rocketstore.ExpireOptions{DryRun: true, MaxBytes: 1})
	require.NoError(t, err)
	require.Empty(t, none.Files)
	require.NoError(t, ro.Close(t.Context()))
}
