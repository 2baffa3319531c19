package rocketstore_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// A round asks about each half message that is 6 s old: it is stored again with its count raised, all else kept, also flag
// and reconsumeTimes, which the original drops; the question has the places of the copy and the message as its producer
// knows it (protocol.md 7 and 16, E3).
func TestHalfTopicRoundStoresAgainAndAsks(t *testing.T) {
	for line, every := range map[string]time.Duration{"4.9": time.Minute, "5.3": 30 * time.Second} {
		t.Run(line, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNotebook()
				s := checked(t, memfs.New(), line, rocketstore.Checks{Checker: n})
				pass(every - 6*time.Second)
				m := transactional(t, "old enough")
				m.SysFlag |= message.FlagCompressed | message.FlagZSTD
				old, err := s.Put(t.Context(), m)
				require.NoError(t, err)
				pass(time.Millisecond)
				young, err := s.Put(t.Context(), transactional(t, "too young"))
				require.NoError(t, err)
				pass(6*time.Second - time.Millisecond)
				list := n.take()
				require.Equal(t, []int64{2}, numbersOf(list))
				q := list[0]
				require.Equal(t, every, q.at)
				require.Equal(t, "G", q.group)
				require.Greater(t, q.physical, young.PhysicalOffset)
				first, copied := recordAt(t, s, old.PhysicalOffset), recordAt(t, s, q.physical)
				require.Equal(t, "1", copied.properties[message.PropertyTransactionCheckTimes])
				require.Equal(t, q.size, copied.record.Size)
				delete(copied.properties, message.PropertyTransactionCheckTimes)
				copied.record.Size = first.record.Size
				require.Equal(t, first, copied)

				rec, err := commitlog.Decode(q.bytes)
				require.NoError(t, err)
				require.NoError(t, rec.CheckBody())
				require.Equal(t, "T", string(rec.Topic))
				require.EqualValues(t, 3, rec.QueueID)
				require.EqualValues(t, 7, rec.Flag)
				require.EqualValues(t, 2, rec.ReconsumeTimes)
				require.Equal(t, message.FlagCompressed|message.FlagZSTD, rec.SysFlag)
				require.Equal(t, q.physical, rec.PhysicalOffset)
				require.Equal(t, q.number, rec.QueueOffset)
				require.Equal(t, "1", string(message.Lookup(rec.Properties, message.PropertyTransactionCheckTimes)))

				require.Equal(t, []golden.OpenTransaction{
					{PhysicalOffset: young.PhysicalOffset, Number: 1}, {PhysicalOffset: q.physical, Number: 2},
				}, openSet(t, s))
				require.Equal(t, rocketstore.CheckRun{
					File: rocketstore.HalfTopicName, Began: time.Now().UnixMilli(), Open: 2, Walked: 1, Total: 2, Asked: 1, Young: true,
				}, stats(t, s).Last[0])
				// The late answer for the older copy ends the newer one.
				commit(t, s, old)
				_, err = s.EndTransaction(t.Context(), rocketstore.TransactionEnd{ProducerGroup: "G", PreparedOffset: q.physical, Number: q.number})
				require.ErrorIs(t, err, rocketstore.ErrAlreadyEnded)
				require.Len(t, openSet(t, s), 1)
				require.NoError(t, s.Close(t.Context()))
			})
		})
	}
}

// The copies that a real broker's rounds made are those that ours make of the same message.
func TestCopiesAreTheRealOnes(t *testing.T) {
	for version, line := range map[string]string{"4.9.7": "4.9", "5.3.3": "5.3"} {
		t.Run(version, func(t *testing.T) {
			name := "rocketmq-" + version + "/clean"
			dir := golden.Unpack(t, name)
			theirs := open(t, dir, &rocketstore.Options{ReadOnly: true})
			records := golden.Load(t, name).Records()
			copies := make(map[string][]*golden.Record) // by unique key, in order
			for i := range records {
				r := &records[i]
				if r.Topic == rocketstore.HalfTopicName && r.Properties[message.PropertyCheckImmunityTime] == "" {
					copies[r.Properties[message.PropertyUniqueKey]] = append(copies[r.Properties[message.PropertyUniqueKey]], r)
				}
			}
			compared := 0
			synctest.Test(t, func(t *testing.T) {
				n := newNotebook()
				s := checked(t, memfs.New(), line, rocketstore.Checks{Checker: n, MaxAge: 1000000 * time.Hour})
				want := make(map[string][]*golden.Record)
				for key, list := range copies {
					if len(list) < 4 {
						continue
					}
					want[key] = list
					_, err := s.Put(t.Context(), goldenMessage(t, dir, list[0]))
					require.NoError(t, err)
				}
				for round := 1; round <= 3; round++ {
					pass(time.Duration(map[string]int{"4.9": 60, "5.3": 30}[line]) * time.Second)
					for _, q := range n.take() {
						copies := want[string(message.Lookup(q.record.Properties, message.PropertyUniqueKey))]
						require.Equal(t, recordAt(t, theirs, copies[round].PhysicalOffset), recordAt(t, s, q.physical))
						compared++
					}
				}
				require.NoError(t, s.Close(t.Context()))
			})
			require.GreaterOrEqual(t, compared, 9)
		})
	}
}

// After 15 questions the message is moved to TRANS_CHECK_MAX_TIME_TOPIC, and a late answer finds it ended.
func TestHalfMessageIsGivenUpAfterFifteenQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, n := memfs.New(), newNotebook()
		s := checked(t, fsys, "4.9", rocketstore.Checks{Checker: n})
		put, err := s.Put(t.Context(), transactional(t, "forgotten"))
		require.NoError(t, err)
		for i := range 15 {
			pass(time.Minute)
			list := n.take()
			require.Len(t, list, 1)
			require.Equal(t, strconv.Itoa(i+1), string(message.Lookup(list[0].record.Properties, message.PropertyTransactionCheckTimes)))
			if i == 7 { // the count is in the message
				require.NoError(t, s.Abandon())
				s = checked(t, fsys, "", rocketstore.Checks{Checker: n})
			}
			for tx, err := range s.OpenTransactions(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, i+1, tx.Checks)
			}
		}
		require.Empty(t, bodies(t, s, rocketstore.GiveUpTopicName, 0))
		pass(2 * time.Minute)
		require.Empty(t, n.take())
		require.Empty(t, openSet(t, s))
		require.Equal(t, []string{"forgotten"}, bodies(t, s, rocketstore.GiveUpTopicName, 0))
		require.EqualValues(t, 1, stats(t, s).GaveUp)
		_, err = s.EndTransaction(t.Context(), endOf(put, true))
		require.ErrorIs(t, err, rocketstore.ErrAlreadyEnded)
		for r, err := range s.Messages(rocketstore.GiveUpTopicName, 0, 0) {
			require.NoError(t, err)
			require.EqualValues(t, 7, r.Flag)
			require.EqualValues(t, 2, r.ReconsumeTimes)
			require.Equal(t, "T", string(message.Lookup(r.Properties, message.PropertyRealTopic)))
		}
		require.NoError(t, s.Close(t.Context()))
		s = checked(t, fsys, "", rocketstore.Checks{Checker: n})
		pass(2 * time.Minute)
		require.Len(t, bodies(t, s, rocketstore.GiveUpTopicName, 0), 1)
		require.NoError(t, s.Close(t.Context()))
	})
}

// One that was born longer ago than messages are kept is moved without a question.
func TestHalfMessageIsGivenUpWhenTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNotebook()
		s := checked(t, memfs.New(), "4.9", rocketstore.Checks{Checker: n, MaxAge: time.Hour})
		m := transactional(t, "old")
		m.BornTimestamp = time.Now().Add(-time.Hour).UnixMilli()
		_, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		pass(time.Minute)
		require.Empty(t, n.take())
		require.Equal(t, []string{"old"}, bodies(t, s, rocketstore.GiveUpTopicName, 0))
		require.NoError(t, s.Close(t.Context()))
	})
}

// A producer may say for how long it does not want to be asked. Until then each round stores the message again, with the
// place of the first copy, so that it holds up neither the others nor the progress. That spends no question, while the
// original gives a message up after 15 such rounds, unasked. The producer's own end names the first copy.
func TestImmunityOfAHalfMessage(t *testing.T) { // R-D-118
	for _, unique := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			fsys, n := memfs.New(), newNotebook()
			s := checked(t, fsys, "4.9", rocketstore.Checks{Checker: n})
			immune := func(body string) rocketstore.PutResult {
				m := transactional(t, body, message.PropertyCheckImmunityTime, "1500")
				if !unique {
					m.Properties = m.Properties.Delete(message.PropertyUniqueKey)
				}
				r, err := s.Put(t.Context(), m)
				require.NoError(t, err)
				return r
			}
			first, other := immune("a"), immune("b")
			plain := prepare(t, s, 1)[0]
			for i := range 24 { // 1440 s
				if i == 10 {
					commit(t, s, other, plain)
				}
				pass(time.Minute)
				for _, q := range n.take() {
					require.Equal(t, "tx 0 of 1", q.body)
				}
				if i == 12 {
					require.NoError(t, s.Abandon())
					s = checked(t, fsys, "", rocketstore.Checks{Checker: n})
				}
			}
			require.Equal(t, []string{"b", "tx 0 of 1"}, bodies(t, s, "T", 3))
			require.Len(t, openSet(t, s), 1)
			require.Positive(t, stats(t, s).Deferred)
			pass(time.Minute)
			list := n.take()
			require.Len(t, list, 1)
			require.Equal(t, "0", string(message.Lookup(list[0].record.Properties, message.PropertyPreparedQueueOffset)))
			require.Equal(t, "1", string(message.Lookup(list[0].record.Properties, message.PropertyTransactionCheckTimes)))
			require.Greater(t, offsetsOf(t, s)[0], int64(20))
			commit(t, s, first)
			require.Equal(t, []string{"b", "tx 0 of 1", "a"}, bodies(t, s, "T", 3))
			pass(2 * time.Minute)
			require.Empty(t, n.take())
			require.Empty(t, openSet(t, s))
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

// Copies of a message without a UNIQ_KEY are known by the first one's place.
func TestCopiesWithoutAUniqueKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, n := memfs.New(), newNotebook()
		s := checked(t, fsys, "4.9", rocketstore.Checks{Checker: n})
		m := transactional(t, "x")
		m.Properties = m.Properties.Delete(message.PropertyUniqueKey)
		put, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		pass(3 * time.Minute)
		require.Equal(t, []int64{1, 2, 3}, numbersOf(n.take()))
		require.NoError(t, s.Abandon())
		s = checked(t, fsys, "", rocketstore.Checks{Checker: n})
		require.Len(t, openSet(t, s), 1)
		commit(t, s, put)
		require.Empty(t, openSet(t, s))
		require.Equal(t, []string{"x"}, bodies(t, s, "T", 3))
		require.NoError(t, s.Close(t.Context()))
	})
}

// A producer whose clock is ahead is not asked at once, as the original does; its message ages by the store's clock.
func TestBirthInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNotebook()
		s := checked(t, memfs.New(), "4.9", rocketstore.Checks{Checker: n, Every: 5 * time.Second})
		m := transactional(t, "x")
		m.BornTimestamp = time.Now().Add(time.Hour).UnixMilli()
		_, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		pass(5 * time.Second)
		require.Empty(t, n.take())
		pass(5 * time.Second)
		require.Len(t, n.take(), 1)
		require.NoError(t, s.Close(t.Context()))
	})
}

// A round of the half topic is bounded as well; the copies go to the end, so the next round begins with those left over.
func TestHalfTopicQuestionsOfOneRoundAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNotebook()
		s := checked(t, memfs.New(), "4.9", rocketstore.Checks{Checker: n, InFlight: 2})
		prepare(t, s, 3)
		want := [][]string{{"tx 0 of 3", "tx 1 of 3"}, {"tx 2 of 3", "tx 0 of 3"}, {"tx 1 of 3", "tx 2 of 3"}}
		for _, list := range want {
			pass(time.Minute)
			got := []string{}
			for _, q := range n.take() {
				got = append(got, q.body)
			}
			require.Equal(t, list, got)
		}
		require.NoError(t, s.Close(t.Context()))
	})
}
