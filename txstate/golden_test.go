package txstate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/txstate"
)

func goldenEntries(e *golden.Expected) []txstate.Entry {
	var out []txstate.Entry
	for _, r := range e.StateTable() {
		out = append(out, txstate.Entry{Number: r.Number, Record: txstate.Record{
			CommitOffset: r.PhysicalOffset, Size: r.Size, StoredAt: r.StoredAt, GroupHash: r.GroupHash, State: txstate.State(r.State),
		}})
	}
	return out
}

func openGolden(t *testing.T, store string, e *golden.Expected, readOnly bool) *txstate.Table {
	t.Helper()
	fsys, err := mappedfile.OpenDir(store, nil)
	require.NoError(t, err)
	return open(t, fsys, &txstate.Options{SegmentSize: e.Config().StateTableFileSize, ReadOnly: readOnly})
}

func TestRealStores(t *testing.T) {
	for _, name := range golden.Names("3.1.4") {
		t.Run(name, func(t *testing.T) {
			e := golden.Load(t, name)
			store := golden.Unpack(t, name)
			t.Run("their records are read", func(t *testing.T) { readRealStore(t, store, e) })
			t.Run("writing again gives their bytes", func(t *testing.T) { writeAgain(t, store, e) })
		})
	}
}

// readRealStore proves R-B-64: the real broker's records, by the scan and by the table.
func readRealStore(t *testing.T, store string, e *golden.Expected) {
	t.Helper()
	want := goldenEntries(e)
	before := golden.Snapshot(t, store)
	table := openGolden(t, store, e, true)
	require.Empty(t, table.Notices())

	var scanned, walked, open, wantOpen []txstate.Entry
	for _, s := range table.Segments() {
		f, err := os.Open(filepath.Join(store, s.Name))
		require.NoError(t, err)
		for entry, err := range txstate.Scan(s.Name, s.Start, f, s.Length) {
			require.NoError(t, err)
			scanned = append(scanned, entry)
		}
		require.NoError(t, f.Close())
	}
	require.Equal(t, want, scanned)
	for entry, err := range table.Records(0) {
		require.NoError(t, err)
		walked = append(walked, entry)
	}
	require.Equal(t, want, walked)
	for entry, err := range table.All(0) {
		require.NoError(t, err)
		open = append(open, entry)
	}
	for _, entry := range want {
		if entry.State == txstate.Prepared {
			wantOpen = append(wantOpen, entry)
		}
	}
	require.Equal(t, wantOpen, open)
	require.Equal(t, int64(len(want)), table.Next())
	end, err := table.FindEnd(true)
	require.NoError(t, err)
	require.Equal(t, table.Next(), end)
	require.NoError(t, table.Close())
	require.Equal(t, before, golden.Snapshot(t, store))
}

// writeAgain proves R-B-65: the same events through our table give the real broker's files, byte for byte.
func writeAgain(t *testing.T, theirs string, e *golden.Expected) {
	t.Helper()
	ours := t.TempDir()
	table := openGolden(t, ours, e, false)
	for _, entry := range goldenEntries(e) {
		prepared := entry.Record
		prepared.State = txstate.Prepared
		require.NoError(t, table.Append(entry.Number, prepared))
	}
	for _, entry := range goldenEntries(e) {
		if entry.State != txstate.Prepared {
			resolved, err := table.Update(entry.Number, entry.CommitOffset, entry.GroupHash, entry.State)
			require.NoError(t, err)
			require.False(t, resolved)
		}
	}
	require.NoError(t, table.Sync(0))
	require.NoError(t, table.Close())
	require.Equal(t, files(t, filepath.Join(theirs, txstate.Dir)), files(t, filepath.Join(ours, txstate.Dir)))
}

// files reads a directory; a missing one is as good as an empty one.
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

// R-B-53: what 3.1.4 was seen to do with an unknown state in the fourth of five files.
func TestEndOfADamagedRealTable(t *testing.T) {
	const name = "rocketmq-3.1.4/clean"
	e := golden.Load(t, name)
	store := golden.Unpack(t, name)
	path := filepath.Join(store, txstate.Dir, "00000000000000000864")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[5*txstate.RecordSize+23] = 0
	require.NoError(t, os.WriteFile(path, b, 0o600))

	table := openGolden(t, store, e, false)
	end, err := table.FindEnd(true)
	require.NoError(t, err)
	require.Equal(t, int64(41), end)
	require.NoError(t, table.TruncateAfter(end))
	require.Len(t, files(t, filepath.Join(store, txstate.Dir)), 4)
	require.Equal(t, int64(41), table.Next())
}

// What 3.1.4 keeps when the first file is gone: the other numbers.
func TestRealTableWithoutItsFirstFileKeepsItsNumbers(t *testing.T) {
	const name = "rocketmq-3.1.4/clean"
	e := golden.Load(t, name)
	store := golden.Unpack(t, name)
	require.NoError(t, os.Remove(filepath.Join(store, txstate.Dir, "00000000000000000000")))
	table := openGolden(t, store, e, false)
	first, next := table.Bounds()
	require.Equal(t, [2]int64{12, 54}, [2]int64{first, next})
	r, err := table.Get(12)
	require.NoError(t, err)
	require.Equal(t, goldenEntries(e)[12].Record, r)
}
