package consumer_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// inOrder fails the test unless each queue's messages came in its order, without a gap.
func (s *seen) inOrder(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[consumer.Queue]int64{}
	for _, m := range s.list {
		q := consumer.Queue{Topic: m.Topic, BrokerName: m.BrokerName, QueueID: m.QueueID}
		require.Equal(t, next[q], m.QueueOffset, q.String())
		next[q]++
	}
}

func TestAnOrderlyListenerGetsEachQueueInItsOrder(t *testing.T) { // R-G-30, R-D-111
	inWorld(t, []string{"a", "b"}, func(t *testing.T, w *world) {
		want := w.fill("T", "m", 200)
		var running, most atomic.Int32
		s := &seen{}
		o := w.options("one", nil, "T")
		o.Orderly, o.BatchSize = true, 3
		o.Listener = func(ctx context.Context, b *consumer.Batch) error {
			if b.Queue.QueueID == 0 {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Millisecond)
				defer running.Add(-1)
			}
			return s.listen(ctx, b)
		}
		c := w.consume(o)
		settle(5 * time.Second)
		s.inOrder(t)
		require.ElementsMatch(t, want, s.bodies())
		require.LessOrEqual(t, most.Load(), int32(2), "queue 0 of each broker, one at a time")
		require.NoError(t, c.Close(context.Background()))
		require.Equal(t, "25", w.stored("b", "CG", "T", 3))
	})
}

func TestWhatAnOrderlyListenerRefusesComesAgainBeforeWhatFollows(t *testing.T) { // R-G-30
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		for i := range 3 {
			b.put(0, "m"+strconv.Itoa(i))
		}
		s := &seen{fail: func(m *message.Received) error {
			if string(m.Body) == "m1" && m.ReconsumeTimes < 3 {
				return errListener
			}
			return nil
		}}
		o := w.options("one", s, "T")
		o.Orderly = true
		w.consume(o)
		settle(1500 * time.Millisecond)
		require.Equal(t, []string{"m0", "m1", "m1"}, s.bodies(), "the queue rests for a second")
		settle(10 * time.Second)
		require.Equal(t, []string{"m0", "m1", "m1", "m1", "m1", "m2"}, s.bodies())
		require.Empty(t, b.requests(remoting.ConsumerSendMessageBack))
	})
}

func TestAnOrderlyMessageThatFailsTooOftenGoesToTheDeadLetters(t *testing.T) { // R-G-30
	inWorld(t, []string{"a"}, func(t *testing.T, w *world) {
		w.send("a", "T", 0, "", "bad")
		w.send("a", "T", 0, "", "good")
		s := &seen{fail: failing("bad")}
		o := w.options("one", s, "T")
		o.Orderly, o.MaxReconsume, o.Suspend = true, 2, 100*time.Millisecond
		c := w.consume(o)
		settle(5 * time.Second)
		require.Equal(t, []string{"bad", "bad", "bad", "good"}, s.bodies())
		require.Equal(t, int64(1), c.Stats().Dead)
		require.Equal(t, []string{"bad"}, w.bodies("a", "%DLQ%CG"))
	})
}

func TestAQueueWithoutItsLockIsNotConsumed(t *testing.T) { // R-G-30, R-D-111
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		var refuse atomic.Bool
		b.tell(func(req *remoting.Command) *remoting.Command {
			if req.Code == remoting.LockBatchQueues && refuse.Load() {
				resp := req.Reply(remoting.Success)
				resp.Body = []byte(`{"lockOKMQSet":[]}`)
				return resp
			}
			return nil
		})
		refuse.Store(true)
		s := &seen{}
		o := w.options("one", s, "T")
		o.Orderly = true
		c := w.consume(o)
		b.put(0, "m0")
		settle(10 * time.Second)
		require.Empty(t, c.Queues(), "another member has it")
		refuse.Store(false)
		settle(2 * time.Second)
		require.Equal(t, []string{"m0"}, s.bodies())
		settle(25 * time.Second)
		refuse.Store(true)
		settle(21 * time.Second) // the renewal is refused
		b.put(0, "m1")
		settle(10 * time.Second)
		require.Equal(t, []string{"m0"}, s.bodies())
		refuse.Store(false)
		settle(4 * time.Second)
		require.Equal(t, []string{"m0", "m1"}, s.bodies())
		require.NoError(t, c.Close(context.Background()))
		require.NotEmpty(t, b.requests(remoting.UnlockBatchQueues))
	})
}

func TestOrderlyMembersHandQueuesOverInOrder(t *testing.T) { // R-G-28, R-G-30
	inWorld(t, []string{"a"}, func(t *testing.T, w *world) {
		s := &seen{}
		start := func(instance string) *consumer.Consumer {
			o := w.options(instance, s, "T")
			o.Orderly = true
			return w.consume(o)
		}
		w.fill("T", "m", 40)
		start("one")
		settle(time.Second)
		two := start("two")
		for i := range 20 {
			w.fill("T", "more"+strconv.Itoa(i)+"-", 8)
			settle(50 * time.Millisecond)
		}
		settle(3 * time.Second)
		require.Len(t, held(two), 2)
		require.NoError(t, two.Close(context.Background()))
		w.fill("T", "end", 8)
		settle(3 * time.Second)
		s.inOrder(t) // and nothing twice: the lock is given back after the offset is stored
		require.Len(t, s.bodies(), 40+160+8)
	})
}
