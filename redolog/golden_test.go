package redolog_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/redolog"
)

func goldenEntries(e *golden.Expected) []redolog.Entry {
	var out []redolog.Entry
	for _, u := range e.RedoLog() {
		out = append(out, redolog.Entry{Index: u.Index, Unit: redolog.Unit{
			PhysicalOffset: u.PhysicalOffset, Size: u.Size, TagsCode: u.TagsCode,
		}})
	}
	return out
}

func openGolden(t *testing.T, store string, e *golden.Expected, readOnly bool) *redolog.Log {
	t.Helper()
	fsys, err := mappedfile.OpenDir(store, nil)
	require.NoError(t, err)
	return open(t, fsys, &redolog.Options{SegmentSize: e.Config().RedoLogFileSize, ReadOnly: readOnly})
}

func TestRealStores(t *testing.T) {
	for _, name := range golden.Names("3.1.4") {
		t.Run(name, func(t *testing.T) {
			e := golden.Load(t, name)
			store := golden.Unpack(t, name)
			t.Run("their units are read", func(t *testing.T) { readRealStore(t, store, e) })
			t.Run("writing again gives their bytes", func(t *testing.T) { writeAgain(t, store, e) })
		})
	}
}

// readRealStore proves R-B-64: the real broker's units, by the scan and by the log; folded they give the open transactions
// (R-B-50), over several files, where the original reads the first one only.
func readRealStore(t *testing.T, store string, e *golden.Expected) {
	t.Helper()
	want := goldenEntries(e)
	before := golden.Snapshot(t, store)
	log := openGolden(t, store, e, true)
	require.Empty(t, log.Notices())

	var scanned, replayed []redolog.Entry
	for _, s := range log.Segments() {
		f, err := os.Open(filepath.Join(store, s.Name))
		require.NoError(t, err)
		for entry, err := range redolog.Scan(s.Name, s.Start, f, s.Length) {
			require.NoError(t, err)
			scanned = append(scanned, entry)
		}
		require.NoError(t, f.Close())
	}
	require.Equal(t, want, scanned)
	for entry, err := range log.Replay(0) {
		require.NoError(t, err)
		replayed = append(replayed, entry)
	}
	require.Equal(t, want, replayed)
	end, err := log.FindEnd(true)
	require.NoError(t, err)
	require.Equal(t, int64(len(want)), end)

	set, err := log.OpenSet()
	require.NoError(t, err)
	wantOpen := slices.Sorted(slices.Values(e.Derived().OpenByRedoLog))
	require.Equal(t, wantOpen, slices.Collect(set.All()))
	require.NoError(t, log.Close())
	require.Equal(t, before, golden.Snapshot(t, store))
}

// writeAgain proves R-B-65: the same events through our log give the real broker's files, byte for byte; sending them
// twice changes nothing.
func writeAgain(t *testing.T, theirs string, e *golden.Expected) {
	t.Helper()
	ours := t.TempDir()
	log := openGolden(t, ours, e, false)
	for twice := range 2 {
		for _, entry := range goldenEntries(e) {
			appended, err := log.Append(entry.Unit)
			require.NoError(t, err)
			require.Equal(t, twice == 0, appended)
		}
	}
	require.NoError(t, log.Sync(0))
	require.NoError(t, log.Close())
	require.Equal(t, files(t, filepath.Join(theirs, redolog.Dir)), files(t, filepath.Join(ours, redolog.Dir)))
}

func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	out := map[string][]byte{}
	for _, name := range found {
		out[filepath.Base(name)], err = os.ReadFile(name)
		require.NoError(t, err)
	}
	return out
}

// R-B-54: the torn commit's stale unit goes with the commit log, and its transaction is open again.
func TestRealStoreIsCutWithItsCommitLog(t *testing.T) {
	const name = "rocketmq-3.1.4/abort-torn"
	e := golden.Load(t, name)
	log := openGolden(t, golden.Unpack(t, name), e, false)
	removed, err := log.TruncateFrom(e.Derived().LogEnd)
	require.NoError(t, err)
	require.Equal(t, int64(1), removed)
	set, err := log.OpenSet()
	require.NoError(t, err)
	var want []int64
	for _, open := range e.Derived().OpenTransactions {
		want = append(want, open.PhysicalOffset)
	}
	require.Equal(t, slices.Sorted(slices.Values(want)), slices.Collect(set.All()))
	require.Equal(t, 8, set.Len())
}
