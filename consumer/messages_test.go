package consumer_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// start starts a consumer that is expected to fail.
func start(o consumer.Options) error {
	c, err := consumer.Start(context.Background(), &o)
	if err != nil {
		return err
	}
	return c.Close(context.Background())
}

func TestMessagesComeOneByOneAndCountWhenTheNextIsAskedFor(t *testing.T) {
	inWorld(t, []string{"a"}, func(t *testing.T, w *world) {
		want := w.fill("T", "m", 20)
		c := w.consume(w.options("one", nil, "T"))
		var got []string
		for m, err := range c.Messages(t.Context()) {
			require.NoError(t, err)
			if len(got) == 5 {
				break // this one comes again
			}
			got = append(got, string(m.Body))
		}
		settle(time.Second)
		require.Equal(t, int64(15), c.Stats().Lag)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for m, err := range c.Messages(ctx) {
			require.NoError(t, err)
			got = append(got, string(m.Body))
			if len(got) == len(want) {
				cancel()
			}
		}
		require.ElementsMatch(t, want, got)
		require.NoError(t, c.Close(context.Background()))
		for queue := range int32(4) {
			require.Equal(t, "5", w.stored("a", "CG", "T", queue))
		}
		for m, err := range c.Messages(t.Context()) {
			t.Fatal("it is closed", m, err)
		}
	})
}

func TestALoopIsToldWhatGoesWrong(t *testing.T) {
	inWorld(t, []string{"a"}, func(t *testing.T, w *world) {
		c := w.consume(w.options("one", nil, "Unknown"))
		for m, err := range c.Messages(t.Context()) {
			require.Nil(t, m)
			require.ErrorContains(t, err, "no route info of this topic: Unknown")
			break
		}
	})
}

func TestSendBackFromALoop(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		b.put(0, "m")
		c := w.consume(w.options("one", nil, "T"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for m, err := range c.Messages(ctx) {
			require.NoError(t, err)
			require.NoError(t, c.SendBack(ctx, m, 4))
			cancel()
		}
		require.Len(t, b.requests(remoting.ConsumerSendMessageBack), 1)
	})
}

func TestCloseWaitsForListenersAndStoresTheirOffsets(t *testing.T) { // R-G-09
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		for _, body := range []string{"m0", "m1", "m2"} {
			b.put(0, body)
		}
		s := &seen{}
		o := w.options("one", nil, "T")
		o.Workers = 1
		o.Listener = func(ctx context.Context, batch *consumer.Batch) error {
			time.Sleep(time.Minute)
			return s.listen(ctx, batch)
		}
		c := w.consume(o)
		settle(time.Second)
		began := time.Now()
		require.NoError(t, c.Close(context.Background()))
		require.Equal(t, 59*time.Second, time.Since(began).Round(time.Second))
		require.Equal(t, []string{"m0"}, s.bodies())
		require.Equal(t, int64(1), b.committed()[0])
		require.Len(t, b.requests(remoting.UnregisterClient), 1)
		require.NoError(t, c.Close(context.Background()))
		require.ErrorIs(t, c.Subscribe(t.Context(), "U", "*"), consumer.ErrClosed)
	})
}

func TestCloseTellsListenersWhenItsTimeIsOver(t *testing.T) { // R-G-09
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		b.put(0, "m0")
		o := w.options("one", nil, "T")
		o.Listener = func(ctx context.Context, _ *consumer.Batch) error {
			<-ctx.Done()
			return ctx.Err()
		}
		c, err := consumer.Start(t.Context(), &o)
		require.NoError(t, err)
		settle(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.ErrorIs(t, c.Close(ctx), context.DeadlineExceeded)
		require.Zero(t, b.committed()[0])
	})
}

// What a broker asks of a consumer, as administrators have it do. R-G-29, R-G-34.
func TestAdministratorsAreAnswered(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		for _, body := range []string{"m0", "m1", "m2"} {
			b.put(0, body)
		}
		s := &seen{}
		w.consume(w.options("one", s, "T"))
		settle(11 * time.Second)
		ask := func(code int32, body string, fields ...remoting.Field) *remoting.Command {
			req := remoting.NewRequest(code, append(fields, remoting.String("group", "CG"), remoting.String("consumerGroup", "CG"))...)
			req.Body = []byte(body)
			resp, err := b.conn(t).Call(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, remoting.Success, resp.Code, resp.Remark)
			return resp
		}
		status := ask(remoting.GetConsumerStatus, "", remoting.String("topic", "T"))
		require.Contains(t, string(status.Body), `{"brokerName":"fake","queueId":0,"topic":"T"}:3`)
		info := ask(remoting.GetConsumerRunningInfo, "")
		require.Contains(t, string(info.Body), `"PROP_CONSUME_TYPE":"CONSUME_PASSIVELY"`)

		s.forget()
		ask(remoting.ResetConsumerOffset, `{"offsetTable":{{"brokerName":"fake","queueId":0,"topic":"T"}:1}}`, remoting.String("topic", "T"))
		settle(time.Second)
		require.ElementsMatch(t, []string{"m1", "m2"}, s.bodies())

		s.forget()
		direct := ask(remoting.ConsumeMessageDirectly, string(appendRecord(nil, b.queues[0][0])), remoting.String("brokerName", "fake"))
		var result struct{ ConsumeResult string }
		require.NoError(t, json.Unmarshal(direct.Body, &result))
		require.Equal(t, "CR_SUCCESS", result.ConsumeResult)
		require.True(t, slices.Equal([]string{"m0"}, s.bodies()))
	})
}
