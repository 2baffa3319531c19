package consumequeue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// R-G-21, R-E-027: a retired queue leaves nothing on disk, and its queue offsets go on, in this process and, told so, in the next.
func TestRetiredQueueGoesOnWhereItEnded(t *testing.T) {
	for _, end := range []int64{1, 5, 17} {
		fsys := memfs.New()
		table := openTable(t, fsys, nil)
		q, other := ensure(t, table, "T", 0), ensure(t, table, "T", 1)
		appendRange(t, q, 0, end)
		appendRange(t, other, 0, 1)
		q.SetNext(end)
		require.NoError(t, q.Retire())
		require.Equal(t, []string{"1"}, names(t, fsys, "consumequeue/T"))
		first, last := q.Bounds()
		require.Equal(t, [2]int64{end, end}, [2]int64{first, last})
		require.Equal(t, end, q.NextOffset())
		n, err := q.Read(end, make([]consumequeue.Unit, 1))
		require.NoError(t, err)
		require.Zero(t, n)
		require.NoError(t, other.Retire())
		require.Empty(t, names(t, fsys, "consumequeue"))

		q = ensure(t, openTable(t, fsys, nil), "T", 0) // the next process
		require.NoError(t, q.Resume(end))
		require.Equal(t, end, q.NextOffset())
		require.NoError(t, q.SetMin(1<<40))
		first, last = q.Bounds()
		require.Equal(t, [2]int64{end, end}, [2]int64{first, last})
		appendRange(t, q, end, end+7)
		requireUnits(t, q, end, end+7)
		require.ErrorIs(t, q.Resume(end), mappedfile.ErrOutOfRange, "it has files")

		table = openTable(t, fsys, nil)
		requireUnits(t, table.Lookup("T", 0), end, end+7)
		for i := end - end%5; i < end; i++ {
			u, err := table.Lookup("T", 0).Get(i)
			require.NoError(t, err)
			require.True(t, u.IsFiller())
		}
	}
}

func TestAppendAfterRetireMakesTheFolderAgain(t *testing.T) {
	fsys := memfs.New()
	table := openTable(t, fsys, nil)
	q := ensure(t, table, "T", 0)
	appendRange(t, q, 0, 8)
	require.NoError(t, q.Retire())
	require.NoError(t, table.Sync(0))
	appendRange(t, q, 8, 9)
	require.NoError(t, table.Sync(0))
	require.Equal(t, []string{"00000000000000000100"}, names(t, fsys, "consumequeue/T/0"))
	requireUnits(t, q, 8, 9)

	ro := openTable(t, fsys, &consumequeue.Options{SegmentSize: small, ReadOnly: true})
	require.ErrorIs(t, ro.Lookup("T", 0).Retire(), mappedfile.ErrReadOnly)
}

// What would go is what goes.
func TestDeletableBeforeListsWhatDeleteBeforeRemoves(t *testing.T) {
	q := ensure(t, openTable(t, memfs.New(), nil), "T", 0)
	appendRange(t, q, 0, 17)
	for _, logMin := range []int64{0, 40, 41, 100, 1 << 40} {
		var want []string
		list, err := q.DeletableBefore(logMin)
		require.NoError(t, err)
		for _, s := range list {
			want = append(want, s.Name)
		}
		gone, err := q.DeleteBefore(logMin)
		require.NoError(t, err)
		require.Equal(t, want, gone)
	}
}
