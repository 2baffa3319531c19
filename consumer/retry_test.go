package consumer_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

func failing(words ...string) func(m *message.Received) error {
	return func(m *message.Received) error {
		for _, word := range words {
			if strings.Contains(string(m.Body), word) {
				return errListener
			}
		}
		return nil
	}
}

func TestWhatFailsIsSentBackWithItsPlace(t *testing.T) { // R-G-30
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		for _, body := range []string{"good", "bad", "fine"} {
			b.put(0, body, func(m *message.Message) { m.Properties = "UNIQ_KEY\x010A000001\x02"; m.ReconsumeTimes = 2 })
		}
		c := w.consume(w.options("one", &seen{fail: failing("bad")}, "T"))
		settle(11 * time.Second)
		back := b.requests(remoting.ConsumerSendMessageBack)
		require.Len(t, back, 1)
		for name, want := range map[string]string{
			"offset": "1000", "group": "CG", "delayLevel": "0", "originMsgId": "0A000001", "originTopic": "T", "maxReconsumeTimes": "16", "unitMode": "false",
		} {
			require.Equal(t, want, back[0].Fields.Get(name), name)
		}
		require.Equal(t, int64(3), b.committed()[0])
		stats := c.Stats()
		require.Equal(t, []int64{2, 1, 1, 0}, []int64{stats.Consumed, stats.Failed, stats.SentBack, stats.Dead})
	})
}

// Where the broker cannot take it back and there is no other, the message is consumed again here, and the offset does not pass it.
func TestWhatCannotBeSentBackComesAgainHere(t *testing.T) { // R-G-30
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		b.tell(func(req *remoting.Command) *remoting.Command {
			if req.Code == remoting.ConsumerSendMessageBack {
				return req.Refuse(remoting.SystemError, "no")
			}
			return nil
		})
		b.put(0, "bad")
		b.put(0, "good")
		var tries atomic.Int32
		s := &seen{fail: func(m *message.Received) error {
			if string(m.Body) == "bad" && m.ReconsumeTimes < 2 {
				tries.Store(m.ReconsumeTimes + 1)
				return errListener
			}
			return nil
		}}
		w.consume(w.options("one", s, "T"))
		settle(4 * time.Second)
		require.Equal(t, int32(1), tries.Load())
		require.Zero(t, b.committed()[0])
		settle(11 * time.Second)
		require.Equal(t, int32(2), tries.Load())
		require.Equal(t, int64(2), b.committed()[0])
	})
}

// As in the original, a message whose broker cannot take it back goes to the retry topic as a new one, with the count and the way back.
func TestWhatItsBrokerCannotTakeBackIsSentAnew(t *testing.T) { // R-G-30
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		names := w.net.ServeNames("ns2:9876")
		names.Set("T", 1, "fake", b.addr)
		names.Set("%RETRY%CG", 1, "fake", b.addr)
		b.tell(func(req *remoting.Command) *remoting.Command {
			if req.Code == remoting.ConsumerSendMessageBack {
				return req.Refuse(remoting.SystemError, "no")
			}
			if req.Code == remoting.PullMessage && req.Fields.Get("topic") != "T" {
				return req.Refuse(remoting.SystemError, "not now")
			}
			return nil
		})
		b.put(0, "bad", func(m *message.Message) {
			m.Properties, m.Flag, m.ReconsumeTimes = "UNIQ_KEY\x010A000001\x02TAGS\x01x\x02TRAN_MSG\x01true\x02", 9, 1
		})
		o := w.options("one", &seen{fail: failing("bad")}, "T")
		o.NameServers = []string{"ns2:9876"}
		w.consume(o)
		settle(11 * time.Second)
		sent := b.requests(remoting.SendMessage)
		require.Len(t, sent, 1)
		f := sent[0].Fields
		require.Equal(t, "%RETRY%CG", f.Get("topic"))
		require.Equal(t, "2", f.Get("reconsumeTimes"))
		require.Equal(t, "16", f.Get("maxReconsumeTimes"))
		require.Equal(t, "9", f.Get("flag"))
		require.Equal(t, map[string]string{
			"UNIQ_KEY": "0A000001", "TAGS": "x", "ORIGIN_MESSAGE_ID": "0A000001", "RETRY_TOPIC": "T", "DELAY": "4",
		}, message.Properties(f.Get("properties")).Map())
		require.Equal(t, int64(1), b.committed()[0])
	})
}

func TestAListenersPanicIsAFailure(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		b.put(0, "m")
		o := w.options("one", nil, "T")
		o.Listener = func(context.Context, *consumer.Batch) error { panic("ouch") }
		c := w.consume(o)
		settle(time.Second)
		require.Len(t, b.requests(remoting.ConsumerSendMessageBack), 1)
		require.Equal(t, int64(1), c.Stats().Failed)
	})
}

func TestAListenerMaySayHowMuchOfABatchItConsumed(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		for _, body := range []string{"m0", "m1", "m2", "m3"} {
			b.put(0, body)
		}
		o := w.options("one", nil, "T")
		o.BatchSize = 4
		o.Listener = func(_ context.Context, batch *consumer.Batch) error {
			batch.Ack(2)
			batch.DelayLevel = 5
			return nil
		}
		w.consume(o)
		settle(time.Second)
		back := b.requests(remoting.ConsumerSendMessageBack)
		require.Len(t, back, 2)
		require.Equal(t, "2000", back[0].Fields.Get("offset"))
		require.Equal(t, "5", back[0].Fields.Get("delayLevel"))
	})
}

// A listener that hangs must not hold the offset for ever.
func TestAMessageWhoseListenerHangsIsSentBack(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		b.put(0, "hangs")
		b.put(0, "good")
		release := make(chan struct{})
		o := w.options("one", &seen{fail: func(m *message.Received) error {
			if string(m.Body) == "hangs" {
				<-release
				return errListener
			}
			return nil
		}}, "T")
		c := w.consume(o)
		settle(14 * time.Minute)
		require.Zero(t, b.committed()[0])
		settle(2*time.Minute + 10*time.Second)
		require.Equal(t, int64(2), b.committed()[0])
		back := b.requests(remoting.ConsumerSendMessageBack)
		require.Len(t, back, 1)
		require.Equal(t, "3", back[0].Fields.Get("delayLevel"))
		close(release)
		settle(time.Second)
		require.Len(t, b.requests(remoting.ConsumerSendMessageBack), 1, "not once more when it ends")
		require.Equal(t, int64(1), c.Stats().Overdue)
	})
}

func TestARetriedMessageHasTheTopicThatItCameFrom(t *testing.T) { // R-G-30
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		b.put(0, "again", func(m *message.Message) {
			m.Topic, m.ReconsumeTimes = "%RETRY%CG", 1
			m.Properties = "RETRY_TOPIC\x01Orders\x02"
		})
		s := &seen{}
		w.consume(w.options("one", s, "T"))
		settle(time.Second)
		require.Equal(t, []string{"Orders"}, s.topics())
	})
}
