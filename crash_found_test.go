package rocketstore_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
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
