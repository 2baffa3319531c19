package rocketstore_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/recovery"
)

// Queues that are made again are those that the real broker wrote, to the byte, whole and after either kind of stop, units
// of delayed messages with their delivery times. 4.9.7 brings back 112 of 401 after a kill, with tag hashes for the times.
func TestQueuesMadeAgainAreTheRealOnes(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"rocketmq-4.9.7/", "rocketmq-5.3.3/"} {
		for harmed, whole := range map[string]string{"missing-cq": "clean", "missing-cq-abort": "abort", "abort-cqbehind": "abort"} {
			t.Run(line+harmed, func(t *testing.T) {
				want, dir := golden.Unpack(t, line+whole), golden.Unpack(t, line+harmed)
				s, err := rocketstore.Open(dir, &rocketstore.Options{HoldDelayed: true, QueueSegmentSize: 1000}) // no file tells
				require.NoError(t, err)
				require.NoError(t, s.Close(t.Context()))
				have := golden.Snapshot(t, dir)
				n := 0
				for name, file := range golden.Snapshot(t, want) {
					if strings.HasPrefix(name, "consumequeue/") && file.Hash != "" {
						require.Equal(t, file.Hash, have[name].Hash, name)
						n++
					}
				}
				require.Greater(t, n, 20)
			})
		}
	}
}

// The checkpoint claims only what is durable in every queue: when one cannot be synced it stays as it was (R-E-062).
func TestCheckpointClaimsOnlyWhatIsDurable(t *testing.T) {
	fsys := crashfs.New(memfs.New())
	o := small()
	o.FS, o.HoldDelayed, o.FlushEvery, o.CheckpointEvery = fsys, true, time.Hour, time.Hour
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	put := func(topic string) int64 {
		res, err := s.Put(t.Context(), msg(topic, 0, "x", "", ""))
		require.NoError(t, err)
		_, end := s.Bounds()
		require.NoError(t, s.WaitDispatched(t.Context(), end))
		return res.StoreTimestamp
	}
	first := put("A")
	require.NoError(t, s.Checkpoint(t.Context()))
	put("A")
	put("B")
	fsys.Fail(crashfs.OpSyncRange, "rocketstore.new.consumequeue.B.0.*", syscall.EIO) // the name under which it was made
	require.ErrorIs(t, s.Checkpoint(t.Context()), syscall.EIO)
	require.ErrorIs(t, s.Close(t.Context()), syscall.EIO)
	c, damaged, err := recovery.ReadCheckpoint(fsys.Image(1))
	require.NoError(t, err)
	require.NoError(t, damaged)
	require.Equal(t, recovery.Checkpoint{Physic: first, Logics: first}, c)
	unclean, err := recovery.Aborted(fsys.Image(1))
	require.NoError(t, err)
	require.True(t, unclean) // so the next opening replays
}

// A log that ends with a blank goes on in the next segment; the original goes back before the blank and may write over it.
// Behind the blank's header lie zeros, not bytes of other messages (R-E-023).
func TestLogThatEndsWithABlankGoesOnInTheNextSegment(t *testing.T) {
	for _, clean := range []bool{true, false} {
		dir := golden.TempDir(t)
		s := open(t, dir, &rocketstore.Options{SegmentSize: 4096})
		for range 2 { // the second one does not fit behind the first
			_, err := s.Put(t.Context(), msg("T", 0, strings.Repeat("x", 3000), "", ""))
			require.NoError(t, err)
		}
		_, end := s.Bounds()
		require.NoError(t, s.WaitDispatched(t.Context(), end))
		require.NoError(t, s.Abandon())
		require.NoError(t, os.Truncate(filepath.Join(dir, "commitlog", mappedfile.SegmentName(4096)), 0)) // the second one is lost
		s = open(t, dir, nil)
		require.Len(t, bodies(t, s, "T", 0), 1)
		_, end = s.Bounds()
		require.EqualValues(t, 4096, end)
		b, err := os.ReadFile(filepath.Join(dir, "commitlog", mappedfile.SegmentName(0)))
		require.NoError(t, err)
		blank := int(binary.BigEndian.Uint32(b)) // the length of the first record
		require.Equal(t, 4096-blank, int(binary.BigEndian.Uint32(b[blank:])))
		require.Equal(t, make([]byte, 4096-blank-8), b[blank+8:])
		if clean {
			require.NoError(t, s.Close(t.Context()))
		} else {
			require.NoError(t, s.Abandon())
		}
		s = open(t, dir, nil)
		res, err := s.Put(t.Context(), msg("T", 0, "short", "", ""))
		require.NoError(t, err)
		require.EqualValues(t, 4096, res.PhysicalOffset)
		require.EqualValues(t, 1, res.QueueOffset)
		require.NoError(t, s.Close(t.Context()))
	}
}

// Stores that the original stopped cleanly, and whole, give no warning: neither addresses into the queue extension nor the
// delivery times of 3.1, which may be some ms off, are wrong units.
func TestWholeRealStoresGiveNoWarning(t *testing.T) {
	for _, name := range golden.Names() {
		switch filepath.Base(name) {
		case "clean", "ext", "lmq", "ipv6", "crc", "mid-transaction", "abort", "abort-lag":
		default:
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, golden.Unpack(t, name), &rocketstore.Options{HoldDelayed: true})
			require.Empty(t, s.Report().Warnings)
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

// Progress of the half topics that lies behind their end, as when the log lost what the file had noted, is set back: it would
// hide the transactions to come.
func TestProgressBehindTheEndOfTheHalfTopicIsSetBack(t *testing.T) {
	fsys := memfs.New()
	s := inMemory(t, fsys, "4.9")
	prepare(t, s, 2)
	s.SetConsumerOffset(rocketstore.HalfTopicName, rocketstore.TransactionGroup, 0, 50)
	require.NoError(t, s.SaveConsumerOffsets())
	require.NoError(t, s.Abandon())
	s = inMemory(t, fsys, "4.9")
	at, ok := s.ConsumerOffset(rocketstore.HalfTopicName, rocketstore.TransactionGroup, 0)
	require.True(t, ok)
	require.EqualValues(t, 2, at)
	put := prepare(t, s, 1)
	open := openSet(t, s)
	require.Len(t, open, 1)
	require.Equal(t, put[0].PhysicalOffset, open[0].PhysicalOffset)
	require.NoError(t, s.Close(t.Context()))
}
