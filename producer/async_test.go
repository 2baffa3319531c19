package producer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
)

func TestAsyncCallsBackOnceWithWhatSendWouldReturn(t *testing.T) { // R-D-064, R-D-065
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 4, a)
		p := w.start(producer.Options{CallbackWorkers: 2})
		done := make(chan outcome, 100)
		for range 50 {
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), func(r producer.Result, err error) {
				into(done)(r, err)
				panic("in the callback")
			}))
		}
		ids := map[string]bool{}
		for range 100 {
			o := <-done
			require.NoError(t, o.err)
			ids[o.result.MessageID] = true
		}
		require.Len(t, ids, 100)
		synctest.Wait()
		require.Empty(t, done)
		a.refuses(remoting.MessageIllegal)
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		e, ok := errors.AsType[*producer.BrokerError]((<-done).err)
		require.True(t, ok)
		require.Equal(t, remoting.MessageIllegal, e.Code)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestABlockingCallbackStopsNeitherReadingNorSyncSends(t *testing.T) { // R-D-064, R-D-093
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 4, a)
		p := w.start(producer.Options{CallbackWorkers: 2})
		block := make(chan struct{})
		var running atomic.Int32
		for range 5 {
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), func(producer.Result, error) {
				running.Add(1)
				<-block
			}))
		}
		synctest.Wait()
		require.EqualValues(t, 2, running.Load())
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		close(block)
		synctest.Wait()
		require.EqualValues(t, 5, running.Load())
	})
}

func TestAsyncRetriesWhatTheNetworkLost(t *testing.T) { // R-D-083
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 1, a, b)
		p := w.start(producer.Options{})
		for range 2 { // connections to both
			_, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
		}
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				a.conn().Close()
				return noAnswer
			}
			return nil
		})
		done := make(chan outcome, 10)
		for range 4 {
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
			o := <-done
			require.NoError(t, o.err)
			require.Equal(t, "b", o.result.Queue.BrokerName)
		}
		require.Greater(t, len(a.got()), 1)
		before := len(b.got())
		b.refuses(remoting.SystemError) // a broker's answer is final
		a.refuses(remoting.SystemError)
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		require.Error(t, (<-done).err)
		require.LessOrEqual(t, len(b.got()), before+1)
	})
}

func TestTooManyAsyncSendsAreAnErrorNotAQueue(t *testing.T) { // R-D-061, R-D-067, R-D-122
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		hold := make(chan struct{})
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				<-hold
			}
			return nil
		})
		done := make(chan outcome, 10)
		p := w.start(producer.Options{MaxPending: 3, SendTimeout: time.Minute})
		for range 3 {
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		}
		began := time.Now()
		err := p.Async(t.Context(), msg("T", "x"), into(done))
		require.ErrorIs(t, err, producer.ErrTooManyRequests)
		require.NotErrorIs(t, err, producer.ErrTimeout)
		require.Zero(t, time.Since(began))
		require.EqualValues(t, 1, p.Stats().Refused)

		patient := w.start(producer.Options{Group: "P2", MaxPending: 1, PendingWait: time.Second, SendTimeout: time.Minute})
		require.NoError(t, patient.Async(t.Context(), msg("T", "x"), into(done)))
		err = patient.Async(t.Context(), msg("T", "x"), into(done))
		require.ErrorIs(t, err, producer.ErrTooManyRequests)
		require.ErrorIs(t, err, producer.ErrTimeout)
		require.Equal(t, time.Second, time.Since(began))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, patient.Async(ctx, msg("T", "x"), into(done)), context.Canceled)

		heavy := w.start(producer.Options{Group: "P3", MaxPendingBytes: 10, SendTimeout: time.Minute})
		require.NoError(t, heavy.Async(t.Context(), msg("T", "more than ten bytes"), into(done)))
		require.ErrorIs(t, heavy.Async(t.Context(), msg("T", "x"), into(done)), producer.ErrTooManyRequests)
		close(hold)
		for range 5 {
			require.NoError(t, (<-done).err)
		}
		require.NoError(t, patient.Async(t.Context(), msg("T", "x"), into(done)))
		require.NoError(t, (<-done).err)
	})
}

func TestAsyncDoesNotWaitForAConnect(t *testing.T) { // R-D-054, R-D-067
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		w.net.Silence(a.addr, true)
		p := w.start(producer.Options{SendTimeout: 2 * time.Second})
		done := make(chan outcome, 10)
		began := time.Now()
		for range 10 {
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		}
		require.Zero(t, time.Since(began))
		for range 10 {
			require.ErrorIs(t, (<-done).err, producer.ErrConnect)
		}
		require.Equal(t, 1, w.net.Dials(a.addr)) // which all share
	})
}

func TestATimedOutAsyncSendCallsBackAtItsTime(t *testing.T) { // R-D-066
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				return noAnswer
			}
			return nil
		})
		p := w.start(producer.Options{MaxPending: 1})
		done := make(chan outcome, 1)
		for range 3 { // the permit comes back each time
			began := time.Now()
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
			require.ErrorIs(t, (<-done).err, producer.ErrTimeout)
			require.Equal(t, 3*time.Second, time.Since(began))
			synctest.Wait()
		}
		quick := w.start(producer.Options{Group: "P2", TryTimeout: time.Second, SendTimeout: 10 * time.Second})
		began := time.Now()
		require.NoError(t, quick.Async(t.Context(), msg("T", "x"), into(done)))
		require.ErrorIs(t, (<-done).err, producer.ErrTimeout)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestShutdownWaitsForWhatIsUnderWay(t *testing.T) { // R-D-038, R-D-133
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				time.Sleep(time.Second)
			}
			return nil
		})
		p := w.make(producer.Options{})
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.ErrorIs(t, err, producer.ErrState)
		require.NoError(t, p.Start(t.Context()))
		require.ErrorIs(t, p.Start(t.Context()), producer.ErrState)
		done := make(chan outcome, 20)
		for range 20 {
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.Len(t, done, 20)
		for range 20 {
			require.NoError(t, (<-done).err)
		}
		require.Len(t, a.got(remoting.UnregisterClient), 1)
		_, err = p.Send(t.Context(), msg("T", "x"))
		require.ErrorIs(t, err, producer.ErrClosed)
		require.ErrorIs(t, p.Oneway(t.Context(), msg("T", "x")), producer.ErrState)
		require.ErrorIs(t, p.Async(t.Context(), msg("T", "x"), into(done)), producer.ErrClosed)
		require.ErrorIs(t, p.Start(t.Context()), producer.ErrState)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestAfterItsContextShutdownGivesEachPendingSendItsCallback(t *testing.T) { // R-D-133
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				return noAnswer
			}
			return nil
		})
		p := w.start(producer.Options{SendTimeout: time.Hour, CallbackWorkers: 1})
		done := make(chan outcome, 40)
		block := make(chan struct{})
		for i := range 40 {
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), func(r producer.Result, err error) {
				done <- outcome{r, err}
				if i == 0 {
					<-block // holds up nobody
				}
			}))
		}
		waits := make(chan error, 1)
		go func() {
			_, err := p.Send(t.Context(), msg("T", "x"))
			waits <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, p.Shutdown(ctx), context.DeadlineExceeded)
		require.Equal(t, 5*time.Second, time.Since(began))
		synctest.Wait()
		require.Len(t, done, 40)
		for range 40 {
			require.ErrorIs(t, (<-done).err, producer.ErrClosed)
		}
		require.ErrorIs(t, <-waits, producer.ErrClosed)
		close(block) // and no goroutine is left, or the bubble does not end
	})
}

func TestShutdownUnderLoadLosesNoCallback(t *testing.T) { // R-D-065, R-D-133, R-D-144
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.broker("a"), w.broker("b")
		w.topic("T", 2, a, b)
		p := w.start(producer.Options{})
		var accepted, called, failed atomic.Int64
		ended := make(chan struct{})
		for range 8 {
			go func() {
				defer func() { ended <- struct{}{} }()
				for {
					err := p.Async(context.Background(), msg("T", "x"), func(_ producer.Result, err error) {
						called.Add(1)
						if err != nil {
							failed.Add(1)
						}
					})
					if err != nil {
						return
					}
					accepted.Add(1)
					time.Sleep(time.Millisecond)
				}
			}()
		}
		time.Sleep(100 * time.Millisecond)
		w.net.Kill(a.addr)
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, p.Shutdown(t.Context()))
		for range 8 {
			<-ended
		}
		require.Equal(t, accepted.Load(), called.Load())
		s := p.Stats()
		require.Equal(t, accepted.Load(), s.Sent+s.Failed)
		require.Equal(t, failed.Load(), s.Failed)
		require.Zero(t, s.InFlight)
		require.Zero(t, failed.Load()) // the retries covered the loss of one broker
	})
}

func TestAProducerThatCannotStartIsOfNoMoreUse(t *testing.T) { // R-D-028, R-D-038
	for _, group := range []string{"", "DEFAULT_PRODUCER", "a b", string(make([]byte, 256))} {
		_, err := producer.New(&producer.Options{Group: group, NameServers: []string{"ns:1"}})
		require.ErrorIs(t, err, producer.ErrOptions)
	}
	_, err := producer.New(&producer.Options{
		Group: "PG", NameServers: []string{"ns:1"}, SendTimeout: -1, CompressLevel: 10, Compression: 7, TraceTopic: "a b",
	})
	for _, want := range []string{"SendTimeout", "CompressLevel", "Compression 7", "TraceTopic"} {
		require.ErrorContains(t, err, want)
	}
	_, err = producer.New(nil)
	require.ErrorIs(t, err, producer.ErrOptions)
	require.ErrorIs(t, (&producer.SendError{Err: message.ErrProperty}), message.ErrProperty)
}
