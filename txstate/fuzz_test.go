package txstate_test

import (
	"bytes"
	"iter"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/txstate"
)

func FuzzDecode(f *testing.F) {
	f.Add(txstate.Record{CommitOffset: 1 << 40, Size: 96, State: txstate.Committed}.AppendTo(nil))
	f.Add(txstate.Record{CommitOffset: -1, Size: 1 << 30, StoredAt: -1, GroupHash: -5, State: 6}.AppendTo(nil))
	f.Add(make([]byte, 24))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := txstate.Decode(b); err == nil {
			require.Equal(t, b[:txstate.RecordSize], r.AppendTo(nil))
			require.True(t, r.CommitOffset >= 0 && r.Size > 0 && r.State.Valid())
		}
	})
}

func FuzzScan(f *testing.F) {
	good := record(3).AppendTo(record(1).AppendTo(nil))
	f.Add(good, int64(len(good)), int64(0))
	f.Add(append(bytes.Clone(good), make([]byte, 30)...), int64(72), int64(48))
	f.Add(append(bytes.Clone(good), 1, 2, 3), int64(1<<40), int64(-24))
	f.Fuzz(func(t *testing.T, b []byte, size, base int64) {
		at := 0
		for e, err := range txstate.Scan("f", base, bytes.NewReader(b), size) {
			if err != nil {
				require.ErrorIs(t, err, mappedfile.ErrCorrupt)
				continue // it must be the last one, or the lines below fail
			}
			require.Equal(t, b[at:at+txstate.RecordSize], e.AppendTo(nil))
			require.Equal(t, (base+int64(at))/txstate.RecordSize, e.Number)
			at += txstate.RecordSize
		}
	})
}

// FuzzTable opens a table over any bytes, looks at all of it and goes on writing.
func FuzzTable(f *testing.F) {
	f.Add(recordBytes(3), recordBytes(perFile))
	f.Add(recordBytes(perFile), append(recordBytes(2), 1, 2, 3))
	f.Add(bytes.Repeat([]byte{0xFF}, 240), make([]byte, 240))
	f.Add(append(make([]byte, 48), recordBytes(1)...), []byte{})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		fsys := memfs.New()
		require.NoError(t, fsys.MkdirAll(txstate.Dir, 0o750))
		for start, b := range map[int64][]byte{240: first, 480: second} {
			write(t, fsys, start, b[:min(len(b), 240)])
		}
		table, err := txstate.Open(fsys, txstate.Dir, small())
		if err != nil {
			require.ErrorIs(t, err, mappedfile.ErrCorrupt) // a short file in the middle
			return
		}
		use(t, table)
		require.NoError(t, table.Abandon())
	})
}

func write(t *testing.T, fsys mappedfile.FS, start int64, b []byte) {
	t.Helper()
	f, err := fsys.OpenFile(txstate.Dir+"/"+mappedfile.SegmentName(start), os.O_RDWR|os.O_CREATE, 0o640)
	require.NoError(t, err)
	_, err = f.WriteAt(b, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// use calls everything; a recovery's calls must make the table good for writing.
func use(t *testing.T, table *txstate.Table) {
	t.Helper()
	for _, walk := range []iter.Seq2[txstate.Entry, error]{table.Records(0), table.All(0)} {
		last := int64(-1)
		for e, err := range walk {
			require.Greater(t, e.Number, last)
			if last = e.Number; err != nil {
				require.ErrorIs(t, err, mappedfile.ErrCorrupt)
			} else {
				require.True(t, e.CommitOffset >= 0 && e.Size > 0 && e.State.Valid())
			}
		}
	}
	_, err := table.FindByOffset(1000)
	if err != nil {
		require.ErrorIs(t, err, txstate.ErrNotFound)
	}
	_, err = table.Repair()
	require.NoError(t, err)
	end, err := table.FindEnd(true)
	require.NoError(t, err)
	require.NoError(t, table.TruncateAfter(end))
	_, err = table.DeleteBefore(1 << 62)
	require.NoError(t, err)
	next := table.Next()
	require.NoError(t, table.Append(next, record(next)))
	require.Equal(t, next+1, table.Next())
	end, err = table.FindEnd(true)
	require.NoError(t, err)
	require.Equal(t, next+1, end)
	require.NoError(t, table.RemoveAll())
}
