package rocketstore_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// The tests here are of what broken directories found, one for each mended bug.

// No checksum covers a record's queue offset. One that is more than the log has room for moves neither the record nor the
// queue's end, and fills no disk, with queues and without (R-E-043, R-E-078).
func TestAWildQueueOffsetLeavesTheQueueAsItIs(t *testing.T) {
	t.Parallel()
	for _, wild := range []uint64{2000, 100_000, 10_000_000, 1 << 24, 1 << 48, 1<<48 + 1, math.MaxInt64, 1 << 63} {
		for _, clean := range []bool{true, false} {
			for _, queues := range []bool{true, false} {
				h := newHarmed(t, "4.9", clean)
				writeAt(t, h.log(), h.put[5].PhysicalOffset+20, binary.BigEndian.AppendUint64(nil, wild))
				remove(t, h.path("config/rocketstore.json"))
				if !queues {
					remove(t, h.path("consumequeue"))
				}
				s := open(t, h.dir, &h.opts)
				for q, err := range s.Queues(t.Context()) {
					require.NoError(t, err)
					require.EqualValues(t, 10, q.Max, "%d, clean %v, queues %v", wild, clean, queues)
				}
				require.Len(t, bodies(t, s, "T", 0), 10)
				require.NoError(t, s.Close(t.Context()))
				files, err := os.ReadDir(h.path("consumequeue/T/0"))
				require.NoError(t, err)
				require.Len(t, files, 1)
			}
		}
	}
}

// What lies behind the units of a queue and is none is made zeros after a clean stop too, so that no other program comes
// upon it (R-E-012, R-E-068).
func TestWhatIsNoUnitBehindAQueueIsMadeZeros(t *testing.T) {
	for name, junk := range map[string][]byte{
		"impossible units":    bytes.Repeat([]byte{0xFF}, 40),
		"half a unit":         append(make([]byte, 19), 5),
		"units behind a hole": append(make([]byte, 60), 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarmed(t, "4.9", true)
			remove(t, h.path("config/rocketstore.json"))
			whole, err := os.ReadFile(h.queue())
			require.NoError(t, err)
			writeAt(t, h.queue(), 200, junk)
			_, changes, err := rocketstore.Plan(t.Context(), h.dir, &h.opts)
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(changes, func(c recovery.Change) bool { return c.File == "consumequeue/T/0" }), "%v", changes)
			s := open(t, h.dir, &h.opts)
			require.Len(t, bodies(t, s, "T", 0), 10)
			require.NoError(t, s.Close(t.Context()))
			mended, err := os.ReadFile(h.queue())
			require.NoError(t, err)
			require.Equal(t, whole, mended)
		})
	}
}

// A table that the store needs and that cannot be read is a refusal, which planning foresees; it is never taken for an
// empty one (R-E-064).
func TestADamagedTableIsARefusal(t *testing.T) {
	h := newHarmed(t, "4.9", false)
	const name = "config/consumerOffset.json"
	require.NoError(t, os.MkdirAll(h.path("config"), 0o750))
	require.NoError(t, os.WriteFile(h.path(name), make([]byte, 83), 0o600))
	remove(t, h.path(name+".bak"))
	before := golden.Snapshot(t, h.dir)
	_, _, planned := rocketstore.Plan(t.Context(), h.dir, &h.opts)
	_, err := rocketstore.Open(h.dir, &h.opts)
	require.EqualError(t, planned, err.Error())
	var refused *recovery.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, recovery.KindDamagedTable, refused.Kind)
	require.Equal(t, name, refused.File)
	require.ErrorContains(t, err, name)
	var damage *config.DamageError
	require.ErrorAs(t, err, &damage)
	require.Equal(t, before, golden.Snapshot(t, h.dir))
}

// What the redo log says of records that a gap took away holds: an ended transaction stays ended, whether its own message or
// its end is gone, and one whose message is gone is not open; after a kill as after a clean stop (R-B-50, R-B-55, R-E-009).
func TestEndedTransactionsStayEndedWhenAGapTakesTheirEnds(t *testing.T) {
	for _, clean := range []bool{true, false} {
		o := small()
		o.Dialect, o.SegmentSize = "3.1", 4096
		dir := golden.TempDir(t)
		s := open(t, dir, o)
		put := prepare(t, s, 90)
		commit(t, s, put[:20]...)
		_, end := s.Bounds()
		require.NoError(t, s.WaitDispatched(t.Context(), end))
		open1 := openSet(t, s)
		commit(t, s, put[20:40]...)
		_, end = s.Bounds()
		require.NoError(t, s.WaitDispatched(t.Context(), end))
		wantOpen := openSet(t, s)
		require.Len(t, open1, 70)
		require.Len(t, wantOpen, 50)
		require.NoError(t, s.Close(t.Context()))
		segments, err := os.ReadDir(filepath.Join(dir, "commitlog"))
		require.NoError(t, err)
		require.Greater(t, len(segments), 4)
		for _, i := range []int{1, len(segments) - 2} { // prepared messages, and ends
			lost, ok := mappedfile.ParseSegmentName(segments[i].Name())
			require.True(t, ok)
			remove(t, filepath.Join(dir, "commitlog", segments[i].Name()))
			wantOpen = slices.DeleteFunc(wantOpen, func(tx golden.OpenTransaction) bool {
				return lost <= tx.PhysicalOffset && tx.PhysicalOffset < lost+o.SegmentSize
			})
		}
		remove(t, filepath.Join(dir, "config/rocketstore.json"))
		if !clean {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "abort"), nil, 0o600))
		}
		for range 2 {
			s = open(t, dir, o)
			require.Equal(t, wantOpen, openSet(t, s), "clean %v", clean)
			require.NoError(t, s.Close(t.Context()))
		}
	}
}

// A record of the state table that cannot be right is made again after a clean stop too, also one of an ended transaction:
// the original would end there and hand out the numbers behind it again (R-B-53, R-B-58).
func TestARecordOfTheStateTableThatCannotBeRightIsMadeAgain(t *testing.T) {
	h := newHarmed(t, "3.1", true)
	remove(t, h.path("config/rocketstore.json"))
	file := h.path("transaction/statetable/00000000000000000000")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	writeAt(t, file, 24, make([]byte, 24)) // the second is the one that is ended
	s := open(t, h.dir, &h.opts)
	require.Len(t, openSet(t, s), 2)
	require.NoError(t, s.Close(t.Context()))
	mended, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, whole, mended)
}

// A commit or rollback that names no message makes no transaction, and a wild number does not fill the disk (R-B-50, R-B-52).
func TestEndsOfNoMessageAndWildNumbersDoNoHarm(t *testing.T) {
	h := newHarmed(t, "3.1", false)
	h.raw(t, commitlog.Record{Topic: []byte("T"), SysFlag: message.FlagRollback, QueueOffset: 1, PreparedTransactionOffset: -1, Properties: []byte("PGROUP\x01g\x02")})
	h.raw(t, commitlog.Record{Topic: []byte("T"), SysFlag: message.FlagPrepared, QueueOffset: 1_000_000, Properties: []byte("PGROUP\x01g\x02")})
	h.opts.StateSegmentSize = 240
	remove(t, h.path("transaction/statetable"))
	remove(t, h.path("config/rocketstore.json"))
	s := open(t, h.dir, &h.opts)
	require.Len(t, openSet(t, s), 3)
	info, ok := s.StateTableInfo()
	require.True(t, ok)
	require.EqualValues(t, 4, info.Next)
	require.NoError(t, s.Close(t.Context()))
}

// An index file whose header is damaged is made again, whatever the header says, after a clean stop as after a kill (R-E-058,
// R-E-066).
func TestAnIndexWithADamagedHeaderIsMadeAgain(t *testing.T) {
	for _, clean := range []bool{true, false} {
		h := newHarmed(t, "4.9", clean)
		remove(t, h.path("config/rocketstore.json"))
		files, err := os.ReadDir(h.path("index"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		name := h.path("index/" + files[0].Name())
		whole, err := os.ReadFile(name)
		require.NoError(t, err)
		writeAt(t, name, 0, bytes.Repeat([]byte{0xF7}, 40))
		s := open(t, h.dir, &h.opts)
		require.NoError(t, s.Close(t.Context()))
		mended, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, whole, mended, "clean %v", clean)
	}
}

// A gap may be followed by nothing but the segment that was made ahead: the log and its queues go on behind what is lost, and
// no offset is given out twice, now and after the next kill (R-E-009, R-E-073, R-E-078).
func TestTheLogGoesOnBehindAGapWithNothingBehindIt(t *testing.T) {
	for _, clean := range []bool{true, false} {
		dir, _ := filled(t, true)
		remove(t, filepath.Join(dir, "config/rocketstore.json"))
		segments, err := os.ReadDir(filepath.Join(dir, "commitlog"))
		require.NoError(t, err)
		last, _ := mappedfile.ParseSegmentName(segments[len(segments)-1].Name())
		remove(t, filepath.Join(dir, "commitlog", mappedfile.SegmentName(last)))
		ahead := filepath.Join(dir, "commitlog", mappedfile.SegmentName(last+4096))
		require.NoError(t, os.WriteFile(ahead, make([]byte, 4096), 0o600))
		for range 3 {
			if !clean {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "abort"), nil, 0o600))
				remove(t, filepath.Join(dir, "config/rocketstore.json"))
			}
			s := open(t, dir, &rocketstore.Options{SegmentSize: 4096, IndexSlots: 50, IndexEntries: 40})
			_, end := s.Bounds()
			require.Equal(t, last+4096, end)
			for q, err := range s.Queues(t.Context()) {
				require.NoError(t, err)
				if q.Topic == "Busy" {
					require.EqualValues(t, 110, q.Max)
				}
			}
			require.NoError(t, s.Close(t.Context()))
		}
		s := open(t, dir, nil)
		r, err := s.Put(t.Context(), msg("Busy", 0, "next", "", ""))
		require.NoError(t, err)
		require.EqualValues(t, 110, r.QueueOffset)
		require.Equal(t, last+4096, r.PhysicalOffset)
		require.NoError(t, s.Close(t.Context()))
	}
}
