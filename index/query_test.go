package index_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

const hour = int64(3_600_000)

// R-E-054: newest file first; files outside of the range are passed over. 3.1.9 ends at the first file that begins after
// the range, so an older range finds nothing there.
func TestQueryPassesOverFilesOutsideOfTheRange(t *testing.T) {
	fsys := memfs.New()
	x := open(t, fsys, tiny, nil)
	for i := range int64(5) { // a file a day
		put(t, x, 100*i, start+i*24*hour, "a")
		put(t, x, 100*i+50, start+i*24*hour+hour, "a")
	}
	require.Equal(t, []int64{450, 400, 350, 300, 250, 200, 150, 100, 50, 0}, offsets(t, x, "a"))
	require.Equal(t, []int64{150, 100}, offsetsIn(t, x, "T", "a", start+24*hour, start+25*hour))
	require.Equal(t, []int64{0}, offsetsIn(t, x, "T", "a", start-hour, start+1))
	require.Empty(t, offsetsIn(t, x, "T", "a", start+3*hour, start+20*hour))
	require.Empty(t, offsetsIn(t, x, "T", "a", start+1, start))
	require.Empty(t, offsetsIn(t, x, "U", "a", 0, 1<<62))

	// A file that is passed over is not even looked at: its broken chain does not show.
	harm(t, fsys, names(t, fsys)[4], tiny, 2, index.Entry{Previous: 9})
	require.Equal(t, []int64{150}, offsetsIn(t, x, "T", "a", start+25*hour, start+25*hour))
}

// harm overwrites an entry.
func harm(t *testing.T, fsys mappedfile.FS, name string, s index.Shape, number int32, e index.Entry) {
	t.Helper()
	f, err := fsys.OpenFile("index/"+name, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(e.AppendTo(nil), s.Size()-int64(s.Entries-number)*index.EntrySize)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// Trap 21: an entry's time is rounded down to seconds and bounded, so a query must take what may be meant.
func TestQueryNeverHidesAMessageOfTheRange(t *testing.T) {
	for _, d := range []*dialect.Dialect{dialect.V31(), dialect.V49()} {
		fsys := memfs.New()
		x := open(t, fsys, index.Shape{Slots: 3, Entries: 5}, d)
		times := []int64{0, 1, 999, 1000, 1001, -hour / 2, 1500, 7_777_777, 40 * 24 * hour, 41 * 24 * hour, 40*24*hour + 5, 90 * 24 * hour}
		for i, at := range times {
			put(t, x, int64(i), start+at, "a")
		}
		for i, at := range times {
			require.Contains(t, offsetsIn(t, x, "T", "a", start+at, start+at), int64(i), "%s: %d", d.Name, at)
		}
		require.NotContains(t, offsetsIn(t, x, "T", "a", start+2000, start+3000), int64(0))
	}
}

func TestQueryReadsTheFilesOfEveryLine(t *testing.T) {
	for _, d := range []*dialect.Dialect{dialect.V31(), dialect.V49(), dialect.V53()} {
		fsys := memfs.New()
		x := open(t, fsys, tiny, d)
		put(t, x, 7, start, "C0A80102000018B4AAC2000000000000") // a negative hash
		require.NoError(t, x.Close())
		for _, other := range []*dialect.Dialect{dialect.V31(), dialect.V49()} {
			require.Equal(t, []int64{7}, offsets(t, open(t, fsys, tiny, other), "C0A80102000018B4AAC2000000000000"))
		}
	}
}

func TestLongChainsAreWalkedToTheirEnd(t *testing.T) {
	x := open(t, memfs.New(), wide, nil)
	for i := range int64(3000) {
		put(t, x, i, start+i, "same")
	}
	found := offsets(t, x, "same")
	require.Len(t, found, 3000)
	require.Equal(t, int64(2999), found[0])
	require.Zero(t, found[2999])
}

func TestHitTellsFileNumberAndEntry(t *testing.T) {
	x := open(t, memfs.New(), tiny, nil)
	put(t, x, 7, start, "k1")
	for h, err := range x.Query("T", "k1", 0, 1<<62) {
		require.NoError(t, err)
		require.Equal(t, index.Hit{
			File: "index/20231114221320000", Number: 1, Entry: index.Entry{KeyHash: 0x26BFB5, PhysicalOffset: 7},
		}, h)
	}
}

// R-E-058: a damaged chain ends the search of its file with a finding, and the next file is searched.
func TestDamagedChainsAreFindingsAndQueriesEnd(t *testing.T) {
	shape := index.Shape{Slots: 1, Entries: 5}
	for _, tt := range []struct {
		name, want string
		harm       func(t *testing.T, fsys mappedfile.FS, name string)
		found      []int64
		offset     int64
	}{
		{"circle of one", "entry 3 says that the one before it is 3", entry(shape, 3, 3), []int64{400, 300, 100}, 104},
		{"circle of two", "entry 3 says that the one before it is 4", entry(shape, 3, 4), []int64{400, 300, 100}, 104},
		{"out of range", "entry 3 says that the one before it is 2147483647", entry(shape, 3, 1<<31-1), []int64{400, 300, 100}, 104},
		{"negative", "entry 4 says that the one before it is -7", entry(shape, 4, -7), []int64{400, 100}, 124},
		{"slot out of range", "slot 0 begins with entry 99 of 4", slot(99), []int64{400, 100}, 40},
		{"slot negative", "slot 0 begins with entry -1 of 4", slot(-1), []int64{400, 100}, 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := memfs.New()
			x := open(t, fsys, shape, nil)
			put(t, x, 100, start, "a b c d")
			put(t, x, 300, start+1, "a a a a")
			put(t, x, 400, start+2, "a")
			require.Equal(t, []int64{400, 300, 300, 300, 300, 100}, offsets(t, x, "a"))
			tt.harm(t, fsys, names(t, fsys)[1])
			found, errs := answers(x, "a")
			require.Equal(t, tt.found, found)
			require.Len(t, errs, 1)
			requireCorrupt(t, errs[0], "index/20231114221320001", tt.offset, tt.want)
			require.NotEmpty(t, findings(x))
		})
	}
}

func findings(x *index.Index) (found []error) {
	for err := range x.Check() {
		found = append(found, err)
	}
	return found
}

func entry(s index.Shape, number, previous int32) func(*testing.T, mappedfile.FS, string) {
	return func(t *testing.T, fsys mappedfile.FS, name string) {
		harm(t, fsys, name, s, number, index.Entry{KeyHash: index.KeyHash("T", "a"), PhysicalOffset: 300, Previous: previous})
	}
}

func slot(value int32) func(*testing.T, mappedfile.FS, string) {
	return func(t *testing.T, fsys mappedfile.FS, name string) {
		f, err := fsys.OpenFile("index/"+name, os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = f.WriteAt(binary.BigEndian.AppendUint32(nil, uint32(value)), index.HeaderSize)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}

func requireCorrupt(t *testing.T, err error, file string, offset int64, text string) {
	t.Helper()
	var corrupt *mappedfile.CorruptError
	require.ErrorAs(t, err, &corrupt)
	require.ErrorIs(t, err, mappedfile.ErrCorrupt)
	require.Equal(t, file, corrupt.File)
	require.Equal(t, offset, corrupt.Offset)
	require.ErrorContains(t, err, text)
}

// A header that cannot be believed is a finding, but what the chains lead to is still found, and nothing is written there.
func TestDamagedHeaderIsAFindingAndTheFileIsReadOn(t *testing.T) {
	for _, tt := range []struct {
		want string
		h    index.Header
	}{
		{"index count 10 in a file for 9 entries", index.Header{IndexCount: 10}},
		{"index count -2147483648", index.Header{IndexCount: -1 << 31}},
		{"begin offset -5, end offset 9223372036854775807", index.Header{BeginOffset: -5, EndOffset: 1<<63 - 1, IndexCount: 3}},
	} {
		fsys := memfs.New()
		x := open(t, fsys, small, nil)
		for i := range int64(10) { // eight and two
			put(t, x, i, start, "a")
		}
		require.NoError(t, x.Close())
		name := names(t, fsys)[1]
		write(t, fsys, name, append(tt.h.AppendTo(nil), content(t, fsys)[1][index.HeaderSize:]...))
		before := content(t, fsys)[1]

		x = open(t, fsys, small, nil)
		require.Len(t, x.Notices(), 1)
		require.Equal(t, index.DamagedHeader, x.Notices()[0].Kind)
		require.Equal(t, "index/"+name, x.Notices()[0].File)
		found, errs := answers(x, "a")
		require.Equal(t, []int64{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, found)
		require.Len(t, errs, 1)
		requireCorrupt(t, errs[0], "index/"+name, 0, tt.want)
		require.Equal(t, int64(7), x.EndOffset())
		require.Error(t, x.Files()[1].Damaged)

		put(t, x, 10, start, "b") // goes to a new file, which follows the one that can be believed
		require.NoError(t, x.Sync())
		require.Equal(t, before, content(t, fsys)[1])
		require.Equal(t, []int64{10}, func() []int64 { found, _ := answers(x, "b"); return found }())
	}
}

func TestQueryOfAFileCutShortIsAnError(t *testing.T) {
	dir := t.TempDir()
	x := open(t, folder(t, dir), wide, nil)
	put(t, x, 1, start, "a b c")
	require.NoError(t, x.Sync())
	reader, err := index.Open(folder(t, dir), "index", &index.Options{Slots: wide.Slots, Entries: wide.Entries, ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, os.Truncate(dir+"/index/20231114221320000", 100))
	_, errs := answers(reader, "a")
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "the file ends before")
	require.NoError(t, reader.Close())
	_, errs = answers(x, "a") // mapped: a fault, and no signal
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], mappedfile.ErrFault)
	require.ErrorIs(t, x.Put(record(2, start, "d")), mappedfile.ErrFault)
	require.ErrorIs(t, x.Put(record(3, start, "")), mappedfile.ErrFault)
}

// A reader sees what another process puts into the files that were there when it opened them.
func TestReadOnlyIndexSeesWhatIsPutMeanwhile(t *testing.T) {
	fsys := memfs.New()
	x := open(t, fsys, small, nil)
	put(t, x, 1, start, "a")
	reader, err := index.Open(fsys, "index", &index.Options{Slots: small.Slots, Entries: small.Entries, ReadOnly: true})
	require.NoError(t, err)
	put(t, x, 2, start+24*hour, "a")
	require.Equal(t, []int64{2, 1}, offsets(t, reader, "a"))
	require.NoError(t, reader.Close())
}

func TestQueriesRunWhilePutsSyncsAndDeletionsGoOn(t *testing.T) {
	x := open(t, memfs.New(), index.Shape{Slots: 7, Entries: 50}, nil)
	var offset atomic.Int64
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				last := int64(1 << 62)
				for h, err := range x.Query("T", fmt.Sprintf("key%d", n%5), 0, 1<<62) {
					if err != nil || h.PhysicalOffset >= last {
						t.Errorf("offset %d after %d: %v", h.PhysicalOffset, last, err)
						return
					}
					last = h.PhysicalOffset
				}
			}
		})
	}
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			default:
			}
			if err := x.Sync(); err != nil {
				t.Error(err)
			}
			if _, err := x.DeleteBefore(offset.Load() - 1000); err != nil {
				t.Error(err)
			}
			x.Files()
			x.EndOffset()
			x.FullThrough()
		}
	})
	for i := range int64(5000) {
		put(t, x, i, start+i, fmt.Sprintf("key%d", i%5))
		offset.Store(i)
	}
	close(done)
	wg.Wait()
}

// A caller may put, drop and close while it holds a hit.
func TestNoLockIsHeldWhileTheCallerHasAHit(t *testing.T) {
	fsys := memfs.New()
	x := open(t, fsys, tiny, nil)
	for i := range int64(6) {
		put(t, x, i, start, "a")
	}
	var found []int64
	for h, err := range x.Query("T", "a", 0, 1<<62) {
		if err != nil {
			require.ErrorIs(t, err, mappedfile.ErrClosed)
			require.Equal(t, []int64{5, 4, 1, 0}, found)
			return
		}
		found = append(found, h.PhysicalOffset)
		switch h.PhysicalOffset {
		case 5:
			put(t, x, 9, start, "a")
		case 4:
			_, err := x.DropFrom(2)
			require.NoError(t, err)
		case 0:
			require.NoError(t, x.Close())
			require.Zero(t, fsys.Mappings())
		}
	}
	require.Equal(t, []int64{5, 4, 1, 0}, found)
}
