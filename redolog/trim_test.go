package redolog_test

import (
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/redolog"
)

// R-B-54: what lies at or behind the cut goes, from the disk too, so that what comes then is not skipped.
func TestTruncateFromCutsWithTheCommitLog(t *testing.T) {
	for _, keep := range []int64{35, 34, 30, 29, 20, 13, 10, 1, 0} {
		fsys := memfs.New()
		log := filled(t, fsys, 35)
		removed, err := log.TruncateFrom(unit(keep).PhysicalOffset)
		require.NoError(t, err)
		require.Equal(t, 35-keep, removed)
		_, next := log.Bounds()
		require.Equal(t, keep, next)
		require.Len(t, names(t, fsys), int((keep+perFile-1)/perFile))
		if rest := keep % perFile; rest != 0 {
			b := bytesOf(t, fsys, keep/perFile*200)
			require.Equal(t, make([]byte, len(b)-int(rest)*20), b[rest*20:])
		}
		last, ok := log.Last()
		require.Equal(t, keep > 0, ok)
		if ok {
			require.Equal(t, unit(keep-1), last)
		}
		// A lower offset than the stale ones had: 3.1 would skip it.
		appended, err := log.Append(redolog.Unit{PhysicalOffset: unit(keep).PhysicalOffset, Size: 1, TagsCode: 7})
		require.NoError(t, err)
		require.True(t, appended)
		log = reopen(t, fsys, log)
		_, next = log.Bounds()
		require.Equal(t, keep+1, next)
	}
}

// R-B-60: cutting again changes nothing, and what lies behind the end unclaimed goes.
func TestTruncateFromCleansBehindTheEnd(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 13).Close())
	harm(t, fsys, 14, 0, 1, 2, 3) // behind an empty slot
	log := open(t, fsys, small())
	for range 2 {
		removed, err := log.TruncateFrom(1 << 40)
		require.NoError(t, err)
		require.Zero(t, removed)
		require.Equal(t, make([]byte, 7*20), bytesOf(t, fsys, 200)[3*20:])
	}
	require.Equal(t, span(0, 13), indexes(t, log, 0))
}

func TestTruncateAfterAndRemoveAll(t *testing.T) {
	fsys := memfs.New()
	log := filled(t, fsys, 35)
	require.NoError(t, log.TruncateAfter(99))
	require.NoError(t, log.TruncateAfter(21))
	require.Equal(t, span(0, 21), indexes(t, log, 0))
	require.NoError(t, log.RemoveAll())
	require.Empty(t, names(t, fsys))
	_, ok := log.Last()
	require.False(t, ok)
	_, err := log.Append(unit(0))
	require.NoError(t, err)
	require.Equal(t, span(0, 1), indexes(t, log, 0))
}

// R-B-61: whole files whose last unit's message is gone, oldest first, never the last file.
func TestDeleteBeforeRemovesWholeFiles(t *testing.T) {
	fsys := memfs.New()
	log := filled(t, fsys, 35)
	for _, tt := range []struct{ logStart, first int64 }{
		{0, 0},
		{unit(9).PhysicalOffset, 0},
		{unit(9).PhysicalOffset + 1, 10},
		{unit(9).PhysicalOffset + 1, 10},
		{unit(1000).PhysicalOffset, 30},
	} {
		before, _ := log.Bounds()
		list, err := log.DeletableBefore(tt.logStart)
		require.NoError(t, err)
		removed, err := log.DeleteBefore(tt.logStart)
		require.NoError(t, err)
		require.Len(t, removed, len(list))
		require.Len(t, removed, int(tt.first-before)/perFile)
		if len(removed) > 0 {
			require.Equal(t, path.Join(redolog.Dir, mappedfile.SegmentName(before*redolog.UnitSize)), removed[0])
		}
		require.Equal(t, span(tt.first, 35), indexes(t, log, 0))
	}
	log = reopen(t, fsys, log) // the log need not start at 0
	require.Equal(t, span(30, 35), indexes(t, log, 0))
	s, err := log.OpenSet()
	require.NoError(t, err)
	require.Equal(t, []int64{unit(31).PhysicalOffset, unit(33).PhysicalOffset, unit(34).PhysicalOffset}, slices.Collect(s.All()))
}

func TestDeleteBeforePassesDamagedUnits(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 45).Close())
	harm(t, fsys, 9, 8, 0xFF)
	for i := int64(10); i < 20; i++ {
		harm(t, fsys, i, 8, 0xFF)
	}
	log := open(t, fsys, small())
	_, err := log.DeleteBefore(unit(29).PhysicalOffset)
	require.NoError(t, err)
	require.Len(t, names(t, fsys), 4) // the second file says nothing, so it stays until the third goes
	_, err = log.DeleteBefore(unit(30).PhysicalOffset)
	require.NoError(t, err)
	require.Len(t, names(t, fsys), 2)
}

func TestFindEndWalksTheLastThreeFiles(t *testing.T) {
	for _, tt := range []struct {
		name      string
		index, at int64
		b         byte
		want      int64
		quick     int64
	}{
		{"no size in the last file", 43, 11, 0, 43, 45},
		{"a wrong tags code in the file before", 35, 12, 0x80, 35, 45},
		{"a negative offset in the third from the end", 20, 0, 0x80, 20, 45},
		{"damage before the third from the end", 19, 11, 0, 45, 45},
		{"an impossible last unit", 44, 11, 0, 44, 44},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := memfs.New()
			require.NoError(t, filled(t, fsys, 45).Close())
			harm(t, fsys, tt.index, tt.at, tt.b)
			log := open(t, fsys, small())
			_, next := log.Bounds()
			require.Equal(t, tt.quick, next)
			end, err := log.FindEnd(true)
			require.NoError(t, err)
			require.Equal(t, tt.want, end)
			require.NoError(t, log.TruncateAfter(end))
			require.Len(t, names(t, fsys), int((tt.want+perFile-1)/perFile))
		})
	}
}

func TestEmptyFilesAtTheEndArePassed(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 11).Close())
	for _, n := range []int64{10, 0} {
		for i := n; i < 11; i++ {
			harm(t, fsys, i, 0, make([]byte, redolog.UnitSize)...)
		}
		log := open(t, fsys, small())
		_, next := log.Bounds()
		require.Equal(t, n, next)
		end, err := log.FindEnd(true)
		require.NoError(t, err)
		require.Equal(t, n, end)
		require.NoError(t, log.Close())
	}
}

// A crash left a short last file: it is read as far as it goes, and made whole for writing.
func TestRepairOfAShortFile(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 15).Close())
	f, err := fsys.OpenFile(redolog.Dir+"/00000000000000000200", 2, 0)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(3*redolog.UnitSize+5))
	require.NoError(t, f.Close())

	log := open(t, fsys, small())
	require.Equal(t, span(0, 13), indexes(t, log, 0))
	did, err := log.Repair()
	require.NoError(t, err)
	require.NotEmpty(t, did)
	_, err = log.TruncateFrom(1 << 40)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 7*redolog.UnitSize), bytesOf(t, fsys, 200)[3*redolog.UnitSize:])
	_, err = log.Append(unit(13))
	require.NoError(t, err)
	require.Equal(t, span(0, 14), indexes(t, reopen(t, fsys, log), 0))
}
