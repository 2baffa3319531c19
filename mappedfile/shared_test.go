//go:build unix

package mappedfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// A snapshot shares full segments by hard links. Whatever is then written to one directory must not reach the other.
func TestWritingToASharedSegmentLeavesTheOtherNameAlone(t *testing.T) {
	for _, mode := range []mappedfile.WriteMode{mappedfile.Mapped, mappedfile.Pwrite, mappedfile.Staged} {
		dir, other := t.TempDir(), t.TempDir()
		q := openShared(t, dir, mode)
		_, err := q.Append(bytes.Repeat([]byte{1}, 4096))
		require.NoError(t, err)
		_, err = q.Append(bytes.Repeat([]byte{2}, 100))
		require.NoError(t, err)
		require.NoError(t, q.Close())
		first, second := filepath.Join("q", mappedfile.SegmentName(0)), filepath.Join("q", mappedfile.SegmentName(4096))
		require.NoError(t, os.Mkdir(filepath.Join(other, "q"), 0o750))
		require.NoError(t, os.Link(filepath.Join(dir, first), filepath.Join(other, first)))
		require.NoError(t, os.Link(filepath.Join(dir, second), filepath.Join(other, second)))
		want1, want2 := read(t, dir, first), read(t, dir, second)

		q = openShared(t, other, mode)
		v, err := q.View(0, 8)
		require.NoError(t, err)
		require.Equal(t, bytes.Repeat([]byte{1}, 8), v.Bytes())
		require.NoError(t, q.SetEnd(4096+100))
		require.NoError(t, q.WriteAt([]byte{9, 9}, 2)) // in place
		_, err = q.Append(bytes.Repeat([]byte{3}, 50)) // behind the end
		require.NoError(t, err)
		require.Equal(t, byte(1), v.Bytes()[2]) // what was looked at before
		v.Release()
		v, err = q.View(0, 8)
		require.NoError(t, err)
		require.Equal(t, []byte{1, 1, 9, 9}, v.Bytes()[:4])
		v.Release()
		require.NoError(t, q.Close())
		require.Equal(t, want1, read(t, dir, first))
		require.Equal(t, want2, read(t, dir, second))
		require.Equal(t, byte(9), read(t, other, first)[2])
		require.Equal(t, byte(3), read(t, other, second)[100])

		// Reading alone takes nothing out of the sharing; cutting does.
		third := filepath.Join(other, "third")
		require.NoError(t, os.Link(filepath.Join(other, first), third))
		kept := read(t, other, "third")
		q = openShared(t, other, mode)
		v, err = q.View(0, 8)
		require.NoError(t, err)
		v.Release()
		require.True(t, same(t, filepath.Join(other, first), third))
		require.NoError(t, q.TruncateAfter(10))
		require.NoError(t, q.Close())
		require.False(t, same(t, filepath.Join(other, first), third))
		require.Equal(t, kept, read(t, other, "third"))
	}
}

func openShared(t *testing.T, dir string, mode mappedfile.WriteMode) *mappedfile.Queue {
	t.Helper()
	fsys, err := mappedfile.OpenDir(dir, nil)
	require.NoError(t, err)
	q, err := mappedfile.Open(fsys, "q", &mappedfile.Options{SegmentSize: 4096, Mode: mode})
	require.NoError(t, err)
	return q
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	return b
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.Stat(a)
	require.NoError(t, err)
	y, err := os.Stat(b)
	require.NoError(t, err)
	return os.SameFile(x, y)
}
