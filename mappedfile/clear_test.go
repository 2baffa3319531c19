package mappedfile_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// A cleared queue leaves no file and no folder, keeps the views that are held, and goes on where it is told to.
func TestClearRemovesFilesAndFolder(t *testing.T) {
	fsys := memfs.New()
	q, err := mappedfile.Open(fsys, "a/b", &mappedfile.Options{SegmentSize: 16})
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	for i := range byte(5) {
		_, err := q.Append([]byte{i, i, i, i, i, i, i, i})
		require.NoError(t, err)
	}
	v, err := q.View(8, 8)
	require.NoError(t, err)
	require.NoError(t, q.Clear(160))
	require.Equal(t, []byte{1, 1, 1, 1, 1, 1, 1, 1}, v.Bytes())
	v.Release()
	start, end := q.Bounds()
	require.EqualValues(t, 160, start)
	require.EqualValues(t, 160, end)
	_, err = fsys.ReadDir("a/b")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = q.View(8, 8)
	require.ErrorIs(t, err, mappedfile.ErrOutOfRange)

	off, err := q.Append([]byte("back"))
	require.NoError(t, err)
	require.EqualValues(t, 160, off)
	require.NoError(t, q.Sync(0))
	entries, err := fsys.ReadDir("a/b")
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, mappedfile.SegmentName(160), entries[0].Name())
}

// What is not ours stays, and the folder with it.
func TestClearLeavesForeignFiles(t *testing.T) {
	fsys := memfs.New()
	q, err := mappedfile.Open(fsys, "a", &mappedfile.Options{SegmentSize: 16})
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	_, err = q.Append([]byte("x"))
	require.NoError(t, err)
	f, err := fsys.OpenFile("a/notes", 2|64, 0o600)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, q.Clear(0))
	entries, err := fsys.ReadDir("a")
	require.NoError(t, err)
	require.Len(t, entries, 1)
	_, err = q.Append([]byte("y"))
	require.NoError(t, err)
}

func TestClearRefuses(t *testing.T) {
	q, err := mappedfile.Open(memfs.New(), "a", &mappedfile.Options{SegmentSize: 16, Ahead: true})
	require.NoError(t, err)
	require.ErrorIs(t, q.Clear(0), mappedfile.ErrOutOfRange)
	require.NoError(t, q.Close())
	require.ErrorIs(t, q.Clear(0), mappedfile.ErrClosed)
}

func TestDiskUsage(t *testing.T) {
	_, err := mappedfile.DiskUsage(memfs.New())
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.InDelta(t, 0.25, mappedfile.Usage{Used: 1, Total: 4}.Ratio(), 1e-9)
	require.Zero(t, mappedfile.Usage{}.Ratio())

	fsys, err := mappedfile.OpenDir(t.TempDir(), &mappedfile.DirOptions{ReadOnly: true})
	require.NoError(t, err)
	u, err := mappedfile.DiskUsage(fsys)
	if errors.Is(err, errors.ErrUnsupported) {
		return // not on this system
	}
	require.NoError(t, err)
	require.Positive(t, u.Total)
	require.LessOrEqual(t, u.Used, u.Total)
}
