package mappedfile_test

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// R-E-012.
func TestTruncateRemovesFilesAndZeroesTheRest(t *testing.T) {
	onModes(t, func(t *testing.T, fsys mappedfile.FS, o mappedfile.Options) {
		o.SegmentSize = 2 * page
		dir := path.Base(t.Name())
		q := open(t, fsys, dir, o)
		for range 3 {
			put(t, q, strings.Repeat("x", 2*page))
		}
		put(t, q, "tail")
		require.NoError(t, q.TruncateAfter(3*page+10))
		start, end := q.Bounds()
		require.Equal(t, [3]int64{0, 3*page + 10, 3*page + 10}, [3]int64{start, end, q.Flushed()})
		require.Equal(t, []string{"", "8192"}, names(q))
		require.Equal(t, strings.Repeat("x", page+10)+strings.Repeat("\x00", page-10), string(readFile(t, fsys, path.Join(dir, seg(2*page)))))
		entries, err := fsys.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 2)
		if c, ok := fsys.(*crashfs.FS); ok {
			img := open(t, c.Image(0), dir, mappedfile.Options{SegmentSize: 2 * page})
			require.Equal(t, names(q), names(img), "durable")
			require.Equal(t, strings.Repeat("x", page+10)+strings.Repeat("\x00", page-10), text(t, img, 2*page, 2*page))
		}
		require.Equal(t, int64(3*page+10), put(t, q, "again"))
		require.NoError(t, q.Fill([]byte("b")))
		put(t, q, "next")
		require.NoError(t, q.Sync(0))
		require.Equal(t, "xagainb\x00", text(t, q, 3*page+9, 8))
	})
}

func TestTruncateAtABorderLeavesNoSegmentBehindIt(t *testing.T) {
	q := open(t, memfs.New(), "log", mappedfile.Options{SegmentSize: page, Ahead: true})
	for range 3 {
		put(t, q, strings.Repeat("x", page))
	}
	require.NoError(t, q.TruncateAfter(2*page))
	require.Equal(t, []string{"", "4096"}, names(q))
	require.Equal(t, int64(2*page), put(t, q, "y"))
	for off, ok := range map[int64]bool{-1: false, 3*page + 1: false, 2*page + 500: true} {
		err := q.TruncateAfter(off)
		if ok {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, mappedfile.ErrOutOfRange)
		}
	}
}

func TestTruncateToTheStartLeavesAnEmptyQueueThere(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, fsys.WriteFile("log/"+seg(5*page), make([]byte, page)))
	for off, first := range map[int64]string{5 * page: "20480", 3*page + 7: "12288"} {
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page})
		require.NoError(t, q.TruncateAfter(off))
		require.Empty(t, q.Segments())
		start, end := q.Bounds()
		require.Equal(t, [2]int64{off, off}, [2]int64{start, end})
		require.Equal(t, off, q.Flushed())
		require.Equal(t, off, put(t, q, "y"))
		require.Equal(t, []string{first}, names(q))
		require.NoError(t, q.Destroy())
	}
}

// Zeroes are not written over zeros: recovery of many clean queues costs nothing.
func TestTruncateWritesNothingWhereAllIsZero(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page})
	put(t, q, "abc")
	require.NoError(t, q.Sync(0))
	steps := fsys.Steps()
	require.NoError(t, q.TruncateAfter(3))
	require.Equal(t, steps, fsys.Steps())
}

// Much is cut off instead, which is safe only when nobody has it mapped.
func TestTruncateOfMuchRespectsViews(t *testing.T) {
	onLayers(t, func(t *testing.T, fsys mappedfile.FS) {
		for _, reserve := range []mappedfile.Reserve{mappedfile.ReserveStep, mappedfile.ReserveWhole, mappedfile.ReserveZero} {
			q := open(t, fsys, path.Join("log", string(rune('0'+reserve))), mappedfile.Options{SegmentSize: 4 << 20, Reserve: reserve})
			put(t, q, strings.Repeat("x", 4<<20))
			v, err := q.View(10, 10)
			require.NoError(t, err)
			require.NoError(t, q.TruncateAfter(3<<20))
			require.NoError(t, q.TruncateAfter(100))
			require.Equal(t, strings.Repeat("x", 10), string(v.Bytes()))
			put(t, q, strings.Repeat("y", 3<<20))
			v.Release()
			require.NoError(t, q.TruncateAfter(200))
			put(t, q, strings.Repeat("z", 4<<20-200))
			require.Equal(t, "xyyyz", text(t, q, 99, 1)+text(t, q, 197, 4))
			if m, ok := fsys.(*memfs.FS); ok {
				require.Empty(t, m.Unreserved())
			}
			require.NoError(t, q.Close())
		}
	})
}

func TestDeleteBeforeTakesWholeSegmentsButNeverTheLast(t *testing.T) {
	onModes(t, func(t *testing.T, fsys mappedfile.FS, o mappedfile.Options) {
		o.SegmentSize = page
		dir := path.Base(t.Name())
		q := open(t, fsys, dir, o)
		gone, err := q.DeleteBefore(1 << 40)
		require.NoError(t, err)
		require.Empty(t, gone)
		for range 4 {
			put(t, q, strings.Repeat("x", page))
		}
		require.NoError(t, q.Sync(0))
		v, err := q.View(0, 3)
		require.NoError(t, err)
		gone, err = q.DeleteBefore(2*page + 1)
		require.NoError(t, err)
		require.Equal(t, []string{path.Join(dir, seg(0)), path.Join(dir, seg(page))}, gone)
		start, end := q.Bounds()
		require.Equal(t, [2]int64{2 * page, 4 * page}, [2]int64{start, end})
		require.Equal(t, "xxx", string(v.Bytes()))
		v.Release()
		require.ErrorIs(t, second(q.View(0, 1)), mappedfile.ErrOutOfRange)
		gone, err = q.DeleteBefore(1 << 40)
		require.NoError(t, err)
		require.Len(t, gone, 1)
		require.Equal(t, []string{"12288"}, names(q))
		put(t, q, "y")
		require.NoError(t, q.Sync(0))
	})
}

// Whatever of the removals a power cut keeps, no hole is left in the middle.
func TestRemovalsLeaveNoGapAfterAPowerCut(t *testing.T) {
	setup := func() (*crashfs.FS, *mappedfile.Queue) {
		fsys := crashfs.New(memfs.New())
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page})
		for range 6 {
			put(t, q, strings.Repeat("x", page))
		}
		require.NoError(t, q.Sync(0))
		return fsys, q
	}
	for name, remove := range map[string]func(q *mappedfile.Queue) error{
		"truncate": func(q *mappedfile.Queue) error { return q.TruncateAfter(page + 10) },
		"delete":   func(q *mappedfile.Queue) error { return second(q.DeleteBefore(5 * page)) },
		"destroy":  func(q *mappedfile.Queue) error { return q.Destroy() },
	} {
		t.Run(name, func(t *testing.T) {
			fsys, q := setup()
			before := fsys.Steps()
			require.NoError(t, remove(q))
			after := fsys.Steps()
			require.Greater(t, after, before+4)
			for n := before; n <= after; n++ {
				fsys, q := setup()
				fsys.CrashAfter(n)
				_ = remove(q)
				for img := range fsys.Images(50) {
					for _, n := range open(t, img.FS, "log", mappedfile.Options{SegmentSize: page}).Notices() {
						require.NotEqual(t, mappedfile.Gap, n.Kind, img.Text)
					}
				}
			}
		})
	}
}

// A removal that fails leaves a file with old bytes behind the end: nothing may be appended before a restart.
func TestFailedTruncateIsFinal(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page})
	for range 3 {
		put(t, q, strings.Repeat("x", page))
	}
	require.NoError(t, q.Sync(0))
	fsys.Fail(crashfs.OpRemove, "", crashfs.ErrCrashed)
	require.ErrorIs(t, q.TruncateAfter(10), crashfs.ErrCrashed)
	fsys.Fail(crashfs.OpRemove, "", nil)
	require.ErrorIs(t, second(q.Append([]byte("y"))), crashfs.ErrCrashed)
	require.Equal(t, "xxx", text(t, q, 0, 3))
}
