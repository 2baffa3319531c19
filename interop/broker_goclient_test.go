//go:build interop

package interop_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/namesrv"
)

// goSeen is what one push consumer of the Go client got.
type goSeen struct {
	mu     sync.Mutex
	bodies []string
}

func (s *goSeen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

func startGoConsumer(t *testing.T, name, namesrvs, group, topic, tags string, options ...consumer.Option) (*goSeen, rocketmq.PushConsumer) {
	t.Helper()
	options = append([]consumer.Option{
		consumer.WithNameServer(primitive.NamesrvAddr(strings.Split(namesrvs, ";"))), consumer.WithGroupName(group), consumer.WithInstance(name),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, options...)
	c, err := rocketmq.NewPushConsumer(options...)
	require.NoError(t, err)
	seen := &goSeen{}
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: tags}
	require.NoError(t, c.Subscribe(topic, selector, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		for _, m := range messages {
			seen.bodies = append(seen.bodies, strings.TrimRight(string(m.Body), ".")+" "+m.GetTags()+" "+m.GetKeys()+" "+m.GetProperty("n"))
		}
		return consumer.ConsumeSuccess, nil
	}))
	require.NoError(t, c.Start())
	return seen, c
}

// goMessage is message i, whose body has the given size at least.
func goMessage(topic, prefix string, i, size int) *primitive.Message {
	body := prefix + strconv.Itoa(i)
	m := primitive.NewMessage(topic, []byte(body+strings.Repeat(".", max(size-len(body), 0))))
	return m.WithTag([]string{"TagA", "TagB"}[i%2]).WithKeys([]string{"key" + strconv.Itoa(i)})
}

func goRow(prefix string, i int) string {
	return fmt.Sprintf("%s%d %s key%d v%d", prefix, i, []string{"TagA", "TagB"}[i%2], i, i)
}

// goSends sends in every way of the Go client, and gives what consumers must see.
func goSends(t *testing.T, namesrvs, topic string) (want []string) {
	t.Helper()
	p, err := rocketmq.NewProducer(producer.WithNameServer(primitive.NamesrvAddr(strings.Split(namesrvs, ";"))), producer.WithGroupName("PG_GO"),
		producer.WithInstanceName("p"), producer.WithQueueSelector(producer.NewHashQueueSelector()))
	require.NoError(t, err)
	require.NoError(t, p.Start())
	defer func() { require.NoError(t, p.Shutdown()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	next := func(prefix string, i, size int) *primitive.Message {
		m := goMessage(topic, prefix, i, size)
		m.WithProperty("n", "v"+strconv.Itoa(i))
		want = append(want, goRow(prefix, i))
		return m
	}
	for i := range 20 {
		result, err := p.SendSync(ctx, next("sync-", i, 0))
		require.NoError(t, err)
		require.Equal(t, primitive.SendOK, result.Status)
	}
	for i := range 4 {
		_, err := p.SendSync(ctx, next("big-", i, 9000))
		require.NoError(t, err)
	}
	for i := range 20 {
		_, err := p.SendSync(ctx, next("ordered-", i, 0).WithShardingKey(strconv.Itoa(i%3)))
		require.NoError(t, err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Add(1)
		require.NoError(t, p.SendAsync(ctx, func(_ context.Context, _ *primitive.SendResult, err error) {
			defer all.Done()
			if err != nil {
				t.Errorf("async %d: %v", i, err)
			}
		}, next("async-", i, 0)))
	}
	all.Wait()
	var batch []*primitive.Message
	for i := range 20 {
		require.NoError(t, p.SendOneWay(ctx, next("oneway-", i, 0)))
		batch = append(batch, next("batch-", i, 0))
	}
	_, err = p.SendSync(ctx, batch...)
	require.NoError(t, err)
	return want
}

// TestTheGoClientUsesOurBroker has the real Go client send and consume in every way. R-F-06 to R-F-11, R-F-21.
func TestTheGoClientUsesOurBroker(t *testing.T) {
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", t.TempDir()) // below which the client, when its process starts, looks for the offsets of broadcast
	if !inNamespace(t) {
		return
	}
	rlog.SetLogLevel("fatal")
	for _, server := range flows() {
		t.Run(server.dialect, func(t *testing.T) {
			goUses(t, server)
			proved(t, goClient, server.name, append(sending(goClient), consuming()...)...)
		})
	}
}

func goUses(t *testing.T, server flow) {
	t.Helper()
	topic := "TopicGo" + strings.ReplaceAll(server.dialect, ".", "") // the client keeps offsets of broadcast by topic and queue
	ns := startOurs(t, namesrv.Options{})
	b := startOurBroker(t, server.options(t, ns))
	eventually(t, patience, &javaProcess{log: &tail{}}, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
	want := goSends(t, ns.addr, topic)
	check := func(s *goSeen, want []string) {
		t.Helper()
		eventually(t, patience, &javaProcess{log: &tail{}}, "messages", func() bool { return len(s.all()) >= len(want) })
		require.ElementsMatch(t, want, s.all())
	}
	one, c1 := startGoConsumer(t, "c1", ns.addr, "CG1", topic, "*")
	check(one, want)
	var tagged []string
	for _, row := range want {
		if strings.Contains(row, "TagB") {
			tagged = append(tagged, row)
		}
	}
	some, c2 := startGoConsumer(t, "c2", ns.addr, "CG2", topic, "TagB")
	check(some, tagged)
	orderly, c3 := startGoConsumer(t, "c3", ns.addr, "CG3", topic, "*", consumer.WithConsumerOrder(true))
	check(orderly, want)
	cast, c4 := startGoConsumer(t, "c4", ns.addr, "CG4", topic, "*", consumer.WithConsumerModel(consumer.BroadCasting))
	check(cast, want)
	for _, c := range []rocketmq.PushConsumer{c2, c3, c4, c1} {
		require.NoError(t, c.Shutdown())
	}
	goPulls(t, ns.addr, topic, b, len(want))

	// The client does not wait until the offsets that it sends last are taken: the broker must not stop before it has read them.
	eventually(t, patience, &javaProcess{log: &tail{}}, "the end of the consumers", func() bool { return b.broker.Stats().ConsumerGroups == 0 })
	b.stop(t)
	b.start(t)
	eventually(t, patience, &javaProcess{log: &tail{}}, "registration after the restart", func() bool { return len(ns.brokers(t, topic)) == 1 })
	more := goSends(t, ns.addr, topic)
	again, c5 := startGoConsumer(t, "c5", ns.addr, "CG1", topic, "*")
	check(again, more) // and nothing of before
	require.NoError(t, c5.Shutdown())
}

// goPulls reads all queues with the pull consumer, asks for offsets by time, and stores where it is.
func goPulls(t *testing.T, namesrvs, topic string, b *ourBroker, total int) {
	t.Helper()
	c, err := rocketmq.NewPullConsumer(consumer.WithNameServer(primitive.NamesrvAddr(strings.Split(namesrvs, ";"))), consumer.WithGroupName("CGPULL"),
		consumer.WithInstance("pull"))
	require.NoError(t, err)
	require.NoError(t, c.Subscribe(topic, consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}))
	require.NoError(t, c.Start())
	queues, err := c.GetTopicRouteInfo(topic)
	require.NoError(t, err)
	require.Len(t, queues, 4)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	bodies := map[string]bool{}
	for _, q := range queues {
		at, err := c.OffsetForTimestamp(q, 0)
		require.NoError(t, err)
		require.Zero(t, at)
		end, err := c.OffsetForTimestamp(q, time.Now().Add(time.Hour).UnixMilli())
		require.NoError(t, err)
		for at < end {
			result, err := c.PullFrom(ctx, q, at, 7)
			require.NoError(t, err)
			for _, m := range result.GetMessageExts() {
				bodies[strings.TrimRight(string(m.Body), ".")] = true
			}
			require.Greater(t, result.NextBeginOffset, at)
			at = result.NextBeginOffset
		}
		// The client sends offsets only of queues that its rebalance has given it by then, forgets the others, and waits for no answer.
		eventually(t, patience, &javaProcess{log: &tail{}}, "the stored offset", func() bool {
			require.NoError(t, c.UpdateOffset(q, end))
			require.NoError(t, c.PersistOffset(ctx, topic))
			stored, ok := b.broker.Store().ConsumerOffset(topic, "CGPULL", int32(q.QueueId))
			return ok && stored == end
		})
	}
	require.Len(t, bodies, total)
	require.NoError(t, c.Shutdown())
}
