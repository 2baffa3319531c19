package consumequeue_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// R-E-012, R-E-043: what is cut is gone from the disk too, so no later start sees it again as it does with Java.
func TestTruncateAfterLeavesNoStaleUnit(t *testing.T) {
	for _, tt := range []struct {
		first, end, index int64
		files             map[int64][]byte
	}{
		{0, 13, 13, map[int64][]byte{0: units(nth(0), nth(1), nth(2), nth(3), nth(4)), 100: units(nth(5), nth(6), nth(7), nth(8), nth(9)), 200: units(nth(10), nth(11), nth(12))}},
		{0, 13, 99, map[int64][]byte{0: units(nth(0), nth(1), nth(2), nth(3), nth(4)), 100: units(nth(5), nth(6), nth(7), nth(8), nth(9)), 200: units(nth(10), nth(11), nth(12))}},
		{0, 13, 12, map[int64][]byte{0: units(nth(0), nth(1), nth(2), nth(3), nth(4)), 100: units(nth(5), nth(6), nth(7), nth(8), nth(9)), 200: units(nth(10), nth(11))}},
		{0, 13, 10, map[int64][]byte{0: units(nth(0), nth(1), nth(2), nth(3), nth(4)), 100: units(nth(5), nth(6), nth(7), nth(8), nth(9))}},
		{0, 13, 1, map[int64][]byte{0: units(nth(0))}},
		{0, 13, 0, nil},
		{7, 13, 8, map[int64][]byte{100: units(consumequeue.Filler(), consumequeue.Filler(), nth(7))}},
		{7, 13, 7, map[int64][]byte{100: units(consumequeue.Filler(), consumequeue.Filler())}},
		{7, 13, 6, map[int64][]byte{100: units(consumequeue.Filler())}},
		{7, 13, 5, map[int64][]byte{100: nil}},
		{7, 13, 4, nil},
		{7, 13, 0, nil},
	} {
		fsys := memfs.New()
		q := ensure(t, openTable(t, fsys, nil), "T", 0)
		appendRange(t, q, tt.first, tt.end)
		require.NoError(t, q.TruncateAfter(tt.index))

		stays := min(tt.index, tt.end)
		first, end := q.Bounds()
		require.Equal(t, [2]int64{min(tt.first, stays), stays}, [2]int64{first, end}, "%+v", tt)
		require.Len(t, names(t, fsys, "consumequeue/T/0"), len(tt.files), "%+v", tt)
		for start, b := range tt.files {
			require.Equal(t, pad(b, small), readFile(t, fsys, segmentName(start)), "%+v", tt)
		}
		if len(tt.files) > 0 {
			found, err := q.FindEnd(true)
			require.NoError(t, err)
			require.Equal(t, stays, found, "an empty first file remembers where the queue was")
		}
		appendRange(t, q, stays, stays+7)
		requireUnits(t, q, stays, stays+7)

		again := openTable(t, fsys, nil).Lookup("T", 0)
		requireUnits(t, again, stays, stays+7)
		require.NoError(t, again.SetMin(0))
		first, _ = again.Bounds()
		require.Equal(t, min(tt.first, stays), first)
	}
}

func TestTruncateAfterInAGapEndsBeforeIt(t *testing.T) {
	fsys := memfs.New()
	writeFile(t, fsys, segmentName(0), units(nth(0), nth(1), nth(2), nth(3), nth(4)))
	writeFile(t, fsys, segmentName(300), pad(units(nth(15)), small))
	q := openTable(t, fsys, nil).Lookup("T", 0)
	require.NoError(t, q.TruncateAfter(12))
	requireUnits(t, q, 0, 5)
	require.Len(t, names(t, fsys, "consumequeue/T/0"), 1)
	appendRange(t, q, 5, 6)
}

// What lies behind an end that only memory knows is cut with the rest.
func TestTruncateAfterZeroesUnitsBehindTheEnd(t *testing.T) {
	fsys := memfs.New()
	writeFile(t, fsys, segmentName(0), units(nth(0), nth(1), consumequeue.Unit{}, nth(3), nth(4)))
	q := openTable(t, fsys, nil).Lookup("T", 0)
	require.NoError(t, q.SetMax(2))
	require.NoError(t, q.TruncateAfter(2))
	require.Equal(t, pad(units(nth(0), nth(1)), small), readFile(t, fsys, segmentName(0)))
}

func TestSetMaxChangesMemoryOnly(t *testing.T) {
	fsys := memfs.New()
	q := ensure(t, openTable(t, fsys, nil), "T", 0)
	appendRange(t, q, 5, 9)
	before := readFile(t, fsys, segmentName(100))
	require.NoError(t, q.SetMax(7))
	requireUnits(t, q, 5, 7)
	require.Equal(t, before, readFile(t, fsys, segmentName(100)))
	require.Equal(t, int64(70), q.MaxPhysical())
	require.NoError(t, q.SetMax(9))
	requireUnits(t, q, 5, 9)
	require.ErrorIs(t, q.SetMax(-1), mappedfile.ErrOutOfRange)
	require.ErrorIs(t, q.SetMax(11), mappedfile.ErrOutOfRange)
	require.ErrorIs(t, q.TruncateAfter(-1), mappedfile.ErrOutOfRange)

	// What is appended after that overwrites what was left.
	require.NoError(t, q.SetMax(7))
	other := consumequeue.Unit{PhysicalOffset: 70, Size: 30, TagsCode: 1}
	require.NoError(t, q.Append(7, other))
	got, err := q.Get(7)
	require.NoError(t, err)
	require.Equal(t, other, got)
}

// R-E-008: a last file that a crash cut short is read as it is, and made whole before anything is written.
func TestShortLastFileIsReadAndRepaired(t *testing.T) {
	for name, first := range map[string]func(*testing.T, *consumequeue.Queue){
		"repair": func(t *testing.T, q *consumequeue.Queue) {
			done, err := q.Repair()
			require.NoError(t, err)
			require.Len(t, done, 1)
			done, err = q.Repair()
			require.NoError(t, err)
			require.Empty(t, done)
		},
		"truncate": func(t *testing.T, q *consumequeue.Queue) { require.NoError(t, q.TruncateAfter(6)) },
		"append":   func(t *testing.T, q *consumequeue.Queue) { appendRange(t, q, 6, 7) },
	} {
		t.Run(name, func(t *testing.T) {
			fsys := memfs.New()
			short := units(nth(5), nth(6))[:33]
			writeFile(t, fsys, segmentName(0), units(nth(0), nth(1), nth(2), nth(3), nth(4)))
			writeFile(t, fsys, segmentName(100), short)
			writeFile(t, fsys, segmentName(200), make([]byte, small))
			table := openTable(t, fsys, nil)
			require.Len(t, table.Notices(), 1)
			require.Equal(t, mappedfile.ShortSegment, table.Notices()[0].Kind)
			require.Equal(t, segmentName(100), table.Notices()[0].File)
			q := table.Lookup("T", 0)
			requireUnits(t, q, 0, 6)
			require.Equal(t, short, readFile(t, fsys, segmentName(100)))

			first(t, q)
			want := units(nth(5))
			if name == "append" {
				want = units(nth(5), nth(6))
			}
			require.Equal(t, pad(want, small), readFile(t, fsys, segmentName(100)))
			appendRange(t, q, 6, 12)
			requireUnits(t, q, 0, 12)
			requireUnits(t, openTable(t, fsys, nil).Lookup("T", 0), 0, 12)
		})
	}
}

func TestEmptyLastFileIsNoticedAndRepaired(t *testing.T) {
	for _, before := range []bool{true, false} {
		fsys := memfs.New()
		end := int64(0)
		if before {
			end = 5
			writeFile(t, fsys, segmentName(0), units(nth(0), nth(1), nth(2), nth(3), nth(4)))
		}
		writeFile(t, fsys, segmentName(end*20), nil)
		table := openTable(t, fsys, nil)
		require.Len(t, table.Notices(), 1)
		require.Equal(t, mappedfile.EmptySegment, table.Notices()[0].Kind)
		q := table.Lookup("T", 0)
		requireUnits(t, q, 0, end)
		appendRange(t, q, end, end+2)
		requireUnits(t, q, 0, end+2)
		require.Equal(t, pad(units(nth(end), nth(end+1)), small), readFile(t, fsys, segmentName(end*20)))
	}
}
