package mappedfile_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// R-E-005.
func TestSyncWaitsForEnoughDirtyPages(t *testing.T) {
	q := open(t, memfs.New(), "log", mappedfile.Options{SegmentSize: 16 * page})
	require.NoError(t, q.Sync(0))
	require.Zero(t, q.Stats().Syncs)
	for i, tt := range []struct {
		what    string
		do      func()
		least   int
		flushed int64
	}{
		{"one page is less than two", func() { put(t, q, "abc") }, 2, 0},
		{"one page is one", func() {}, 1, 3},
		{"nothing is dirty", func() {}, 1, 3},
		{"a second page is begun", func() { put(t, q, strings.Repeat("x", page)) }, 3, 3},
		{"the page of the end and the one before", func() {}, 2, page + 3},
		{"one page overwritten twice", func() {
			require.NoError(t, q.WriteAt([]byte("y"), 0))
			require.NoError(t, q.WriteAt([]byte("y"), 100))
			put(t, q, strings.Repeat("x", 4*page))
		}, 7, page + 3},
		{"counts with those behind", func() {}, 6, 5*page + 3},
		{"overwriting alone is not enough", func() {
			require.NoError(t, q.WriteAt([]byte("y"), page-1))
			require.NoError(t, q.WriteAt([]byte("yy"), 2*page-1))
		}, 4, 5*page + 3},
		{"overwritten pages alone are enough", func() {}, 3, 5*page + 3},
		{"the rest of the segment is not many pages", func() { require.NoError(t, q.Fill([]byte("b"))) }, 1000, 16 * page},
		{"anything", func() { put(t, q, "z") }, 0, 16*page + 1},
	} {
		tt.do()
		require.NoError(t, q.Sync(tt.least))
		require.Equal(t, tt.flushed, q.Flushed(), "%d: %s", i, tt.what)
	}
	require.Equal(t, int64(6), q.Stats().Syncs)
}

// R-E-005: no later sync may claim success, and no later append.
func TestFirstFailedSyncIsFinal(t *testing.T) {
	for _, tt := range []struct {
		op   crashfs.Op
		mode mappedfile.WriteMode
	}{
		{crashfs.OpSync, mappedfile.Mapped}, // of the new segment's length
		{crashfs.OpSyncRange, mappedfile.Mapped},
		{crashfs.OpSyncDir, mappedfile.Mapped},
		{crashfs.OpSync, mappedfile.Pwrite},
		{crashfs.OpSync, mappedfile.Staged},
		{crashfs.OpWrite, mappedfile.Staged},
	} {
		fsys := crashfs.New(memfs.New())
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Mode: tt.mode})
		put(t, q, "abc")
		broken := errors.New("broken")
		fsys.Fail(tt.op, "", broken)
		require.ErrorIs(t, q.Sync(0), broken, "%+v", tt)
		fsys.Fail(tt.op, "", nil)
		require.ErrorIs(t, q.Sync(0), broken)
		require.ErrorIs(t, q.Sync(100), broken)
		require.ErrorIs(t, second(q.Append([]byte("x"))), broken)
		require.ErrorIs(t, q.WriteAt([]byte("x"), 0), broken)
		require.ErrorIs(t, q.Fill([]byte("x")), broken)
		require.ErrorIs(t, q.TruncateAfter(0), broken)
		require.Zero(t, q.Flushed())
		if tt.mode != mappedfile.Staged {
			require.Equal(t, "abc", text(t, q, 0, 3), "reads go on")
		}
	}
}

// R-E-013: names before bytes, and the parents of a directory that was made.
func TestNewSegmentIsDurableBeforeItsBytesCount(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	q := open(t, fsys, "a/b/log", mappedfile.Options{SegmentSize: page})
	put(t, q, strings.Repeat("x", page))
	require.Empty(t, q.Flushed())
	require.NoError(t, q.Sync(0))
	img := fsys.Image(0)
	require.Equal(t, strings.Repeat("x", page), string(readFile(t, img, "a/b/log/"+seg(0))))

	steps := fsys.Steps()
	put(t, q, "next")
	require.NoError(t, q.Sync(0))
	var ops []crashfs.Op
	for _, e := range fsys.Events()[steps:] {
		ops = append(ops, e.Op)
	}
	require.Equal(t, []crashfs.Op{
		crashfs.OpCreate, crashfs.OpTruncate, crashfs.OpRename, crashfs.OpAllocate, crashfs.OpSync, crashfs.OpSyncDir, crashfs.OpSyncRange,
	}, ops)
	require.Equal(t, "next", string(readFile(t, fsys.Image(0), "a/b/log/"+seg(page))[:4]))
}

// Without it a power cut might leave the second file and not the first.
func TestRollMakesTheFileBeforeDurable(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page})
	for range 3 {
		put(t, q, strings.Repeat("x", page))
	}
	for img := range fsys.Images(300) {
		q := open(t, img.FS, "log", mappedfile.Options{SegmentSize: page})
		for _, n := range q.Notices() {
			require.NotEqual(t, mappedfile.Gap, n.Kind, img.Text)
		}
	}
}

func TestSyncCoversOverwrittenBytesOfEverySegment(t *testing.T) {
	for _, o := range []mappedfile.Options{{}, {Mode: mappedfile.Pwrite}, {Mode: mappedfile.Staged}, {Budget: mappedfile.NewBudget(1)}} {
		fsys := crashfs.New(memfs.New())
		o.SegmentSize = page
		q := open(t, fsys, "log", o)
		for range 3 {
			put(t, q, strings.Repeat("x", page))
		}
		require.NoError(t, q.Sync(0))
		for i := range int64(3) {
			require.NoError(t, q.WriteAt([]byte("y"), i*page+7))
		}
		require.NoError(t, q.Sync(0))
		for i := range int64(3) {
			require.Equal(t, "xyx", string(readFile(t, fsys.Image(0), "log/"+seg(i*page))[6:9]))
		}
		require.NoError(t, q.Sync(0))
		require.Equal(t, int64(2), q.Stats().Syncs)
	}
}

// R-E-004 for Staged: readers see what is committed.
func TestStagedBytesAreSeenAfterCommit(t *testing.T) {
	q := open(t, memfs.New(), "log", mappedfile.Options{SegmentSize: page, Mode: mappedfile.Staged, StageSize: 100})
	put(t, q, "abc")
	require.Equal(t, int64(3), q.Written())
	_, end := q.Bounds()
	require.Zero(t, end)
	require.ErrorIs(t, second(q.View(0, 1)), mappedfile.ErrOutOfRange)
	require.NoError(t, q.WriteAt([]byte("Z"), 1))
	require.NoError(t, q.Commit())
	require.Equal(t, "aZc", text(t, q, 0, 3))
	require.Zero(t, q.Flushed())

	put(t, q, strings.Repeat("x", 60))
	put(t, q, strings.Repeat("y", 60)) // the buffer is full: what was there is committed
	_, end = q.Bounds()
	require.Equal(t, int64(63), end)
	put(t, q, strings.Repeat("z", 101)) // larger than the buffer: written through
	_, end = q.Bounds()
	require.Equal(t, int64(224), end)
	require.Equal(t, strings.Repeat("y", 60)+strings.Repeat("z", 101), text(t, q, 63, 161))
	put(t, q, "tail")
	require.NoError(t, q.Close())
	_, end = q.Bounds()
	require.Equal(t, int64(228), end, "Close commits")
}

func TestStagedBytesAreLostWhenAbandoned(t *testing.T) {
	fsys := memfs.New()
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Mode: mappedfile.Staged})
	put(t, q, "abc")
	require.NoError(t, q.Abandon())
	require.NoError(t, q.Abandon())
	require.Equal(t, make([]byte, page), readFile(t, fsys, "log/"+seg(0)))
}

func TestBackgroundCommitsStagedBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		require.NoError(t, fsys.WriteFile("log/"+seg(0), make([]byte, page)))
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Mode: mappedfile.Staged, StageEvery: time.Second})
		require.NoError(t, q.SetEnd(0))
		put(t, q, "abc")
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		_, end := q.Bounds()
		require.Zero(t, end)
		time.Sleep(time.Second)
		synctest.Wait()
		_, end = q.Bounds()
		require.Equal(t, int64(3), end)
		require.NoError(t, q.Close())
	})
}

// R-E-003 and design.md 4.5: a full disk is an error, the position stays, and it goes on when there is room.
func TestFullDiskIsAnErrorAndPasses(t *testing.T) {
	for name, o := range map[string]mappedfile.Options{
		"step":   {Step: page},
		"whole":  {Reserve: mappedfile.ReserveWhole, Ahead: true},
		"zero":   {Reserve: mappedfile.ReserveZero},
		"pwrite": {Mode: mappedfile.Pwrite, Step: page},
		"staged": {Mode: mappedfile.Staged, Step: page},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := memfs.New()
			fsys.Limit(6 * page)
			o.SegmentSize = 4 * page
			q := open(t, fsys, "log", o)
			var err error
			for err == nil {
				_, err = q.Append(make([]byte, 1000))
				if errors.Is(err, mappedfile.ErrSegmentFull) {
					err = q.Fill([]byte("blank"))
				}
			}
			require.ErrorIs(t, err, syscall.ENOSPC)
			end := q.Written()
			require.ErrorIs(t, second(q.Append(make([]byte, 1000))), syscall.ENOSPC)
			require.Equal(t, end, q.Written())
			require.NoError(t, q.Sync(0), "what is there can be synced")
			require.Equal(t, end, q.Flushed())

			fsys.Limit(0)
			put(t, q, strings.Repeat("x", 1000))
			require.NoError(t, q.Sync(0))
			require.Equal(t, strings.Repeat("x", 1000), text(t, q, end, 1000))
			require.Empty(t, fsys.Unreserved())
			require.NoError(t, q.Close())
		})
	}
}

// Bytes of an old segment that lie in a hole are reserved before they are overwritten.
func TestOverwritingReservesBlocksToo(t *testing.T) {
	fsys := memfs.New()
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: 64 * page, Step: page})
	require.NoError(t, q.Begin(50*page))
	put(t, q, "x")
	fsys.Limit(2 * page)
	require.NoError(t, q.WriteAt([]byte("y"), 10*page))
	require.ErrorIs(t, q.WriteAt([]byte("y"), 20*page), syscall.ENOSPC)
	require.Empty(t, fsys.Unreserved())
}

// What has been settled costs the next roll nothing: it syncs no file with all that was put into it since.
func TestARollSyncsOnlyWhatWasNotSettled(t *testing.T) {
	for _, settled := range []bool{true, false} {
		fsys := crashfs.New(memfs.New())
		q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page})
		put(t, q, "abc")
		if settled {
			require.NoError(t, q.Settle())
			require.Len(t, readFile(t, fsys.Image(0), "log/"+seg(0)), page, "length and name are durable")
		}
		require.NoError(t, q.Fill([]byte("b")))
		fsys.Fail(crashfs.OpSync, "", syscall.EIO)
		_, err := q.Append([]byte("next"))
		if settled {
			require.NoError(t, err)
			require.ErrorIs(t, q.Settle(), syscall.EIO)
			require.ErrorIs(t, q.Sync(0), syscall.EIO, "a failure is kept")
		} else {
			require.ErrorIs(t, err, syscall.EIO)
		}
		require.NoError(t, q.Abandon())
	}
}
