package txstate_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/txstate"
)

func get(t *testing.T, table *txstate.Table, number int64) txstate.Record {
	t.Helper()
	r, err := table.Get(number)
	require.NoError(t, err)
	return r
}

// R-B-51: the file that holds the smallest number is the first, and the slots before it can be believed.
func TestEmptyTableBeginsWithTheFileOfTheFirstNumber(t *testing.T) {
	fsys := memfs.New()
	table := open(t, fsys, small())
	require.NoError(t, table.Append(37, record(37)))
	require.Equal(t, []string{"00000000000000000720"}, names(t, fsys))
	first, next := table.Bounds()
	require.Equal(t, [2]int64{30, 38}, [2]int64{first, next})
	for i := int64(30); i < 37; i++ {
		require.Equal(t, txstate.Filler(record(37)), get(t, table, i)) // nothing lower is known
	}
	require.Equal(t, record(37), get(t, table, 37))
	require.Equal(t, int64(7), table.Stats().Filled)

	table = reopen(t, fsys, table)
	require.Equal(t, int64(38), table.Next())
	n, err := table.Len()
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.ErrorIs(t, table.Append(5, record(5)), txstate.ErrNotFound)
}

// R-B-51 as corrected: the nearest lower known prepared record lends place, size and time.
func TestSlotsBetweenAreFilledFromTheRecordBefore(t *testing.T) {
	fsys := memfs.New()
	table := filled(t, fsys, 3)
	require.NoError(t, table.Append(25, record(25)))
	for i := int64(3); i < 25; i++ {
		require.Equal(t, txstate.Filler(record(2)), get(t, table, i))
	}
	require.Equal(t, record(25), get(t, table, 25))
	require.NoError(t, table.Append(25, record(25)))
	end, err := reopen(t, fsys, table).FindEnd(true)
	require.NoError(t, err)
	require.Equal(t, int64(26), end) // the original's walk does not end at a filler
}

func TestNumberThatCannotBeRightDoesNotFillTheDisk(t *testing.T) {
	fsys := memfs.New()
	o := small()
	o.MaxFill = 50
	table := open(t, fsys, o)
	require.NoError(t, table.Append(0, record(0)))
	require.ErrorIs(t, table.Append(52, record(52)), txstate.ErrGap)
	require.Equal(t, int64(1), table.Next())
	require.NoError(t, table.Append(51, record(51)))
	require.ErrorIs(t, table.Append(1<<58, record(1)), txstate.ErrGap)
	require.Len(t, names(t, fsys), 6)
}

func TestCallerMayGiveTheFiller(t *testing.T) {
	table := filled(t, memfs.New(), 3)
	filler := txstate.Record{CommitOffset: 7, Size: 8, StoredAt: 9, GroupHash: 10, State: txstate.Committed}
	require.NoError(t, table.Fill(17, filler))
	require.NoError(t, table.Fill(12, txstate.Filler(record(1)))) // they are taken
	require.Equal(t, int64(17), table.Next())
	for i := int64(3); i < 17; i++ {
		require.Equal(t, filler, get(t, table, i))
	}
	require.Error(t, table.Fill(20, record(19)), "a prepared filler would be open")
	require.Error(t, table.Fill(20, txstate.Record{}))
	require.ErrorIs(t, table.Fill(math.MaxInt64, filler), txstate.ErrNotFound)
	require.Equal(t, int64(17), table.Next())
}

func TestFillCrossesFilesAndBlocks(t *testing.T) {
	o := &txstate.Options{SegmentSize: 5000 * txstate.RecordSize}
	table := open(t, memfs.New(), o)
	require.NoError(t, table.Fill(21_003, txstate.Filler(record(7))))
	first, next := table.Bounds()
	require.Equal(t, [2]int64{20_000, 21_003}, [2]int64{first, next}) // an empty table begins with the number's file
	require.NoError(t, table.Append(34_567, record(34_567)))
	n := int64(0)
	for e, err := range table.Records(0) {
		require.NoError(t, err)
		require.Equal(t, 20_000+n, e.Number)
		if n++; e.Number < 34_567 {
			require.Equal(t, txstate.Filler(record(7)), e.Record)
		}
	}
	require.Equal(t, int64(14_568), n)
}

func TestBeginIsForEmptyTables(t *testing.T) {
	fsys := memfs.New()
	table := open(t, fsys, small())
	require.NoError(t, table.Begin(23))
	require.Equal(t, int64(23), table.Next())
	require.NoError(t, table.Begin(42)) // it may be changed while nothing is written
	first, next := table.Bounds()
	require.Equal(t, [2]int64{42, 42}, [2]int64{first, next})
	require.ErrorIs(t, table.Begin(-1), txstate.ErrNotFound)
	require.NoError(t, table.Append(42, record(42)))
	require.Equal(t, []string{"00000000000000000960"}, names(t, fsys))
	require.ErrorContains(t, table.Begin(7), "the table has records 40 to 42")
	require.NoError(t, table.RemoveAll())
	require.Empty(t, names(t, fsys))
	require.Zero(t, table.Next())
	require.NoError(t, table.Append(0, record(0)))
	require.Equal(t, []string{"00000000000000000000"}, names(t, fsys))
}
