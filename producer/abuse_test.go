package producer_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
)

// unanswered leaves sends without an answer.
func unanswered(req *remoting.Command) *remoting.Command {
	if isSend(req.Code) {
		return noAnswer
	}
	return nil
}

func TestACallersContextEndsItsSendWheneverItEnds(t *testing.T) { // R-D-065, R-D-066
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		p := w.start(producer.Options{MaxPending: 3})
		_, err := p.Send(t.Context(), msg("T", "route and connection"))
		require.NoError(t, err)
		a.answers(unanswered)
		began := time.Now()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = p.Send(over, msg("T", "x"))
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, p.Oneway(over, msg("T", "x")), context.Canceled)
		done := make(chan outcome, 10)
		require.NoError(t, p.Async(over, msg("T", "x"), into(done)))
		require.ErrorIs(t, (<-done).err, context.Canceled)
		require.Len(t, a.got(), 1, "none of these went out")

		during, cancel := context.WithCancel(t.Context())
		for range 3 { // all permits
			require.NoError(t, p.Async(during, msg("T", "x"), into(done)))
		}
		sent := make(chan error)
		go func() {
			_, err := p.Send(during, msg("T", "x"))
			sent <- err
		}()
		synctest.Wait()
		require.Len(t, a.got(), 5)
		cancel()
		for range 3 {
			require.ErrorIs(t, (<-done).err, context.Canceled)
		}
		require.ErrorIs(t, <-sent, context.Canceled)
		require.Zero(t, time.Since(began))

		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range 3 { // the permits came back
			require.NoError(t, p.Async(brief, msg("T", "x"), into(done)))
		}
		_, err = p.Send(brief, msg("T", "x"))
		require.ErrorIs(t, err, producer.ErrTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for range 3 {
			require.ErrorIs(t, (<-done).err, producer.ErrTimeout)
		}
		require.Equal(t, time.Second, time.Since(began))

		a.answers(nil)
		after, cancel := context.WithCancel(t.Context())
		require.NoError(t, p.Async(after, msg("T", "x"), into(done)))
		synctest.Wait()
		cancel() // changes nothing
		require.NoError(t, (<-done).err)
		synctest.Wait()
		require.Empty(t, done)
		require.Zero(t, p.Stats().InFlight)
	})
}

func TestAnAsyncSendDoesNotWaitForABrokerThatDoesNotRead(t *testing.T) { // R-D-061, R-D-067
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.names.Set("T", 1, "a", "10.0.0.1:10911")
		p := w.start(producer.Options{
			Dialect: dialect.V31(), CompressFrom: -1, MaxPending: 400, SendTimeout: 10 * time.Second, Retries: -1, AsyncRetries: -1,
		})
		pipe := w.net.Listen("10.0.0.1:10911")
		accepted := make(chan struct{})
		go func() {
			nc, err := pipe.Accept()
			if err == nil {
				defer func() { _ = nc.Close() }()
			}
			<-accepted
		}()
		defer close(accepted)
		began := time.Now()
		done := make(chan outcome, 400)
		body := strings.Repeat("x", 100<<10)
		for range 400 { // more than may wait to be written
			require.NoError(t, p.Async(t.Context(), msg("T", body), into(done)))
			synctest.Wait()
		}
		require.Zero(t, time.Since(began), "back-pressure is an error, not a wait")
		require.ErrorIs(t, p.Async(t.Context(), msg("T", "x"), into(done)), producer.ErrTooManyRequests)
		for range 400 {
			require.Error(t, (<-done).err)
		}
		require.LessOrEqual(t, time.Since(began), 10*time.Second)
		synctest.Wait()
		require.Zero(t, p.Stats().InFlight)
	})
}

// hanging is a hook that does not return.
type hanging struct{ until chan struct{} }

func (hanging) Name() string                              { return "hanging" }
func (hanging) BeforeSend(*producer.SendContext) error    { return nil }
func (h hanging) AfterSend(_ *producer.SendContext) error { <-h.until; return nil }

func TestShutdownDoesNotWaitForWhatTheUserNeverEnds(t *testing.T) { // R-D-133
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.topic("T", 1, w.broker("a"))
		hang := hanging{make(chan struct{})}
		p := w.start(producer.Options{Hooks: []producer.SendHook{hang}})
		done := make(chan outcome, 10)
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		var ended atomic.Int32
		go func() {
			_, _ = p.Send(t.Context(), msg("T", "x"))
			ended.Add(1)
		}()
		go func() {
			_, _ = p.SendSelect(t.Context(), msg("T", "x"), func(q []producer.Queue, _ *message.Message, _ any) (producer.Queue, error) {
				<-hang.until
				return q[0], nil
			}, nil)
			ended.Add(1)
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, p.Shutdown(ctx), context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(began), 7*time.Second)
		close(hang.until)
		require.NoError(t, (<-done).err, "it gets its callback all the same")
		synctest.Wait()
		require.EqualValues(t, 2, ended.Load())
		require.Zero(t, p.Stats().InFlight)
	})
}

// lines are what a log was told, without attributes.
type lines struct {
	slog.Handler
	mu   *sync.Mutex
	text map[string]int
}

func (lines) Enabled(context.Context, slog.Level) bool { return true }

func (l lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text[r.Message]++
	return nil
}

// told says how often a line was written.
func (l lines) told(line string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text[line]
}

func newLines() lines { return lines{slog.DiscardHandler, new(sync.Mutex), map[string]int{}} }

func TestTheLinesOfALogAreFixedAndEachPartHasItsOwn(t *testing.T) { // R-D-146, R-D-147
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		ours, network := newLines(), newLines()
		p := w.start(producer.Options{
			Logger: slog.New(ours), MaxPending: 1, ClientOptions: producer.ClientOptions{Logger: slog.New(network)},
		})
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		require.Equal(t, 1, ours.told("send result"))
		hold := make(chan struct{})
		done := make(chan outcome, 1)
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				<-hold
			}
			return nil
		})
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		require.ErrorIs(t, p.Async(t.Context(), msg("T", "x"), into(done)), producer.ErrTooManyRequests)
		require.Equal(t, 1, ours.told("no permit for an async send"))
		close(hold)
		require.NoError(t, (<-done).err)
		a.answers(func(req *remoting.Command) *remoting.Command {
			if isSend(req.Code) {
				return req.Reply(remoting.Success, remoting.String("queueId", "no number"))
			}
			return nil
		})
		_, err = p.Send(t.Context(), msg("T", "x"))
		require.ErrorIs(t, err, producer.ErrResponse)
		require.Equal(t, 1, ours.told("bad send response"))
		silent := w.broker("b")
		w.topic("S", 1, silent)
		w.net.Silence(silent.addr, true)
		one := w.start(producer.Options{
			Group: "P2", Logger: slog.New(ours), Dialect: dialect.V31(), ClientOptions: producer.ClientOptions{MaxOneway: 1},
		})
		go func() { _ = one.Oneway(t.Context(), msg("S", "x")) }() // waits for the connect
		synctest.Wait()
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, one.Oneway(brief, msg("S", "x")), producer.ErrTooManyRequests)
		require.Equal(t, 1, ours.told("no permit for a oneway send"))
		w.net.Kill(a.addr)
		synctest.Wait()
		require.Equal(t, 1, network.told("connection closed"))
		require.Zero(t, network.told("send result"))
		require.Zero(t, ours.told("connection closed"))
	})
}

// stuck is a log whose first line about a result does not end.
type stuck struct {
	slog.Handler
	first *atomic.Bool
	until chan struct{}
}

func (stuck) Enabled(context.Context, slog.Level) bool { return true }

func (l stuck) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "send result" && l.first.CompareAndSwap(false, true) {
		<-l.until
	}
	return nil
}

func TestALogThatStandsStillKeepsNoOtherSend(t *testing.T) { // R-D-064
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.topic("T", 1, w.broker("a"))
		log := stuck{slog.DiscardHandler, new(atomic.Bool), make(chan struct{})}
		p := w.start(producer.Options{Logger: slog.New(log)})
		done := make(chan outcome, 2)
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		synctest.Wait()
		require.Empty(t, done)
		require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
		require.NoError(t, (<-done).err)
		_, err := p.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		close(log.until)
		require.NoError(t, (<-done).err)
	})
}

func TestAnAnswerThatComesTwiceCallsBackOnce(t *testing.T) { // R-D-062, R-D-065
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a := w.broker("a")
		w.topic("T", 1, a)
		p := w.start(producer.Options{})
		a.answers(func(req *remoting.Command) *remoting.Command {
			if !isSend(req.Code) {
				return nil
			}
			for range 2 {
				if err := a.conn().Respond(context.Background(), req, a.ok(req, remoting.Success)); err != nil {
					return nil
				}
			}
			return nil // and once more
		})
		done := make(chan outcome, 200)
		for range 50 {
			require.NoError(t, p.Async(t.Context(), msg("T", "x"), into(done)))
			_, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
		}
		synctest.Wait()
		require.Len(t, done, 50)
		require.Zero(t, p.Stats().InFlight)
	})
}
