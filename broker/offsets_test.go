package broker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

func queueFields(topic string, queue int64, more ...remoting.Field) []remoting.Field {
	return append([]remoting.Field{remoting.String("consumerGroup", "CG"), remoting.String("topic", topic), remoting.Int("queueId", queue)}, more...)
}

func TestConsumerOffsets(t *testing.T) { // R-F-08, protocol.md 6, E6
	o := small("4.9")
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a", "b")
		offset := func(topic string, queue int64, more ...remoting.Field) string {
			resp := p.ask(remoting.QueryConsumerOffset, queueFields(topic, queue, more...)...)
			if resp.Code != remoting.Success {
				require.Equal(t, remoting.QueryNotFound, resp.Code)
				return "not found"
			}
			return resp.Fields.Get("offset")
		}
		strict := remoting.Bool("setZeroIfNotFound", false)
		require.Equal(t, "0", offset("T", 0)) // all of it is still in memory
		require.Equal(t, "0", offset("T", 1)) // empty
		require.Equal(t, "0", offset("Absent", 0))
		require.Equal(t, "not found", offset("T", 0, strict))
		store := func(topic string, queue, at int64) int32 {
			return p.ask(remoting.UpdateConsumerOffset, queueFields(topic, queue, remoting.Int("commitOffset", at))...).Code
		}
		require.Equal(t, remoting.Success, store("T", 0, 2))
		require.Equal(t, "2", offset("T", 0, strict))
		require.Equal(t, remoting.Success, store("T", 0, 1)) // it may go back
		require.Equal(t, "1", offset("T", 0))
		require.Equal(t, remoting.TopicNotExist, store("Absent", 0, 1))
		require.Equal(t, remoting.SystemError, store("T", 99, 1))
		require.Equal(t, remoting.SystemError, store("T", 0, -1))
	})
	o = small("4.9")
	o.Memory = 1
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a", "b")
		// What lies on disk makes a new group begin where it was told to: a 0 here would give it old messages (trap 5).
		require.Equal(t, remoting.QueryNotFound, p.ask(remoting.QueryConsumerOffset, queueFields("T", 0)...).Code)
	})
}

func TestQueueBoundsAndTimes(t *testing.T) { // R-F-06, protocol.md 16 "29"
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		began := time.Now().UnixMilli()
		for range 3 {
			p.puts("T", "x")
			time.Sleep(10 * time.Second)
		}
		get := func(code int32, queue int64, field string, more ...remoting.Field) string {
			resp := p.ask(code, queueFields("T", queue, more...)...)
			require.Equal(t, remoting.Success, resp.Code, resp.Remark)
			return resp.Fields.Get(field)
		}
		require.Equal(t, "3", get(remoting.GetMaxOffset, 0, "offset"))
		require.Equal(t, "0", get(remoting.GetMinOffset, 0, "offset"))
		require.Equal(t, "0", get(remoting.GetMaxOffset, 9, "offset"))
		require.Equal(t, remoting.Int("", began).Value, get(remoting.GetEarliestStoreTime, 0, "timestamp"))
		require.Equal(t, "-1", get(remoting.GetEarliestStoreTime, 1, "timestamp"))
		for after, want := range map[int64][2]string{-1: {"0", "0"}, 0: {"0", "0"}, 1: {"1", "0"}, 10_000: {"1", "1"}, 15_000: {"2", "1"}, 20_001: {"3", "2"}} {
			at := remoting.Int("timestamp", began+after)
			require.Equal(t, want[0], get(remoting.SearchOffsetByTimestamp, 0, "offset", at), after)
			require.Equal(t, want[1], get(remoting.SearchOffsetByTimestamp, 0, "offset", at, remoting.String("boundaryType", "UPPER")), after)
		}
		require.Equal(t, "0", get(remoting.SearchOffsetByTimestamp, 3, "offset", remoting.Int("timestamp", began)))
	})
}

func TestTheQuestionForAnOffsetIsNeverAnsweredWithAnError(t *testing.T) { // protocol.md 16 "Trap on code 14"
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		require.NoError(t, w.broker.Store().Close(context.Background())) // as in the last moments of a stop
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := p.c.Call(ctx, "broker", remoting.NewRequest(remoting.QueryConsumerOffset, queueFields("T", 0)...))
		require.ErrorIs(t, err, remoting.ErrClosed) // the connection is
		_, err = p.c.Call(ctx, "broker", remoting.NewRequest(remoting.QueryConsumerOffset))
		require.ErrorIs(t, err, remoting.ErrClosed)
		require.Equal(t, remoting.ServiceNotAvailable, p.put(outgoing{topic: "T"}).Code)
		require.Equal(t, remoting.ServiceNotAvailable, p.pull(pulling{topic: "T", offset: 1}).Code)
		synctest.Wait()
		w.stopped = true
		require.Error(t, w.broker.Shutdown(context.Background()))
		require.NoError(t, <-w.served)
	})
}

func TestCapturedQuestionsOfRealClients(t *testing.T) { // R-F-06, R-D-149
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		for _, req := range captured(t, remoting.Heartbeat) {
			p.beat(req.Body)
		}
		for code, allowed := range map[int32][]int32{
			remoting.QueryConsumerOffset:     {remoting.Success},
			remoting.GetMaxOffset:            {remoting.Success},
			remoting.SearchOffsetByTimestamp: {remoting.Success},
			remoting.UpdateConsumerOffset:    {remoting.Success, remoting.TopicNotExist},
			remoting.GetConsumerListByGroup:  {remoting.Success},
			remoting.PullMessage:             {remoting.PullNotFound, remoting.PullOffsetMoved, remoting.TopicNotExist, remoting.SubscriptionNotExist, remoting.SubscriptionNotLatest},
		} {
			for _, req := range captured(t, code) {
				req.Flag = 0
				require.Contains(t, allowed, p.send(req).Code, "%d %v", code, req.Fields)
			}
		}
	})
}
