package index_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// filled is an index of four files: two full ones of the keys of 100 and 200, of 300 and 400, then 500 and 600, then 700.
func filled(t *testing.T) (*memfs.FS, *index.Index) {
	t.Helper()
	fsys := memfs.New()
	x := open(t, fsys, tiny, nil)
	for i := range int64(7) {
		put(t, x, 100*i+100, start+i*1000, "a")
	}
	return fsys, x
}

// R-E-058.
func TestDropAfterTimeRemovesWhatMayBeTorn(t *testing.T) {
	for _, tt := range []struct {
		name  string
		time  int64
		left  int
		from  int64
		found []int64
	}{
		{"all but the last are older", start + 5000, 3, 600, []int64{600, 500, 400, 300, 200, 100}},
		{"the last one is not full, whatever its time", start + 99_000, 3, 600, []int64{600, 500, 400, 300, 200, 100}},
		{"one millisecond too early", start + 4999, 2, 400, []int64{400, 300, 200, 100}},
		{"between", start + 1500, 1, 200, []int64{200, 100}},
		{"no checkpoint", 0, 0, 100, []int64{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys, x := filled(t)
			all := names(t, fsys)
			_, some := x.DroppedFrom()
			require.False(t, some)
			dropped, err := x.DropAfterTime(tt.time)
			require.NoError(t, err)
			require.Len(t, names(t, fsys), tt.left)
			require.Len(t, dropped, 4-tt.left)
			require.Equal(t, "index/"+all[3], dropped[0]) // newest first: a crash leaves no hole
			from, some := x.DroppedFrom()
			require.True(t, some)
			require.Equal(t, tt.from, from)
			require.Equal(t, tt.found, offsets(t, x, "a"))
			require.Equal(t, tt.left, fsys.Mappings())
			for i := range int64(7) { // R-E-066: a replay from there on brings every key back
				if offset := 100*i + 100; offset >= from {
					put(t, x, offset, start+i*1000, "a")
				}
			}
			require.Equal(t, []int64{700, 600, 500, 400, 300, 200, 100}, offsets(t, x, "a"))
			require.Equal(t, all, names(t, fsys))
		})
	}
}

// R-E-066: nothing can be put into a file that another one follows, so those behind a dropped file go as well.
func TestAClockThatWentBackLosesNoKey(t *testing.T) {
	fsys := memfs.New()
	x := open(t, fsys, tiny, nil)
	times := []int64{0, 1000, 500_000, 501_000, 2000, 3000, 4000}
	for i, at := range times {
		put(t, x, int64(100*i+100), start+at, "a")
	}
	_, err := x.DropAfterTime(start + 9000)
	require.NoError(t, err)
	require.Len(t, names(t, fsys), 1)
	from, _ := x.DroppedFrom()
	require.Equal(t, int64(200), from)
	for i, at := range times[1:] {
		put(t, x, int64(100*i+200), start+at, "a")
	}
	require.Equal(t, []int64{700, 600, 500, 400, 300, 200, 100}, offsets(t, x, "a"))
}

// R-E-068: the log was cut at an offset.
func TestDropFromRemovesFilesThatReachBeyondTheLog(t *testing.T) {
	for _, tt := range []struct {
		offset int64
		left   int
		from   int64
		any    bool
	}{{701, 4, 0, false}, {700, 3, 600, true}, {600, 2, 400, true}, {300, 1, 200, true}, {0, 0, 100, true}} {
		fsys, x := filled(t)
		_, err := x.DropFrom(tt.offset)
		require.NoError(t, err)
		require.Len(t, names(t, fsys), tt.left)
		from, some := x.DroppedFrom()
		require.Equal(t, tt.any, some)
		require.Equal(t, tt.from, from)
	}
}

func TestDroppedFromIsTheLowestOfAllDrops(t *testing.T) {
	_, x := filled(t)
	for _, offset := range []int64{700, 300, 600} {
		_, err := x.DropFrom(offset)
		require.NoError(t, err)
		put(t, x, 650, start, "a b c")
	}
	from, some := x.DroppedFrom()
	require.True(t, some)
	require.Equal(t, int64(200), from)
}

// A header that cannot be believed says nothing of what was in the file.
func TestDamagedFilesAreDropped(t *testing.T) {
	for place, want := range map[int]int64{0: 0, 1: 200, 3: 600} {
		fsys, x := filled(t)
		require.NoError(t, x.Close())
		b := content(t, fsys)[place]
		copy(b, index.Header{IndexCount: 77}.AppendTo(nil))
		write(t, fsys, names(t, fsys)[place], b)
		x = open(t, fsys, tiny, nil)
		_, err := x.DropFrom(1 << 40)
		require.NoError(t, err)
		from, some := x.DroppedFrom()
		require.True(t, some)
		require.Equal(t, want, from)
		require.Len(t, names(t, fsys), place)
	}
}

// Retention: oldest first, by whole files, never the last.
func TestDeleteBeforeRemovesFilesBelowTheLogsMinimum(t *testing.T) {
	for _, tt := range []struct {
		min  int64
		left int
	}{{0, 4}, {200, 4}, {201, 3}, {601, 1}, {1 << 40, 1}} {
		fsys, x := filled(t)
		all := names(t, fsys)
		require.Len(t, x.DeletableBefore(tt.min), 4-tt.left)
		deleted, err := x.DeleteBefore(tt.min)
		require.NoError(t, err)
		require.Len(t, deleted, 4-tt.left)
		if len(deleted) > 0 {
			require.Equal(t, "index/"+all[0], deleted[0])
		}
		require.Equal(t, all[4-tt.left:], names(t, fsys))
		_, some := x.DroppedFrom()
		require.False(t, some)
		require.Equal(t, tt.left, fsys.Mappings())
	}
}

func TestDeleteBeforeTakesADamagedFileThatTheNextOneOutlives(t *testing.T) {
	fsys, x := filled(t)
	require.NoError(t, x.Close())
	b := content(t, fsys)[0]
	copy(b, index.Header{IndexCount: -1}.AppendTo(nil))
	write(t, fsys, names(t, fsys)[0], b)
	x = open(t, fsys, tiny, nil)
	deleted, err := x.DeleteBefore(300)
	require.NoError(t, err)
	require.Empty(t, deleted)
	deleted, err = x.DeleteBefore(301)
	require.NoError(t, err)
	require.Len(t, deleted, 1)
}

// R-E-061, R-E-058: the checkpoint's index time moves with files that are full and synced.
func TestFullThroughFollowsFullAndSyncedFiles(t *testing.T) {
	fsys, x := filled(t)
	require.Zero(t, x.FullThrough())
	require.NoError(t, x.Sync())
	require.Equal(t, start+5000, x.FullThrough())
	put(t, x, 800, start+7000, "a")
	require.Equal(t, start+5000, x.FullThrough())
	require.NoError(t, x.Sync())
	require.Equal(t, start+7000, x.FullThrough())
	require.NoError(t, x.Close())

	x = open(t, fsys, tiny, nil) // who knows what a process before this one synced
	require.Zero(t, x.FullThrough())
	require.NoError(t, x.Sync())
	require.Equal(t, start+7000, x.FullThrough())
}

func TestOpenReportsWhatIsStrangeAndLeavesIt(t *testing.T) {
	fsys, x := filled(t)
	require.NoError(t, x.Close())
	write(t, fsys, "20991231000000000", nil) // a crash while it was made
	write(t, fsys, "20991399000000000", []byte("no time"))
	write(t, fsys, "readme", []byte("hands off"))
	require.NoError(t, fsys.MkdirAll("index/20240101000000000", 0o750))
	x = open(t, fsys, tiny, nil)
	kinds := map[string]string{}
	for _, n := range x.Notices() {
		kinds[n.File] = n.Kind
	}
	require.Equal(t, map[string]string{
		"index/20240101000000000": mappedfile.ForeignFile, "index/20991399000000000": mappedfile.ForeignFile,
		"index/readme": mappedfile.ForeignFile, "index/20991231000000000": mappedfile.EmptySegment,
	}, kinds)
	require.Len(t, x.Files(), 4)

	put(t, x, 800, start, "b")
	put(t, x, 900, start, "b") // a new file, whose name is greater than that of the empty one
	require.Equal(t, "20991231000000001", x.Files()[4].Name)
	dropped, err := x.RemoveAll()
	require.NoError(t, err)
	require.Len(t, dropped, 6)
	require.Equal(t, []string{"20240101000000000", "20991399000000000", "readme"}, names(t, fsys))
}

// R-E-009: a size that contradicts the shape names file and both sizes.
func TestOpenRefusesFilesOfAnotherSize(t *testing.T) {
	fsys, x := filled(t)
	require.NoError(t, x.Close())
	_, err := index.Open(fsys, "index", &index.Options{Slots: 3, Entries: 3})
	requireCorrupt(t, err, "index/20231114221320000", 0, "108 bytes, where 3 slots and 3 entries make 112")
	require.Zero(t, fsys.Mappings())
	write(t, fsys, "20231114221321000", make([]byte, 107))
	_, err = index.Open(fsys, "index", &index.Options{Slots: 2, Entries: 3})
	require.ErrorIs(t, err, mappedfile.ErrCorrupt)
	require.ErrorContains(t, err, "107 bytes")
	require.Zero(t, fsys.Mappings())
}

func TestRemovalThatFailsIsFinal(t *testing.T) {
	fsys := &stubborn{memfs.New()}
	x := open(t, fsys, tiny, nil)
	put(t, x, 1, start, "a b")
	put(t, x, 2, start, "a b")
	_, err := x.RemoveAll()
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorIs(t, x.Put(record(3, start, "a")), fs.ErrPermission)
	require.Equal(t, []int64{1}, offsets(t, x, "a"))
}

// stubborn removes nothing.
type stubborn struct{ mappedfile.FS }

func (*stubborn) Remove(name string) error {
	return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrPermission}
}
