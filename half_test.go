package rocketstore_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// transactional is a message that begins a transaction, of group G.
func transactional(t *testing.T, body string, more ...string) *message.Message {
	t.Helper()
	p, err := message.NewProperties(append([]string{
		message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, "G", message.PropertyUniqueKey, "ID-" + body, message.PropertyTags, "tag",
	}, more...)...)
	require.NoError(t, err)
	return &message.Message{Topic: "T", QueueID: 3, Flag: 7, ReconsumeTimes: 2, SysFlag: message.FlagPrepared, Body: []byte(body), Properties: p}
}

func endOf(r rocketstore.PutResult, commit bool) rocketstore.TransactionEnd {
	return rocketstore.TransactionEnd{ProducerGroup: "G", PreparedOffset: r.PhysicalOffset, Number: r.QueueOffset, Commit: commit}
}

// inMemory is a store of a dialect on the heap.
func inMemory(t *testing.T, fsys *memfs.FS, line string) *rocketstore.Store {
	t.Helper()
	o := small()
	o.FS, o.Dialect, o.HoldDelayed = fsys, line, true
	o.StateSegmentSize, o.RedoSegmentSize = 240, 200
	return open(t, "", o)
}

// eachEngine runs a test for the state table and the half topic.
func eachEngine(t *testing.T, f func(t *testing.T, line string)) {
	for _, line := range []string{"3.1", "4.9", "5.3"} {
		t.Run(line, func(t *testing.T) { f(t, line) })
	}
}

// A commit delivers the message once, a rollback never, and a second end changes nothing; a restart of either kind neither.
// What does not fit the prepared message has an error of its own (R-B-15, R-B-48, R-B-49, R-D-021).
func TestTransactionsEndOnce(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		fsys := memfs.New()
		s := inMemory(t, fsys, line)
		plain, err := s.Put(t.Context(), msg("T", 3, "plain", "tag", ""))
		require.NoError(t, err)
		var put []rocketstore.PutResult
		for i := range 4 {
			r, err := s.Put(t.Context(), transactional(t, fmt.Sprint("tx ", i)))
			require.NoError(t, err)
			require.EqualValues(t, i, r.QueueOffset)
			put = append(put, r)
		}
		require.Equal(t, []string{"plain"}, bodies(t, s, "T", 3))
		for _, tt := range []struct {
			harm func(*rocketstore.TransactionEnd)
			want error
		}{
			{func(e *rocketstore.TransactionEnd) { e.ProducerGroup = "H" }, rocketstore.ErrWrongGroup},
			{func(e *rocketstore.TransactionEnd) { e.Number++ }, rocketstore.ErrWrongNumber},
			{func(e *rocketstore.TransactionEnd) { e.PreparedOffset++ }, rocketstore.ErrNoPrepared},
			{func(e *rocketstore.TransactionEnd) { e.PreparedOffset = 1 << 40 }, rocketstore.ErrNoPrepared},
			{func(e *rocketstore.TransactionEnd) { e.PreparedOffset = -1 }, rocketstore.ErrNoPrepared},
			{func(e *rocketstore.TransactionEnd) {
				e.PreparedOffset, e.Number = plain.PhysicalOffset, plain.QueueOffset
			}, rocketstore.ErrNoPrepared},
		} {
			e := endOf(put[0], true)
			tt.harm(&e)
			_, err := s.EndTransaction(t.Context(), e)
			require.ErrorIs(t, err, tt.want)
		}
		require.Len(t, openSet(t, s), 4)
		r, err := s.EndTransaction(t.Context(), endOf(put[0], true))
		require.NoError(t, err)
		require.EqualValues(t, 1, r.QueueOffset)
		_, err = s.EndTransaction(t.Context(), endOf(put[1], false))
		require.NoError(t, err)
		again := func(s *rocketstore.Store) {
			for i := range 2 {
				for _, commit := range []bool{true, false} {
					_, err := s.EndTransaction(t.Context(), endOf(put[i], commit))
					require.ErrorIs(t, err, rocketstore.ErrAlreadyEnded)
				}
			}
			require.Equal(t, []string{"plain", "tx 0"}, bodies(t, s, "T", 3))
			require.Equal(t, []golden.OpenTransaction{
				{PhysicalOffset: put[2].PhysicalOffset, Number: 2}, {PhysicalOffset: put[3].PhysicalOffset, Number: 3},
			}, openSet(t, s))
		}
		again(s)
		require.NoError(t, s.Abandon())
		s = inMemory(t, fsys, "")
		again(s)
		require.NoError(t, s.Close(t.Context()))
		s = inMemory(t, fsys, "")
		again(s)
		m, err := s.MessageAt(r.PhysicalOffset)
		require.NoError(t, err)
		require.EqualValues(t, 7, m.Flag)
		require.EqualValues(t, 2, m.ReconsumeTimes)
		require.Equal(t, put[0].PhysicalOffset, m.PreparedTransactionOffset)
		require.Equal(t, message.FlagCommit, m.SysFlag.Transaction())
		_, err = s.Put(t.Context(), transactional(t, "tx 4"))
		require.NoError(t, err)
		require.EqualValues(t, 4, openSet(t, s)[2].Number)
	})
}

// A re-send of a committed message to its retry topic carries the marks of a transaction and is none (protocol.md E4).
func TestRetriedTransactionIsAnOrdinaryMessage(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		s := inMemory(t, memfs.New(), line)
		m := transactional(t, "again")
		m.Topic, m.QueueID, m.SysFlag = "%RETRY%G", 0, m.SysFlag.WithTransaction(0)
		_, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, []string{"again"}, bodies(t, s, "%RETRY%G", 0))
		require.Empty(t, openSet(t, s))
	})
}

// DELAY has no meaning for a transaction, and its commit is not delayed: in 3.1 it stays in the bytes of both records
// (protocol.md E2), a half message is stored without it (protocol.md 16).
func TestDelayOfATransactionIsIgnored(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		s := inMemory(t, memfs.New(), line)
		r, err := s.Put(t.Context(), transactional(t, "now", message.PropertyDelay, "3"))
		require.NoError(t, err)
		_, err = s.EndTransaction(t.Context(), endOf(r, true))
		require.NoError(t, err)
		require.Equal(t, []string{"now"}, bodies(t, s, "T", 3))
		want := ""
		if line == "3.1" {
			want = "3"
		}
		for m, err := range s.Messages("T", 3, 0) {
			require.NoError(t, err)
			require.Equal(t, want, string(message.Lookup(m.Properties, message.PropertyDelay)))
		}
	})
}

// foreignHalf stores a half message as a real broker would that checked the one at number: a copy with a higher count.
func foreignHalf(t *testing.T, s *rocketstore.Store, body string, more ...string) rocketstore.PutResult {
	t.Helper()
	m := transactional(t, body, append([]string{message.PropertyRealTopic, "T", message.PropertyRealQueueID, "3"}, more...)...)
	m.Topic, m.QueueID, m.SysFlag = rocketstore.HalfTopicName, 0, 0
	r, err := s.PutNow(t.Context(), m)
	require.NoError(t, err)
	return r
}

func foreignOp(t *testing.T, s *rocketstore.Store, tag, body string) {
	t.Helper()
	p, err := message.NewProperties(message.PropertyTags, tag)
	require.NoError(t, err)
	_, err = s.PutNow(t.Context(), &message.Message{Topic: rocketstore.OpTopicName, Body: []byte(body), Properties: p})
	require.NoError(t, err)
}

func opBodies(t *testing.T, s *rocketstore.Store) []string {
	t.Helper()
	return bodies(t, s, rocketstore.OpTopicName, 0)
}

// An answer for an older copy ends the newest one, and the message is delivered once; the original leaves the newest open
// and delivers twice (protocol.md 16).
func TestLateEndOfAnOlderCopyEndsTheNewest(t *testing.T) {
	fsys := memfs.New()
	s := inMemory(t, fsys, "4.9")
	first := foreignHalf(t, s, "a")
	copied := foreignHalf(t, s, "a", message.PropertyTransactionCheckTimes, "1")
	require.Equal(t, []golden.OpenTransaction{{PhysicalOffset: copied.PhysicalOffset, Number: 1}}, openSet(t, s))
	_, err := s.EndTransaction(t.Context(), endOf(first, true))
	require.NoError(t, err)
	for _, r := range []rocketstore.PutResult{first, copied} {
		_, err = s.EndTransaction(t.Context(), endOf(r, true))
		require.ErrorIs(t, err, rocketstore.ErrAlreadyEnded)
	}
	require.Equal(t, []string{"1"}, opBodies(t, s)) // 0 is before the progress
	require.Equal(t, []string{"a"}, bodies(t, s, "T", 3))
	require.NoError(t, s.Abandon())
	s = inMemory(t, fsys, "")
	require.Empty(t, openSet(t, s))
}

// With an open one before it the older copy is named too, since a real broker would ask about it again.
func TestLateEndNamesTheOlderCopyForARealBroker(t *testing.T) {
	s := inMemory(t, memfs.New(), "4.9")
	foreignHalf(t, s, "other")
	first := foreignHalf(t, s, "a")
	foreignHalf(t, s, "a", message.PropertyTransactionCheckTimes, "1")
	require.Len(t, openSet(t, s), 2)
	_, err := s.EndTransaction(t.Context(), endOf(first, false))
	require.NoError(t, err)
	require.Equal(t, []string{"2", "1"}, opBodies(t, s))
	require.Len(t, openSet(t, s), 1)
}

// The newest copy being ended, the older ones are not open, whatever the stored progress is.
func TestEndedCopyEndsTheOlderOnes(t *testing.T) {
	fsys := memfs.New()
	s := inMemory(t, fsys, "4.9")
	foreignHalf(t, s, "a")
	foreignHalf(t, s, "a", message.PropertyTransactionCheckTimes, "1")
	foreignOp(t, s, "d", "1")
	require.NoError(t, s.Abandon())
	s = inMemory(t, fsys, "")
	require.Empty(t, openSet(t, s))
}

// Op messages of 5.x hold lists; the first copy of one that is not to be asked yet ends all; ops of another tag count for
// nothing; a message of the same key after an end is a transaction of its own.
func TestForeignOpMessages(t *testing.T) {
	for _, live := range []bool{false, true} {
		t.Run(fmt.Sprint("live=", live), func(t *testing.T) {
			fsys := memfs.New()
			s := inMemory(t, fsys, "5.3")
			if live {
				require.Empty(t, openSet(t, s))
			}
			for _, b := range []string{"a", "b", "c", "d"} {
				foreignHalf(t, s, b)
			}
			foreignHalf(t, s, "d", message.PropertyPreparedQueueOffset, "3", message.PropertyCheckImmunityTime, "60")
			if live {
				require.Len(t, openSet(t, s), 4)
			}
			foreignOp(t, s, "d", "0,1,")
			foreignOp(t, s, "d", "3,")
			foreignOp(t, s, "x", "2")
			foreignOp(t, s, "d", "not a number,,-2,99999999999999999999")
			foreignOp(t, s, "d", "5,6") // of half messages that come only now
			again := foreignHalf(t, s, "a")
			liar := foreignHalf(t, s, "e", message.PropertyPreparedQueueOffset, "9") // says it is a copy of a later one
			if !live {
				require.NoError(t, s.Abandon())
				s = inMemory(t, fsys, "")
			}
			want := []int64{2, again.QueueOffset, liar.QueueOffset}
			got := []int64{}
			for _, tx := range openSet(t, s) {
				got = append(got, tx.Number)
			}
			require.Equal(t, want, got)
		})
	}
}

// A message without a UNIQ_KEY, as clients of 3.1 send it, is a transaction like any other.
func TestHalfMessageWithoutAUniqueKey(t *testing.T) {
	s := inMemory(t, memfs.New(), "4.9")
	var put []rocketstore.PutResult
	for range 3 {
		m := transactional(t, "x")
		m.Properties = m.Properties.Delete(message.PropertyUniqueKey)
		r, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		put = append(put, r)
	}
	require.Len(t, openSet(t, s), 3)
	_, err := s.EndTransaction(t.Context(), endOf(put[1], true))
	require.NoError(t, err)
	require.Len(t, openSet(t, s), 2)
	require.Equal(t, []string{"x"}, bodies(t, s, "T", 3))
}

func offsetsOf(t *testing.T, s *rocketstore.Store) []int64 {
	t.Helper()
	h, ok := s.ConsumerOffset(rocketstore.HalfTopicName, rocketstore.TransactionGroup, 0)
	o, ok2 := s.ConsumerOffset(rocketstore.OpTopicName, rocketstore.TransactionGroup, 0)
	require.Equal(t, ok, ok2)
	if !ok {
		return nil
	}
	return []int64{h, o}
}

// The progress moves over what is finished in one run from the start: every op message that names a half one behind it
// stays behind its own.
func TestProgressMovesOverWhatIsFinished(t *testing.T) {
	fsys := memfs.New()
	s := inMemory(t, fsys, "4.9")
	var put []rocketstore.PutResult
	for i := range 600 {
		r, err := s.Put(t.Context(), transactional(t, strconv.Itoa(i)))
		require.NoError(t, err)
		put = append(put, r)
	}
	end := func(from, to int) {
		for _, r := range put[from:to] {
			_, err := s.EndTransaction(t.Context(), endOf(r, false))
			require.NoError(t, err)
		}
	}
	reopen := func() {
		require.NoError(t, s.Close(t.Context()))
		s = inMemory(t, fsys, "")
	}
	require.Nil(t, offsetsOf(t, s))
	end(5, 10)
	reopen()
	require.Equal(t, []int64{0, 0}, offsetsOf(t, s))
	end(0, 5)
	end(10, 599)
	require.Len(t, openSet(t, s), 1)
	reopen()
	require.Equal(t, []int64{599, 599}, offsetsOf(t, s))
	require.Len(t, openSet(t, s), 1)
	end(599, 600)
	reopen()
	require.Equal(t, []int64{600, 600}, offsetsOf(t, s))
	require.Empty(t, openSet(t, s))
}
