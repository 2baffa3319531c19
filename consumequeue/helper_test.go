package consumequeue_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
)

const (
	root = "consumequeue"
	// small is a segment size of five units.
	small = 5 * consumequeue.UnitSize
)

// openTable opens a table with small segments, which is abandoned at the end of the test.
func openTable(t testing.TB, fsys mappedfile.FS, o *consumequeue.Options) *consumequeue.Table {
	t.Helper()
	if o == nil {
		o = &consumequeue.Options{SegmentSize: small}
	}
	table, err := consumequeue.OpenTable(fsys, root, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, table.Abandon()) })
	return table
}

func ensure(t testing.TB, table *consumequeue.Table, topic string, id int32) *consumequeue.Queue {
	t.Helper()
	q, err := table.Ensure(topic, id)
	require.NoError(t, err)
	return q
}

// nth is the unit that the tests put at a queue offset: records of 10 bytes, one behind the other.
func nth(index int64) consumequeue.Unit {
	return consumequeue.Unit{PhysicalOffset: index * 10, Size: 10, TagsCode: -index}
}

// appendRange appends units to [from, to).
func appendRange(t testing.TB, q *consumequeue.Queue, from, to int64) {
	t.Helper()
	for i := from; i < to; i++ {
		require.NoError(t, q.Append(i, nth(i)))
	}
}

// requireUnits checks that the queue holds nth units in [from, to) and ends there.
func requireUnits(t testing.TB, q *consumequeue.Queue, from, to int64) {
	t.Helper()
	_, end := q.Bounds()
	require.Equal(t, to, end)
	for i := from; i < to; i++ {
		u, err := q.Get(i)
		require.NoError(t, err)
		require.Equal(t, nth(i), u)
	}
}

// readFile gives a file's bytes as they are on the simulated disk.
func readFile(t testing.TB, fsys mappedfile.FS, name string) []byte {
	t.Helper()
	return []byte(golden.ReadFile(t, fsys, name))
}

// writeFile makes a file with its folders.
func writeFile(t testing.TB, fsys mappedfile.FS, name string, b []byte) {
	t.Helper()
	require.NoError(t, fsys.MkdirAll(path.Dir(name), 0o755))
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(int64(len(b))))
	if len(b) > 0 {
		_, err = f.WriteAt(b, 0)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
}

// segmentName is the path of a file of queue T/0.
func segmentName(start int64) string { return path.Join(root, "T", "0", mappedfile.SegmentName(start)) }

// names lists the files of a folder; a missing one has none.
func names(t testing.TB, fsys mappedfile.FS, dir string) (all []string) {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// pad gives units' bytes with zeros up to a length.
func pad(b []byte, length int) []byte { return append(b, make([]byte, length-len(b))...) }
