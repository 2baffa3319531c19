package producer_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/producer"
)

func TestFiguresCountWhatWasSent(t *testing.T) { // R-D-124, R-D-126, R-D-127, R-D-144
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		p := w.start(producer.Options{})
		for range 100 {
			_, err := p.Send(t.Context(), msg("T", "four"))
			require.NoError(t, err)
		}
		require.NoError(t, p.Oneway(t.Context(), msg("T", "four")))
		s := p.Stats()
		require.Equal(t, [3]int64{100, 0, 1}, s.Begun)
		require.EqualValues(t, 101, s.Sent)
		require.EqualValues(t, 404, s.Bytes)
		require.Zero(t, s.Failed)
		require.EqualValues(t, 100, s.Latency.Count(), "a oneway send has no answer whose time could be taken")
	})
}

// alarms are the levels that package producer's comment gives, as an owner would set them on the figures.
func alarms(s producer.Stats, network time.Duration) (raised []string) {
	if s.Latency.Percentile(0.99) > 500*time.Millisecond {
		raised = append(raised, "latency")
	}
	if done := s.Sent + s.Failed; done > 0 && float64(s.Failed)/float64(done) > 0.001 {
		raised = append(raised, "failures")
	}
	if s.InFlight > 1000 {
		raised = append(raised, "in flight")
	}
	if network > 100*time.Millisecond {
		raised = append(raised, "network")
	}
	return raised
}

// trouble is what a broker does wrong: its answers to sends come late, its answers to all come late, it refuses sends.
type trouble struct{ slow, network, refuse atomic.Int64 }

// serve has a broker with topic T do so.
func (x *trouble) serve(w *world) *fakeBroker {
	a := w.broker("a")
	w.topic("T", 1, a)
	a.answers(func(req *remoting.Command) *remoting.Command {
		time.Sleep(time.Duration(x.network.Load()))
		if !isSend(req.Code) {
			return nil
		}
		if x.refuse.Add(-1) >= 0 {
			return req.Refuse(remoting.MessageIllegal, "told to by the test")
		}
		time.Sleep(time.Duration(x.slow.Load()))
		return nil
	})
	return a
}

func TestEachAlarmIsRaisedByItsTroubleAlone(t *testing.T) { // R-D-124: P99 > 500 ms, failures > 0.1 %, in flight > 1000, network > 100 ms
	const ms = int64(time.Millisecond)
	for _, tt := range []struct {
		name                         string
		slow, network, refuse, sends int64 // sends besides a thousand that have no trouble
		want                         []string
	}{
		{"rather slow", 250 * ms, 0, 0, 20, nil}, // its bucket ends at 262 ms
		{"too slow", 600 * ms, 0, 0, 20, []string{"latency"}},
		{"too slow, but less than one in a hundred", 600 * ms, 0, 0, 9, nil},
		{"two refused", 0, 0, 2, 2, []string{"failures"}},
		{"one refused", 0, 0, 1, 1, nil},
		{"a long way", 0, 101 * ms, 0, 0, []string{"network"}},
		{"not so long", 0, 100 * ms, 0, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				var x trouble
				x.serve(w)
				p := w.start(producer.Options{})
				for range 1000 {
					_, err := p.Send(t.Context(), msg("T", "x"))
					require.NoError(t, err)
				}
				x.slow.Store(tt.slow)
				x.network.Store(tt.network)
				x.refuse.Store(tt.refuse)
				for range tt.sends {
					_, err := p.Send(t.Context(), msg("T", "x"))
					require.Equal(t, tt.refuse > 0, err != nil)
				}
				way, err := p.Probe(t.Context(), "a")
				require.NoError(t, err)
				require.EqualValues(t, tt.network, way)
				require.Equal(t, tt.want, alarms(p.Stats(), way))
			})
		})
	}
}

func TestSendsWithoutAnAnswerAreSeenInFlight(t *testing.T) { // R-D-124
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var x trouble
		x.serve(w)
		x.slow.Store(int64(time.Second))
		p := w.start(producer.Options{})
		done := make(chan outcome, 1001)
		for i := range 1001 {
			require.Empty(t, alarms(p.Stats(), 0), i)
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		}
		require.Equal(t, []string{"in flight"}, alarms(p.Stats(), 0))
		for range 1001 {
			<-done
		}
		synctest.Wait()
		require.Zero(t, p.Stats().InFlight)
	})
}

func TestASlowSendIsTracedToTheWayOrTheBroker(t *testing.T) { // R-D-121: the broker's part is TestTheTimeOfPutsTellsASlowDisk
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var x trouble
		a := x.serve(w)
		p := w.start(producer.Options{SendTimeout: 2 * time.Second, Retries: -1})
		_, err := p.Probe(t.Context(), "a")
		require.ErrorIs(t, err, client.ErrNoBroker, "no route leads to it yet")
		_, err = p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		for _, tt := range []struct{ slow, network time.Duration }{{0, 0}, {3 * time.Second, 0}, {0, 1500 * time.Millisecond}} {
			x.slow.Store(int64(tt.slow))
			x.network.Store(int64(tt.network))
			began := time.Now()
			_, err := p.Send(t.Context(), msg("T", "x"))
			if tt.slow > 0 {
				require.ErrorIs(t, err, producer.ErrTimeout)
			} else {
				require.NoError(t, err)
				require.Equal(t, tt.network, time.Since(began))
			}
			way, err := p.Probe(t.Context(), "a")
			require.NoError(t, err)
			require.Equal(t, tt.network, way, "the way only, not what a send takes in the broker")
		}
		require.EqualValues(t, 1, p.Stats().Errors["timeout"])
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a.answers(func(*remoting.Command) *remoting.Command { return noAnswer })
		_, err = p.Probe(ctx, "a")
		require.ErrorIs(t, err, producer.ErrTimeout)
		a.answers(nil)
	})
}

func TestPausesOfTheCollectorAreSeen(t *testing.T) { // R-D-121
	runtime.GC()
	least, most := producer.GCPause(0), producer.GCPause(1)
	require.Positive(t, most)
	require.LessOrEqual(t, least, producer.GCPause(0.5))
	require.LessOrEqual(t, producer.GCPause(0.5), producer.GCPause(0.99))
	require.LessOrEqual(t, producer.GCPause(0.99), most)
}
