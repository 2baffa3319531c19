package producer_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
)

// speaksOldOnly makes a broker be as one of 3.1: it says so in each answer, and leaves what it does not know without one.
func (b *fakeBroker) speaksOldOnly() {
	b.answers(func(req *remoting.Command) *remoting.Command {
		switch req.Code {
		case remoting.SendMessage:
			resp := b.ok(req, remoting.Success)
			resp.Version = remoting.Version314
			return resp
		case remoting.Heartbeat, remoting.UnregisterClient:
			resp := req.Reply(remoting.Success)
			resp.Version = remoting.Version314
			return resp
		}
		return noAnswer
	})
}

func TestAnOldBrokerIsKnownByItsVersion(t *testing.T) { // R-D-052
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old, now := w.broker("a"), w.broker("b")
		old.speaksOldOnly()
		w.topic("Old", 4, old)
		w.topic("Now", 4, now)
		p := w.start(producer.Options{})
		done := make(chan outcome, 8)
		for range 8 { // at once, before anything is known
			require.NoError(t, p.Async(t.Context(), msg("Old", "x"), into(done)))
		}
		for range 8 {
			require.NoError(t, (<-done).err)
		}
		began := time.Now()
		_, err := p.Send(t.Context(), msg("Old", "x"))
		require.NoError(t, err)
		require.NoError(t, p.Oneway(t.Context(), msg("Old", "x")))
		_, err = p.SendBatch(t.Context(), []*message.Message{msg("Old", "x"), msg("Old", "y")})
		no, ok := errorAs(err)
		require.True(t, ok)
		require.Equal(t, remoting.RequestCodeNotSupported, no.Code)
		require.Zero(t, time.Since(began), "nothing waited for an answer that never comes")
		_, err = p.Send(t.Context(), msg("Now", "x"))
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, old.got(), 10)
		require.Len(t, old.got(remoting.SendMessage), 10)
		require.Len(t, now.got(remoting.SendMessageV2), 1)
	})
}

func TestABrokerThatAnswersNoHeartbeatIsWaitedForOnce(t *testing.T) { // R-D-052, R-D-081
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.broker("a")
		b.answers(func(req *remoting.Command) *remoting.Command {
			if req.Code == remoting.Heartbeat {
				return noAnswer
			}
			return nil
		})
		w.topic("T", 4, b)
		p := w.start(producer.Options{})
		began := time.Now()
		for range 3 {
			_, err := p.Send(t.Context(), msg("T", "x"))
			require.NoError(t, err)
		}
		require.Less(t, time.Since(began), time.Second)
		require.Len(t, b.got(remoting.SendMessageV2), 3)
		old := w.start(producer.Options{Group: "PG_31", Dialect: dialect.V31()})
		began = time.Now()
		_, err := old.Send(t.Context(), msg("T", "x"))
		require.NoError(t, err)
		require.Zero(t, time.Since(began), "who names the dialect does not wait")
	})
}

func errorAs(err error) (*producer.BrokerError, bool) {
	return errors.AsType[*producer.BrokerError](err)
}
