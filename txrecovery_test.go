package rocketstore_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// setNumber writes another queue offset into the record at a physical offset of a store with segments of 8192 bytes.
func setNumber(t *testing.T, fsys *memfs.FS, offset, number int64) {
	t.Helper()
	f, err := fsys.OpenFile(path.Join(recovery.CommitLogDir, mappedfile.SegmentName(offset/8192*8192)), os.O_RDWR, 0)
	require.NoError(t, err)
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(number))
	_, err = f.WriteAt(b[:], offset%8192+20)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func kinds(s *rocketstore.Store) map[string]int {
	count := make(map[string]int)
	for _, w := range s.Report().Warnings {
		count[w.Kind]++
	}
	return count
}

// tableBytes is how much the files of the state table hold.
func tableBytes(t *testing.T, fsys *memfs.FS) int64 {
	t.Helper()
	entries, err := fsys.ReadDir(txstate.Dir)
	require.NoError(t, err)
	sum := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		sum += info.Size()
	}
	return sum
}

// No CRC covers the number of a prepared message. One that was damaged fills neither the disk nor stops the recovery: the
// transaction gets a number at the end, which is reported, and the others keep theirs.
func TestDamagedNumbersOfPreparedMessages(t *testing.T) {
	for name, number := range map[string]int64{
		"far": 5_000_000, "beyond all files": 1<<63 - 1, "negative": -7, "just too far": 2_000_010,
	} {
		for _, harmed := range []int{0, 4, 9} {
			t.Run(name, func(t *testing.T) {
				fsys := memfs.New()
				s := inMemory(t, fsys, "3.1")
				put := prepare(t, s, 10)
				commit(t, s, put[8])
				require.NoError(t, s.Abandon())
				setNumber(t, fsys, put[harmed].PhysicalOffset, number)
				want := []golden.OpenTransaction{}
				for i, r := range put {
					if i != 8 && i != harmed {
						want = append(want, golden.OpenTransaction{PhysicalOffset: r.PhysicalOffset, Number: int64(i)})
					}
				}
				moved := golden.OpenTransaction{PhysicalOffset: put[harmed].PhysicalOffset, Number: 10}
				if harmed == 9 {
					moved.Number = 9
				}
				want = append(want, moved)
				for range 2 {
					s = inMemory(t, fsys, "")
					require.Equal(t, want, openSet(t, s))
					require.Equal(t, 1, kinds(s)[recovery.KindWildNumber])
					require.LessOrEqual(t, tableBytes(t, fsys), int64(3*240))
					require.NoError(t, s.Abandon())
				}
				s = inMemory(t, fsys, "")
				r, err := s.Put(t.Context(), transactional(t, "next"))
				require.NoError(t, err)
				require.Equal(t, moved.Number+1, r.QueueOffset)
				// Its producer answers with the number that a check handed out, not with that of the message.
				_, err = s.EndTransaction(t.Context(), rocketstore.TransactionEnd{ProducerGroup: "G", PreparedOffset: moved.PhysicalOffset, Number: moved.Number, Commit: true})
				require.NoError(t, err)
				require.Len(t, openSet(t, s), 9)
				require.NoError(t, s.Close(t.Context()))
			})
		}
	}
}

// Numbers that are far from those before, but that two messages bear out, are right: messages between are gone with a
// segment of the log.
func TestFarNumbersThatBearEachOtherOutAreKept(t *testing.T) {
	fsys := memfs.New()
	o := small()
	o.FS, o.Dialect, o.HoldDelayed = fsys, "3.1", true
	s := open(t, "", o)
	put := prepare(t, s, 4)
	require.NoError(t, s.Abandon())
	setNumber(t, fsys, put[2].PhysicalOffset, 2_000_100)
	setNumber(t, fsys, put[3].PhysicalOffset, 2_000_101)
	s = open(t, "", o)
	numbers := []int64{}
	for _, tx := range openSet(t, s) {
		numbers = append(numbers, tx.Number)
	}
	require.Equal(t, []int64{0, 1, 2_000_100, 2_000_101}, numbers)
	require.Zero(t, kinds(s)[recovery.KindWildNumber])
	require.NoError(t, s.Close(t.Context()))
}

// A replica's feed whose number cannot be right does not stop the dispatch: the record is not in the table until a recovery
// gives it a number.
func TestDamagedNumberInAReplicasFeedDoesNotStopTheDispatch(t *testing.T) {
	from := inMemory(t, memfs.New(), "3.1")
	put := prepare(t, from, 3)
	var log []byte
	for r, err := range from.Records(0) {
		require.NoError(t, err)
		log = r.AppendTo(log)
	}
	binary.BigEndian.PutUint64(log[put[1].PhysicalOffset+20:], 1<<40)
	binary.BigEndian.PutUint64(log[put[2].PhysicalOffset+20:], 1<<62)
	fsys := memfs.New()
	s := inMemory(t, fsys, "3.1")
	require.NoError(t, s.AppendRaw(t.Context(), 0, log))
	require.NoError(t, s.WaitDispatched(t.Context(), int64(len(log))))
	require.Len(t, openSet(t, s), 1)
	_, err := s.Put(t.Context(), msg("T", 0, "goes on", "tag", "key"))
	require.NoError(t, err)
	require.Equal(t, []string{"goes on"}, bodies(t, s, "T", 0))
	require.NoError(t, s.Abandon())
	s = inMemory(t, fsys, "")
	require.Len(t, openSet(t, s), 3)
}

// A late commit that carries the number which the original gave out twice delivers its message once and closes its record
// (R-B-66 to R-B-68).
func TestLateCommitWithAnOldNumberClosesItsRecord(t *testing.T) {
	fsys := memfs.New()
	s := inMemory(t, fsys, "3.1")
	put := prepare(t, s, 4)
	require.NoError(t, s.Abandon())
	setNumber(t, fsys, put[3].PhysicalOffset, 1) // as 3.1 numbers after a crash
	s = inMemory(t, fsys, "")
	require.Equal(t, 1, kinds(s)[recovery.KindNumberTwice])
	require.Equal(t, []golden.OpenTransaction{
		{PhysicalOffset: put[0].PhysicalOffset, Number: 0},
		{PhysicalOffset: put[3].PhysicalOffset, Number: 1},
		{PhysicalOffset: put[2].PhysicalOffset, Number: 2},
		{PhysicalOffset: put[1].PhysicalOffset, Number: 3},
	}, openSet(t, s))
	commit(t, s, put[1]) // its message says 1, and so does the producer
	require.Len(t, openSet(t, s), 3)
	require.Equal(t, []string{"tx 1 of 4"}, bodies(t, s, "T", 3))
	_, err := s.EndTransaction(t.Context(), rocketstore.TransactionEnd{ProducerGroup: "G", PreparedOffset: put[3].PhysicalOffset, Number: 1, Commit: true})
	require.NoError(t, err)
	_, err = s.EndTransaction(t.Context(), rocketstore.TransactionEnd{ProducerGroup: "G", PreparedOffset: put[1].PhysicalOffset, Number: 3, Commit: true})
	require.ErrorIs(t, err, rocketstore.ErrAlreadyEnded)
	require.Len(t, openSet(t, s), 2)
	require.NoError(t, s.Close(t.Context()))
	s = inMemory(t, fsys, "")
	require.Len(t, openSet(t, s), 2)
	require.NoError(t, s.Close(t.Context()))
}

// Put begins a transaction or none, and ends none, whatever flags and offsets come with a message: one that is sent back for a
// retry, or is wrong, opens and closes no record, neither live nor when the table is made again, and enters its queue.
func TestOrdinaryPutsLeaveTransactionsAlone(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		fsys := memfs.New()
		s := inMemory(t, fsys, line)
		first, err := s.Put(t.Context(), transactional(t, "first"))
		require.NoError(t, err)
		open := openSet(t, s)
		require.Len(t, open, 1)
		stored := 0
		for _, flag := range []message.SysFlag{message.FlagCommit, message.FlagPrepared} {
			for _, level := range []string{"0", "1"} {
				for _, topic := range []string{"%RETRY%group", "T"} {
					m := transactional(t, "again", message.PropertyDelay, level)
					m.Topic, m.SysFlag, m.PreparedTransactionOffset = topic, flag, first.PhysicalOffset
					put := s.Put
					if flag == message.FlagPrepared && topic == "T" {
						put = s.PutNow // Put would begin a transaction
					}
					_, err := put(t.Context(), m)
					require.NoError(t, err)
					_, err = s.PutNow(t.Context(), m)
					require.NoError(t, err)
					stored++
				}
			}
		}
		check := func(s *rocketstore.Store) {
			require.Equal(t, open, openSet(t, s))
			found := 0
			for _, q := range []struct {
				topic string
				id    int32
			}{{"T", 3}, {"%RETRY%group", 3}, {recovery.ScheduleTopic, 0}} {
				found += len(bodies(t, s, q.topic, q.id))
			}
			require.Equal(t, 2*stored, found)
		}
		check(s)
		require.NoError(t, s.Abandon())
		s = inMemory(t, fsys, line)
		check(s)
		require.NoError(t, s.Close(t.Context()))
		if line == "3.1" {
			for _, dir := range []string{txstate.Dir, redolog.Dir} {
				entries, err := fsys.ReadDir(dir)
				require.NoError(t, err)
				for _, e := range entries {
					require.NoError(t, fsys.Remove(path.Join(dir, e.Name())))
				}
			}
			check(inMemory(t, fsys, line))
		}
	})
}

// A damaged record of an ended transaction does not stay behind a clean stop of 3.1: the table is made again, with what it said before.
func TestDamagedRecordOfAnEndedTransactionIsMadeAgain(t *testing.T) {
	const table, at = "transaction/statetable/00000000000000000000", 72
	whole := golden.Unpack(t, "rocketmq-3.1.4/clean")
	good, err := os.ReadFile(filepath.Join(whole, table))
	require.NoError(t, err)
	require.NotEqualValues(t, txstate.Prepared, good[at+23], "it has ended")
	for name, off := range map[string]int{"none": -1, "place": 7, "high place": 1, "size": 11, "time": 15, "group": 19} {
		t.Run(name, func(t *testing.T) {
			dir := golden.Copy(t, whole)
			b := bytes.Clone(good)
			if off >= 0 {
				b[at+off] ^= 1
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, table), b, 0o600))
			s := open(t, dir, nil)
			warned := slices.ContainsFunc(s.Report().Warnings, func(w recovery.Warning) bool { return w.Kind == recovery.KindStateTable })
			require.Equal(t, off >= 0, warned, "%+v", s.Report().Warnings)
			require.NoError(t, s.Close(t.Context()))
			b, err := os.ReadFile(filepath.Join(dir, table))
			require.NoError(t, err)
			require.Equal(t, good[at:at+24], b[at:at+24])
		})
	}
}
