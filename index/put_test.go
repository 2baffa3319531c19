package index_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// headers are the headers of all files as they are on disk.
func headers(t *testing.T, fsys mappedfile.FS) []index.Header {
	t.Helper()
	var all []index.Header
	for _, b := range content(t, fsys) {
		h, err := index.DecodeHeader(b)
		require.NoError(t, err)
		all = append(all, h)
	}
	return all
}

// entriesOf are the entries of the file with that place in order.
func entriesOf(t *testing.T, fsys mappedfile.FS, s index.Shape, file int) []index.Entry {
	t.Helper()
	b := content(t, fsys)[file]
	d, err := index.ScanFile("f", strings.NewReader(string(b)), int64(len(b)), s.Slots)
	require.NoError(t, err)
	var all []index.Entry
	for e, err := range d.Entries() {
		require.NoError(t, err)
		all = append(all, e.Entry)
	}
	return all
}

// R-E-053, formats.md 16: the chain example.
func TestPutLinksTheNewestEntryFirst(t *testing.T) {
	fsys, shape := memfs.New(), index.Shape{Slots: 5, Entries: 10}
	x := open(t, fsys, shape, nil)
	put(t, x, 1000, start, "k1")
	put(t, x, 2000, start+1999, "k1")
	require.Equal(t, []index.Entry{
		{KeyHash: 0x26BFB5, PhysicalOffset: 1000},
		{KeyHash: 0x26BFB5, PhysicalOffset: 2000, TimeDiff: 1, Previous: 1},
	}, entriesOf(t, fsys, shape, 0))
	require.Equal(t, []int64{2000, 1000}, offsets(t, x, "k1"))
	require.Empty(t, offsets(t, x, "k2"))
}

// R-E-052, R-E-056, R-E-057: what the lines store for the same record.
func TestDialectsDifferInHashCountAndUniqueKey(t *testing.T) {
	k := index.Keys{
		Topic: []byte("T"), UniqueKey: []byte("C0A80102000018B4AAC2000000000000"), Keys: []byte(" k1  k1 DWIECHC "),
		PhysicalOffset: 9, StoreTimestamp: start,
	}
	for _, tt := range []struct {
		d      *dialect.Dialect
		hashes []int32
		slots  int32
	}{
		{dialect.V31(), []int32{0x26BFB5, 0x26BFB5, 0}, 3},
		{dialect.V49(), []int32{279940930, 0x26BFB5, 0x26BFB5, 0}, 3},
		{dialect.V53(), []int32{279940930, 0x26BFB5, 0x26BFB5, 0}, 3},
	} {
		t.Run(tt.d.Name, func(t *testing.T) {
			fsys, shape := memfs.New(), index.Shape{Slots: 97, Entries: 10}
			x := open(t, fsys, shape, tt.d)
			require.NoError(t, x.Put(k))
			var hashes []int32
			for _, e := range entriesOf(t, fsys, shape, 0) {
				hashes = append(hashes, e.KeyHash)
			}
			require.Equal(t, tt.hashes, hashes)
			require.Equal(t, tt.slots, headers(t, fsys)[0].SlotCount)
			require.Equal(t, []int64{9, 9}, offsets(t, x, "k1"))
			require.Equal(t, []int64{9}, offsets(t, x, "DWIECHC"))
		})
	}
}

// R-E-056.
func TestTransactionTypesAreIndexedByDialect(t *testing.T) {
	require.True(t, index.Indexed(dialect.V31(), 0))
	require.True(t, index.Indexed(dialect.V31(), 4))
	require.False(t, index.Indexed(dialect.V31(), 8))
	require.True(t, index.Indexed(dialect.V49(), 8))
	require.False(t, index.Indexed(dialect.V53(), 12))
}

// R-E-057, formats.md 6: a file that follows a full one begins with that one's end, and so does the time of its entry 1.
func TestRolledFileInheritsTheEndOfTheFullOne(t *testing.T) {
	fsys := memfs.New()
	x := open(t, fsys, tiny, nil)
	put(t, x, 100, start, "a")
	put(t, x, 200, start+2500, "b")
	require.Len(t, headers(t, fsys), 1)
	put(t, x, 300, start+8000, "") // a record without keys makes the file, as in Java
	require.Equal(t, index.Header{
		BeginTimestamp: start + 2500, EndTimestamp: start + 2500, BeginOffset: 200, EndOffset: 200,
	}, headers(t, fsys)[1])
	put(t, x, 400, start+8000, "c")
	put(t, x, 500, start+9500, "c")
	require.Equal(t, index.Header{
		BeginTimestamp: start + 8000, EndTimestamp: start + 9500, BeginOffset: 400, EndOffset: 500, SlotCount: 1, IndexCount: 3,
	}, headers(t, fsys)[1])
	require.Equal(t, []int32{5, 1}, []int32{entriesOf(t, fsys, tiny, 1)[0].TimeDiff, entriesOf(t, fsys, tiny, 1)[1].TimeDiff})
	// R-E-054, trap 21: the header, not the difference, has the time of entry 1.
	require.Equal(t, []int64{400}, offsetsIn(t, x, "T", "c", start+8000, start+8000))
}

func TestKeysOfOneRecordRollInTheMiddle(t *testing.T) {
	fsys := memfs.New()
	x := open(t, fsys, tiny, nil)
	put(t, x, 100, start, "a b c d e")
	require.Len(t, headers(t, fsys), 3)
	for _, h := range headers(t, fsys) {
		require.Equal(t, int64(100), h.BeginOffset)
		require.Equal(t, int64(100), h.EndOffset)
	}
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		require.Equal(t, []int64{100}, offsets(t, x, key))
	}
}

// Index names of the Corrections table: by store time of the first message, so that making the index again gives the same.
func TestFileNamesFollowStoreTimesAndOnlyGrow(t *testing.T) {
	fsys := memfs.New()
	x := open(t, fsys, tiny, nil)
	put(t, x, 100, start, "a b")
	put(t, x, 200, start+5000, "a b")
	put(t, x, 300, start-9000, "a b") // the clock went back
	put(t, x, 400, start-9000, "a b")
	require.Equal(t, []string{"20231114221320000", "20231114221325000", "20231114221325001", "20231114221325002"}, names(t, fsys))
	_, err := x.RemoveAll()
	require.NoError(t, err)
	require.Empty(t, names(t, fsys))
	put(t, x, 100, start, "a b")
	put(t, x, 200, start+5000, "a b")
	require.Equal(t, []string{"20231114221320000", "20231114221325000"}, names(t, fsys))
}

func TestNoNameAfterTheLastOneIsAnError(t *testing.T) {
	x := open(t, memfs.New(), tiny, nil)
	put(t, x, 1, math.MaxInt64, "a b")
	require.ErrorContains(t, x.Put(record(2, math.MaxInt64, "a")), `no name for an index file comes after "99991231235959999"`)
}

// R-E-055: 3.1 bounds the milliseconds, the later lines the seconds, as their byte code has it.
func TestTimeDifferencesAreBounded(t *testing.T) {
	const month = int64(31 * 24 * 3600 * 1000)
	for _, tt := range []struct {
		d     *dialect.Dialect
		begin int64
		after int64 // ms
		want  int32
	}{
		{dialect.V31(), start, month, 2_147_483},
		{dialect.V49(), start, month, int32(month / 1000)},
		{dialect.V53(), start, 1000*math.MaxInt32 + 5000, math.MaxInt32},
		{dialect.V49(), start, -1, 0},
		{dialect.V49(), start, 999, 0},
		{dialect.V49(), 0, 5000, 0},
		{dialect.V31(), 0, 5000, 0},
	} {
		fsys := memfs.New()
		x := open(t, fsys, small, tt.d)
		put(t, x, 1, tt.begin, "a")
		put(t, x, 2, tt.begin+tt.after, "a")
		require.Equal(t, tt.want, entriesOf(t, fsys, small, 0)[1].TimeDiff)
		require.Equal(t, []int64{2}, offsetsIn(t, x, "T", "a", tt.begin+tt.after, tt.begin+tt.after)[:1])
	}
}

// formats.md 6: a record below the end offset is passed over. Ours takes up the one at the end offset where its keys end.
func TestReplayAddsNothingTwice(t *testing.T) {
	for cut := range 7 {
		t.Run(fmt.Sprintf("%d keys before", cut), func(t *testing.T) {
			fsys, again := memfs.New(), memfs.New()
			x, y := open(t, fsys, tiny, nil), open(t, again, tiny, nil)
			words := strings.Fields("a b a c d a e")
			for _, ix := range []*index.Index{x, y} {
				put(t, ix, 0, start, "z")
			}
			put(t, x, 100, start+1, strings.Join(words, " "))
			put(t, y, 100, start+1, strings.Join(words[:cut], " ")) // as if the kill came in the middle
			put(t, y, 0, start, "z")
			put(t, y, 100, start+1, strings.Join(words, " "))
			put(t, y, 100, start+1, strings.Join(words, " "))
			put(t, y, 0, start, "z")
			require.Equal(t, content(t, fsys), content(t, again))
		})
	}
}

// A kill between the slot and the header leaves a slot that names the entry to be written next. Java would close it to a
// circle and lose the chain behind it.
func TestPutGoesOnAfterAKillBeforeTheHeader(t *testing.T) {
	fsys := memfs.New()
	x := open(t, fsys, small, nil)
	put(t, x, 100, start, "a")
	before := headers(t, fsys)[0]
	put(t, x, 200, start, "a")
	want := content(t, fsys)
	require.NoError(t, x.Close())
	name := names(t, fsys)[0]
	write(t, fsys, name, append(before.AppendTo(nil), want[0][index.HeaderSize:]...))

	x = open(t, fsys, small, nil)
	require.Equal(t, []int64{200, 100}, offsets(t, x, "a")) // the entry is whole
	put(t, x, 200, start, "a")
	require.Equal(t, want, content(t, fsys))

	// Where the entry did not get to the disk, the slot means nothing.
	require.NoError(t, x.Close())
	torn := append(before.AppendTo(nil), want[0][index.HeaderSize:]...)
	clear(torn[small.Size()-int64(small.Entries-2)*index.EntrySize:])
	write(t, fsys, name, torn)
	x = open(t, fsys, small, nil)
	put(t, x, 200, start, "a")
	require.Equal(t, []int64{200}, offsets(t, x, "a"))
}

// wide is a shape whose slots and entries take many pages and several steps of reservation.
var wide = index.Shape{Slots: 50_000, Entries: 200_000}

// R-E-018: blocks are there before a mapping is written, and a full disk is an error after which all goes on.
func TestFullDiskIsAnErrorAndNothingIsLost(t *testing.T) {
	fsys := memfs.New()
	x := open(t, fsys, wide, nil)
	fsys.Limit(4096)
	require.ErrorIs(t, x.Put(record(0, start, "a b c")), syscall.ENOSPC)
	require.Empty(t, names(t, fsys)) // nothing half made is left
	fsys.Limit(0)
	put(t, x, 0, start, "a b c")
	require.Empty(t, fsys.Unreserved())

	fsys.Limit(fsys.Used())
	var full error
	offset := int64(0)
	for full == nil {
		offset++
		full = x.Put(record(offset, start+offset, "x y z"))
	}
	require.ErrorIs(t, full, syscall.ENOSPC)
	require.Less(t, offset, int64(30_000))
	require.ErrorIs(t, x.Put(record(offset, start+offset, "x y z")), syscall.ENOSPC)
	require.NoError(t, x.Sync()) // what is there can still be synced
	fsys.Limit(0)
	for ; offset < 50_000; offset++ {
		put(t, x, offset, start+offset, "x y z")
	}
	require.Empty(t, fsys.Unreserved())
	for err := range x.Check() {
		require.NoError(t, err)
	}
	require.Equal(t, int64(49_999), x.EndOffset())
	for _, key := range []string{"x", "y", "z"} {
		require.Len(t, offsets(t, x, key), 49_999)
	}
}

// R-E-018: also in a file that Java made, whose slots are holes.
func TestBlocksAreReservedInFilesThatLieThere(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, fsys.MkdirAll("index", 0o750))
	f, err := fsys.OpenFile("index/20231114221320000", os.O_CREATE|os.O_RDWR, 0o640)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(wide.Size()))
	require.NoError(t, f.Close())
	x := open(t, fsys, wide, nil)
	fsys.Limit(4096)
	require.ErrorIs(t, x.Put(record(0, start, "a")), syscall.ENOSPC)
	fsys.Limit(0)
	for i := range int64(1000) {
		put(t, x, i, start, fmt.Sprintf("key%d", i))
	}
	require.Empty(t, fsys.Unreserved())
}

// R-E-006: a failed sync is final for writing, and reading goes on.
func TestFailedSyncIsFinal(t *testing.T) {
	for _, tt := range []struct {
		name string
		harm func(f *faulty)
	}{
		{"of a mapping", func(f *faulty) { f.sync = syscall.EIO }},
		{"of the directory", func(f *faulty) { f.syncDir = syscall.EIO }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := &faulty{FS: memfs.New()}
			x := open(t, fsys, tiny, nil)
			put(t, x, 1, start, "a b")
			tt.harm(fsys)
			err := x.Sync()
			if err == nil {
				err = x.Put(record(2, start, "c"))
			}
			require.ErrorIs(t, err, syscall.EIO)
			fsys.sync, fsys.syncDir = nil, nil
			require.ErrorIs(t, x.Put(record(3, start, "a")), syscall.EIO)
			require.ErrorIs(t, x.Sync(), syscall.EIO)
			_, err = x.RemoveAll()
			require.ErrorIs(t, err, syscall.EIO)
			require.Equal(t, []int64{1}, offsets(t, x, "a"))
		})
	}
}

// R-E-013: a new file's name is durable before anything in it counts, and so is the directory's own.
func TestDirectoriesAreSyncedAfterCreationAndRemoval(t *testing.T) {
	fsys := &faulty{FS: memfs.New()}
	x := open(t, fsys, tiny, nil)
	put(t, x, 1, start, "a b")
	require.Equal(t, int32(2), fsys.dirSyncs.Load()) // the store's and the index's
	put(t, x, 2, start, "c d")
	require.Equal(t, int32(3), fsys.dirSyncs.Load())
	_, err := x.DeleteBefore(2)
	require.NoError(t, err)
	require.Equal(t, int32(4), fsys.dirSyncs.Load())
	_, err = x.DropFrom(1)
	require.NoError(t, err)
	require.Equal(t, int32(5), fsys.dirSyncs.Load())
}

func TestReadOnlyAndClosedIndexesRefuseToWrite(t *testing.T) {
	fsys := memfs.New()
	x, err := index.Open(fsys, "index", &index.Options{Slots: 2, Entries: 3, ReadOnly: true})
	require.NoError(t, err)
	require.ErrorIs(t, x.Put(record(1, start, "a")), mappedfile.ErrReadOnly)
	_, err = x.DropAfterTime(0)
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	_, err = x.DeleteBefore(1)
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	require.NoError(t, x.Sync())
	require.NoError(t, x.Close())
	require.NoError(t, x.Close())
	require.NoError(t, x.Abandon())
	require.ErrorIs(t, x.Put(record(1, start, "a")), mappedfile.ErrClosed)
	require.ErrorIs(t, x.Sync(), mappedfile.ErrClosed)
	_, errs := answers(x, "a")
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], mappedfile.ErrClosed)
	require.Nil(t, names(t, fsys))
}

// formats.md 6: load takes an index count of 0 for 1; the stop of 5.x writes it, earlier lines leave the 0.
func TestFileWithoutEntriesIsCountedByTheLastLineOnly(t *testing.T) {
	for _, tt := range []struct {
		d    *dialect.Dialect
		want int32
	}{{dialect.V31(), 0}, {dialect.V49(), 0}, {dialect.V53(), 1}} {
		fsys := memfs.New()
		x := open(t, fsys, tiny, tt.d)
		put(t, x, 5, start, "")
		require.NoError(t, x.Sync())
		require.Equal(t, index.Header{IndexCount: tt.want}, headers(t, fsys)[0])
		require.Empty(t, fsys.Unreserved())
		require.Equal(t, int64(-1), x.EndOffset())
		require.NoError(t, x.Close())
		x = open(t, fsys, tiny, tt.d)
		put(t, x, 6, start, "a")
		require.Equal(t, []int64{6}, offsets(t, x, "a"))
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []index.Options{
		{Slots: -1}, {Entries: 1}, {Entries: -5}, {Slots: math.MaxInt32}, {Entries: 200_000_000}, {FileMode: 1 << 31},
	} {
		_, err := index.Open(memfs.New(), "index", &o)
		require.ErrorContains(t, err, "index options: ")
	}
	x, err := index.Open(memfs.New(), "index", nil)
	require.NoError(t, err)
	require.Equal(t, index.Shape{Slots: 5_000_000, Entries: 20_000_000}, x.Shape())
	require.Equal(t, int64(420_000_040), x.Shape().Size())
}

func TestPutDoesNotAllocate(t *testing.T) {
	x := open(t, memfs.New(), wide, nil)
	k := index.Keys{Topic: []byte("Topic"), UniqueKey: []byte("7F0000013E445FFD2B27949CBE450000"), Keys: []byte("kéy order-1"), StoreTimestamp: start}
	require.NoError(t, x.Put(k))
	allocs := testing.AllocsPerRun(1000, func() {
		k.PhysicalOffset += 100
		if err := x.Put(k); err != nil {
			t.Error(err)
		}
	})
	require.Zero(t, allocs)
}

// Many records at a time leave the same bytes as one after the other, wherever the files end and whatever was there before.
func TestARunLeavesWhatSinglePutsLeave(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shape := rapid.SampledFrom([]index.Shape{tiny, small, {Slots: 5, Entries: 40}}).Draw(rt, "shape")
		d := rapid.SampledFrom([]*dialect.Dialect{dialect.V31(), dialect.V49(), dialect.V53()}).Draw(rt, "dialect")
		one, many := memfs.New(), memfs.New()
		single, run := open(t, one, shape, d), open(t, many, shape, d)
		offset, storeTime := int64(0), start
		for range rapid.IntRange(1, 4).Draw(rt, "runs") {
			var records []index.Hashed
			for range rapid.IntRange(0, 30).Draw(rt, "records") {
				offset = max(0, offset+rapid.SampledFrom([]int64{-100, 0, 100, 100, 100, 100}).Draw(rt, "step")) // some come again
				storeTime += rapid.Int64Range(-1500, 3000).Draw(rt, "ms")
				k := record(offset, storeTime, rapid.StringMatching(`([a-d]( [a-d]){0,2})?`).Draw(rt, "keys"))
				require.NoError(rt, single.Put(k))
				records = append(records, index.Hashed{Hashes: run.AppendHashes(nil, k), PhysicalOffset: offset, StoreTimestamp: storeTime})
			}
			require.NoError(rt, run.PutRun(records))
		}
		require.Equal(rt, content(t, one), content(t, many))
		require.Equal(rt, single.Files(), run.Files())
	})
}
