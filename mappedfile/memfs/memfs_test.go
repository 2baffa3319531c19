package memfs_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

const page = mappedfile.PageSize

func create(t *testing.T, fsys *memfs.FS, name string, size int64) mappedfile.File {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size))
	return f
}

func TestLimitMakesTheDiskFull(t *testing.T) {
	fsys := memfs.New()
	fsys.Limit(2 * page)
	f := create(t, fsys, "a", 10*page) // sparse
	require.Zero(t, fsys.Used())
	require.NoError(t, f.Allocate(page-1, 2))
	require.Equal(t, int64(2*page), fsys.Used())
	require.ErrorIs(t, f.Allocate(2*page, 1), syscall.ENOSPC)
	_, err := f.WriteAt([]byte("x"), 5*page)
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, err = f.WriteAt([]byte("x"), page)
	require.NoError(t, err, "it has the block")
	require.NoError(t, f.Truncate(page))
	require.NoError(t, f.Allocate(0, 1))
	require.Equal(t, int64(page), fsys.Used())
}

func TestRemovedFileKeepsItsBlocksWhileItIsMapped(t *testing.T) {
	fsys := memfs.New()
	f := create(t, fsys, "a", page)
	require.NoError(t, f.Allocate(0, page))
	m, err := f.Map(page, mappedfile.ReadWrite)
	require.NoError(t, err)
	require.Equal(t, 1, fsys.Mappings())
	require.NoError(t, fsys.Remove("a"))
	require.Equal(t, int64(page), fsys.Used())
	require.NoError(t, m.Unmap())
	require.Zero(t, fsys.Used())
	require.Zero(t, fsys.Mappings())
	require.Nil(t, m.Bytes())

	g := create(t, fsys, "b", page)
	require.NoError(t, g.Allocate(0, page))
	create(t, fsys, "c", page)
	require.NoError(t, fsys.Rename("c", "b"))
	require.Zero(t, fsys.Used(), "the file that was replaced is gone")
}

func TestUnreservedNamesPagesWrittenWithoutBlocks(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, fsys.MkdirAll("x", 0o750))
	f := create(t, fsys, "x/a", 4*page)
	require.NoError(t, f.Allocate(page, page))
	_, err := f.WriteAt([]byte("by the file"), 3*page)
	require.NoError(t, err)
	m, err := f.Map(4*page, mappedfile.ReadWrite)
	require.NoError(t, err)
	m.Bytes()[page] = 1
	require.Empty(t, fsys.Unreserved())
	m.Bytes()[2*page+10] = 1
	require.Equal(t, []string{"x/a: 8192"}, fsys.Unreserved())
}

func TestFileCannotChangeItsSizeUnderAMapping(t *testing.T) {
	fsys := memfs.New()
	f := create(t, fsys, "a", 2*page)
	m, err := f.Map(page, mappedfile.ReadWrite)
	require.NoError(t, err)
	require.ErrorContains(t, f.Truncate(page-1), "mapped")
	require.NoError(t, f.Truncate(page))
	require.ErrorContains(t, f.Truncate(10*page), "mapped")
	require.NoError(t, m.Unmap())
	require.NoError(t, f.Truncate(10*page))
	require.NoError(t, f.Truncate(0))
}

func TestWriteFileMakesDirectoriesAndReplaces(t *testing.T) {
	fsys := memfs.New()
	for _, s := range []string{"abc", "defg"} {
		require.NoError(t, fsys.WriteFile("x/y/a", []byte(s)))
		f, err := fsys.OpenFile("x/y/a", os.O_RDONLY, 0)
		require.NoError(t, err)
		b := make([]byte, len(s))
		_, err = f.ReadAt(b, 0)
		require.NoError(t, err)
		require.Equal(t, s, string(b))
		_, err = f.WriteAt(b, 0)
		require.Error(t, err, "opened for reading")
	}
	require.Error(t, fsys.WriteFile("x/y", nil), "a directory")
	require.Error(t, fsys.WriteFile("x/y/a/b", nil), "below a file")
}
