package rocketstore_test

import (
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
)

// overwrite writes bytes into a file.
func overwrite(t *testing.T, fsys *memfs.FS, name string, at int64, b []byte) {
	t.Helper()
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(b, at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// longAfterTransactions is a killed store of 3.1: 25 transactions, two of them ended, and then so many plain messages that
// recovery walks only the last segment of the log.
func longAfterTransactions(t *testing.T) (fsys *memfs.FS, put []rocketstore.PutResult, plain rocketstore.PutResult) {
	t.Helper()
	return longAfter(t, 25)
}

func longAfter(t *testing.T, transactions int) (fsys *memfs.FS, put []rocketstore.PutResult, plain rocketstore.PutResult) {
	t.Helper()
	fsys = memfs.New()
	now := int64(1_700_000_000_000)
	o := small()
	o.FS, o.Dialect, o.HoldDelayed = fsys, "3.1", true
	o.StateSegmentSize, o.RedoSegmentSize = 240, 200
	o.Now = func() int64 { now += 1000; return now }
	s := open(t, "", o)
	put = prepare(t, s, transactions)
	commit(t, s, put[3], put[5])
	for i := range 60 {
		r, err := s.Put(t.Context(), msg("T", 0, strings.Repeat("x", 500), "tag", "key"))
		require.NoError(t, err)
		if plain = r; i == 0 {
			require.NoError(t, s.WaitDispatched(t.Context(), r.PhysicalOffset+1))
		}
	}
	require.NoError(t, s.WaitDispatched(t.Context(), plain.PhysicalOffset+1))
	require.NoError(t, s.Checkpoint(t.Context()))
	require.NoError(t, s.Abandon())
	return fsys, put, plain
}

// reopened opens a killed store so that only the last segment is looked at when nothing speaks against it.
func reopened(t *testing.T, fsys *memfs.FS) *rocketstore.Store {
	t.Helper()
	o := small()
	o.FS, o.HoldDelayed, o.Recovery.VerifyBytes = fsys, true, 1
	return open(t, "", o)
}

// numbersAsPut says that exactly the transactions but those left out are open, each under its number.
func numbersAsPut(t *testing.T, s *rocketstore.Store, put []rocketstore.PutResult, out ...int64) {
	t.Helper()
	var want, got []int64
	for _, r := range put {
		want = append(want, r.QueueOffset)
	}
	for _, tx := range openSet(t, s) {
		got = append(got, tx.Number)
		require.Equal(t, put[tx.Number].PhysicalOffset, tx.PhysicalOffset)
	}
	require.ElementsMatch(t, want, append(got, out...))
}

// A damaged unit of the redo log, before the place where recovery's walk begins, is found: the redo log is made again from the
// whole log, and no open transaction is lost, renumbered or made up (R-B-50, R-B-54, R-B-57).
func TestDamagedRedoUnitBeforeTheWalkLosesNoTransaction(t *testing.T) {
	fsys, put, plain := longAfterTransactions(t)
	s := reopened(t, fsys)
	require.Positive(t, s.Report().Start)
	numbersAsPut(t, s, put, 3, 5)
	require.NoError(t, s.Abandon())
	first, second := put[0].PhysicalOffset, put[1].PhysicalOffset
	size := int32(put[1].Size)
	for name, u := range map[string]redolog.Unit{
		"within a record":        {PhysicalOffset: second + 1, Size: size, TagsCode: redolog.Prepared},
		"beyond the log":         {PhysicalOffset: 1 << 62, Size: size, TagsCode: redolog.Prepared},
		"negative":               {PhysicalOffset: -5, Size: size, TagsCode: redolog.Prepared},
		"no size":                {PhysicalOffset: second, TagsCode: redolog.Prepared},
		"another size":           {PhysicalOffset: second, Size: 7, TagsCode: redolog.Prepared},
		"an end of nothing":      {PhysicalOffset: second, Size: size, TagsCode: 12345},
		"an end of another":      {PhysicalOffset: second, Size: size, TagsCode: first},
		"another tag":            {PhysicalOffset: second, Size: size, TagsCode: -2},
		"a plain message":        {PhysicalOffset: plain.PhysicalOffset, Size: int32(plain.Size), TagsCode: redolog.Prepared},
		"ended by a plain one":   {PhysicalOffset: plain.PhysicalOffset, Size: int32(plain.Size), TagsCode: first},
		"ended within a record":  {PhysicalOffset: second + 1, Size: size, TagsCode: first},
		"zeros":                  {},
		"ones":                   {PhysicalOffset: -1, Size: -1, TagsCode: -1},
		"the one before again":   {PhysicalOffset: first, Size: int32(put[0].Size), TagsCode: redolog.Prepared},
		"the one behind already": {PhysicalOffset: put[2].PhysicalOffset, Size: size, TagsCode: redolog.Prepared},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, put, _ := longAfterTransactions(t)
			overwrite(t, fsys, path.Join(redolog.Dir, mappedfile.SegmentName(0)), redolog.UnitSize, u.AppendTo(nil))
			for range 2 { // and what is made is right
				s := reopened(t, fsys)
				numbersAsPut(t, s, put, 3, 5)
				require.NoError(t, s.Abandon())
			}
		})
	}
}

// So are files of the redo log that are gone: the first, one between, the last, all.
func TestMissingRedoFilesLoseNoTransaction(t *testing.T) {
	for name, files := range map[string][]int64{"first": {0}, "between": {200}, "last": {400}, "all": {0, 200, 400}} {
		t.Run(name, func(t *testing.T) {
			fsys, put, _ := longAfterTransactions(t)
			for _, start := range files {
				require.NoError(t, fsys.Remove(path.Join(redolog.Dir, mappedfile.SegmentName(start))))
			}
			s := reopened(t, fsys)
			numbersAsPut(t, s, put, 3, 5)
			require.NoError(t, s.Abandon())
		})
	}
}

// And so are they when the log no longer begins at 0, with what the redo log had of the deleted segments there or not (R-B-50,
// R-B-61).
func TestMissingRedoFilesOfALogThatBeginsLaterLoseNoTransaction(t *testing.T) {
	for name, files := range map[string][]int64{
		"those of the deleted segment": {0}, "the first of the log": {0, 200, 400, 600}, "most": {0, 200, 400, 600, 800, 1000, 1200},
		"one between": {0, 1000}, "all": {0, 200, 400, 600, 800, 1000, 1200, 1400, 1600},
	} {
		t.Run(name, func(t *testing.T) {
			fsys, put, _ := longAfter(t, 80)
			require.NoError(t, fsys.Remove(path.Join(recovery.CommitLogDir, mappedfile.SegmentName(0))))
			for _, start := range files {
				require.NoError(t, fsys.Remove(path.Join(redolog.Dir, mappedfile.SegmentName(start))))
			}
			var gone []int64
			for _, r := range put {
				if r.PhysicalOffset < 8192 {
					gone = append(gone, r.QueueOffset)
				}
			}
			if gone = append(gone, 3, 5); gone[3] == 3 {
				gone = gone[:len(gone)-2]
			}
			for range 2 {
				s := reopened(t, fsys)
				numbersAsPut(t, s, put, gone...)
				require.NoError(t, s.Abandon())
			}
		})
	}
}

// A prepared message whose body is damaged, before the walk, is left out of the table and told; the store opens, and the
// others keep their numbers (R-B-55).
func TestDamagedPreparedMessageBeforeTheWalkIsToldAndLeftOut(t *testing.T) {
	fsys, put, _ := longAfterTransactions(t)
	overwrite(t, fsys, path.Join(recovery.CommitLogDir, mappedfile.SegmentName(0)), put[1].PhysicalOffset+88, []byte{0x5a})
	s := reopened(t, fsys)
	numbersAsPut(t, s, put, 1, 3, 5)
	require.Equal(t, 1, kinds(s)[recovery.KindNoPrepared])
	require.NoError(t, s.Close(t.Context()))
	numbersAsPut(t, reopened(t, fsys), put, 1, 3, 5)
}

// Damage that is passed over leaves a redo log without a unit for what stands for the lost bytes: the next opening finds all as it is,
// and the transactions are those of the records that are left (R-E-071, R-E-073, R-B-57).
func TestSecondOpeningAfterSkipChangesNothingOfTransactions(t *testing.T) {
	for name, hurt := range map[string][]int{"plain messages": {3, 30}, "the last one too": {3, 59}, "prepared ones": {62, 64}, "an end": {85}} {
		t.Run(name, func(t *testing.T) {
			fsys := memfs.New()
			o := small()
			o.FS, o.Dialect, o.HoldDelayed, o.StateSegmentSize, o.RedoSegmentSize = fsys, "3.1", true, 240, 200
			s := open(t, "", o)
			var all []rocketstore.PutResult
			for range 60 {
				r, err := s.Put(t.Context(), msg("T", 0, strings.Repeat("x", 300), "tag", "key"))
				require.NoError(t, err)
				all = append(all, r)
			}
			put := prepare(t, s, 25)
			all = append(all, put...)
			end, err := s.EndTransaction(t.Context(), endOf(put[6], true))
			require.NoError(t, err)
			all = append(all, end)
			r, err := s.Put(t.Context(), msg("T", 0, "last", "tag", "key"))
			require.NoError(t, err)
			require.NoError(t, s.WaitDispatched(t.Context(), r.PhysicalOffset+1))
			require.NoError(t, s.Abandon())
			for _, i := range hurt {
				at := all[i].PhysicalOffset
				overwrite(t, fsys, path.Join(recovery.CommitLogDir, mappedfile.SegmentName(at/8192*8192)), at%8192+90, []byte{0xff, 0xfe})
			}
			o.Recovery.OnDamage = recovery.Skip
			s = open(t, "", o)
			require.Equal(t, len(hurt), kinds(s)[recovery.KindSkipped])
			switch name {
			case "prepared ones":
				numbersAsPut(t, s, put, 2, 4, 6)
			case "an end": // its message is gone with it: the producer is asked again
				numbersAsPut(t, s, put)
			default:
				numbersAsPut(t, s, put, 6)
			}
			require.NoError(t, s.Abandon())
			first, err := diskContents(fsys)
			require.NoError(t, err)
			o.Recovery.OnDamage = recovery.Refuse
			require.NoError(t, open(t, "", o).Abandon())
			second, err := diskContents(fsys)
			require.NoError(t, err)
			for name := range first {
				require.Equal(t, first[name], second[name], name)
			}
			require.Len(t, second, len(first))
		})
	}
}
