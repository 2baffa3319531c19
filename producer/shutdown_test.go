package producer_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
)

func TestShutdownDoesNotWaitForAPermit(t *testing.T) { // R-D-067, R-D-133
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.topic("T", 1, w.broker("a"))
		p := w.start(producer.Options{MaxPending: 2, PendingWait: time.Hour, CallbackWorkers: 1})
		hold := make(chan struct{})
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), func(producer.Result, error) { <-hold }))
		synctest.Wait() // its callback has the one worker; the next two wait behind it with their permits
		done := make(chan outcome, 3)
		for range 2 {
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
			synctest.Wait()
		}
		refused := make(chan error)
		go func() { refused <- p.Async(t.Context(), msg("T", "x"), into(done)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		ended := make(chan error)
		go func() { ended <- p.Shutdown(ctx) }()
		err := <-refused
		require.ErrorIs(t, err, producer.ErrClosed)
		require.ErrorIs(t, err, producer.ErrTooManyRequests)
		require.ErrorIs(t, <-ended, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		for range 2 {
			require.NoError(t, (<-done).err)
		}
		close(hold)
	})
}

func TestAStartThatMeetsAShutdownLeavesNothingBehind(t *testing.T) { // R-D-038, R-D-129
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, err := producer.NewClient(&producer.ClientOptions{NameServers: []string{"ns:9876"}, Dial: w.net.Dial})
		require.NoError(t, err)
		for range 200 {
			p, err := producer.New(&producer.Options{Group: "PG", Client: c})
			require.NoError(t, err)
			var both sync.WaitGroup
			both.Go(func() { _ = p.Start(t.Context()) }) // it may come too late
			both.Go(func() { _ = p.Shutdown(t.Context()) })
			both.Wait()
			_, err = p.Send(t.Context(), msg("T", "x"))
			require.ErrorIs(t, err, producer.ErrClosed)
		}
		p, err := producer.New(&producer.Options{Group: "PG", Client: c})
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context()), "the group is free")
		require.NoError(t, p.Shutdown(t.Context()))
		c.Close()
	})
}

func TestShutdownWaitsForTheEndOfATransaction(t *testing.T) { // R-D-113, R-D-133
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		l := &listener{execute: func(*message.Message, producer.Result, any) (producer.TransactionState, error) {
			time.Sleep(5 * time.Second)
			return producer.Commit, nil
		}}
		p := w.start(producer.Options{Listener: l})
		sent := make(chan error)
		go func() {
			_, err := p.SendInTransaction(t.Context(), msg("T", "x"), nil)
			sent <- err
		}()
		synctest.Wait()
		require.Len(t, a.got(), 1)
		ended := make(chan error)
		go func() { ended <- p.Shutdown(t.Context()) }()
		require.NoError(t, <-sent)
		require.NoError(t, <-ended)
		synctest.Wait()
		ends := a.got(remoting.EndTransaction)
		require.Len(t, ends, 1)
		require.Equal(t, "8", ends[0].Fields.Get("commitOrRollback"))
	})
}

func TestShutdownDoesNotWaitForATransactionWithoutEnd(t *testing.T) { // R-D-133
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.topic("T", 1, w.broker("a"))
		hold := make(chan struct{})
		l := &listener{execute: func(*message.Message, producer.Result, any) (producer.TransactionState, error) {
			<-hold
			return producer.Commit, nil
		}}
		p := w.start(producer.Options{Listener: l})
		sent := make(chan error)
		go func() {
			_, err := p.SendInTransaction(context.Background(), msg("T", "x"), nil)
			sent <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, p.Shutdown(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		close(hold)
		require.NoError(t, <-sent) // it was stored; a check will ask for the rest
	})
}

func TestShutdownLetsABegunCheckBeAnsweredAndDropsTheRest(t *testing.T) { // R-D-115, R-D-133
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		l := &listener{check: func(*message.Received) (producer.TransactionState, error) {
			time.Sleep(time.Second)
			return producer.Rollback, nil
		}}
		p := w.start(producer.Options{Listener: l})
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, a.conn().Oneway(t.Context(), checkOf(t, "PG")))
			synctest.Wait()
		}
		require.NoError(t, p.Shutdown(t.Context()))
		synctest.Wait()
		ends := a.got(remoting.EndTransaction)
		require.Len(t, ends, 1)
		require.Equal(t, "12", ends[0].Fields.Get("commitOrRollback"))
	})
}

func TestShutdownWaitsForAReply(t *testing.T) { // R-D-133
	for _, comes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			a := w.broker("a")
			w.topic("T", 1, a)
			p := w.start(producer.Options{SendTimeout: time.Minute})
			got := make(chan error)
			go func() {
				_, err := p.Request(t.Context(), msg("T", "question"))
				got <- err
			}()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			ended := make(chan error)
			go func() { ended <- p.Shutdown(ctx) }()
			synctest.Wait()
			if !comes {
				require.ErrorIs(t, <-got, producer.ErrClosed)
				require.ErrorIs(t, <-ended, context.DeadlineExceeded)
				return
			}
			text, err := message.NewProperties("CORRELATION_ID", properties(a.got()[0])["CORRELATION_ID"])
			require.NoError(t, err)
			push := remoting.NewRequest(remoting.PushReplyMessage, remoting.String("topic", "R"), remoting.String("properties", string(text)))
			_, err = a.conn().Call(t.Context(), push)
			require.NoError(t, err)
			require.NoError(t, <-got)
			require.NoError(t, <-ended)
		})
	}
}

func TestACallbackMayShutTheProducerDown(t *testing.T) { // R-D-065, R-D-133
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.topic("T", 1, w.broker("a"))
		p := w.start(producer.Options{CallbackWorkers: 1})
		ended, done := make(chan error, 1), make(chan outcome, 10)
		begin := make(chan struct{})
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), func(producer.Result, error) {
			<-begin
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			ended <- p.Shutdown(ctx)
		}))
		for range 10 {
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		}
		close(begin)
		require.ErrorIs(t, <-ended, context.DeadlineExceeded, "it waits for itself")
		for range 10 {
			require.NoError(t, (<-done).err)
		}
		require.ErrorIs(t, p.Async(t.Context(), msg("T", "x"), into(done)), producer.ErrClosed)
	})
}
