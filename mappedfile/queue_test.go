package mappedfile_test

import (
	"bytes"
	"io/fs"
	"math"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

const page = mappedfile.PageSize

func open(t testing.TB, fsys mappedfile.FS, dir string, o mappedfile.Options) *mappedfile.Queue {
	q, err := mappedfile.Open(fsys, dir, &o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = q.Abandon() })
	return q
}

// put appends s and checks where it went.
func put(t testing.TB, q *mappedfile.Queue, s string) int64 {
	want := q.Written()
	off, err := q.Append([]byte(s))
	require.NoError(t, err)
	require.Equal(t, want, off)
	require.Equal(t, off+int64(len(s)), q.Written())
	return off
}

func text(t testing.TB, q *mappedfile.Queue, off int64, n int) string {
	v, err := q.View(off, n)
	require.NoError(t, err)
	defer v.Release()
	return string(v.Bytes())
}

func names(q *mappedfile.Queue) []string {
	var all []string
	for _, s := range q.Segments() {
		all = append(all, strings.TrimLeft(path.Base(s.Name), "0"))
	}
	return all
}

// onModes runs a test on each file layer with each way to write.
func onModes(t *testing.T, test func(t *testing.T, fsys mappedfile.FS, o mappedfile.Options)) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		for name, o := range map[string]mappedfile.Options{
			"mapped":       {Mode: mappedfile.Mapped},
			"mapped,ahead": {Mode: mappedfile.Mapped, Ahead: true, Populate: page, Reserve: mappedfile.ReserveWhole},
			"pwrite":       {Mode: mappedfile.Pwrite, Reserve: mappedfile.ReserveZero},
			"staged":       {Mode: mappedfile.Staged, StageSize: 10},
			"budget":       {Budget: mappedfile.NewBudget(1)},
		} {
			t.Run(name, func(t *testing.T) { test(t, fsys, o) })
		}
	})
}

// R-E-001, R-E-002: files of full size, named by their start, made with their directories.
func TestAppendMakesSegmentsOfFullSize(t *testing.T) {
	onModes(t, func(t *testing.T, fsys mappedfile.FS, o mappedfile.Options) {
		o.SegmentSize = 2 * page
		dir := path.Join("a", path.Base(t.Name()))
		q := open(t, fsys, dir, o)
		start, end := q.Bounds()
		require.Equal(t, [2]int64{0, 0}, [2]int64{start, end})
		_, err := fsys.ReadDir(dir)
		require.Error(t, err, "opening makes nothing")
		require.Equal(t, int64(2*page), q.Remaining())

		put(t, q, "first")
		require.Equal(t, int64(2*page-5), q.Remaining())
		require.NoError(t, q.Fill([]byte("blank")))
		require.Equal(t, int64(2*page), q.Remaining())
		put(t, q, "second")
		require.NoError(t, q.Sync(0))

		require.Equal(t, []string{"", "8192"}, names(q))
		for _, s := range q.Segments() {
			require.Equal(t, int64(2*page), s.Length)
			require.Equal(t, path.Join(dir, mappedfile.SegmentName(s.Start)), s.Name)
			require.Len(t, readFile(t, fsys, s.Name), 2*page)
			require.False(t, s.ModTime.IsZero())
		}
		require.Equal(t, "firstblank\x00", text(t, q, 0, 11))
		require.Equal(t, "second", text(t, q, 2*page, 6))
		require.NoError(t, q.Close())
		entries, err := fsys.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 2, "a segment made ahead and not used is removed")
	})
}

// R-E-003.
func TestAppendThatDoesNotFitWritesNothing(t *testing.T) {
	onModes(t, func(t *testing.T, fsys mappedfile.FS, o mappedfile.Options) {
		o.SegmentSize = page
		q := open(t, fsys, path.Base(t.Name()), o)
		_, err := q.Append(make([]byte, page+1))
		require.ErrorIs(t, err, mappedfile.ErrSegmentFull)
		require.Empty(t, q.Segments())
		put(t, q, "abc")
		_, err = q.Append(make([]byte, page-2))
		require.ErrorIs(t, err, mappedfile.ErrSegmentFull)
		require.ErrorIs(t, q.Fill(make([]byte, page-2)), mappedfile.ErrSegmentFull)
		require.Equal(t, int64(3), q.Written())
		put(t, q, strings.Repeat("x", page-3)) // fits exactly
		require.Equal(t, int64(page), q.Remaining())
		require.Len(t, q.Segments(), 1)
		require.NoError(t, q.Fill(nil), "nothing to fill at a border")
		require.Equal(t, int64(page), q.Written())
		require.Equal(t, int64(page), put(t, q, "next"))
	})
}

// R-E-004: readers never see beyond the end.
func TestViewsEndWhereTheDataEnds(t *testing.T) {
	onModes(t, func(t *testing.T, fsys mappedfile.FS, o mappedfile.Options) {
		o.SegmentSize = page
		q := open(t, fsys, path.Base(t.Name()), o)
		v, err := q.ViewFrom(0)
		require.NoError(t, err)
		require.Empty(t, v.Bytes())
		v.Release()

		put(t, q, strings.Repeat("x", page))
		put(t, q, "tail")
		require.NoError(t, q.Commit())
		for _, tt := range []struct {
			off int64
			n   int
		}{{0, page + 1}, {page - 1, 2}, {page, 5}, {page + 5, 0}, {-1, 1}, {-1, 0}, {0, -1}, {1 << 62, 1}, {page, math.MaxInt}} {
			_, err := q.View(tt.off, tt.n)
			require.ErrorIs(t, err, mappedfile.ErrOutOfRange, "%+v", tt)
		}
		for off, n := range map[int64]int{0: page, 10: page - 10, page: 4, page + 3: 1, page + 4: 0} {
			v, err := q.ViewFrom(off)
			require.NoError(t, err)
			require.Len(t, v.Bytes(), n)
			require.Equal(t, n, cap(v.Bytes()))
			v.Release()
		}
		for _, off := range []int64{-1, page + 5} {
			_, err := q.ViewFrom(off)
			require.ErrorIs(t, err, mappedfile.ErrOutOfRange)
		}
		v, err = q.ViewFrom(0)
		require.NoError(t, err)
		part := v.From(3)
		require.Equal(t, v.Bytes()[3:], part.Bytes())
		require.Empty(t, part.File())
		part.Release() // of nothing
		v.Release()
		v, err = q.ViewSegment(page)
		require.NoError(t, err)
		require.Len(t, v.Bytes(), page, "recovery sees the whole file")
		require.Equal(t, q.Segments()[1].Name, v.File())
		v.Release()
		require.ErrorIs(t, second(q.ViewSegment(page+1)), mappedfile.ErrOutOfRange)
		require.Empty(t, mappedfile.View{}.File())
		mappedfile.View{}.Release()
	})
}

func TestWriteAtOverwritesInPlace(t *testing.T) {
	onModes(t, func(t *testing.T, fsys mappedfile.FS, o mappedfile.Options) {
		o.SegmentSize = page
		q := open(t, fsys, path.Base(t.Name()), o)
		put(t, q, strings.Repeat("a", page))
		put(t, q, "bbbb")
		put(t, q, "cccccccc")
		put(t, q, "dddd")
		require.NoError(t, q.WriteAt([]byte("XY"), page-2))
		require.NoError(t, q.WriteAt([]byte("12345678"), page+2)) // with Staged partly in the file already
		require.NoError(t, q.WriteAt([]byte("Z"), page+15))
		require.NoError(t, q.WriteAt(nil, page))
		for _, tt := range []struct {
			off int64
			n   int
		}{{-1, 1}, {page - 1, 2}, {page + 15, 2}, {3 * page, 1}} {
			require.ErrorIs(t, q.WriteAt(make([]byte, tt.n), tt.off), mappedfile.ErrOutOfRange, "%+v", tt)
		}
		require.NoError(t, q.Sync(0))
		require.Equal(t, "aaXY", text(t, q, page-4, 4))
		require.Equal(t, "bb12345678ccdddZ", text(t, q, page, 16))
	})
}

func TestWhatWasWrittenIsThereAfterReopening(t *testing.T) {
	onModes(t, func(t *testing.T, fsys mappedfile.FS, o mappedfile.Options) {
		o.SegmentSize = page
		dir := path.Base(t.Name())
		q := open(t, fsys, dir, o)
		put(t, q, strings.Repeat("a", page))
		put(t, q, "tail")
		require.NoError(t, q.Close())
		require.NoError(t, q.Close())
		require.ErrorIs(t, second(q.Append([]byte("x"))), mappedfile.ErrClosed)
		require.ErrorIs(t, second(q.View(0, 1)), mappedfile.ErrClosed)
		require.ErrorIs(t, q.Sync(0), mappedfile.ErrClosed)
		require.ErrorIs(t, q.WriteAt([]byte("x"), 0), mappedfile.ErrClosed)
		require.ErrorIs(t, q.TruncateAfter(0), mappedfile.ErrClosed)
		require.ErrorIs(t, q.SetEnd(0), mappedfile.ErrClosed)

		q = open(t, fsys, dir, o)
		require.Empty(t, q.Notices())
		start, end := q.Bounds()
		require.Equal(t, [2]int64{0, 2 * page}, [2]int64{start, end}, "the end of the last file, until the owner looked")
		require.NoError(t, q.SetEnd(page+4))
		require.Equal(t, int64(page+4), q.Flushed())
		require.Equal(t, "tail", text(t, q, page, 4))
		require.ErrorIs(t, second(q.View(page, 5)), mappedfile.ErrOutOfRange)
		require.Equal(t, int64(page+4), put(t, q, "more"))
		require.NoError(t, q.Sync(0))
		require.Equal(t, "tailmore", text(t, q, page, 8))
	})
}

func TestEndIsSetOnlyWhereThereAreBytes(t *testing.T) {
	q := open(t, memfs.New(), "log", mappedfile.Options{SegmentSize: page})
	require.NoError(t, q.SetEnd(0))
	require.ErrorIs(t, q.SetEnd(1), mappedfile.ErrOutOfRange)
	put(t, q, "abc")
	for off, ok := range map[int64]bool{-1: false, 0: true, page: true, page + 1: false, 5: true} {
		err := q.SetEnd(off)
		if ok {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, mappedfile.ErrOutOfRange)
		}
	}
}

func TestBeginStartsInTheSegmentThatHoldsTheOffset(t *testing.T) {
	onModes(t, func(t *testing.T, fsys mappedfile.FS, o mappedfile.Options) {
		o.SegmentSize = page
		q := open(t, fsys, path.Base(t.Name()), o)
		require.ErrorIs(t, q.Begin(-1), mappedfile.ErrOutOfRange)
		require.NoError(t, q.Begin(5*page+100))
		start, end := q.Bounds()
		require.Equal(t, [2]int64{5*page + 100, 5*page + 100}, [2]int64{start, end})
		require.Equal(t, int64(page-100), q.Remaining())
		require.Empty(t, q.Segments())
		require.Equal(t, int64(5*page+100), put(t, q, "abc"))
		require.NoError(t, q.Sync(0))
		require.Equal(t, []string{"20480"}, names(q))
		start, end = q.Bounds()
		require.Equal(t, [2]int64{5 * page, 5*page + 103}, [2]int64{start, end})
		require.Equal(t, strings.Repeat("\x00", 100)+"abc", text(t, q, 5*page, 103))
		require.ErrorIs(t, q.Begin(0), mappedfile.ErrOutOfRange)
	})
}

// R-E-007: also when the first file is not at 0, and when files are missing.
func TestOffsetsAreFoundInEachSegment(t *testing.T) {
	fsys := memfs.New()
	starts := []int64{3, 4, 5, 9, 10, 30}
	for _, s := range starts {
		b := bytes.Repeat([]byte{byte(s)}, page)
		require.NoError(t, fsys.WriteFile("log/"+mappedfile.SegmentName(s*page), b))
	}
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, ReadOnly: true})
	there := map[int64]bool{}
	for _, s := range starts {
		there[s] = true
	}
	for s := range int64(40) {
		for _, off := range []int64{s * page, s*page + page/2, s*page + page - 1} {
			v, err := q.View(off, 1)
			if !there[s] {
				require.ErrorIs(t, err, mappedfile.ErrOutOfRange, "a gap is out of range")
				continue
			}
			require.NoError(t, err)
			require.Equal(t, byte(s), v.Bytes()[0])
			v.Release()
		}
	}
	require.Len(t, q.Notices(), 2)
}

// R-E-016: offsets beyond 32 bits; the files are sparse.
func TestOffsetsBeyondFourGigabytes(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page})
		const start = 1<<62 - 1<<62%page
		require.NoError(t, q.Begin(start))
		require.Equal(t, int64(start), put(t, q, "far"))
		require.NoError(t, q.Sync(0))
		require.Equal(t, "far", text(t, q, start, 3))
	})
	q := open(t, openDir(t, t.TempDir()), "log", mappedfile.Options{SegmentSize: 5 << 30})
	require.NoError(t, q.Begin(5<<30-10))
	require.Equal(t, int64(5<<30-10), put(t, q, "0123456789"))
	require.Equal(t, int64(5<<30), put(t, q, "next"))
	require.NoError(t, q.Sync(0))
	require.Equal(t, "6789", text(t, q, 5<<30-4, 4))
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := mappedfile.Open(memfs.New(), "log", nil)
	require.ErrorContains(t, err, "segment size 0")
	_, err = mappedfile.Open(memfs.New(), "log", &mappedfile.Options{SegmentSize: 1, HeadLast: -1})
	require.ErrorContains(t, err, "negative")
	_, err = mappedfile.Open(memfs.New(), "log", &mappedfile.Options{SegmentSize: 1, Reserve: 9, Mode: -1, Step: -1})
	for _, want := range []string{"way to reserve 9", "write mode -1", "negative"} {
		require.ErrorContains(t, err, want)
	}
}

func TestDestroyRemovesTheFilesAndLeavesTheDirectory(t *testing.T) {
	fsys := memfs.New()
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Ahead: true})
	put(t, q, strings.Repeat("x", page))
	put(t, q, "y")
	v, err := q.View(page, 1)
	require.NoError(t, err)
	require.NoError(t, q.Destroy())
	entries, err := fsys.ReadDir("log")
	require.NoError(t, err)
	require.Empty(t, entries)
	require.Equal(t, "y", string(v.Bytes()))
	v.Release()
	require.Zero(t, fsys.Mappings())
}

// R-E-018.
func TestStatsCountWhatIsMapped(t *testing.T) {
	fsys := memfs.New()
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page})
	for range 3 {
		put(t, q, strings.Repeat("x", page))
	}
	require.NoError(t, q.Sync(0))
	require.NoError(t, q.Sync(0))
	require.Equal(t, mappedfile.Stats{Segments: 3, Mapped: 3, MappedBytes: 3 * page, Syncs: 1, Made: 3}, q.Stats())
	require.NoError(t, q.Close())
	require.Zero(t, q.Stats().Mapped)
	require.Zero(t, fsys.Mappings())
	require.Equal(t, "log", q.Dir())
	require.Equal(t, int64(page), q.SegmentSize())
}

func TestLockedMemoryIsAHintOnly(t *testing.T) {
	q := open(t, openDir(t, t.TempDir()), "log", mappedfile.Options{SegmentSize: page, LockMemory: true})
	put(t, q, "abc") // whether the system allows it or not
}

// A file with content that is not ours is never taken for a new segment.
func TestNewSegmentDoesNotOverwriteAFileInTheWay(t *testing.T) {
	fsys := memfs.New()
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page})
	require.NoError(t, fsys.WriteFile("log/00000000000000000000", []byte("precious")))
	_, err := q.Append([]byte("abc"))
	require.ErrorIs(t, err, mappedfile.ErrCorrupt)
	require.Equal(t, "precious", string(readFile(t, fsys, "log/00000000000000000000")))

	require.NoError(t, fsys.WriteFile("log/00000000000000000000", make([]byte, 100)))
	put(t, q, "abc") // zeros are taken
}

// allocations notes the lengths of the pieces of a file that get blocks, and refuses those beyond most.
type allocations struct {
	mappedfile.FS
	most   int64
	pieces []int64
}

func (a *allocations) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	f, err := a.FS.OpenFile(name, flag, perm)
	return &allocatedFile{f, a}, err
}

type allocatedFile struct {
	mappedfile.File
	a *allocations
}

func (f *allocatedFile) Allocate(off, n int64) error {
	if n > f.a.most {
		return syscall.ENOSPC
	}
	f.a.pieces = append(f.a.pieces, n)
	return f.File.Allocate(off, n)
}

// A file gets as many blocks ahead as it has, so that files that grow side by side do not lie on the disk in thousands of pieces,
// and never more than twice what it needs.
func TestBlocksAreReservedInPiecesThatGrow(t *testing.T) {
	for _, tt := range []struct {
		most int64
		want []int64 // pages
	}{
		{1 << 20, []int64{1, 1, 2, 4, 8, 4, 1, 1, 2}},
		{page, []int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}, // the disk is nearly full
	} {
		fsys := &allocations{FS: memfs.New(), most: tt.most}
		q := open(t, fsys, "queue", mappedfile.Options{SegmentSize: 20 * page, Step: page})
		for range 23 { // pages, three of them in the second file
			put(t, q, strings.Repeat("x", page))
		}
		for i := range fsys.pieces {
			fsys.pieces[i] /= page
		}
		require.Equal(t, tt.want, fsys.pieces)
		require.NoError(t, q.Close())
	}
}
