package txstate_test

import (
	"errors"
	"math"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/txstate"
)

// perFile is the number of records in a file of most tests.
const perFile = 10

func small() *txstate.Options { return &txstate.Options{SegmentSize: perFile * txstate.RecordSize} }

func open(t testing.TB, fsys mappedfile.FS, o *txstate.Options) *txstate.Table {
	t.Helper()
	table, err := txstate.Open(fsys, txstate.Dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, table.Abandon()) })
	return table
}

// filled opens a table with n prepared records from number 0 on.
func filled(t testing.TB, fsys mappedfile.FS, n int64) *txstate.Table {
	t.Helper()
	table := open(t, fsys, small())
	for i := range n {
		require.NoError(t, table.Append(i, record(i)))
	}
	return table
}

// reopen closes a table and opens it again.
func reopen(t testing.TB, fsys mappedfile.FS, table *txstate.Table) *txstate.Table {
	t.Helper()
	require.NoError(t, table.Sync(0))
	require.NoError(t, table.Close())
	return open(t, fsys, small())
}

// bytesOf reads a file of the table.
func bytesOf(t testing.TB, fsys mappedfile.FS, start int64) []byte {
	t.Helper()
	return []byte(golden.ReadFile(t, fsys, path.Join(txstate.Dir, mappedfile.SegmentName(start))))
}

// harm overwrites bytes of a record on disk.
func harm(t testing.TB, fsys mappedfile.FS, number, at int64, b ...byte) {
	t.Helper()
	const size = perFile * txstate.RecordSize
	pos := number * txstate.RecordSize
	f, err := fsys.OpenFile(path.Join(txstate.Dir, mappedfile.SegmentName(pos-pos%size)), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(b, pos%size+at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func names(t testing.TB, fsys mappedfile.FS) []string {
	t.Helper()
	entries, err := fsys.ReadDir(txstate.Dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// R-B-01, R-B-72: the table is usable alone, and nothing is made before the first append.
func TestOpenMakesNothing(t *testing.T) {
	fsys := memfs.New()
	table := open(t, fsys, nil)
	first, next := table.Bounds()
	require.Zero(t, first)
	require.Zero(t, next)
	n, err := table.Len()
	require.NoError(t, err)
	require.Zero(t, n)
	_, ok, err := table.FirstOpen()
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, table.Sync(0))
	entries, err := fsys.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, entries)
	require.Equal(t, int64(48_000_000), table.SegmentSize())
}

// R-B-06.
func TestOpenRefusesSizesThatCutARecord(t *testing.T) {
	for _, size := range []int64{100, -24, 23} {
		_, err := txstate.Open(memfs.New(), txstate.Dir, &txstate.Options{SegmentSize: size})
		require.ErrorContains(t, err, "must be a positive multiple of the record's 24 bytes")
	}
	_, err := txstate.Open(memfs.New(), txstate.Dir, &txstate.Options{MaxFill: -1})
	require.ErrorContains(t, err, "negative")
}

// R-B-06: what the files say against the option is refused, with the file and both sizes.
func TestOpenRefusesFilesOfAnotherSize(t *testing.T) {
	fsys := memfs.New()
	table := filled(t, fsys, 25)
	require.NoError(t, table.Close())
	_, err := txstate.Open(fsys, txstate.Dir, &txstate.Options{SegmentSize: 12 * txstate.RecordSize})
	require.ErrorIs(t, err, mappedfile.ErrCorrupt)
	require.ErrorContains(t, err, "240")
	require.ErrorContains(t, err, "288")
}

// R-B-08, R-B-09: a record's number is its place, over all files.
func TestAppendRollsToTheNextFile(t *testing.T) {
	fsys := memfs.New()
	table := filled(t, fsys, 25)
	require.Equal(t, []string{"00000000000000000000", "00000000000000000240", "00000000000000000480"}, names(t, fsys))
	require.Equal(t, int64(25), table.Next())
	require.Equal(t, record(10).AppendTo(nil), bytesOf(t, fsys, 240)[:24])
	for again := range 2 {
		if again == 1 {
			table = reopen(t, fsys, table)
		}
		first, next := table.Bounds()
		require.Equal(t, [2]int64{0, 25}, [2]int64{first, next})
		for i := range int64(25) {
			r, err := table.Get(i)
			require.NoError(t, err)
			require.Equal(t, record(i), r)
		}
		_, err := table.Get(25)
		require.ErrorIs(t, err, txstate.ErrNotFound)
		require.Len(t, table.Segments(), 3)
	}
}

// R-B-07: names with the real size.
func TestFilesOfTheRealSizeHaveTheRealNames(t *testing.T) {
	fsys, err := mappedfile.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	table := open(t, fsys, nil)
	require.NoError(t, table.Append(0, record(0)))
	for _, number := range []int64{1_999_999, 2_000_000, 3_999_999, 4_000_000} {
		if number%2_000_000 != 0 {
			require.NoError(t, table.SetEnd(number))
		}
		require.NoError(t, table.Append(number, record(number)))
	}
	require.Equal(t, []string{"00000000000000000000", "00000000000048000000", "00000000000096000000"}, names(t, fsys))
	for _, s := range table.Segments() {
		require.Equal(t, int64(48_000_000), s.Length)
	}
	require.NoError(t, table.Sync(0))
	require.NoError(t, table.Close())
	table = open(t, fsys, nil)
	require.Equal(t, int64(4_000_001), table.Next())
	resolved, err := table.Update(2_000_000, record(2_000_000).CommitOffset, record(2_000_000).GroupHash, txstate.Committed)
	require.NoError(t, err)
	require.False(t, resolved)
}

// R-B-13, R-B-17: success is success, and 4 bytes change.
func TestUpdateChangesTheStateOnly(t *testing.T) {
	fsys := memfs.New()
	table := filled(t, fsys, 25)
	before := bytesOf(t, fsys, 240)
	resolved, err := table.Update(13, record(13).CommitOffset, record(13).GroupHash, txstate.RolledBack)
	require.NoError(t, err)
	require.False(t, resolved)
	before[3*txstate.RecordSize+23] = 12
	require.Equal(t, before, bytesOf(t, fsys, 240))
	r, err := table.Get(13)
	require.NoError(t, err)
	require.Equal(t, txstate.RolledBack, r.State)
}

// R-B-14, R-B-15, R-B-16.
func TestUpdateRefusesWhatIsNotTheRecords(t *testing.T) {
	fsys := memfs.New()
	table := filled(t, fsys, 25)
	_, err := table.DeleteBefore(record(10).CommitOffset)
	require.NoError(t, err)
	want := record(13)
	before := bytesOf(t, fsys, 240)
	for _, tt := range []struct {
		name         string
		number       int64
		commitOffset int64
		groupHash    int32
		err          error
	}{
		{"another message", 13, want.CommitOffset + 1, want.GroupHash, txstate.ErrOtherMessage},
		{"another group", 13, want.CommitOffset, want.GroupHash + 1, txstate.ErrOtherGroup},
		{"another message and group", 13, 0, 99, txstate.ErrOtherMessage},
		{"not written yet", 25, want.CommitOffset, want.GroupHash, txstate.ErrNotFound},
		{"far away", math.MaxInt64, want.CommitOffset, want.GroupHash, txstate.ErrNotFound},
		{"negative", -1, want.CommitOffset, want.GroupHash, txstate.ErrNotFound},
		{"in a deleted file", 3, record(3).CommitOffset, record(3).GroupHash, txstate.ErrNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := table.Update(tt.number, tt.commitOffset, tt.groupHash, txstate.Committed)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, before, bytesOf(t, fsys, 240))
		})
	}
	_, err = table.Update(13, want.CommitOffset, want.GroupHash, txstate.Prepared)
	require.ErrorContains(t, err, "unknown state: prepared")
	harm(t, fsys, 14, 23, 9)
	_, err = table.Update(14, record(14).CommitOffset, record(14).GroupHash, txstate.Committed)
	require.ErrorIs(t, err, mappedfile.ErrCorrupt)
}

// R-B-15: the first decision wins.
func TestUpdateOfAResolvedRecordChangesNothing(t *testing.T) {
	table := filled(t, memfs.New(), 3)
	want := record(1)
	resolved, err := table.Update(1, want.CommitOffset, want.GroupHash, txstate.Committed)
	require.NoError(t, err)
	require.False(t, resolved)
	for _, to := range []txstate.State{txstate.Committed, txstate.RolledBack} {
		resolved, err = table.Update(1, want.CommitOffset, want.GroupHash, to)
		require.NoError(t, err)
		require.True(t, resolved)
	}
	r, err := table.Get(1)
	require.NoError(t, err)
	require.Equal(t, txstate.Committed, r.State)
}

// Dispatching the commit log again appends what is there already.
func TestAppendOfWhatIsThereChangesNothing(t *testing.T) {
	fsys := memfs.New()
	table := filled(t, fsys, 12)
	_, err := table.Update(5, record(5).CommitOffset, record(5).GroupHash, txstate.Committed)
	require.NoError(t, err)
	before := bytesOf(t, fsys, 0)
	for i := range int64(12) {
		require.NoError(t, table.Append(i, record(i)))
	}
	require.Equal(t, before, bytesOf(t, fsys, 0))
	n, err := table.Len()
	require.NoError(t, err)
	require.Equal(t, 11, n)

	err = table.Append(4, record(5))
	mismatch, ok := errors.AsType[*txstate.MismatchError](err)
	require.True(t, ok)
	require.Equal(t, &txstate.MismatchError{Number: 4, Have: record(4), Want: record(5)}, mismatch)
	require.ErrorContains(t, err, "record 4 is there already and differs")
	other := record(4)
	other.State = txstate.Committed // it is prepared, and Append does not resolve
	require.ErrorAs(t, table.Append(4, other), &mismatch)
	require.Equal(t, before, bytesOf(t, fsys, 0))
}

func TestAppendRefusesWhatCannotBeARecord(t *testing.T) {
	table := filled(t, memfs.New(), 1)
	for _, r := range []txstate.Record{{}, {Size: 1}, {Size: 1, State: 5}, {CommitOffset: -1, Size: 1, State: txstate.Prepared}} {
		require.Error(t, table.Append(1, r))
	}
	require.ErrorIs(t, table.Append(-1, record(0)), txstate.ErrNotFound)
	require.ErrorIs(t, table.Append(math.MaxInt64, record(0)), txstate.ErrNotFound)
	require.Equal(t, int64(1), table.Next())
}

func TestReadOnlyTableRefusesWrites(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 12).Close())
	table := open(t, fsys, &txstate.Options{SegmentSize: perFile * txstate.RecordSize, ReadOnly: true})
	require.ErrorIs(t, table.Append(12, record(12)), mappedfile.ErrReadOnly)
	_, err := table.Update(1, record(1).CommitOffset, record(1).GroupHash, txstate.Committed)
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	require.ErrorIs(t, table.TruncateAfter(3), mappedfile.ErrReadOnly)
	_, err = table.DeleteBefore(math.MaxInt64)
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	n, err := table.Len()
	require.NoError(t, err)
	require.Equal(t, 12, n)
}

func TestClosedTableRefuses(t *testing.T) {
	table := filled(t, memfs.New(), 2)
	require.NoError(t, table.Close())
	require.NoError(t, table.Close())
	require.ErrorIs(t, table.Append(2, record(2)), mappedfile.ErrClosed)
	_, err := table.Get(0)
	require.ErrorIs(t, err, mappedfile.ErrClosed)
}

// Somebody cuts a file that is mapped: an error, not the end of the process.
func TestFileCutUnderTheTableIsAnError(t *testing.T) {
	dir := t.TempDir()
	fsys, err := mappedfile.OpenDir(dir, nil)
	require.NoError(t, err)
	const size = 1000 * txstate.RecordSize
	table := open(t, fsys, &txstate.Options{SegmentSize: size})
	require.NoError(t, table.Fill(999, txstate.Filler(record(0))))
	require.NoError(t, table.Append(999, record(999)))
	require.NoError(t, os.Truncate(path.Join(dir, txstate.Dir, mappedfile.SegmentName(0)), 0))
	_, err = table.Get(999)
	require.ErrorIs(t, err, mappedfile.ErrFault)
	_, err = table.Update(999, record(999).CommitOffset, record(999).GroupHash, txstate.Committed)
	require.ErrorIs(t, err, mappedfile.ErrFault)
	for e, err := range table.All(0) {
		require.Equal(t, int64(999), e.Number)
		require.ErrorIs(t, err, mappedfile.ErrFault)
	}
	for _, err := range table.Records(0) {
		require.ErrorIs(t, err, mappedfile.ErrFault)
	}
	_, err = table.FindEnd(true)
	require.ErrorIs(t, err, mappedfile.ErrFault)
}
