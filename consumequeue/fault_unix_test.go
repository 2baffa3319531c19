//go:build unix

package consumequeue_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// A file that somebody cuts short while it is mapped gives errors; without care it would kill the process.
func TestFileCutShortWhileMappedIsAnError(t *testing.T) {
	dir := t.TempDir()
	fsys, err := mappedfile.OpenDir(dir, nil)
	require.NoError(t, err)
	table := openTable(t, fsys, &consumequeue.Options{SegmentSize: 1 << 20})
	q := ensure(t, table, "T", 0)
	appendRange(t, q, 0, 50_000)
	requireUnits(t, q, 49_990, 50_000)
	require.NoError(t, os.Truncate(filepath.Join(dir, filepath.FromSlash(segmentName(0))), 0))
	for what, err := range map[string]error{
		"get":     second(q.Get(40_000)),
		"read":    second(q.Read(40_000, make([]consumequeue.Unit, 1))),
		"careful": second(q.FindEnd(true)),
		"min":     second(q.MinFor(1 << 30)),
		"append":  q.Append(1000, nth(1000)),
	} {
		require.ErrorIs(t, err, mappedfile.ErrFault, what)
		require.ErrorContains(t, err, segmentName(0), what)
	}
}

// Somebody may read a directory while it is written: he sees what was there when he opened it.
func TestReadingBesideAWriter(t *testing.T) {
	dir := t.TempDir()
	fsys, err := mappedfile.OpenDir(dir, nil)
	require.NoError(t, err)
	writer := ensure(t, openTable(t, fsys, nil), "T", 0)
	appendRange(t, writer, 0, 7)

	readOnly, err := mappedfile.OpenDir(dir, &mappedfile.DirOptions{ReadOnly: true})
	require.NoError(t, err)
	reader := openTable(t, readOnly, &consumequeue.Options{SegmentSize: small, ReadOnly: true}).Lookup("T", 0)
	requireUnits(t, reader, 0, 7)
	appendRange(t, writer, 7, 20)
	requireUnits(t, reader, 0, 7)
	_, err = writer.DeleteBefore(60)
	require.NoError(t, err)
	_, err = reader.Get(3)
	require.NoError(t, err, "it has that file mapped")
	requireUnits(t, writer, 5, 20)
}
