package consumequeue_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

func TestReadGoesAcrossFilesAndStopsAtTheEnd(t *testing.T) {
	q := ensure(t, openTable(t, memfs.New(), nil), "T", 0)
	appendRange(t, q, 3, 17)
	dst := make([]consumequeue.Unit, 32)
	n, err := q.Read(3, dst)
	require.NoError(t, err)
	require.Equal(t, 14, n)
	for i, u := range dst[:n] {
		require.Equal(t, nth(int64(3+i)), u)
	}
	n, err = q.Read(4, dst[:2])
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, nth(5), dst[1])
	n, err = q.Read(17, dst)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = q.Read(3, nil)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = q.Read(0, dst[:1])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.True(t, dst[0].IsFiller(), "units before the first are still there")
}

func TestReadingOutsideOfTheQueueIsOutOfRange(t *testing.T) {
	q := ensure(t, openTable(t, memfs.New(), nil), "T", 0)
	dst := make([]consumequeue.Unit, 1)
	n, err := q.Read(0, dst)
	require.NoError(t, err)
	require.Zero(t, n)
	_, err = q.Get(0)
	require.ErrorIs(t, err, mappedfile.ErrOutOfRange)
	appendRange(t, q, 10, 12)
	for _, index := range []int64{-1, 4, 13, 1 << 62} {
		_, err = q.Get(index)
		require.ErrorIs(t, err, mappedfile.ErrOutOfRange)
		_, err = q.Read(index, dst)
		require.ErrorIs(t, err, mappedfile.ErrOutOfRange)
		require.ErrorContains(t, err, "queue T/0: unit ")
	}
}

// A missing file between good ones is a gap: what lies around it is read.
func TestReadStopsBeforeAGap(t *testing.T) {
	fsys := memfs.New()
	writeFile(t, fsys, segmentName(0), units(nth(0), nth(1), nth(2), nth(3), nth(4)))
	writeFile(t, fsys, segmentName(200), pad(units(nth(10), nth(11)), small))
	table := openTable(t, fsys, nil)
	require.Len(t, table.Notices(), 1)
	require.Equal(t, mappedfile.Gap, table.Notices()[0].Kind)
	q := table.Lookup("T", 0)
	dst := make([]consumequeue.Unit, 20)
	n, err := q.Read(3, dst)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	_, err = q.Read(5, dst)
	require.ErrorIs(t, err, mappedfile.ErrOutOfRange)
	n, err = q.Read(10, dst)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	first, end := q.Bounds()
	require.Equal(t, [2]int64{0, 12}, [2]int64{first, end})

	require.NoError(t, q.SetMin(45))
	first, _ = q.Bounds()
	require.Equal(t, int64(10), first)
	at, err := q.OffsetAt(35, func(u consumequeue.Unit) (int64, error) { return u.PhysicalOffset, nil })
	require.NoError(t, err)
	require.Equal(t, int64(10), at)
}

func TestClosedQueueSaysSo(t *testing.T) {
	table, err := consumequeue.OpenTable(memfs.New(), root, nil)
	require.NoError(t, err)
	q := ensure(t, table, "T", 0)
	appendRange(t, q, 0, 2)
	require.NoError(t, table.Sync(0))
	require.NoError(t, table.Close())
	require.NoError(t, table.Close())
	_, err = q.Get(0)
	require.ErrorIs(t, err, mappedfile.ErrClosed)
	require.ErrorIs(t, q.Append(2, nth(2)), mappedfile.ErrClosed)
}

// The first and the last unit are kept in memory when a queue is opened, and forgotten when they go or change.
func TestUnitsThatAreGoneAreNotServedFromMemory(t *testing.T) {
	for what, change := range map[string]func(*consumequeue.Queue) error{
		"retire":   (*consumequeue.Queue).Retire,
		"delete":   func(q *consumequeue.Queue) error { return second(q.DeleteBefore(1 << 40)) },
		"truncate": func(q *consumequeue.Queue) error { return q.TruncateAfter(0) },
		"set": func(q *consumequeue.Queue) error {
			return errors.Join(q.Set(0, nth(90)), q.Set(6, nth(96)))
		},
		"end": func(q *consumequeue.Queue) error {
			return errors.Join(q.SetMax(5), q.Append(5, nth(95)), q.Append(6, nth(96)))
		},
	} {
		fsys := memfs.New()
		appendRange(t, ensure(t, openTable(t, fsys, nil), "T", 0), 0, 7)
		q := openTable(t, fsys, nil).Lookup("T", 0)
		requireUnits(t, q, 0, 7)
		require.NoError(t, change(q), what)
		for _, index := range []int64{0, 6} {
			u, err := q.Get(index)
			switch {
			case what == "end" && index == 0, what == "delete" && index == 6:
				require.NoError(t, err, what)
				require.Equal(t, nth(index), u, what)
			case err != nil:
				require.ErrorIs(t, err, mappedfile.ErrOutOfRange, what)
			default:
				require.Equal(t, nth(index+90), u, what)
			}
		}
	}
}

// Nothing is allocated where messages pass by.
func TestHotPathsDoNotAllocate(t *testing.T) {
	table := openTable(t, memfs.New(), &consumequeue.Options{SegmentSize: 100_000})
	q := ensure(t, table, "T", 7)
	next := int64(0)
	dst := make([]consumequeue.Unit, 64)
	name := []byte("T")
	appendRange(t, q, 0, 1)
	for what, f := range map[string]func(){
		"append":      func() { next++; _ = q.Append(next, nth(next)) },
		"get":         func() { _, _ = q.Get(next) },
		"read":        func() { _, _ = q.Read(0, dst) },
		"read at end": func() { _, _ = q.Read(next+1, dst) },
		"bounds":      func() { q.Bounds() },
		"lookup":      func() { table.Lookup("T", 7) },
		"lookupBytes": func() { table.LookupBytes(name, 7) },
		"sync":        func() { _ = table.Sync(0) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, f), what)
	}
	requireUnits(t, q, 0, next+1)
}

// The next offset belongs to whoever hands them out.
func TestNextOffsetIsKeptForTheCaller(t *testing.T) {
	q := ensure(t, openTable(t, memfs.New(), nil), "T", 0)
	require.Zero(t, q.NextOffset())
	q.SetNext(10)
	q.Advance(3)
	require.Equal(t, int64(13), q.NextOffset())
	_, end := q.Bounds()
	require.Zero(t, end)
}
