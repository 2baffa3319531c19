package mappedfile_test

import (
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// layers are the file layers that must behave alike.
var layers = []struct {
	name string
	make func(t testing.TB) mappedfile.FS
}{
	{"os", func(t testing.TB) mappedfile.FS { return openDir(t, t.TempDir()) }},
	{"memfs", func(testing.TB) mappedfile.FS { return memfs.New() }},
	{"crashfs", func(testing.TB) mappedfile.FS { return crashfs.New(memfs.New()) }},
}

// onLayers runs a test on each file layer.
func onLayers(t *testing.T, test func(t *testing.T, fsys mappedfile.FS)) {
	for _, l := range layers {
		t.Run(l.name, func(t *testing.T) { test(t, l.make(t)) })
	}
}

func openDir(t testing.TB, dir string) mappedfile.FS {
	fsys, err := mappedfile.OpenDir(dir, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fsys.(io.Closer).Close()) })
	return fsys
}

func create(t testing.TB, fsys mappedfile.FS, name string, content []byte) mappedfile.File {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	if len(content) > 0 {
		_, err = f.WriteAt(content, 0)
		require.NoError(t, err)
	}
	return f
}

func readFile(t testing.TB, fsys mappedfile.FS, name string) []byte {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	size, err := f.Size()
	require.NoError(t, err)
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	if size > 0 {
		require.NoError(t, err)
	}
	return b
}

func TestFilesAreReadAsTheyWereWritten(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		f := create(t, fsys, "a", []byte("hello"))
		require.Equal(t, "a", f.Name())
		_, err := f.WriteAt([]byte("world"), 10)
		require.NoError(t, err)
		require.NoError(t, f.Sync())
		require.Equal(t, []byte("hello\x00\x00\x00\x00\x00world"), readFile(t, fsys, "a"))

		b := make([]byte, 8)
		n, err := f.ReadAt(b, 12)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, "rld", string(b[:n]))
		require.NoError(t, f.Close())
		_, err = f.ReadAt(b, 0)
		require.ErrorIs(t, err, fs.ErrClosed)
	})
}

func TestCuttingAndGrowingZeroesWhatWasCut(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		f := create(t, fsys, "a", []byte("0123456789"))
		require.NoError(t, f.Truncate(4))
		require.NoError(t, f.Truncate(8))
		require.Equal(t, []byte("0123\x00\x00\x00\x00"), readFile(t, fsys, "a"))
	})
}

func TestAllocateKeepsContentAndGrowsTheFile(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		f := create(t, fsys, "a", []byte("abc"))
		require.NoError(t, f.Allocate(0, 2))
		require.Equal(t, "abc", string(readFile(t, fsys, "a")))
		require.NoError(t, f.Allocate(0, 5))
		require.Equal(t, "abc\x00\x00", string(readFile(t, fsys, "a")))
		require.Error(t, f.Allocate(-1, 5))
	})
}

func TestMappingAndFileAreTheSameBytes(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		f := create(t, fsys, "a", nil)
		require.NoError(t, f.Truncate(3*mappedfile.PageSize))
		m, err := f.Map(3*mappedfile.PageSize, mappedfile.ReadWrite)
		require.NoError(t, err)
		copy(m.Bytes()[5000:], "through the mapping")
		require.NoError(t, m.SyncRange(5000, 19)) // not aligned to a page
		_, err = f.WriteAt([]byte("through the file"), 100)
		require.NoError(t, err)
		require.Equal(t, "through the file", string(m.Bytes()[100:116]))
		require.Equal(t, "through the mapping", string(readFile(t, fsys, "a")[5000:5019]))
		for a := mappedfile.Normal; a <= mappedfile.Populate; a++ {
			if a != mappedfile.DontNeed {
				require.NoError(t, m.Advise(4097, 3000, a), "advice %d", a)
			}
		}
		require.NoError(t, fsys.Remove("a"))
		require.Equal(t, "through the file", string(m.Bytes()[100:116]), "a mapping outlives the name")
		require.NoError(t, m.Unmap())
		require.NoError(t, m.Unmap())
	})
}

func TestMapRefusesMoreThanTheFileHas(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		f := create(t, fsys, "a", []byte("abc"))
		for _, size := range []int64{-1, 0, 4, 1 << 62} {
			_, err := f.Map(size, mappedfile.ReadOnly)
			require.Error(t, err, "size %d", size)
		}
	})
}

func TestNamesAreListedSortedAndMoveAndGo(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		require.NoError(t, fsys.MkdirAll("x/y", 0o750))
		require.NoError(t, fsys.MkdirAll("x/y", 0o750))
		for _, name := range []string{"x/c", "x/a", "x/b"} {
			create(t, fsys, name, []byte(name))
		}
		require.NoError(t, fsys.Rename("x/c", "x/a"))
		require.Equal(t, "x/c", string(readFile(t, fsys, "x/a")))
		require.NoError(t, fsys.SyncDir("x"))

		entries, err := fsys.ReadDir("x")
		require.NoError(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
			info, err := e.Info()
			require.NoError(t, err)
			require.Equal(t, e.IsDir(), info.IsDir())
			if !e.IsDir() {
				require.Equal(t, int64(3), info.Size())
				require.False(t, info.ModTime().IsZero())
			}
		}
		require.Equal(t, []string{"a", "b", "y"}, names)

		require.Error(t, fsys.Remove("x"), "not empty")
		require.NoError(t, fsys.Remove("x/y"))
		require.NoError(t, fsys.Remove("x/a"))
		for _, err := range []error{
			fsys.Remove("x/a"),
			fsys.Rename("nothing", "x/z"),
			second(fsys.ReadDir("nothing")),
			second(fsys.OpenFile("x/a", os.O_RDWR, 0)),
			second(fsys.OpenFile("nothing/a", os.O_RDWR|os.O_CREATE, 0o640)),
		} {
			require.ErrorIs(t, err, fs.ErrNotExist)
		}
		require.ErrorIs(t, second(fsys.OpenFile("x/b", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o640)), fs.ErrExist)
	})
}

func second[T any](_ T, err error) error { return err }

func TestNamesThatLeaveTheDirectoryAreErrors(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		for _, name := range []string{"../a", "/etc/passwd", "x/../../a"} {
			require.Error(t, second(fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)), name)
			require.Error(t, fsys.MkdirAll(name, 0o750), name)
			require.Error(t, fsys.Remove(name), name)
			require.Error(t, second(fsys.ReadDir(name)), name)
		}
	})
}

// R-E-015: one writer, also within one process.
func TestLockHasOneHolder(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		l, err := fsys.Lock("lock")
		require.NoError(t, err)
		_, err = fsys.Lock("lock")
		require.ErrorIs(t, err, mappedfile.ErrLocked)
		require.NoError(t, l.Close())
		l, err = fsys.Lock("lock")
		require.NoError(t, err)
		require.NoError(t, l.Close())
	})
}

func TestSyncAllSyncsWhatIsThere(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		require.NoError(t, fsys.MkdirAll("x/y", 0o750))
		create(t, fsys, "x/y/a", []byte("abc"))
		require.NoError(t, mappedfile.SyncAll(fsys))
		require.NoError(t, mappedfile.SyncAll(plainFS{fsys}))
		if c, ok := fsys.(*crashfs.FS); ok {
			require.Equal(t, "abc", string(readFile(t, c.Image(0), "x/y/a")))
		}
	})
}

// plainFS hides what a file layer can do beyond the interface.
type plainFS struct{ mappedfile.FS }

func TestSymbolicLinksDoNotLeaveTheDirectory(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // links need privileges there
	}
	outside, dir := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(outside+"/secret", []byte("x"), 0o600))
	require.NoError(t, os.Symlink(outside, dir+"/link"))
	_, err := openDir(t, dir).OpenFile("link/secret", os.O_RDONLY, 0)
	require.Error(t, err)
	require.NotErrorIs(t, err, syscall.ENOENT)
}

// R-E-014: reading only creates and changes nothing.
func TestReadOnlyDirRefusesEveryChange(t *testing.T) {
	missing := t.TempDir() + "/missing"
	_, err := mappedfile.OpenDir(missing, &mappedfile.DirOptions{ReadOnly: true})
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoDirExists(t, missing)

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/a", []byte("abc"), 0o600))
	fsys, err := mappedfile.OpenDir(dir, &mappedfile.DirOptions{ReadOnly: true})
	require.NoError(t, err)
	refusesChanges(t, fsys)
	require.NoError(t, fsys.(io.Closer).Close())
}

func refusesChanges(t *testing.T, fsys mappedfile.FS) {
	require.Equal(t, "abc", string(readFile(t, fsys, "a")))
	for _, err := range []error{
		second(fsys.OpenFile("a", os.O_RDWR, 0)),
		second(fsys.OpenFile("b", os.O_RDWR|os.O_CREATE, 0o640)),
		fsys.MkdirAll("d", 0o750),
		fsys.Rename("a", "b"),
		fsys.Remove("a"),
		fsys.SyncDir("."),
		second(fsys.Lock("lock")),
	} {
		require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	}
	entries, err := fsys.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, entries, 1)
}
