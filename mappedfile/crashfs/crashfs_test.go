package crashfs_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

const page = mappedfile.PageSize

func create(t testing.TB, fsys mappedfile.FS, name, content string) mappedfile.File {
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	require.NoError(t, err)
	if content != "" {
		_, err = f.WriteAt([]byte(content), 0)
		require.NoError(t, err)
	}
	return f
}

// tree gives all files with their content, directories with a slash.
func tree(t testing.TB, fsys mappedfile.FS) map[string]string {
	found := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := fsys.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				found[name+"/"] = ""
				walk(name)
				continue
			}
			found[name] = golden.ReadFile(t, fsys, name)
		}
	}
	walk(".")
	return found
}

// states gives the different trees that may be found after a power cut, as a set.
func states(t testing.TB, c *crashfs.FS, limit int) []map[string]string {
	var all []map[string]string
	for img := range c.Images(limit) {
		s := tree(t, img.FS)
		if !slices.ContainsFunc(all, func(o map[string]string) bool { return equal(o, s) }) {
			all = append(all, s)
		}
	}
	return all
}

func equal(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

func TestWhatTheInnerLayerHeldIsDurable(t *testing.T) {
	inner := memfs.New()
	require.NoError(t, inner.WriteFile("a/b", []byte("abc")))
	c := crashfs.New(inner)
	require.Equal(t, map[string]string{"a/": "", "a/b": "abc"}, tree(t, c.Image(0)))
	require.Zero(t, c.Steps())
}

// A name, a length and content become durable each for itself.
func TestEachPartOfANewFileMayBeLostForItself(t *testing.T) {
	c := crashfs.New(memfs.New())
	f := create(t, c, "a", "abc")
	require.ElementsMatch(t, []map[string]string{
		{}, {"a": ""}, {"a": "\x00\x00\x00"}, {"a": "abc"},
	}, states(t, c, 1000))

	require.NoError(t, f.Sync())
	require.ElementsMatch(t, []map[string]string{{}, {"a": "abc"}}, states(t, c, 1000), "content may be there without its name")

	require.NoError(t, c.SyncDir("."))
	require.ElementsMatch(t, []map[string]string{{"a": "abc"}}, states(t, c, 1000))
}

func TestSyncRangeMakesNoLengthDurable(t *testing.T) {
	c := crashfs.New(memfs.New())
	f := create(t, c, "a", "")
	require.NoError(t, c.SyncDir("."))
	require.NoError(t, f.Truncate(10))
	m, err := f.Map(10, mappedfile.ReadWrite)
	require.NoError(t, err)
	copy(m.Bytes(), "0123456789")
	require.NoError(t, m.SyncRange(0, 5))
	require.ElementsMatch(t, []map[string]string{
		{"a": ""}, {"a": "01234\x00\x00\x00\x00\x00"}, {"a": "0123456789"},
	}, states(t, c, 1000))
	require.NoError(t, f.Sync())
	require.ElementsMatch(t, []map[string]string{{"a": "0123456789"}}, states(t, c, 1000))
}

// A length that was there for a moment may be the one that the disk has.
func TestCutAndGrownFileMayBeFoundShort(t *testing.T) {
	c := crashfs.New(memfs.New())
	f := create(t, c, "a", "abcdef")
	require.NoError(t, mappedfile.SyncAll(c))
	require.NoError(t, f.Truncate(2))
	require.NoError(t, f.Truncate(6))
	require.ElementsMatch(t, []map[string]string{
		{"a": "abcdef"}, {"a": "ab"}, {"a": "ab\x00\x00\x00\x00"},
	}, states(t, c, 1000))
	require.NoError(t, f.Sync())
	require.ElementsMatch(t, []map[string]string{{"a": "ab\x00\x00\x00\x00"}}, states(t, c, 1000))
}

// R-E-081: pages in any order, and torn at sectors.
func TestPagesAreOldNewOrTorn(t *testing.T) {
	c := crashfs.New(memfs.New())
	f := create(t, c, "a", string(make([]byte, 2*page)))
	require.NoError(t, mappedfile.SyncAll(c))
	m, err := f.Map(2*page, mappedfile.ReadWrite)
	require.NoError(t, err)
	for i := range m.Bytes() {
		m.Bytes()[i] = 'x'
	}
	seen := map[string]bool{}
	for img := range c.Images(1000) {
		s := tree(t, img.FS)["a"]
		seen[s[:1]+s[page-1:page]+s[page:page+1]+s[2*page-1:]] = true
	}
	require.Len(t, seen, 16, "two pages, two halves each")

	torn := false
	for seed := range uint64(200) {
		s := tree(t, c.Image(seed))["a"]
		sectors := 0
		for i := 0; i < page; i += 512 {
			require.Equal(t, s[i], s[i+511], "a sector is never torn")
			if s[i] == 'x' {
				sectors++
			}
		}
		torn = torn || sectors%4 != 0
	}
	require.True(t, torn)
}

func TestRemovalMayBeUndone(t *testing.T) {
	c := crashfs.New(memfs.New())
	create(t, c, "a", "abc")
	create(t, c, "b", "def")
	require.NoError(t, mappedfile.SyncAll(c))
	require.NoError(t, c.Remove("a"))
	require.NoError(t, c.Remove("b"))
	require.Len(t, states(t, c, 1000), 4, "in any order")
	require.NoError(t, c.SyncDir("."))
	require.ElementsMatch(t, []map[string]string{{}}, states(t, c, 1000))
}

func TestNameMadeAgainAfterRemovalShowsEitherFile(t *testing.T) {
	c := crashfs.New(memfs.New())
	create(t, c, "a", "old")
	require.NoError(t, mappedfile.SyncAll(c))
	require.NoError(t, c.Remove("a"))
	f := create(t, c, "a", "new")
	require.NoError(t, f.Sync())
	require.ElementsMatch(t, []map[string]string{{"a": "old"}, {}, {"a": "new"}}, states(t, c, 1000))
	require.Equal(t, map[string]string{"a": "new"}, tree(t, c.Image(1)))
}

func TestRenameIsOneStep(t *testing.T) {
	c := crashfs.New(memfs.New())
	create(t, c, "a", "old")
	require.NoError(t, mappedfile.SyncAll(c))
	f := create(t, c, "a.tmp", "new")
	require.NoError(t, f.Sync())
	require.NoError(t, c.SyncDir("."))
	require.NoError(t, c.Rename("a.tmp", "a"))
	require.ElementsMatch(t, []map[string]string{
		{"a": "old", "a.tmp": "new"}, {"a": "new"},
	}, states(t, c, 1000))
	require.NoError(t, c.SyncDir("."))
	require.ElementsMatch(t, []map[string]string{{"a": "new"}}, states(t, c, 1000))
}

func TestRenameAcrossDirectoriesLosesNothing(t *testing.T) {
	for _, first := range []string{"x", "y"} {
		c := crashfs.New(memfs.New())
		require.NoError(t, c.MkdirAll("x", 0o750))
		require.NoError(t, c.MkdirAll("y", 0o750))
		create(t, c, "x/a", "abc")
		require.NoError(t, mappedfile.SyncAll(c))
		require.NoError(t, c.Rename("x/a", "y/b"))
		require.Len(t, states(t, c, 1000), 2)
		require.NoError(t, c.SyncDir(first))
		for _, s := range states(t, c, 1000) {
			require.Contains(t, s, "y/b")
		}
		require.NoError(t, c.SyncDir("x"))
		require.NoError(t, c.SyncDir("y"))
		require.ElementsMatch(t, []map[string]string{{"x/": "", "y/": "", "y/b": "abc"}}, states(t, c, 1000))
	}
}

func TestNewDirectoryIsLostWithAllInIt(t *testing.T) {
	c := crashfs.New(memfs.New())
	require.NoError(t, c.MkdirAll("x/y", 0o750))
	f := create(t, c, "x/y/a", "abc")
	require.NoError(t, f.Sync())
	require.NoError(t, c.SyncDir("x/y"))
	require.Equal(t, map[string]string{}, tree(t, c.Image(0)))
	require.NoError(t, c.SyncDir("."))
	require.Equal(t, map[string]string{"x/": ""}, tree(t, c.Image(0)))
	require.NoError(t, c.SyncDir("x"))
	require.Equal(t, map[string]string{"x/": "", "x/y/": "", "x/y/a": "abc"}, tree(t, c.Image(0)))
}

func TestCrashStopsEverythingAtTheStep(t *testing.T) {
	c := crashfs.New(memfs.New())
	c.CrashAfter(3)
	f := create(t, c, "a", "abc") // two steps
	m, err := f.Map(3, mappedfile.ReadWrite)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.Equal(t, 3, c.Steps())
	require.ErrorIs(t, f.Sync(), crashfs.ErrCrashed)
	_, err = f.ReadAt(make([]byte, 1), 0)
	for _, err := range []error{
		err, f.Truncate(1), f.Allocate(0, 1), m.SyncRange(0, 1), c.SyncDir("."), c.Remove("a"), c.Rename("a", "b"), c.MkdirAll("x", 0o750),
	} {
		require.ErrorIs(t, err, crashfs.ErrCrashed)
	}
	require.Equal(t, 3, c.Steps())
	require.NoError(t, m.Unmap())
	require.NoError(t, f.Close())
	require.Equal(t, map[string]string{"a": "abc"}, tree(t, c.Image(1)))
	require.Equal(t, []crashfs.Event{
		{Op: crashfs.OpCreate, Name: "a"},
		{Op: crashfs.OpWrite, Name: "a", N: 3},
		{Op: crashfs.OpSync, Name: "a", N: 3},
	}, c.Events())
}

func TestInjectedErrorsHitWhatTheyNameUntilTakenBack(t *testing.T) {
	c := crashfs.New(memfs.New())
	require.NoError(t, c.MkdirAll("x", 0o750))
	f, g := create(t, c, "x/a", ""), create(t, c, "x/b", "")
	c.Fail(crashfs.OpAllocate, "x/a", syscall.ENOSPC)
	require.ErrorIs(t, f.Allocate(0, 10), syscall.ENOSPC)
	require.NoError(t, g.Allocate(0, 10))
	size, err := f.Size()
	require.NoError(t, err)
	require.Zero(t, size, "a failed operation has no effect")
	c.Fail(crashfs.OpAllocate, "x/a", nil)
	require.NoError(t, f.Allocate(0, 10))
	c.Fail(crashfs.OpSyncDir, "", syscall.EIO)
	require.ErrorIs(t, c.SyncDir("x"), syscall.EIO)
}

// After a failed sync the kernel takes the pages for clean: a second sync succeeds and writes nothing.
func TestSyncAfterAFailedOneProvesNothing(t *testing.T) {
	c := crashfs.New(memfs.New())
	f := create(t, c, "a", "old")
	require.NoError(t, mappedfile.SyncAll(c))
	_, err := f.WriteAt([]byte("new"), 0)
	require.NoError(t, err)
	c.Fail(crashfs.OpSync, "", syscall.EIO)
	require.ErrorIs(t, f.Sync(), syscall.EIO)
	c.Fail(crashfs.OpSync, "", nil)
	require.NoError(t, f.Sync())
	require.Equal(t, map[string]string{"a": "old"}, tree(t, c.Image(0)))
	_, err = f.WriteAt([]byte("NEW"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.Equal(t, map[string]string{"a": "NEW"}, tree(t, c.Image(0)))
}

// A page may be on the disk in a version between the last sync and now.
func TestWritebackKeepsAnOlderVersion(t *testing.T) {
	c := crashfs.New(memfs.New())
	f := create(t, c, "a", "one")
	require.NoError(t, mappedfile.SyncAll(c))
	seen := map[string]bool{}
	for seed := range uint64(20) {
		for _, s := range []string{"one", "two"} {
			_, err := f.WriteAt([]byte(s), 0)
			require.NoError(t, err)
			if s == "one" {
				require.NoError(t, f.Sync())
			}
		}
		require.NoError(t, c.Writeback(seed))
		_, err := f.WriteAt([]byte("six"), 0)
		require.NoError(t, err)
		seen[tree(t, c.Image(0))["a"]] = true
	}
	require.Equal(t, map[string]bool{"one": true, "two": true}, seen)
}

func TestImageIsTheSameForTheSameSeed(t *testing.T) {
	c := crashfs.New(memfs.New())
	for _, name := range []string{"a", "b", "c"} {
		f := create(t, c, name, string(make([]byte, 3*page)))
		_, err := f.WriteAt([]byte("content of "+name), page)
		require.NoError(t, err)
	}
	different := false
	s := c.Snapshot()
	for seed := range uint64(20) {
		first := tree(t, s.Image(seed))
		require.Equal(t, first, tree(t, c.Image(seed)))
		different = different || !equal(first, tree(t, s.Image(0)))
	}
	require.True(t, different)
}

// A snapshot is of its moment, whatever happens later; so is an image.
func TestSnapshotStaysAsItWas(t *testing.T) {
	c := crashfs.New(memfs.New())
	f := create(t, c, "a", "old")
	require.NoError(t, mappedfile.SyncAll(c))
	s := c.Snapshot()
	_, err := f.WriteAt([]byte("new"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, c.Remove("a"))
	require.NoError(t, c.SyncDir("."))
	require.Equal(t, map[string]string{"a": "old"}, tree(t, s.Image(0)))
	img := s.Image(0)
	g, err := img.OpenFile("a", os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = g.WriteAt([]byte("xyz"), 0)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "old"}, tree(t, s.Image(0)))
}

func TestLongHistoriesGiveOldestNewestAndNeighbours(t *testing.T) {
	c := crashfs.New(memfs.New())
	for i := range 30 {
		create(t, c, string(rune('a'+i)), "x")
	}
	require.Equal(t, 100, c.Snapshot().Count(100))
	var texts []string
	for img := range c.Images(200) {
		texts = append(texts, img.Text)
	}
	require.Len(t, texts, 200)
	require.Equal(t, "new:", texts[0])
	require.Equal(t, map[string]string{}, tree(t, c.Image(0)))
	require.Len(t, tree(t, c.Image(1)), 30)
}

// The kernel reads pages while they are written; that is no race.
func TestSyncMayRunNextToWritesThroughTheMapping(t *testing.T) {
	c := crashfs.New(memfs.New())
	f := create(t, c, "a", string(make([]byte, 4*page)))
	m, err := f.Map(4*page, mappedfile.ReadWrite)
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 4 * page {
			m.Bytes()[i] = byte(i)
		}
	})
	for i := range 50 {
		if i%2 == 0 {
			require.NoError(t, m.SyncRange(0, 4*page))
		} else {
			require.NoError(t, f.Sync())
		}
		c.Image(uint64(i))
	}
	wg.Wait()
	require.NoError(t, m.SyncRange(0, 4*page))
	require.NoError(t, mappedfile.SyncAll(c))
	require.Equal(t, string(m.Bytes()), tree(t, c.Image(0))["a"])
}

func TestBrokenInnerLayerIsReported(t *testing.T) {
	broken := crashfs.New(memfs.New())
	create(t, broken, "a", "abc")
	broken.Fail(crashfs.OpRead, "", fs.ErrPermission)
	c := crashfs.New(broken)
	_, err := c.ReadDir(".")
	require.ErrorIs(t, err, fs.ErrPermission)
}

func BenchmarkImage(b *testing.B) {
	c := crashfs.New(memfs.New())
	for _, name := range []string{"log", "queue", "index"} {
		f := create(b, c, name, string(make([]byte, 1<<20)))
		require.NoError(b, f.Sync())
		for off := int64(0); off < 64*page; off += page {
			_, err := f.WriteAt([]byte("changed"), off)
			require.NoError(b, err)
		}
	}
	for name, image := range map[string]func(uint64){
		"from=fs":       func(seed uint64) { c.Image(seed) },
		"from=snapshot": func(seed uint64) { c.Snapshot() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			s, seed := c.Snapshot(), uint64(0)
			for b.Loop() {
				seed++
				if name == "from=snapshot" {
					s.Image(seed)
				} else {
					image(seed)
				}
			}
		})
	}
}
