package redolog_test

import (
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/redolog"
)

// perFile is the number of units in a file of most tests.
const perFile = 10

func small() *redolog.Options { return &redolog.Options{SegmentSize: perFile * redolog.UnitSize} }

func open(t testing.TB, fsys mappedfile.FS, o *redolog.Options) *redolog.Log {
	t.Helper()
	log, err := redolog.Open(fsys, redolog.Dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Abandon()) })
	return log
}

// filled opens a log with n units.
func filled(t testing.TB, fsys mappedfile.FS, n int64) *redolog.Log {
	t.Helper()
	log := open(t, fsys, small())
	for i := range n {
		appended, err := log.Append(unit(i))
		require.NoError(t, err)
		require.True(t, appended)
	}
	return log
}

func reopen(t testing.TB, fsys mappedfile.FS, log *redolog.Log) *redolog.Log {
	t.Helper()
	require.NoError(t, log.Sync(0))
	require.NoError(t, log.Close())
	return open(t, fsys, small())
}

func bytesOf(t testing.TB, fsys mappedfile.FS, start int64) []byte {
	t.Helper()
	return []byte(golden.ReadFile(t, fsys, path.Join(redolog.Dir, mappedfile.SegmentName(start))))
}

// harm overwrites bytes of a unit on disk.
func harm(t testing.TB, fsys mappedfile.FS, index, at int64, b ...byte) {
	t.Helper()
	const size = perFile * redolog.UnitSize
	pos := index * redolog.UnitSize
	f, err := fsys.OpenFile(path.Join(redolog.Dir, mappedfile.SegmentName(pos-pos%size)), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(b, pos%size+at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func names(t testing.TB, fsys mappedfile.FS) []string {
	t.Helper()
	entries, err := fsys.ReadDir(redolog.Dir)
	require.NoError(t, err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func indexes(t testing.TB, log *redolog.Log, from int64) []int64 {
	t.Helper()
	var out []int64
	for e, err := range log.Replay(from) {
		require.NoError(t, err)
		require.Equal(t, unit(e.Index), e.Unit)
		out = append(out, e.Index)
	}
	return out
}

func span(from, to int64) []int64 {
	var out []int64
	for ; from < to; from++ {
		out = append(out, from)
	}
	return out
}

// R-B-01, R-B-72: the log is usable alone, and nothing is made before the first append.
func TestOpenMakesNothing(t *testing.T) {
	fsys := memfs.New()
	log := open(t, fsys, nil)
	first, next := log.Bounds()
	require.Zero(t, first)
	require.Zero(t, next)
	_, ok := log.Last()
	require.False(t, ok)
	require.Empty(t, indexes(t, log, 0))
	require.NoError(t, log.Sync(0))
	entries, err := fsys.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, entries)
	require.Equal(t, int64(40_000_000), log.SegmentSize())
	require.Equal(t, "transaction/redolog/TRANSACTION_REDOLOG_TOPIC_XXXX/0", redolog.Dir) // R-B-19
}

// The original takes such a size and loses units.
func TestOpenRefusesSizesThatCutAUnit(t *testing.T) {
	for _, size := range []int64{110, -20, 19} {
		_, err := redolog.Open(memfs.New(), redolog.Dir, &redolog.Options{SegmentSize: size})
		require.ErrorContains(t, err, "must be a positive multiple of the unit's 20 bytes")
	}
}

func TestOpenRefusesFilesOfAnotherSize(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 25).Close())
	_, err := redolog.Open(fsys, redolog.Dir, &redolog.Options{SegmentSize: 12 * redolog.UnitSize})
	require.ErrorIs(t, err, mappedfile.ErrCorrupt)
	require.ErrorContains(t, err, "200")
	require.ErrorContains(t, err, "240")
}

// R-B-21: sequential, next file when full.
func TestAppendRollsToTheNextFile(t *testing.T) {
	fsys := memfs.New()
	log := filled(t, fsys, 25)
	require.Equal(t, []string{"00000000000000000000", "00000000000000000200", "00000000000000000400"}, names(t, fsys))
	require.Equal(t, unit(10).AppendTo(nil), bytesOf(t, fsys, 200)[:20])
	for again := range 2 {
		if again == 1 {
			log = reopen(t, fsys, log)
		}
		first, next := log.Bounds()
		require.Equal(t, [2]int64{0, 25}, [2]int64{first, next})
		require.Equal(t, span(0, 25), indexes(t, log, 0))
		require.Equal(t, span(13, 25), indexes(t, log, 13))
		require.Empty(t, indexes(t, log, 25))
		last, ok := log.Last()
		require.True(t, ok)
		require.Equal(t, unit(24), last)
		got, err := log.Get(10)
		require.NoError(t, err)
		require.Equal(t, unit(10), got)
		for _, index := range []int64{25, -1, 1 << 62} {
			_, err = log.Get(index)
			require.ErrorIs(t, err, mappedfile.ErrOutOfRange)
		}
		require.Len(t, log.Segments(), 3)
	}
}

// R-B-21: names with the real size.
func TestFilesOfTheRealSizeHaveTheRealNames(t *testing.T) {
	fsys, err := mappedfile.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	log := open(t, fsys, nil)
	for _, index := range []int64{0, 1_999_999, 2_000_000, 3_999_999, 4_000_000} {
		if index%2_000_000 != 0 {
			require.NoError(t, log.SetEnd(index))
		}
		appended, err := log.Append(unit(index))
		require.NoError(t, err)
		require.True(t, appended)
	}
	require.Equal(t, []string{"00000000000000000000", "00000000000040000000", "00000000000080000000"}, names(t, fsys))
	for _, s := range log.Segments() {
		require.Equal(t, int64(40_000_000), s.Length)
	}
	require.NoError(t, log.Sync(0))
	require.NoError(t, log.Close())
	log = open(t, fsys, nil)
	_, next := log.Bounds()
	require.Equal(t, int64(4_000_001), next)
}

// R-B-24: dispatching the commit log again appends nothing twice.
func TestAppendSkipsWhatIsThere(t *testing.T) {
	fsys := memfs.New()
	log := filled(t, fsys, 12)
	before := bytesOf(t, fsys, 200)
	for again := range 2 {
		if again == 1 {
			log = reopen(t, fsys, log)
		}
		for i := range int64(12) {
			appended, err := log.Append(unit(i))
			require.NoError(t, err)
			require.False(t, appended)
		}
		require.Equal(t, before, bytesOf(t, fsys, 200))
	}
}

func TestAppendRefusesWhatCannotBeAUnit(t *testing.T) {
	log := filled(t, memfs.New(), 1)
	for _, u := range []redolog.Unit{{}, {PhysicalOffset: 1 << 40}, {PhysicalOffset: -1, Size: 1}, {PhysicalOffset: 1 << 40, Size: 1, TagsCode: -2}} {
		_, err := log.Append(u)
		require.Error(t, err)
	}
	_, next := log.Bounds()
	require.Equal(t, int64(1), next)
}

func TestReadOnlyLogRefusesWrites(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 12).Close())
	log := open(t, fsys, &redolog.Options{SegmentSize: perFile * redolog.UnitSize, ReadOnly: true})
	_, err := log.Append(unit(12))
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	_, err = log.TruncateFrom(0)
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	require.Equal(t, span(0, 12), indexes(t, log, 0))
}

func TestClosedLogRefuses(t *testing.T) {
	log := filled(t, memfs.New(), 2)
	require.NoError(t, log.Close())
	require.NoError(t, log.Close())
	_, err := log.Append(unit(2))
	require.ErrorIs(t, err, mappedfile.ErrClosed)
	for _, err := range log.Replay(0) {
		require.ErrorIs(t, err, mappedfile.ErrClosed)
	}
	_, err = log.OpenSet()
	require.ErrorIs(t, err, mappedfile.ErrClosed)
}

func TestReplayPassesOverWhatCannotBeBelieved(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 35).Close())
	harm(t, fsys, 14, 8, 0xFF)
	log := open(t, fsys, small())
	n := 0
	for e, err := range log.Replay(3) {
		require.Equal(t, int64(n)+3, e.Index)
		if n++; e.Index == 14 {
			require.ErrorIs(t, err, mappedfile.ErrCorrupt)
			require.ErrorContains(t, err, redolog.Dir+"/00000000000000000200: offset 80: redo log unit 14: message size is not positive")
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, 32, n)
	_, err := log.Get(14)
	require.ErrorIs(t, err, mappedfile.ErrCorrupt)
	_, err = log.OpenSet()
	require.ErrorIs(t, err, mappedfile.ErrCorrupt)
	for e, err := range log.Replay(0) {
		require.NoError(t, err)
		require.Zero(t, e.Index)
		break
	}
}

// A file is missing between two others: what is there is found.
func TestGapBetweenFilesIsPassedOver(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 35).Close())
	require.NoError(t, fsys.Remove(redolog.Dir+"/00000000000000000200"))
	log := open(t, fsys, small())
	require.Len(t, log.Notices(), 1)
	require.Equal(t, append(span(0, 10), span(20, 35)...), indexes(t, log, 0))
	removed, err := log.TruncateFrom(unit(15).PhysicalOffset)
	require.NoError(t, err)
	require.Equal(t, int64(25), removed)
	require.Equal(t, []string{"00000000000000000000"}, names(t, fsys))
	require.Equal(t, span(0, 10), indexes(t, log, 0))
}

// Somebody cuts a file that is mapped: an error, not the end of the process.
func TestFileCutUnderTheLogIsAnError(t *testing.T) {
	dir := t.TempDir()
	fsys, err := mappedfile.OpenDir(dir, nil)
	require.NoError(t, err)
	log := open(t, fsys, nil)
	_, err = log.Append(unit(0))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path.Join(dir, redolog.Dir, mappedfile.SegmentName(0)), 0))
	_, err = log.Get(0)
	require.ErrorIs(t, err, mappedfile.ErrFault)
	_, err = log.OpenSet()
	require.ErrorIs(t, err, mappedfile.ErrFault)
	_, err = log.FindEnd(true)
	require.ErrorIs(t, err, mappedfile.ErrFault)
	_, err = log.TruncateFrom(0)
	require.ErrorIs(t, err, mappedfile.ErrFault)
}
