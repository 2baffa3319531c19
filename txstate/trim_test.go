package txstate_test

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/txstate"
)

// R-B-53: the walk covers the last three files and ends at the first record that cannot be believed; the rest goes.
func TestFindEndWalksTheLastThreeFiles(t *testing.T) {
	for _, tt := range []struct {
		name    string
		number  int64
		at      int64
		b       byte
		want    int64
		believe bool // what is behind is found without the walk
	}{
		{"an unknown state in the last file", 43, 23, 0, 43, true},
		{"no size in the file before", 35, 11, 0, 35, true},
		{"a negative offset in the third from the end", 20, 0, 0x80, 20, true},
		{"damage before the third from the end", 19, 23, 7, 45, true},
		{"an impossible last record", 44, 23, 7, 44, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := memfs.New()
			require.NoError(t, filled(t, fsys, 45).Close())
			harm(t, fsys, tt.number, tt.at, tt.b)
			table := open(t, fsys, small())
			end, err := table.FindEnd(true)
			require.NoError(t, err)
			require.Equal(t, tt.want, end)
			if tt.believe {
				require.Equal(t, int64(45), table.Next())
			} else {
				require.Equal(t, tt.want, table.Next())
			}
			require.NoError(t, table.TruncateAfter(end))
			require.Equal(t, tt.want, table.Next())
			require.Len(t, names(t, fsys), int((tt.want+perFile-1)/perFile))
			require.NoError(t, table.Append(tt.want, record(tt.want)))
			require.Equal(t, tt.want+1, reopen(t, fsys, table).Next())
		})
	}
}

func TestFindEndPassesEmptyFiles(t *testing.T) {
	fsys := memfs.New()
	table := filled(t, fsys, 21)
	require.NoError(t, table.Close())
	harm(t, fsys, 20, 0, make([]byte, txstate.RecordSize)...)
	table = open(t, fsys, small())
	require.Equal(t, int64(20), table.Next())
	end, err := table.FindEnd(true)
	require.NoError(t, err)
	require.Equal(t, int64(20), end)
	require.NoError(t, table.Append(20, record(20)))
	require.Len(t, names(t, fsys), 3)
}

// A table of one file without a record may begin anywhere.
func TestEmptyFileDoesNotFixTheFirstNumber(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 1).Close())
	harm(t, fsys, 0, 0, make([]byte, txstate.RecordSize)...)
	table := open(t, fsys, small())
	require.Zero(t, table.Next())
	require.NoError(t, table.Append(3, record(3)))
	require.Equal(t, []string{"00000000000000000000"}, names(t, fsys))
	require.Equal(t, txstate.Filler(record(3)), get(t, table, 0))

	require.NoError(t, table.TruncateAfter(0))
	require.NoError(t, table.Append(25, record(25)))
	require.Equal(t, []string{"00000000000000000480"}, names(t, fsys))
}

// R-B-54, R-B-60 for the table: what is cut is gone from the disk, and cutting again changes nothing.
func TestTruncateAfterRemovesFromDisk(t *testing.T) {
	fsys := memfs.New()
	table := filled(t, fsys, 35)
	require.NoError(t, table.TruncateAfter(14))
	require.Equal(t, []string{"00000000000000000000", "00000000000000000240"}, names(t, fsys))
	b := bytesOf(t, fsys, 240)
	require.Equal(t, make([]byte, 6*txstate.RecordSize), b[4*txstate.RecordSize:])
	require.Equal(t, int64(14), table.Next())
	require.Len(t, openNumbers(t, table, 0), 14)
	_, err := table.Get(14)
	require.ErrorIs(t, err, txstate.ErrNotFound)
	require.NoError(t, table.TruncateAfter(14))
	require.NoError(t, table.TruncateAfter(99))
	require.Equal(t, int64(14), table.Next())
	require.Equal(t, b, bytesOf(t, fsys, 240))
	require.NoError(t, table.Append(14, record(14)))
	require.Equal(t, int64(15), reopen(t, fsys, table).Next())
}

func TestTruncateAfterTheFirstNumberLeavesNoFile(t *testing.T) {
	fsys := memfs.New()
	table := open(t, fsys, small())
	for i := int64(12); i < 35; i++ {
		require.NoError(t, table.Append(i, record(i)))
	}
	require.NoError(t, table.TruncateAfter(7))
	require.Empty(t, names(t, fsys))
	require.Equal(t, int64(7), table.Next())
	require.Empty(t, openNumbers(t, table, 0))
	require.NoError(t, table.Append(7, record(7)))
	require.Equal(t, []string{"00000000000000000000"}, names(t, fsys))
}

// R-B-61: whole files whose last record's message is gone, oldest first, never the last file.
func TestDeleteBeforeRemovesWholeFiles(t *testing.T) {
	fsys := memfs.New()
	table := filled(t, fsys, 35)
	for _, tt := range []struct {
		logStart int64
		first    int64
	}{
		{0, 0},
		{record(9).CommitOffset, 0}, // the last record's message is still there
		{record(9).CommitOffset + 1, 10},
		{record(9).CommitOffset + 1, 10},
		{record(1000).CommitOffset, 30},
	} {
		before, _ := table.Bounds()
		list, err := table.DeletableBefore(tt.logStart)
		require.NoError(t, err)
		removed, err := table.DeleteBefore(tt.logStart)
		require.NoError(t, err)
		require.Len(t, removed, len(list))
		first, next := table.Bounds()
		require.Equal(t, [2]int64{tt.first, 35}, [2]int64{first, next})
		require.Len(t, removed, int(first-before)/perFile)
		if len(removed) > 0 {
			require.Equal(t, path.Join(txstate.Dir, mappedfile.SegmentName(before*txstate.RecordSize)), removed[0])
		}
		require.Len(t, openNumbers(t, table, 0), int(next-first))
	}
	_, err := table.Get(29)
	require.ErrorIs(t, err, txstate.ErrNotFound)
	n, err := table.Len()
	require.NoError(t, err)
	require.Equal(t, 5, n)
}

// R-B-62: also where an open record of a file has a later message than the file's last record.
func TestDeleteBeforeKeepsFilesWithOpenMessages(t *testing.T) {
	for _, load := range []bool{true, false} {
		fsys := memfs.New()
		table := open(t, fsys, small())
		for i := range int64(35) {
			r := record(i)
			if i == 4 {
				r.CommitOffset = record(22).CommitOffset
			}
			require.NoError(t, table.Append(i, r))
		}
		if !load {
			table = reopen(t, fsys, table)
		}
		_, err := table.DeleteBefore(record(20).CommitOffset)
		require.NoError(t, err)
		require.Len(t, names(t, fsys), 4)
		resolve(t, table, 4)
		_, err = table.DeleteBefore(record(20).CommitOffset)
		require.NoError(t, err)
		require.Len(t, names(t, fsys), 2)
	}
}

func TestDeleteBeforePassesDamagedRecords(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 45).Close())
	harm(t, fsys, 9, 23, 0)
	for i := int64(10); i < 20; i++ {
		harm(t, fsys, i, 23, 0)
	}
	table := open(t, fsys, small())
	_, err := table.DeleteBefore(record(9).CommitOffset)
	require.NoError(t, err)
	require.Len(t, names(t, fsys), 4) // the second file says nothing, so it stays
	_, err = table.DeleteBefore(record(29).CommitOffset)
	require.NoError(t, err)
	require.Len(t, names(t, fsys), 4)
	_, err = table.DeleteBefore(record(30).CommitOffset)
	require.NoError(t, err)
	require.Len(t, names(t, fsys), 2) // it goes with the third
}

// A crash left a short last file: it is read as far as it goes, and made whole for writing.
func TestRepairOfAShortFile(t *testing.T) {
	fsys := memfs.New()
	require.NoError(t, filled(t, fsys, 15).Close())
	f, err := fsys.OpenFile(txstate.Dir+"/00000000000000000240", 2, 0)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(3*txstate.RecordSize+5))
	require.NoError(t, f.Close())

	table := open(t, fsys, small())
	require.Equal(t, int64(13), table.Next())
	require.Equal(t, mappedfile.ShortSegment, table.Notices()[0].Kind)
	did, err := table.Repair()
	require.NoError(t, err)
	require.NotEmpty(t, did)
	require.NoError(t, table.TruncateAfter(table.Next()))
	require.Equal(t, make([]byte, 7*txstate.RecordSize), bytesOf(t, fsys, 240)[3*txstate.RecordSize:])
	require.NoError(t, table.Append(13, record(13)))
	require.Equal(t, int64(14), reopen(t, fsys, table).Next())
}
