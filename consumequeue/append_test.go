package consumequeue_test

import (
	"errors"
	"io/fs"
	"math"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// R-E-040: unit k lies at byte 20·k; a file is named by its first byte and has its full length from the start.
func TestAppendWritesFilesAsJavaDoes(t *testing.T) {
	fsys := memfs.New()
	q := ensure(t, openTable(t, fsys, nil), "T", 0)
	require.Empty(t, names(t, fsys, root), "a queue without units leaves nothing on disk")
	appendRange(t, q, 0, 7)
	requireUnits(t, q, 0, 7)
	require.Equal(t, []string{"00000000000000000000", "00000000000000000100"}, names(t, fsys, "consumequeue/T/0"))
	require.Equal(t, units(nth(0), nth(1), nth(2), nth(3), nth(4)), readFile(t, fsys, segmentName(0)))
	require.Equal(t, pad(units(nth(5), nth(6)), small), readFile(t, fsys, segmentName(100)))
	first, end := q.Bounds()
	require.Equal(t, [2]int64{0, 7}, [2]int64{first, end})
	require.Equal(t, int64(70), q.MaxPhysical())
}

// R-E-042: the first file is the one that holds the first unit, with fillers before it.
func TestFirstUnitInTheMiddleOfAFileIsPrecededByFillers(t *testing.T) {
	for _, tt := range []struct {
		index int64
		name  int64
		file  []byte
	}{
		{0, 0, units(nth(0))},
		{3, 0, units(consumequeue.Filler(), consumequeue.Filler(), consumequeue.Filler(), nth(3))},
		{4, 0, units(consumequeue.Filler(), consumequeue.Filler(), consumequeue.Filler(), consumequeue.Filler(), nth(4))},
		{5, 100, units(nth(5))},
		{1006, 20100, units(consumequeue.Filler(), nth(1006))},
		{1 << 40, (1<<40 - 1) * 20, units(consumequeue.Filler(), nth(1<<40))},
	} {
		fsys := memfs.New()
		table := openTable(t, fsys, nil)
		q := ensure(t, table, "T", 0)
		require.NoError(t, q.Append(tt.index, nth(tt.index)))
		first, end := q.Bounds()
		require.Equal(t, [2]int64{tt.index, tt.index + 1}, [2]int64{first, end})
		require.Zero(t, table.Stats().HolesFilled)
		require.Equal(t, []string{mappedfile.SegmentName(tt.name)}, names(t, fsys, "consumequeue/T/0"))
		require.Equal(t, pad(tt.file, small), readFile(t, fsys, segmentName(tt.name)))
		require.NoError(t, q.Append(tt.index+1, nth(tt.index+1)))
		requireUnits(t, q, tt.index, tt.index+2)
	}
}

// A run of units makes what units one by one make, over the ends of files; what does not continue a queue is refused.
func TestARunOfUnitsIsWhatItsUnitsAre(t *testing.T) {
	fsys := memfs.New()
	q := ensure(t, openTable(t, fsys, nil), "T", 0)
	require.ErrorIs(t, q.AppendRun(0, units(nth(0))), mappedfile.ErrOutOfRange, "only a queue with units says where it goes on")
	require.Empty(t, names(t, fsys, root))
	appendRange(t, q, 3, 4)
	for from, n := int64(4), int64(0); n < 14; n++ {
		var run []byte
		for i := range n {
			run = nth(from + i).AppendTo(run)
		}
		require.NoError(t, q.AppendRun(from, run))
		from += n
		requireUnits(t, q, 3, from)
	}
	_, end := q.Bounds()
	require.ErrorIs(t, q.AppendRun(end-1, units(nth(end-1))), mappedfile.ErrOutOfRange)
	require.ErrorIs(t, q.AppendRun(end+1, units(nth(end+1))), mappedfile.ErrOutOfRange)
	require.ErrorIs(t, q.AppendRun(end, units(nth(end))[1:]), mappedfile.ErrOutOfRange, "no whole unit")
	requireUnits(t, q, 3, end)
}

// What a full disk lets in of a run is there, and the rest can follow.
func TestARunOfUnitsStopsWhereTheDiskIsFull(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	q := ensure(t, openTable(t, fsys, nil), "T", 0)
	appendRange(t, q, 0, 3)
	fsys.Fail(crashfs.OpAllocate, "", syscall.ENOSPC)
	run := units(nth(3), nth(4), nth(5), nth(6))
	require.ErrorIs(t, q.AppendRun(3, run), syscall.ENOSPC)
	_, end := q.Bounds()
	require.EqualValues(t, 5, end)
	fsys.Fail(crashfs.OpAllocate, "", nil)
	require.NoError(t, q.AppendRun(end, run[2*consumequeue.UnitSize:]))
	requireUnits(t, q, 0, 7)
}

// A whole default file of fillers is written in pieces.
func TestFillersOfADefaultFile(t *testing.T) {
	fsys := memfs.New()
	q := ensure(t, openTable(t, fsys, &consumequeue.Options{}), "T", 0)
	require.NoError(t, q.Append(299_999, nth(299_999)))
	b := readFile(t, fsys, segmentName(0))
	require.Len(t, b, 6_000_000)
	for i := range 299_999 {
		u, err := consumequeue.Decode(b[i*consumequeue.UnitSize:])
		require.NoError(t, err)
		require.True(t, u.IsFiller())
	}
	require.Equal(t, units(nth(299_999)), b[len(b)-consumequeue.UnitSize:])
}

func TestSegmentSizeIsRoundedUpToUnits(t *testing.T) {
	for size, want := range map[int64]int64{0: 6_000_000, 1: 20, 99: 100, 100: 100, 101: 120} {
		table := openTable(t, memfs.New(), &consumequeue.Options{SegmentSize: size})
		require.Equal(t, want, table.SegmentSize())
	}
	_, err := consumequeue.OpenTable(memfs.New(), root, &consumequeue.Options{SegmentSize: -1, MaxHole: -1})
	require.ErrorContains(t, err, "queue segment size -1 is negative")
	require.ErrorContains(t, err, "greatest hole of -1 units is negative")
	_, err = consumequeue.OpenTable(memfs.New(), root, &consumequeue.Options{SegmentSize: math.MaxInt64})
	require.ErrorContains(t, err, "greater than 1 TiB")
}

// R-E-043.
func TestAppendingAgainChangesNothing(t *testing.T) {
	fsys := memfs.New()
	q := ensure(t, openTable(t, fsys, nil), "T", 0)
	appendRange(t, q, 0, 7)
	before := readFile(t, fsys, segmentName(0))
	appendRange(t, q, 0, 8)
	requireUnits(t, q, 0, 8)

	want := nth(2)
	want.Size++
	err := q.Append(2, want)
	mismatch, ok := errors.AsType[*consumequeue.MismatchError](err)
	require.True(t, ok)
	require.Equal(t, &consumequeue.MismatchError{Topic: "T", Index: 2, Have: nth(2), Want: want}, mismatch)
	require.EqualError(t, err, "queue T/0: unit 2 is offset 20, size 10, tags code -2; to be appended: offset 20, size 11, tags code -2")
	require.Equal(t, before, readFile(t, fsys, segmentName(0)))

	require.NoError(t, q.Set(2, want))
	require.NoError(t, q.Append(2, want))
	require.Equal(t, units(want), readFile(t, fsys, segmentName(0))[40:60])
}

func TestAppendOutsideWhatThereIsIsRefused(t *testing.T) {
	q := ensure(t, openTable(t, memfs.New(), nil), "T", 0)
	appendRange(t, q, 10, 12)
	for _, index := range []int64{-1, 9, 4, math.MaxInt64, math.MaxInt64 / 20} {
		err := q.Append(index, nth(index))
		if mismatch, ok := errors.AsType[*consumequeue.MismatchError](err); ok {
			require.True(t, mismatch.Have.IsFiller())
			continue
		}
		require.ErrorIs(t, err, mappedfile.ErrOutOfRange, "%d", index)
	}
	require.ErrorIs(t, q.Set(12, nth(12)), mappedfile.ErrOutOfRange)
	require.ErrorIs(t, q.Set(-1, nth(12)), mappedfile.ErrOutOfRange)
	requireUnits(t, q, 10, 12)
}

// R-E-043: skipped offsets leave fillers, so that later units lie where their offsets say; Java puts them too early.
func TestSkippedOffsetsAreFilled(t *testing.T) {
	fsys := memfs.New()
	table := openTable(t, fsys, &consumequeue.Options{SegmentSize: small, MaxHole: 10})
	q := ensure(t, table, "T", 0)
	appendRange(t, q, 0, 2)
	require.NoError(t, q.Append(8, nth(8)))
	requireUnits(t, q, 8, 9)
	for i := int64(2); i < 8; i++ {
		u, err := q.Get(i)
		require.NoError(t, err)
		require.True(t, u.IsFiller())
	}
	require.Equal(t, int64(6), q.HolesFilled())
	require.Equal(t, consumequeue.Stats{Queues: 1, HolesFilled: 6}, table.Stats())

	err := q.Append(20, nth(20))
	require.ErrorIs(t, err, consumequeue.ErrHole)
	require.ErrorContains(t, err, "queue T/0: unit 20, end 9")
	requireUnits(t, q, 8, 9)
	require.Equal(t, int64(6), q.HolesFilled())
	require.NoError(t, q.Append(19, nth(19)))
}

// An absurd queue offset behind units that are all before the log's start begins the queue anew instead of filling the disk.
func TestDeadQueueBeginsAnewFarBehind(t *testing.T) {
	fsys := memfs.New()
	q := ensure(t, openTable(t, fsys, nil), "T", 0)
	appendRange(t, q, 0, 7)
	require.NoError(t, q.SetMin(1000))
	first, end := q.Bounds()
	require.Equal(t, [2]int64{7, 7}, [2]int64{first, end})
	require.NoError(t, q.Append(1<<50+1, nth(1<<50+1)))
	first, end = q.Bounds()
	require.Equal(t, [2]int64{1<<50 + 1, 1<<50 + 2}, [2]int64{first, end})
	require.Len(t, q.Segments(), 1)
}

// The zero file that a crash leaves behind is used when the first unit belongs in it, and gives way when it does not.
func TestAppendToAQueueThatHasOnlyAnEmptyFile(t *testing.T) {
	for _, index := range []int64{0, 3, 5, 12} {
		fsys := memfs.New()
		writeFile(t, fsys, segmentName(0), make([]byte, small))
		q := ensure(t, openTable(t, fsys, nil), "T", 0)
		first, end := q.Bounds()
		require.Equal(t, [2]int64{0, 0}, [2]int64{first, end})
		require.NoError(t, q.Append(index, nth(index)))
		first, end = q.Bounds()
		require.Equal(t, [2]int64{index, index + 1}, [2]int64{first, end})
		u, err := q.Get(index)
		require.NoError(t, err)
		require.Equal(t, nth(index), u)
		found, err := q.FindEnd(true)
		require.NoError(t, err)
		require.Equal(t, index+1, found)
	}
}

// tightFS is a disk whose blocks can run out.
type tightFS struct {
	mappedfile.FS
	full bool
}

type tightFile struct {
	mappedfile.File
	fs *tightFS
}

func (f *tightFS) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &tightFile{File: file, fs: f}, nil
}

func (f *tightFile) Allocate(off, n int64) error {
	if f.fs.full {
		return syscall.ENOSPC
	}
	return f.File.Allocate(off, n)
}

// R-E-038: a full disk is an error, the queue stays as it was, and goes on when there is room.
func TestFullDiskIsAnErrorAndAppendGoesOnLater(t *testing.T) {
	fsys := &tightFS{FS: memfs.New()}
	table := openTable(t, fsys, &consumequeue.Options{SegmentSize: small})
	q := ensure(t, table, "T", 0)
	fsys.full = true
	require.ErrorIs(t, q.Append(3, nth(3)), syscall.ENOSPC)
	require.ErrorIs(t, q.Append(3, nth(3)), syscall.ENOSPC)
	fsys.full = false
	appendRange(t, q, 3, 5)
	fsys.full = true
	require.ErrorIs(t, q.Append(5, nth(5)), syscall.ENOSPC)
	requireUnits(t, q, 3, 5)
	fsys.full = false
	appendRange(t, q, 5, 6)
	requireUnits(t, q, 3, 6)
	first, _ := q.Bounds()
	require.Equal(t, int64(3), first)
	require.NoError(t, table.Sync(0))
}

// failingSync is a disk whose syncs fail.
type failingSync struct {
	mappedfile.FS
	err error
}

func (f *failingSync) SyncDir(name string) error {
	if f.err != nil {
		return f.err
	}
	return f.FS.SyncDir(name)
}

// A failed sync is final for its queue, and does not keep the others from being synced.
func TestFailedSyncIsFinal(t *testing.T) {
	fsys := &failingSync{FS: memfs.New(), err: syscall.EIO}
	table := openTable(t, fsys, nil)
	q := ensure(t, table, "T", 0)
	appendRange(t, q, 0, 2)
	require.ErrorIs(t, table.Sync(0), syscall.EIO)
	fsys.err = nil
	other := ensure(t, table, "T", 1)
	appendRange(t, other, 0, 2)
	err := table.Sync(0)
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorContains(t, err, "sync queue T/0")
	require.ErrorIs(t, q.Append(2, nth(2)), syscall.EIO)
	require.NoError(t, other.Sync(0))
	requireUnits(t, q, 0, 2)
	appendRange(t, other, 2, 3)
}
