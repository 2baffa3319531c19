package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// inFake runs f beside a broker of the test's own with so many queues of topic T.
func inFake(t *testing.T, queues int, f func(t *testing.T, w *world, b *fake)) {
	t.Helper()
	inWorld(t, nil, func(t *testing.T, w *world) { f(t, w, newFake(w, queues)) })
}

// An error of a broker that starts or stops is not "no offset stored": a consumer that took it so would begin at the end. R-G-29.
func TestAnErrorIsNotTakenForNoOffset(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		b.put(0, "one")
		b.put(0, "two")
		b.offsets[0] = 1
		var code atomic.Int32
		b.tell(func(req *remoting.Command) *remoting.Command {
			if code := code.Load(); req.Code == remoting.QueryConsumerOffset && code != remoting.Success {
				return req.Refuse(code, "starting")
			}
			return nil
		})
		s := &seen{}
		o := w.options("one", s, "T")
		o.From = consumer.FromLast
		code.Store(remoting.SystemError)
		c := w.consume(o)
		for _, next := range []int32{remoting.SystemBusy, remoting.ServiceNotAvailable, remoting.Success} {
			settle(2 * time.Second)
			require.Empty(t, held(c))
			code.Store(next)
		}
		settle(2 * time.Second)
		require.Equal(t, []string{"two"}, s.bodies())
		require.Empty(t, b.requests(remoting.GetMaxOffset))
	})
}

// Were it not, a member that is killed before its first save would leave nothing, and the next would begin later.
func TestWhereAQueueIsBegunIsStoredAtOnce(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		b.put(0, "old")
		o := w.options("one", &seen{}, "T")
		o.From = consumer.FromLast
		w.consume(o)
		settle(time.Millisecond)
		require.Equal(t, map[int32]int64{0: 1}, b.committed())
	})
}

func TestAnOffsetOutOfRangeIsCorrected(t *testing.T) { // R-G-18
	inFake(t, 2, func(t *testing.T, w *world, b *fake) {
		b.first[0] = 100 // older messages were deleted
		b.offsets[0], b.offsets[1] = 40, 7
		b.put(0, "at 100")
		b.put(1, "at 0")
		s := &seen{}
		c := w.consume(w.options("one", s, "T"))
		settle(2 * time.Second)
		require.Equal(t, []string{"at 100"}, s.bodies())
		require.Equal(t, int64(2), c.Stats().OffsetsMoved)
		require.Equal(t, int64(1), b.committed()[1])
		b.put(1, "at 1") // the broker had lost its end; what comes now lies below what was asked for
		settle(time.Second)
		require.Equal(t, []string{"at 100", "at 1"}, s.bodies())
	})
}

func TestPullsAskForWhatTheOriginalAsksFor(t *testing.T) { // protocol 5.5
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		s := &seen{}
		w.consume(w.options("one", s, "T:TagA || TagB"))
		settle(time.Second)
		b.put(0, "m", func(m *message.Message) { m.Properties = "TAGS\x01TagB\x02" })
		settle(time.Second)
		pulls := b.requests(remoting.PullMessage)
		require.Len(t, pulls, 2)
		f := pulls[0].Fields
		for name, want := range map[string]string{
			"consumerGroup": "CG", "topic": "T", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "2", "commitOffset": "0",
			"suspendTimeoutMillis": "15000", "expressionType": "TAG",
		} {
			require.Equal(t, want, f.Get(name), name)
		}
		version, err := strconv.ParseInt(f.Get("subVersion"), 10, 64)
		require.NoError(t, err)
		require.Positive(t, version)
		require.Equal(t, "1", pulls[1].Fields.Get("queueOffset"))
		settle(20 * time.Second)
		last := b.requests(remoting.PullMessage)
		require.Equal(t, "3", last[len(last)-1].Fields.Get("sysFlag"), "the offset is committed with the pull")
		require.Equal(t, "1", last[len(last)-1].Fields.Get("commitOffset"))
	})
}

func TestWhatIsPulledAheadIsBounded(t *testing.T) { // R-G-28
	for _, tt := range []struct {
		name string
		set  func(o *consumer.Options)
		most int
	}{
		{"count", func(o *consumer.Options) { o.MaxCached = 100 }, 100 + 32},
		{"bytes", func(o *consumer.Options) { o.MaxCachedBytes = 1000 }, 100 + 32},
		{"span", func(o *consumer.Options) { o.MaxSpan = 100 }, 101 + 32},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inFake(t, 1, func(t *testing.T, w *world, b *fake) {
				for i := range 1000 {
					b.put(0, fmt.Sprintf("message %02d", i%100)) // ten bytes
				}
				release := make(chan struct{})
				s := &seen{fail: func(*message.Received) error { <-release; return nil }}
				o := w.options("one", s, "T")
				o.Workers = 1
				tt.set(&o)
				c := w.consume(o)
				settle(time.Minute)
				require.LessOrEqual(t, c.Stats().Cached, tt.most)
				require.Greater(t, c.Stats().Cached, tt.most-40)
				require.NotZero(t, c.Stats().FlowWaits)
				close(release)
				settle(time.Minute)
				require.Equal(t, 1000, s.count())
				require.Zero(t, c.Stats().Lag)
			})
		})
	}
}

func TestAnAnswerThatIsCutShortLosesNothing(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		for i := range 3 {
			b.put(0, "m"+strconv.Itoa(i))
		}
		var once sync.Once
		b.tell(func(req *remoting.Command) (resp *remoting.Command) {
			if req.Code == remoting.PullMessage {
				once.Do(func() {
					resp, _ = b.tryPull(req, 0, 0, 32)
					resp.Body = resp.Body[:len(resp.Body)-5]
				})
			}
			return resp
		})
		s := &seen{}
		c := w.consume(w.options("one", s, "T"))
		settle(time.Second)
		require.ElementsMatch(t, []string{"m0", "m1", "m2"}, s.bodies())
		require.Equal(t, int64(1), c.Stats().PullErrors)
	})
}

func TestABodyThatCannotBeReadGoesToTheDeadLetters(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		b.put(0, "not zlib", func(m *message.Message) { m.SysFlag = message.FlagCompressed })
		b.put(0, "good")
		s := &seen{}
		w.consume(w.options("one", s, "T"))
		settle(11 * time.Second)
		require.Equal(t, []string{"good"}, s.bodies())
		back := b.requests(remoting.ConsumerSendMessageBack)
		require.Len(t, back, 1)
		require.Equal(t, "-1", back[0].Fields.Get("delayLevel"))
		require.Equal(t, int64(2), b.committed()[0])
	})
}

func TestABrokerThatForgotTheGroupIsTold(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		s := &seen{}
		w.consume(w.options("one", s, "T"))
		settle(5 * time.Second)
		var beats atomic.Int32
		b.tell(func(req *remoting.Command) *remoting.Command {
			if req.Code == remoting.Heartbeat {
				beats.Add(1)
			}
			if req.Code == remoting.PullMessage && beats.Load() == 0 {
				return req.Refuse(remoting.SubscriptionNotExist, "the consumer's group info not exist")
			}
			return nil
		})
		b.put(0, "one")
		settle(100 * time.Millisecond)
		b.put(0, "two")
		settle(2 * time.Second) // and not the half minute until the next heartbeat
		require.Equal(t, []string{"one", "two"}, s.bodies())
		require.NotZero(t, beats.Load())
	})
}

func TestPullsGoOnAfterABrokerWasRestarted(t *testing.T) {
	inWorld(t, []string{"a"}, func(t *testing.T, w *world) {
		want := w.fill("T", "m", 8)
		s := &seen{}
		o := w.options("one", s, "T")
		o.From = consumer.FromLast
		w.consume(o)
		settle(12 * time.Second)
		w.stop("a")
		settle(10 * time.Second)
		w.start("a")
		more := w.fill("T", "after", 8)
		settle(5 * time.Second)
		require.ElementsMatch(t, append(want, more...), s.bodies())
	})
}

func TestPauseHoldsThePullsBack(t *testing.T) {
	inFake(t, 1, func(t *testing.T, w *world, b *fake) {
		s := &seen{}
		c := w.consume(w.options("one", s, "T"))
		settle(time.Second)
		c.Pause()
		b.put(0, "m")
		settle(time.Minute)
		require.Zero(t, s.count())
		c.Resume()
		settle(100 * time.Millisecond)
		require.Equal(t, 1, s.count())
	})
}

func TestOptionsAreChecked(t *testing.T) {
	good := consumer.Options{NameServers: []string{"ns:1"}, Group: "G", Topics: map[string]string{"T": "*"}}
	for _, tt := range []struct {
		want string
		harm func(o *consumer.Options)
	}{
		{"no group", func(o *consumer.Options) { o.Group = "" }},
		{"other characters", func(o *consumer.Options) { o.Group = "a/b" }},
		{"DEFAULT_CONSUMER", func(o *consumer.Options) { o.Group = "DEFAULT_CONSUMER" }},
		{"no topic", func(o *consumer.Options) { o.Topics = nil }},
		{"no name server", func(o *consumer.Options) { o.NameServers = nil }},
		{"Workers is -1", func(o *consumer.Options) { o.Workers = -1 }},
		{"MaxCached is -5", func(o *consumer.Options) { o.MaxCached = -5 }},
		{"From is 9", func(o *consumer.Options) { o.From = 9 }},
	} {
		o := good
		tt.harm(&o)
		_, err := consumer.Start(context.Background(), &o)
		require.ErrorIs(t, err, consumer.ErrOptions, tt.want)
		require.ErrorContains(t, err, tt.want)
	}
	o := good
	o.Topics = map[string]string{"T": "||"}
	_, err := consumer.Start(context.Background(), &o)
	require.ErrorIs(t, err, consumer.ErrExpression)
}

var errListener = errors.New("the listener does not want it")
