package txstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/txstate"
)

func resolve(t testing.TB, table *txstate.Table, number int64) {
	t.Helper()
	r, err := table.Get(number)
	require.NoError(t, err)
	resolved, err := table.Update(number, r.CommitOffset, r.GroupHash, txstate.Committed)
	require.NoError(t, err)
	require.False(t, resolved)
}

func openNumbers(t testing.TB, table *txstate.Table, from int64) []int64 {
	t.Helper()
	var out []int64
	for e, err := range table.All(from) {
		require.NoError(t, err)
		require.Equal(t, txstate.Prepared, e.State)
		out = append(out, e.Number)
	}
	return out
}

// R-B-30: a check-back round sees the prepared records, in order, with their global numbers.
func TestAllYieldsOpenTransactionsInOrder(t *testing.T) {
	fsys := memfs.New()
	table := filled(t, fsys, 35)
	for i := range int64(35) {
		if i%10 != 3 {
			resolve(t, table, i)
		}
	}
	again := reopen(t, fsys, table)
	require.Equal(t, []int64{3, 13, 23, 33}, openNumbers(t, again, 0))
	require.NoError(t, again.Append(35, record(35)))
	require.Equal(t, []int64{3, 13, 23, 33, 35}, openNumbers(t, again, -5))
	require.Equal(t, []int64{23, 33, 35}, openNumbers(t, again, 14))
	require.Empty(t, openNumbers(t, again, 36))
	for e, err := range again.All(13) {
		require.NoError(t, err)
		require.Equal(t, txstate.Entry{Number: 13, Record: record(13)}, e)
		break
	}
	first, ok, err := again.FirstOpen()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, int64(3), first)
}

// The set is read in steps; what is appended and resolved before they are done counts all the same.
func TestOpenTransactionsAreFoundWhileTheTableIsInUse(t *testing.T) {
	const n = 3<<16 + 5
	fsys := memfs.New()
	o := &txstate.Options{SegmentSize: 50_000 * txstate.RecordSize}
	table := open(t, fsys, o)
	require.NoError(t, table.Append(7, record(7)))
	require.NoError(t, table.Fill(n-2, txstate.Filler(record(7))))
	require.NoError(t, table.Append(n-2, record(n-2)))
	require.NoError(t, table.Append(n-1, record(n-1)))
	require.NoError(t, table.Close())

	table = open(t, fsys, o)
	require.NoError(t, table.Append(n, record(n)))
	resolve(t, table, n-2) // not looked at yet
	var got []int64
	for e, err := range table.All(0) {
		require.NoError(t, err)
		if got = append(got, e.Number); e.Number == 7 {
			resolve(t, table, 7)
			require.NoError(t, table.Append(n+1, record(n+1)))
		}
	}
	require.Equal(t, []int64{7, n - 1, n, n + 1}, got)
	count, err := table.Len()
	require.NoError(t, err)
	require.Equal(t, 3, count)
	first, ok, err := table.FirstOpen()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, int64(n-1), first)
}

func TestFirstOpenLooksAsFarAsItHasTo(t *testing.T) {
	const n = 2 << 16
	fsys := memfs.New()
	o := &txstate.Options{SegmentSize: n * txstate.RecordSize}
	table := open(t, fsys, o)
	require.NoError(t, table.Fill(n-1, txstate.Filler(record(0))))
	require.NoError(t, table.Append(n-1, record(n-1)))
	require.NoError(t, table.Close())
	table = open(t, fsys, o)
	require.NoError(t, table.Append(n, record(n)))
	first, ok, err := table.FirstOpen()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, int64(n-1), first)
	resolve(t, table, n-1)
	resolve(t, table, n)
	_, ok, err = table.FirstOpen()
	require.NoError(t, err)
	require.False(t, ok)
}

// R-B-68: the record of a message that carries another number is found by the message's place.
func TestFindByOffset(t *testing.T) {
	fsys := memfs.New()
	table := reopen(t, fsys, filled(t, fsys, 25))
	find := func(number int64) (int64, error) { return table.FindByOffset(record(number).CommitOffset) }
	for _, n := range []int64{0, 24, 11} {
		got, err := find(n)
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
	resolve(t, table, 11)
	_, err := find(11)
	require.ErrorIs(t, err, txstate.ErrNotFound)
	_, err = find(25)
	require.ErrorIs(t, err, txstate.ErrNotFound)
	require.NoError(t, table.Append(25, record(25)))
	require.NoError(t, table.Append(26, record(2))) // a conflicting number was given anew (R-B-67)
	for want, n := range map[int64]int64{25: 25, 2: 2} {
		got, err := find(n)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	resolve(t, table, 2)
	got, err := find(2)
	require.NoError(t, err)
	require.Equal(t, int64(26), got)

	require.NoError(t, table.TruncateAfter(26))
	_, err = find(2)
	require.ErrorIs(t, err, txstate.ErrNotFound)
	_, err = table.DeleteBefore(record(10).CommitOffset)
	require.NoError(t, err)
	_, err = find(9)
	require.ErrorIs(t, err, txstate.ErrNotFound)
	got, err = find(10)
	require.NoError(t, err)
	require.Equal(t, int64(10), got)
}

// R-B-35: one bad record does not end the walk.
func TestDamagedRecordsAreCountedAndPassedOver(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 25).Close())
	harm(t, fsys, 4, 23, 0)
	table := open(t, fsys, small())
	require.Equal(t, int64(25), table.Next())
	require.Len(t, openNumbers(t, table, 0), 24)
	require.Equal(t, int64(1), table.Stats().Damaged)

	harm(t, fsys, 6, 23, 99) // while it is in the set
	var bad []int64
	n := 0
	for e, err := range table.All(0) {
		if n++; err != nil {
			require.ErrorIs(t, err, mappedfile.ErrCorrupt)
			require.ErrorContains(t, err, "transaction/statetable/00000000000000000000: offset 144: transaction record 6: unknown state 99")
			bad = append(bad, e.Number)
		}
	}
	require.Equal(t, 24, n)
	require.Equal(t, []int64{6}, bad)

	bad, n = nil, 0
	for e, err := range table.Records(2) {
		if n++; err != nil {
			require.ErrorIs(t, err, mappedfile.ErrCorrupt)
			bad = append(bad, e.Number)
		}
	}
	require.Equal(t, 23, n)
	require.Equal(t, []int64{4, 6}, bad)
	for e, err := range table.Records(0) {
		require.NoError(t, err)
		require.Zero(t, e.Number)
		break
	}
}

// A file is missing between two others: what is there is found.
func TestGapBetweenFilesIsPassedOver(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 35).Close())
	require.NoError(t, fsys.Remove(txstate.Dir+"/00000000000000000240"))
	table := open(t, fsys, small())
	require.Len(t, table.Notices(), 1)
	require.Equal(t, int64(35), table.Next())
	require.Len(t, openNumbers(t, table, 0), 25)
	n := 0
	for _, err := range table.Records(0) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 25, n)
	_, err := table.Get(15)
	require.ErrorIs(t, err, txstate.ErrNotFound)
}
