package rocketstore_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// asked is one question, as a checker saw it.
type asked struct {
	group    string
	hash     int32
	number   int64
	physical int64
	size     int32
	body     string
	at       time.Duration // since the checker was made
	record   commitlog.Record
	bytes    []byte
}

// notebook is a Checker that notes what it is asked. Answer, if set, may answer at once.
type notebook struct {
	began  time.Time
	answer func(ctx context.Context, r rocketstore.CheckRequest) error

	mu   sync.Mutex
	list []asked
}

func newNotebook() *notebook { return &notebook{began: time.Now()} }

func (n *notebook) Check(ctx context.Context, r rocketstore.CheckRequest) error {
	n.mu.Lock()
	n.list = append(n.list, asked{
		r.Group, r.GroupHash, r.Number, r.PhysicalOffset, r.Size, string(r.Record.Body), time.Since(n.began), *r.Record, r.Record.AppendTo(nil),
	})
	n.mu.Unlock()
	if n.answer != nil {
		return n.answer(ctx, r)
	}
	return nil
}

// take gives the questions since the last call.
func (n *notebook) take() []asked {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list = nil
	return list
}

func numbersOf(list []asked) []int64 {
	numbers := []int64{}
	for _, a := range list {
		numbers = append(numbers, a.number)
	}
	return numbers
}

// checked opens a store on the heap, of ten records in a state table file, whose open transactions c asks about.
func checked(t *testing.T, fsys *memfs.FS, line string, checks rocketstore.Checks) *rocketstore.Store {
	t.Helper()
	o := small()
	o.FS, o.Dialect, o.HoldDelayed, o.Checks = fsys, line, true, checks
	o.StateSegmentSize, o.RedoSegmentSize = 240, 200
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	return s
}

func prepare(t *testing.T, s *rocketstore.Store, n int) []rocketstore.PutResult {
	t.Helper()
	var put []rocketstore.PutResult
	for i := range n {
		r, err := s.Put(t.Context(), transactional(t, fmt.Sprintf("tx %d of %d", i, n)))
		require.NoError(t, err)
		put = append(put, r)
	}
	return put
}

func commit(t *testing.T, s *rocketstore.Store, put ...rocketstore.PutResult) {
	t.Helper()
	for _, r := range put {
		_, err := s.EndTransaction(t.Context(), endOf(r, true))
		require.NoError(t, err)
	}
}

// pass lets time go by.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func stats(t *testing.T, s *rocketstore.Store) rocketstore.CheckStats {
	t.Helper()
	st, ok := s.CheckStats()
	require.True(t, ok)
	return st
}

// Each state table file has one schedule: its first round comes 60 s after it is first seen, then one every 60 s. A
// question says who, which and where, and carries the bytes of the log; one that was answered is not asked again (R-B-25,
// R-B-26, R-B-30, R-B-40, R-B-45).
func TestStateTableIsCheckedEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNotebook()
		s := checked(t, memfs.New(), "3.1", rocketstore.Checks{Checker: n, MinAge: time.Second})
		pass(10 * time.Second)
		put := prepare(t, s, 3)
		pass(30 * time.Second)
		more := prepare(t, s, 10) // the second file begins 30 s later
		pass(29 * time.Second)
		require.Empty(t, n.take())
		pass(time.Second)
		list := n.take()
		require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, numbersOf(list))
		require.Equal(t, 70*time.Second, list[0].at)
		for i, r := range put {
			require.Equal(t, "G", list[i].group)
			require.Equal(t, message.HashString("G"), list[i].hash)
			require.Equal(t, r.PhysicalOffset, list[i].physical)
			require.EqualValues(t, r.Size, list[i].size)
			require.Equal(t, fmt.Sprintf("tx %d of 3", i), list[i].body)
			for rec, err := range s.Records(r.PhysicalOffset) {
				require.NoError(t, err)
				require.Equal(t, rec.AppendTo(nil), list[i].bytes)
				break
			}
		}
		pass(30 * time.Second)
		require.Equal(t, []int64{10, 11, 12}, numbersOf(n.take())) // at 100 s
		commit(t, s, put[1], more[9])
		pass(59 * time.Second)
		require.Equal(t, []int64{0, 2, 3, 4, 5, 6, 7, 8, 9}, numbersOf(n.take())) // at 130 s
		pass(time.Second)
		require.Equal(t, []int64{10, 11}, numbersOf(n.take())) // at 160 s
		st := stats(t, s)
		require.Equal(t, 2, st.Files)
		require.EqualValues(t, 4, st.Rounds)
		require.EqualValues(t, 24, st.Asked)
		require.Equal(t, rocketstore.CheckRun{
			File: "transaction/statetable/00000000000000000240", Began: time.Now().UnixMilli(), Open: 2, Walked: 3, Total: 3, Asked: 2,
		}, st.Last[1]) // R-B-36
		require.NoError(t, s.Close(t.Context()))
		pass(time.Hour)
		require.Empty(t, n.take())
	})
}

// A reopened store checks each of its files once a minute, also when recovery has made the table again, where the original
// makes two schedules (R-B-25, X10).
func TestReopenedStoreChecksEachTransactionOnce(t *testing.T) {
	for _, kill := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			fsys, n := memfs.New(), newNotebook()
			s := checked(t, fsys, "3.1", rocketstore.Checks{})
			_, ok := s.CheckStats()
			require.False(t, ok)
			put := prepare(t, s, 20) // the last file is full
			commit(t, s, put[:10]...)
			if kill {
				require.NoError(t, s.Abandon())
			} else {
				require.NoError(t, s.Close(t.Context()))
			}
			s = checked(t, fsys, "", rocketstore.Checks{Checker: n, MinAge: time.Second})
			pass(2 * time.Minute)
			list := n.take()
			require.Equal(t, []int64{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, numbersOf(list))
			require.Equal(t, time.Minute, list[0].at)
			require.Equal(t, 2*time.Minute, list[19].at)
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

// A slave checks nothing, nor does a store where checks are switched off; both are asked at each round, so that a promoted
// slave begins (R-B-28, R-B-29).
func TestSlaveAndSwitchAreAskedAtEachRound(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		synctest.Test(t, func(t *testing.T) {
			n := newNotebook()
			var slave, enabled atomic.Bool
			slave.Store(true)
			enabled.Store(true)
			s := checked(t, memfs.New(), line, rocketstore.Checks{
				Checker: n, Every: time.Minute, Slave: slave.Load, Enabled: enabled.Load,
			})
			prepare(t, s, 1)
			_, end := s.Bounds()
			pass(61 * time.Second)
			slave.Store(false)
			enabled.Store(false)
			pass(time.Minute)
			require.Empty(t, n.take())
			_, now := s.Bounds()
			require.Equal(t, end, now) // nothing was stored again
			require.EqualValues(t, 2, stats(t, s).Skipped)
			enabled.Store(true)
			pass(time.Minute)
			require.Len(t, n.take(), 1)
			require.NoError(t, s.Close(t.Context()))
		})
	})
}

// A round of a file ends at the first transaction that is too young; the age counts in 64 bits and milliseconds, equality
// is old enough, and a time in the future is young (R-B-31 to R-B-33, X7).
func TestRoundEndsAtTheFirstYoungTransaction(t *testing.T) {
	for _, tt := range []struct {
		name string
		ages []time.Duration // at the round
		want []int64
	}{
		{"equal is old", []time.Duration{time.Minute, time.Minute - time.Millisecond, time.Hour}, []int64{0}},
		{"one ms less", []time.Duration{time.Minute - time.Millisecond, time.Hour}, []int64{}},
		{"ten days and a millisecond in a second", []time.Duration{240 * time.Hour, 60_001 * time.Millisecond, 60_000 * time.Millisecond, 59_500 * time.Millisecond}, []int64{0, 1, 2}},
		{"the clock went back", []time.Duration{-time.Minute, time.Hour}, []int64{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNotebook()
				var offset atomic.Int64 // ms
				o := small()
				o.FS, o.Dialect, o.HoldDelayed, o.Checks = memfs.New(), "3.1", true, rocketstore.Checks{Checker: n}
				o.Now = func() int64 { return time.Now().UnixMilli() + offset.Load() }
				s, err := rocketstore.Open("", o)
				require.NoError(t, err)
				for _, age := range tt.ages {
					offset.Store((time.Minute - age).Milliseconds()) // the round comes in a minute
					prepare(t, s, 1)
				}
				offset.Store(0)
				pass(time.Minute)
				require.Equal(t, tt.want, numbersOf(n.take()))
				require.Equal(t, len(tt.want) < len(tt.ages), stats(t, s).Last[0].Young)
				require.NoError(t, s.Close(t.Context()))
			})
		})
	}
}

// A full file that a whole round found without an open transaction loses its schedule; one that is not full keeps it
// (R-B-34).
func TestFinishedFileLosesItsSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNotebook()
		s := checked(t, memfs.New(), "3.1", rocketstore.Checks{Checker: n})
		put := prepare(t, s, 25)
		commit(t, s, put[10:]...)
		pass(2 * time.Minute)
		require.Equal(t, 2, stats(t, s).Files) // the first has open ones, the third is not full
		commit(t, s, put[:10]...)
		n.take()
		pass(2 * time.Minute)
		require.Empty(t, n.take())
		st := stats(t, s)
		require.Equal(t, 1, st.Files)
		require.Equal(t, "transaction/statetable/00000000000000000480", st.Last[0].File)
		rounds := st.Rounds
		pass(time.Minute)
		require.Equal(t, rounds+1, stats(t, s).Rounds)
		prepare(t, s, 6) // the fourth begins, and the third goes on
		pass(time.Minute)
		require.Equal(t, []int64{25, 26, 27, 28, 29, 30}, numbersOf(n.take()))
		require.NoError(t, s.Close(t.Context()))
	})
}

// A round asks a bounded number of questions, and the next one goes on behind them, so that none waits for ever (R-B-38).
func TestQuestionsOfOneRoundAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNotebook()
		s := checked(t, memfs.New(), "3.1", rocketstore.Checks{Checker: n, InFlight: 4})
		prepare(t, s, 10)
		for _, want := range [][]int64{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}, {0, 1, 2, 3}} {
			pass(time.Minute)
			require.Equal(t, want, numbersOf(n.take()))
		}
		require.EqualValues(t, 3, stats(t, s).Limited)
		require.NoError(t, s.Close(t.Context()))
	})
}

// An error of one question is counted, and the walk goes on; so is a group of which nobody is there, and a message without
// a group (R-B-35, R-B-41, R-B-55). A checker that does not return is given up after 3 s.
func TestFailedQuestionsDoNotEndTheRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNotebook()
		n.answer = func(ctx context.Context, r rocketstore.CheckRequest) error {
			switch r.Number {
			case 1:
				return errors.New("no way through")
			case 2:
				return fmt.Errorf("group %s: %w", r.Group, rocketstore.ErrNoProducer)
			case 3:
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		s := checked(t, memfs.New(), "3.1", rocketstore.Checks{Checker: n})
		prepare(t, s, 5)
		m := transactional(t, "nobody's")
		m.Properties = m.Properties.Delete(message.PropertyProducerGroup)
		_, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		pass(time.Minute + 3*time.Second)
		require.Equal(t, []int64{0, 1, 2, 3, 4}, numbersOf(n.take()))
		run := stats(t, s).Last[0]
		require.Equal(t, []int64{6, 2, 2, 2}, []int64{run.Open, run.Asked, run.Failed, run.NoAnswer})
		pass(time.Minute)
		require.Len(t, n.take(), 5)
		require.NoError(t, s.Close(t.Context()))
	})
}

// An answer may come from within the question, and then closes the transaction; so do commits, and the round meets no
// lock (R-B-18).
func TestCheckerMayAnswerAtOnce(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		synctest.Test(t, func(t *testing.T) {
			n := newNotebook()
			s := checked(t, memfs.New(), line, rocketstore.Checks{Checker: n})
			n.answer = func(ctx context.Context, r rocketstore.CheckRequest) error {
				_, err := s.EndTransaction(ctx, rocketstore.TransactionEnd{
					ProducerGroup: r.Group, PreparedOffset: r.PhysicalOffset, Number: r.Number, Commit: r.Record.Body[3] != '1',
				})
				return err
			}
			prepare(t, s, 3)
			pass(2 * time.Minute)
			require.Len(t, n.take(), 3)
			require.Equal(t, []string{"tx 0 of 3", "tx 2 of 3"}, bodies(t, s, "T", 3))
			require.Empty(t, openSet(t, s))
			require.NoError(t, s.Close(t.Context()))
		})
	})
}

// The state table has no limit of questions by itself; one that is asked for is counted in memory, and what was given up
// stays open (R-B-39).
func TestStateTableCountsQuestionsInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, n := memfs.New(), newNotebook()
		s := checked(t, fsys, "3.1", rocketstore.Checks{Checker: n, Max: 2})
		put := prepare(t, s, 2)
		pass(5 * time.Minute)
		require.Equal(t, []int64{0, 1, 0, 1}, numbersOf(n.take()))
		require.EqualValues(t, 2, stats(t, s).GaveUp)
		require.Len(t, openSet(t, s), 2)
		commit(t, s, put[0])
		require.NoError(t, s.Close(t.Context()))
		s = checked(t, fsys, "", rocketstore.Checks{Checker: n, Max: 2})
		pass(5 * time.Minute)
		require.Equal(t, []int64{1, 1}, numbersOf(n.take()))
		require.NoError(t, s.Close(t.Context()))
		s = checked(t, fsys, "", rocketstore.Checks{Checker: n})
		pass(100 * time.Minute)
		require.Len(t, n.take(), 100)
		require.NoError(t, s.Close(t.Context()))
	})
}

// An open transaction whose message went with a segment of the log is counted and passed over (R-B-43).
func TestTransactionWithoutItsMessageIsAnOrphan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys, n := memfs.New(), newNotebook()
		s := checked(t, fsys, "3.1", rocketstore.Checks{})
		for i := range 3 {
			m := transactional(t, strconv.Itoa(i))
			m.Body = make([]byte, 5000) // one to a segment
			_, err := s.Put(t.Context(), m)
			require.NoError(t, err)
		}
		require.NoError(t, s.Close(t.Context()))
		require.NoError(t, fsys.Remove("commitlog/00000000000000000000"))
		s = checked(t, fsys, "", rocketstore.Checks{Checker: n})
		pass(2 * time.Minute)
		require.Equal(t, []int64{1, 2, 1, 2}, numbersOf(n.take()))
		require.EqualValues(t, 2, stats(t, s).Orphans)
		require.NoError(t, s.Close(t.Context()))
	})
}

// Wrong options are refused.
func TestChecksOptionsAreChecked(t *testing.T) {
	_, err := rocketstore.Open("", &rocketstore.Options{FS: memfs.New(), Checks: rocketstore.Checks{Every: -1, InFlight: -2}})
	require.ErrorContains(t, err, "Checks.Every is -1")
	require.ErrorContains(t, err, "Checks.InFlight is -2")
}

// A Checker that panics costs the question at which it does, and neither those behind it nor the process (R-B-35).
func TestPanicOfTheCheckerIsAFailedQuestion(t *testing.T) {
	eachEngine(t, func(t *testing.T, line string) {
		synctest.Test(t, func(t *testing.T) {
			n := newNotebook()
			n.answer = func(_ context.Context, r rocketstore.CheckRequest) error {
				if r.Record.Body[3] == '0' {
					panic("checker")
				}
				return nil
			}
			s := checked(t, memfs.New(), line, rocketstore.Checks{Checker: n, Every: time.Minute})
			prepare(t, s, 3)
			pass(3 * time.Minute)
			got := stats(t, s)
			require.NotZero(t, got.Failed)
			require.Equal(t, 2*got.Failed, got.Asked)
			require.Len(t, openSet(t, s), 3)
			require.NoError(t, s.Close(t.Context()))
		})
	})
}
