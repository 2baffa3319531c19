package rocketstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// The tests here are of what the crash images found, one for each mended bug.

// Staged bytes are dispatched when they are committed, not only with the next put; Close waits for that (R-E-068).
func TestStagedMessagesAreDispatchedOnceCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small()
		o.FS, o.Write, o.FlushEvery = memfs.New(), mappedfile.Staged, time.Hour
		s, err := rocketstore.Open("", o)
		require.NoError(t, err)
		_, err = s.Put(t.Context(), msg("T", 0, "staged", "", ""))
		require.NoError(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		got, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: "T"})
		require.NoError(t, err)
		require.Len(t, got.Records, 1)
		got.Release()
		_, err = s.Put(t.Context(), msg("T", 0, "not committed when the store is closed", "", ""))
		require.NoError(t, err)
		require.NoError(t, s.Close(t.Context()))
		s, err = rocketstore.Open("", o)
		require.NoError(t, err)
		require.Len(t, bodies(t, s, "T", 0), 2)
		require.NoError(t, s.Close(t.Context()))
	})
}

// A clean stop is believed also when the log's last record is the first one of its segment (R-E-074).
func TestCleanStopIsBelievedRightAfterARoll(t *testing.T) {
	o := small()
	o.FS, o.SegmentSize = memfs.New(), 4096
	for i := range 30 {
		s, err := rocketstore.Open("", o)
		require.NoError(t, err)
		require.Equal(t, i > 0, s.Report().Trusted, i)
		_, err = s.Put(t.Context(), msg("T", 0, "some two hundred bytes with what is around: "+strings.Repeat("x", i), "", ""))
		require.NoError(t, err)
		require.NoError(t, s.Close(t.Context()))
	}
}

// An index file made again has the name that it had: that of the first record, with or without keys (R-E-073).
func TestIndexIsMadeAgainUnderItsName(t *testing.T) {
	o := small()
	now := int64(1_000_000)
	o.FS, o.Now = memfs.New(), func() int64 { now += 1000; return now }
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	for _, keys := range []string{"", "", "key"} {
		_, err := s.Put(t.Context(), msg("T", 0, "body", "tag", keys))
		require.NoError(t, err)
	}
	var names []string
	for range 3 {
		_, end := s.Bounds()
		require.NoError(t, s.WaitDispatched(t.Context(), end))
		require.NoError(t, s.Abandon())
		entries, err := o.FS.ReadDir("index")
		require.NoError(t, err)
		require.Len(t, entries, 1)
		names = append(names, entries[0].Name())
		s, err = rocketstore.Open("", o)
		require.NoError(t, err)
	}
	require.NoError(t, s.Abandon())
	require.Equal(t, names[0], names[1])
	require.Equal(t, names[0], names[2])
}

// A power cut during the very first opening leaves a directory that opens with the same options (R-E-082).
func TestFirstOpeningMayBeCutAnywhere(t *testing.T) {
	o := small()
	o.Transactions = rocketstore.StateTable
	for _, o.Dialect = range []string{"3.1", "4.9", "5.3"} {
		for cut := 0; ; cut++ {
			disk := crashfs.New(memfs.New())
			disk.CrashAfter(cut)
			o.FS = disk
			s, err := rocketstore.Open("", o)
			if err == nil {
				require.NoError(t, s.Abandon())
			}
			for image := range disk.Images(64) {
				o.FS = image.FS
				s, err := rocketstore.Open("", o)
				require.NoError(t, err, "dialect %s, cut after %d, %s", o.Dialect, cut, image.Text)
				require.NoError(t, s.Abandon())
			}
			if err == nil {
				break
			}
		}
	}
}

// All keys of a record are found when the index file that holds only the last of them is lost (R-E-066).
func TestRecordWhoseKeysLieInTwoIndexFiles(t *testing.T) {
	for n := range 12 {
		o := small()
		o.FS, o.IndexEntries = memfs.New(), 8
		s, err := rocketstore.Open("", o)
		require.NoError(t, err)
		for i := range n + 1 {
			_, err := s.Put(t.Context(), msg("T", 0, "body", "tag", fmt.Sprintf("a%d b%d c%d", i, i, i)))
			require.NoError(t, err)
		}
		_, end := s.Bounds()
		require.NoError(t, s.WaitDispatched(t.Context(), end))
		require.NoError(t, s.Checkpoint(t.Context()))
		require.NoError(t, s.Abandon())
		files, err := o.FS.ReadDir("index")
		require.NoError(t, err)
		require.NoError(t, o.FS.Remove("index/"+files[len(files)-1].Name()))
		s, err = rocketstore.Open("", o)
		require.NoError(t, err)
		for i := range n + 1 {
			for _, key := range []string{"a", "b", "c"} {
				found := 0
				for _, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: "T", Key: fmt.Sprint(key, i)}) {
					require.NoError(t, err)
					found++
				}
				require.Equal(t, 1, found, "%d messages, key %s%d", n+1, key, i)
			}
		}
		require.NoError(t, s.Close(t.Context()))
	}
}

// unclean leaves a store of forty messages on fsys as a kill does; with vouched all of it was noted to be durable.
func unclean(t *testing.T, fsys mappedfile.FS, vouched bool) {
	t.Helper()
	o := small()
	o.FS = fsys
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	for i := range 40 {
		_, err := s.Put(t.Context(), msg("T", 0, fmt.Sprint("body ", i, strings.Repeat(".", 400)), "tag", ""))
		require.NoError(t, err)
	}
	_, end := s.Bounds()
	require.NoError(t, s.WaitDispatched(t.Context(), end))
	if vouched {
		require.NoError(t, s.Checkpoint(t.Context()))
	}
	require.NoError(t, s.Abandon())
}

// harm writes b into the first segment.
func harm(t *testing.T, fsys mappedfile.FS, b []byte, offset int64) {
	t.Helper()
	f, err := fsys.OpenFile("commitlog/"+mappedfile.SegmentName(0), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(b, offset)
	require.NoError(t, errors.Join(err, f.Close()))
}

// Pages that were on their way to the disk at a power cut may be missing with later ones there. Then the log ends before the
// first missing one, and what lies behind is kept aside; nobody has to decide (R-E-082).
func TestPagesLostInAPowerCutEndTheLog(t *testing.T) {
	fsys := memfs.New()
	unclean(t, fsys, false)
	harm(t, fsys, make([]byte, mappedfile.PageSize), mappedfile.PageSize)
	s, err := rocketstore.Open("", &rocketstore.Options{FS: fsys})
	require.NoError(t, err)
	left := len(bodies(t, s, "T", 0))
	require.Less(t, left, 10)
	require.Contains(t, fmt.Sprint(s.Report().Warnings), recovery.KindLostPages)
	_, end := s.Bounds()
	r, err := s.Put(t.Context(), msg("T", 0, "next", "", ""))
	require.NoError(t, err)
	require.EqualValues(t, left, r.QueueOffset)
	require.Equal(t, end, r.PhysicalOffset)
	require.NoError(t, s.Close(t.Context()))
	aside, err := fsys.ReadDir("lost+found/commitlog")
	require.NoError(t, err)
	require.NotEmpty(t, aside)
}

// What was known to be durable, or lost no page since the system still runs, or was changed rather than never written, is
// damage: it needs a decision (R-E-071).
func TestDamageThatNoPowerCutLeavesNeedsAChoice(t *testing.T) {
	for _, tt := range []struct {
		name    string
		vouched bool
		real    bool
		bytes   []byte
	}{
		{name: "durable at the last checkpoint", vouched: true, bytes: make([]byte, mappedfile.PageSize)},
		{name: "the system was not started anew", real: true, bytes: make([]byte, mappedfile.PageSize)},
		{name: "not zeros", bytes: []byte{1}},
		{name: "zeros, but not to the end of a sector", bytes: make([]byte, 300)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var fsys mappedfile.FS = memfs.New()
			if tt.real {
				var err error
				fsys, err = mappedfile.OpenDir(golden.TempDir(t), nil)
				require.NoError(t, err)
				if mappedfile.BootID(fsys) == "" {
					return // the system does not tell
				}
			}
			unclean(t, fsys, tt.vouched)
			harm(t, fsys, tt.bytes, mappedfile.PageSize)
			_, err := rocketstore.Open("", &rocketstore.Options{FS: fsys})
			var refused *recovery.RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, recovery.KindDamage, refused.Kind)
		})
	}
}

// What was kept aside is not lost when the recovery that did so is cut off and repeated, nor when the log is cut at the same
// place another time.
func TestWhatIsKeptAsideStays(t *testing.T) {
	aside := "lost+found/commitlog/" + mappedfile.SegmentName(0)
	for cut := 0; ; cut++ {
		fsys := memfs.New()
		unclean(t, fsys, false)
		harm(t, fsys, make([]byte, mappedfile.PageSize), 0)
		want := fileBytes(t, fsys, "commitlog/"+mappedfile.SegmentName(0))
		disk := crashfs.New(fsys)
		disk.CrashAfter(cut)
		s, first := rocketstore.Open("", &rocketstore.Options{FS: disk})
		if first == nil {
			require.NoError(t, s.Abandon())
		}
		image := disk.Image(7)
		s, err := rocketstore.Open("", &rocketstore.Options{FS: image})
		require.NoError(t, err, cut)
		got := fileBytes(t, image, aside+".0")
		require.Equal(t, bytes.TrimRight(want, "\x00"), bytes.TrimRight(got, "\x00"), cut)
		if first == nil {
			_, err = s.Put(t.Context(), msg("T", 0, "other bytes", "", ""))
			require.NoError(t, err)
			_, err = s.Put(t.Context(), msg("T", 0, strings.Repeat("!", 2*mappedfile.PageSize-1000), "", ""))
			require.NoError(t, err)
			_, err = s.Put(t.Context(), msg("T", 0, "behind", "", ""))
			require.NoError(t, err)
			require.NoError(t, s.Abandon())
			harm(t, image, make([]byte, 2*mappedfile.PageSize), 0)
			s, err = rocketstore.Open("", &rocketstore.Options{FS: image})
			require.NoError(t, err)
			require.NoError(t, s.Abandon())
			require.Equal(t, got, fileBytes(t, image, aside+".0")[:len(got)])
			return
		}
		require.NoError(t, s.Abandon())
	}
}

func fileBytes(t *testing.T, fsys mappedfile.FS, name string) []byte {
	t.Helper()
	s, err := diskContent(fsys, name)
	require.NoError(t, err)
	return []byte(s)
}

// Whoever loses the redo log, or its last files, after a kill still finds what is open: the log is read from its start
// (R-B-57, R-E-066).
func TestLostRedoLogIsMadeAgain(t *testing.T) {
	for _, keep := range []int{0, 1} {
		o := small()
		o.FS, o.Dialect, o.RedoSegmentSize, o.Recovery.VerifyBytes = memfs.New(), "3.1", 40, 1
		o.NoIndex = true // it would have the log read from its start
		s, err := rocketstore.Open("", o)
		require.NoError(t, err)
		for i := range 60 {
			m := msg("T", 0, strings.Repeat(".", 300), "tag", "")
			if i < 3 {
				m.SysFlag = m.SysFlag.WithTransaction(message.FlagPrepared)
			}
			_, err := s.Put(t.Context(), m)
			require.NoError(t, err)
		}
		_, end := s.Bounds()
		require.NoError(t, s.WaitDispatched(t.Context(), end))
		require.NoError(t, s.Checkpoint(t.Context()))
		require.NoError(t, s.Abandon())
		files, err := o.FS.ReadDir(redolog.Dir)
		require.NoError(t, err)
		for _, f := range files[keep:] {
			require.NoError(t, o.FS.Remove(redolog.Dir+"/"+f.Name()))
		}
		s, err = rocketstore.Open("", o)
		require.NoError(t, err)
		require.Len(t, openSet(t, s), 3)
		require.NoError(t, s.Close(t.Context()))
	}
}

// The folders of the transactions are durable before anything in them counts as durable (R-E-013).
func TestTransactionFoldersAreDurable(t *testing.T) {
	disk := crashfs.New(memfs.New())
	o := small()
	o.FS, o.Dialect = disk, "3.1"
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), msg("T", 0, "of no transaction", "tag", ""))
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	s, err = rocketstore.Open("", o) // finds the folders there
	require.NoError(t, err)
	m := msg("T", 0, "prepared", "tag", "")
	m.SysFlag = m.SysFlag.WithTransaction(message.FlagPrepared)
	_, err = s.Put(t.Context(), m)
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	o.FS = disk.Image(0)
	for _, dir := range []string{redolog.Dir, txstate.Dir} {
		files, err := o.FS.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 1)
	}
}

// How far delayed messages are delivered, and what groups have read, is never noted before the log is durable up to there: a
// message delivered but lost in a power cut would not be delivered again, and a group would pass over new messages that
// take the places of lost ones.
func TestProgressIsNotNotedBeforeTheLogIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := crashfs.New(memfs.New())
		o := small()
		o.FS, o.FlushEvery, o.CheckpointEvery = disk, time.Hour, time.Hour
		s, err := rocketstore.Open("", o)
		require.NoError(t, err)
		_, err = s.Put(t.Context(), delayed(t, "one second", "1"))
		require.NoError(t, err)
		require.NoError(t, s.Sync())
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Len(t, bodies(t, s, "T", 3), 1)
		r, err := s.Put(t.Context(), msg("T", 3, "read", "tag", ""))
		require.NoError(t, err)
		s.SetConsumerOffset("T", "Group", 3, r.QueueOffset+1)
		require.NoError(t, s.SaveConsumerOffsets())
		require.NoError(t, s.Abandon())

		o.FS = disk.Image(0)
		s, err = rocketstore.Open("", o)
		require.NoError(t, err)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Contains(t, bodies(t, s, "T", 3), "one second")
		at, ok := s.ConsumerOffset("T", "Group", 3)
		require.True(t, ok)
		require.LessOrEqual(t, at, int64(len(bodies(t, s, "T", 3))))
		require.NoError(t, s.Close(t.Context()))
	})
}

// Keys of records before the place where recovery begins to read are found when the index file that held them is lost, also if
// no record from there on has a key (R-E-066).
func TestKeysBeforeTheWalkAreFound(t *testing.T) {
	o := small()
	o.FS, o.Dialect, o.IndexEntries, o.Recovery.VerifyBytes = memfs.New(), "3.1", 8, 1
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	const keyed = 10
	for i := range 80 {
		keys := ""
		if i < keyed {
			keys = fmt.Sprint("key", i)
		}
		_, err := s.Put(t.Context(), msg("T", 0, strings.Repeat(".", 400), "tag", keys))
		require.NoError(t, err)
	}
	_, end := s.Bounds()
	require.NoError(t, s.WaitDispatched(t.Context(), end))
	require.NoError(t, s.Checkpoint(t.Context()))
	require.NoError(t, s.Abandon())
	files, err := o.FS.ReadDir("index")
	require.NoError(t, err)
	require.Greater(t, len(files), 1)
	for _, f := range files[1:] {
		require.NoError(t, o.FS.Remove("index/"+f.Name()))
	}
	s, err = rocketstore.Open("", o)
	require.NoError(t, err)
	for i := range keyed {
		n := 0
		for _, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: "T", Key: fmt.Sprint("key", i)}) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 1, n, "key%d", i)
	}
	require.NoError(t, s.Close(t.Context()))
}
