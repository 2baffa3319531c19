package consumequeue_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// R-E-045: the first offset is that of the first unit whose record the log still has; fillers and holes are passed over.
func TestMinFollowsTheLog(t *testing.T) {
	q := ensure(t, openTable(t, memfs.New(), nil), "T", 0)
	appendRange(t, q, 8, 17)
	require.NoError(t, q.Append(22, nth(22)))
	for _, tt := range []struct{ logMin, want int64 }{
		{0, 8}, {80, 8}, {81, 9}, {90, 9}, {155, 16}, {160, 16}, {161, 22}, {220, 22}, {221, 23}, {1 << 40, 23},
	} {
		got, err := q.MinFor(tt.logMin)
		require.NoError(t, err)
		require.Equal(t, tt.want, got, "%d", tt.logMin)
		require.NoError(t, q.SetMin(tt.logMin))
		first, end := q.Bounds()
		require.Equal(t, [2]int64{tt.want, 23}, [2]int64{first, end})
	}
	require.NoError(t, q.SetMin(0))
	first, _ := q.Bounds()
	require.Equal(t, int64(8), first)
}

// A file that begins with fillers keeps its first offset when it is opened again and the log's start is known.
func TestFillersCountAsBeforeTheLog(t *testing.T) {
	fsys := memfs.New()
	writeFile(t, fsys, segmentName(0), pad(units(consumequeue.Filler(), consumequeue.Filler(), nth(2)), small))
	q := openTable(t, fsys, nil).Lookup("T", 0)
	first, end := q.Bounds()
	require.Equal(t, [2]int64{0, 3}, [2]int64{first, end})
	require.NoError(t, q.SetMin(0))
	first, _ = q.Bounds()
	require.Equal(t, int64(2), first)

	writeFile(t, fsys, "consumequeue/U/0/00000000000000000000", pad(units(consumequeue.Filler(), consumequeue.Filler()), small))
	q = ensure(t, openTable(t, fsys, nil), "U", 0)
	require.NoError(t, q.SetMin(0))
	first, end = q.Bounds()
	require.Equal(t, [2]int64{2, 2}, [2]int64{first, end}, "nothing but fillers")
	require.Equal(t, int64(-1), q.MaxPhysical())
}

// R-E-045, retention: whole files below the log's start go, never the last.
func TestDeleteBeforeRemovesWholeDeadFiles(t *testing.T) {
	fsys := memfs.New()
	q := ensure(t, openTable(t, fsys, nil), "T", 0)
	appendRange(t, q, 0, 17)
	for _, tt := range []struct {
		logMin int64
		gone   []string
		first  int64
	}{
		{0, nil, 0},
		{40, nil, 0},
		{41, []string{segmentName(0)}, 5},
		{1 << 40, []string{segmentName(100), segmentName(200)}, 15},
		{1 << 40, nil, 15},
	} {
		gone, err := q.DeleteBefore(tt.logMin)
		require.NoError(t, err)
		require.Equal(t, tt.gone, gone)
		first, end := q.Bounds()
		require.Equal(t, [2]int64{tt.first, 17}, [2]int64{first, end})
	}
	require.Equal(t, []string{"00000000000000000300"}, names(t, fsys, "consumequeue/T/0"))
	appendRange(t, q, 17, 18)
	requireUnits(t, q, 15, 18)
}

func TestDeleteBeforeLooksBehindFillers(t *testing.T) {
	q := ensure(t, openTable(t, memfs.New(), nil), "T", 0)
	appendRange(t, q, 2, 3)
	require.NoError(t, q.Append(11, nth(11)))
	gone, err := q.DeleteBefore(20)
	require.NoError(t, err)
	require.Empty(t, gone, "the first file's last message is in the log")
	gone, err = q.DeleteBefore(21)
	require.NoError(t, err)
	require.Equal(t, []string{segmentName(0), segmentName(100)}, gone, "a file of fillers goes with it")
}

// R-E-044 as corrected: the first unit stored at or after the time, else the end.
func TestOffsetAtFindsTheFirstUnitStoredThen(t *testing.T) {
	q := ensure(t, openTable(t, memfs.New(), nil), "T", 0)
	appendRange(t, q, 3, 20)
	require.NoError(t, q.Append(27, nth(27)))
	require.NoError(t, q.SetMin(0))
	// Units 3 and 4 were stored at 1000, 5 and 6 at 1002, and so on; the last at 1024.
	stored := func(u consumequeue.Unit) (int64, error) { return 1000 + (u.PhysicalOffset/10-3)/2*2, nil }
	for _, tt := range []struct {
		name    string
		t, want int64
	}{
		{"long before the first", -1, 3},
		{"before the first", 999, 3},
		{"the first, of two", 1000, 3},
		{"between", 1001, 5},
		{"exactly, the first of two", 1002, 5},
		{"the last before the hole", 1016, 19},
		{"in the hole", 1017, 27},
		{"the last", 1024, 27},
		{"after the last", 1025, 28},
	} {
		got, err := q.OffsetAt(tt.t, stored)
		require.NoError(t, err)
		require.Equal(t, tt.want, got, tt.name)
	}
}

// Messages that the log no longer has count as earlier; other errors are the caller's.
func TestOffsetAtWithMessagesThatAreGone(t *testing.T) {
	q := ensure(t, openTable(t, memfs.New(), nil), "T", 0)
	appendRange(t, q, 0, 17)
	stored := func(u consumequeue.Unit) (int64, error) {
		if u.PhysicalOffset < 70 {
			return 0, fmt.Errorf("gone: %w", mappedfile.ErrOutOfRange)
		}
		return u.PhysicalOffset, nil
	}
	for at, want := range map[int64]int64{-5: 7, 0: 7, 70: 7, 71: 8, 160: 16, 161: 17} {
		got, err := q.OffsetAt(at, stored)
		require.NoError(t, err)
		require.Equal(t, want, got, "%d", at)
	}
	_, err := q.OffsetAt(5, func(consumequeue.Unit) (int64, error) { return 0, io.ErrUnexpectedEOF })
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	empty := ensure(t, openTable(t, memfs.New(), nil), "T", 0)
	got, err := empty.OffsetAt(5, func(consumequeue.Unit) (int64, error) { return 0, errors.New("must not be asked") })
	require.NoError(t, err)
	require.Zero(t, got)
}

// R-E-067 and formats.md 9.2: where the units of a queue end, from its files alone.
func TestFindEnd(t *testing.T) {
	full := func(from int64) []byte { return units(nth(from), nth(from+1), nth(from+2), nth(from+3), nth(from+4)) }
	zero := consumequeue.Unit{}
	for _, tt := range []struct {
		name           string
		files          map[int64][]byte
		quick, careful int64
	}{
		{"no file", nil, 0, 0},
		{"zeros only", map[int64][]byte{0: nil}, 0, 0},
		{"zeros only, not at 0", map[int64][]byte{500: nil}, 25, 25},
		{"in the middle", map[int64][]byte{0: units(nth(0), nth(1), nth(2))}, 3, 3},
		{"full", map[int64][]byte{0: full(0)}, 5, 5},
		{"full, then zeros", map[int64][]byte{0: full(0), 100: nil}, 5, 5},
		{"full, then two files of zeros", map[int64][]byte{0: full(0), 100: nil, 200: nil}, 5, 5},
		{"in the second", map[int64][]byte{0: full(0), 100: units(nth(5))}, 6, 6},
		{"fillers are units", map[int64][]byte{0: units(consumequeue.Filler(), nth(1))}, 2, 2},
		{"fillers only", map[int64][]byte{0: units(consumequeue.Filler(), consumequeue.Filler())}, 2, 2},
		{"stale unit behind a zero one", map[int64][]byte{0: units(nth(0), nth(1), zero, nth(3))}, 2, 2},
		{"torn: an offset without size", map[int64][]byte{0: units(nth(0), nth(1), consumequeue.Unit{PhysicalOffset: 20})}, 2, 2},
		{"torn: only tags", map[int64][]byte{0: units(nth(0), consumequeue.Unit{TagsCode: 9}, nth(2))}, 1, 1},
		{"bad unit in the third file from the end", map[int64][]byte{0: full(0), 100: units(nth(5), zero, nth(7), nth(8), nth(9)), 200: full(10), 300: units(nth(15))}, 16, 6},
		{"bad unit before that is not seen", map[int64][]byte{0: units(nth(0), zero, nth(2), nth(3), nth(4)), 100: full(5), 200: full(10), 300: units(nth(15))}, 16, 16},
		{"units left from before a cut", map[int64][]byte{0: units(nth(0), consumequeue.Unit{PhysicalOffset: 10, Size: 15}, nth(2), nth(3))}, 4, 2},
		{"left units behind a filler", map[int64][]byte{0: units(nth(4), consumequeue.Filler(), nth(3))}, 3, 2},
		{"left units in the next file", map[int64][]byte{0: units(nth(0), nth(1), nth(2), nth(3), nth(9)), 100: full(5)}, 10, 5},
		{"a gap", map[int64][]byte{0: full(0), 300: units(nth(15))}, 16, 16},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := memfs.New()
			for start, b := range tt.files {
				writeFile(t, fsys, segmentName(start), pad(b, small))
			}
			q := ensure(t, openTable(t, fsys, nil), "T", 0)
			for range 2 {
				got, err := q.FindEnd(false)
				require.NoError(t, err)
				require.Equal(t, tt.quick, got)
				got, err = q.FindEnd(true)
				require.NoError(t, err)
				require.Equal(t, tt.careful, got)
			}
			_, end := q.Bounds()
			require.Equal(t, tt.quick, end, "after opening")
		})
	}
}

// Pages reach the disk in any order: units may lie behind zeros. The quick search sees that within two pages.
func TestFindEndLooksBackFromStaleUnits(t *testing.T) {
	const n = 1000
	b := make([]byte, 0, n*consumequeue.UnitSize)
	for i := range int64(500) {
		b = nth(i).AppendTo(b)
	}
	clear(b[300*consumequeue.UnitSize : 301*consumequeue.UnitSize])
	fsys := memfs.New()
	writeFile(t, fsys, segmentName(0), pad(b, n*consumequeue.UnitSize))
	q := openTable(t, fsys, &consumequeue.Options{SegmentSize: n * consumequeue.UnitSize}).Lookup("T", 0)
	for _, thorough := range []bool{false, true} {
		end, err := q.FindEnd(thorough)
		require.NoError(t, err)
		require.Equal(t, int64(300), end)
	}
}
