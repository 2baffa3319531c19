package bench_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

var (
	txFinished = flag.Int64("bench.finished", 100_000, "finished transactions around the open ones; the goal is stated for 2000000")
	txRedo     = flag.Int64("bench.redo", 200_000, "redo units to rebuild the state table from; the goal is stated for 10000000")
)

func openTransactional(b *testing.B, line string, checks rocketstore.Checks) *rocketstore.Store {
	b.Helper()
	s, err := rocketstore.Open(b.TempDir(), &rocketstore.Options{
		Dialect: line, SegmentSize: 256 << 20, IndexSlots: 1 << 20, IndexEntries: 8 << 20, HoldDelayed: true, Checks: checks,
		StateSegmentSize: 24 * 8 << 20, // one file, so that there is one round
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func prepared(b *testing.B, queue int32, body []byte) *message.Message {
	b.Helper()
	p, err := message.NewProperties(message.PropertyTags, "tag", message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, "group")
	if err != nil {
		b.Fatal(err)
	}
	return &message.Message{Topic: "Bench", QueueID: queue, SysFlag: message.FlagPrepared, Body: body, Properties: p}
}

// prepareAndCommit is one transaction.
func prepareAndCommit(ctx context.Context, s *rocketstore.Store, m *message.Message) error {
	r, err := s.Put(ctx, m)
	if err == nil {
		_, err = s.EndTransaction(ctx, rocketstore.TransactionEnd{ProducerGroup: "group", PreparedOffset: r.PhysicalOffset, Number: r.QueueOffset, Commit: true})
	}
	return err
}

// BenchmarkPrepare puts prepared messages, which stay open: 0 allocations on the state table.
func BenchmarkPrepare(b *testing.B) {
	for _, line := range []string{"3.1", "4.9"} {
		b.Run("line="+line, func(b *testing.B) {
			s := openTransactional(b, line, rocketstore.Checks{})
			m := prepared(b, 0, make([]byte, 1024))
			b.SetBytes(1024)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Put(b.Context(), m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTransaction prepares and commits through the store: a transaction is two messages of 1 KiB, and in a half topic
// an op message.
func BenchmarkTransaction(b *testing.B) {
	for _, line := range []string{"3.1", "4.9"} {
		for _, writers := range []int{1, 4} {
			b.Run(fmt.Sprintf("line=%s/body=1024/writers=%d", line, writers), func(b *testing.B) {
				s := openTransactional(b, line, rocketstore.Checks{})
				body := make([]byte, 1024)
				b.SetBytes(2 * 1024)
				b.ReportAllocs()
				b.ResetTimer()
				var group sync.WaitGroup
				for w := range writers {
					n := b.N / writers
					if w == 0 {
						n = b.N - n*(writers-1)
					}
					m := prepared(b, int32(w), body)
					group.Go(func() {
						for range n {
							if err := prepareAndCommit(b.Context(), s, m); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				b.StopTimer()
			})
		}
	}
}

// roundTimer is a Checker that takes the time from the first to the last question of a round.
type roundTimer struct {
	questions int64
	asked     int64 // of the service's goroutine
	began     time.Time
	rounds    chan time.Duration
	on        atomic.Bool
}

func (t *roundTimer) Check(context.Context, rocketstore.CheckRequest) error {
	if t.asked == 0 {
		t.began = time.Now()
	}
	if t.asked++; t.asked == t.questions {
		t.asked = 0
		t.rounds <- time.Since(t.began)
	}
	return nil
}

// BenchmarkCheckRound has 1 000 open transactions among finished ones checked, through the store: a round must not cost
// more where more are finished. A half topic stores each message again.
func BenchmarkCheckRound(b *testing.B) {
	const open = 1000
	for _, line := range []string{"3.1", "4.9"} {
		for _, finished := range []int64{0, *txFinished} {
			b.Run(fmt.Sprintf("line=%s/open=%d/finished=%d", line, open, finished), func(b *testing.B) {
				timer := &roundTimer{questions: open, rounds: make(chan time.Duration)}
				s := openTransactional(b, line, rocketstore.Checks{
					Checker: timer, Every: time.Millisecond, MinAge: time.Millisecond, Max: -1, Enabled: timer.on.Load,
				})
				m := prepared(b, 0, make([]byte, 128))
				for i := range finished + open {
					if i*open/(finished+open) != (i+1)*open/(finished+open) {
						if _, err := s.Put(b.Context(), m); err != nil {
							b.Fatal(err)
						}
					} else if err := prepareAndCommit(b.Context(), s, m); err != nil {
						b.Fatal(err)
					}
				}
				timer.on.Store(true)
				<-timer.rounds // the first looks at each record once
				sum := time.Duration(0)
				b.ResetTimer()
				for range b.N {
					sum += <-timer.rounds
				}
				b.StopTimer()
				timer.on.Store(false)
				go func() {
					for range timer.rounds { // the service may be in a round
					}
				}()
				b.ReportMetric(float64(sum.Nanoseconds())/float64(b.N), "ns/round")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// redoStore makes a log of prepared messages and their ends, and the redo log of it: half as many transactions as units, one
// of a thousand open.
func redoStore(b *testing.B, units int64) (*commitlog.Log, *recovery.Transactions) {
	b.Helper()
	fsys, err := mappedfile.OpenDir(b.TempDir(), nil)
	fatal(b, err)
	log, err := commitlog.Open(fsys, &commitlog.Options{SegmentSize: 256 << 20})
	fatal(b, err)
	redo, err := redolog.Open(fsys, redolog.Dir, nil)
	fatal(b, err)
	states, err := txstate.Open(fsys, txstate.Dir, nil)
	fatal(b, err)
	b.Cleanup(func() { _, _, _ = log.Close(), redo.Close(), states.Close() })
	m := prepared(b, 0, make([]byte, 128))
	begin, err := commitlog.AppendMessage(nil, m, dialect.V31(), 0)
	fatal(b, err)
	var buf []byte
	seq := numbers(0)
	for n := int64(0); n < units; {
		res, err := log.Append(b.Context(), begin, &seq, false)
		fatal(b, err)
		_, err = redo.Append(redolog.Unit{PhysicalOffset: res.PhysicalOffset, Size: int32(res.Size), TagsCode: redolog.Prepared})
		fatal(b, err)
		if n++; n/2%1000 == 0 {
			continue
		}
		end := *m
		end.SysFlag, end.PreparedTransactionOffset = message.FlagCommit, res.PhysicalOffset
		buf, err = commitlog.AppendMessage(buf[:0], &end, dialect.V31(), 0)
		fatal(b, err)
		done, err := log.Append(b.Context(), buf, nil, false)
		fatal(b, err)
		_, err = redo.Append(redolog.Unit{PhysicalOffset: done.PhysicalOffset, Size: int32(done.Size), TagsCode: res.PhysicalOffset})
		fatal(b, err)
		n++
	}
	return log, &recovery.Transactions{States: states, Redo: redo}
}

type numbers int64

func (n *numbers) NextOffset() int64 { return int64(*n) }
func (n *numbers) Advance(by int64)  { *n += numbers(by) }

func fatal(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRebuildStates makes the state table again from the redo log and the messages (R-B-59: 10 000 000 units in less
// than 5 s and 1 GB).
func BenchmarkRebuildStates(b *testing.B) {
	b.Run(fmt.Sprintf("units=%d", *txRedo), func(b *testing.B) {
		log, tx := redoStore(b, *txRedo)
		b.SetBytes(*txRedo * redolog.UnitSize)
		b.ReportAllocs()
		most := uint64(0)
		for b.Loop() {
			fatal(b, recovery.RebuildStates(b.Context(), log, tx, func(w recovery.Warning) { b.Error(w.Text) }))
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			most = max(most, mem.HeapSys)
		}
		b.ReportMetric(float64(most)/(1<<20), "heap-MiB")
	})
}
