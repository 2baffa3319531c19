//go:build interop

package interop_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	goconsumer "github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/namesrv"
)

// counter notes when the first and the last of so many messages came.
type counter struct {
	want        int64
	n           atomic.Int64
	first, last atomic.Int64
	all         chan struct{}
}

func newCounter(want int) *counter { return &counter{want: int64(want), all: make(chan struct{})} }

func (c *counter) add(n int) {
	total := c.n.Add(int64(n))
	if total == int64(n) {
		c.first.Store(time.Now().UnixNano())
	}
	if total == c.want {
		c.last.Store(time.Now().UnixNano())
		close(c.all)
	}
}

// rate is in messages a second, from the first message to the last.
func (c *counter) rate(b *testing.B) float64 {
	b.Helper()
	select {
	case <-c.all:
	case <-time.After(patience):
		b.Fatalf("%d of %d messages came", c.n.Load(), c.want)
	}
	return float64(c.want) / time.Duration(c.last.Load()-c.first.Load()).Seconds()
}

// BenchmarkConsume has a group of one consume a topic that is there, in turns with our consumer and with the Go client, on one broker
// in this process, with the same settings: 20 workers, listeners get one message, pulls ask for 32.
//
//	go test -tags interop -run xxx -bench Consume -benchtime 5x .
func BenchmarkConsume(b *testing.B) {
	rlog.SetLogLevel("fatal")
	for _, size := range []int{100, 1024} {
		b.Run("body="+strconv.Itoa(size), func(b *testing.B) {
			const messages = 100_000
			names := benchServers(b, messages, size)
			var ours, goes []float64
			for i := 0; b.Loop(); i++ {
				ours = append(ours, consumeOurs(b, names, "CGO"+strconv.Itoa(i), messages))
				goes = append(goes, consumeGo(b, names, "CGG"+strconv.Itoa(i), messages))
			}
			slices.Sort(ours)
			slices.Sort(goes)
			b.ReportMetric(ours[len(ours)/2], "ours-msgs/s")
			b.ReportMetric(goes[len(goes)/2], "go-msgs/s")
			b.ReportMetric(ours[len(ours)/2]/goes[len(goes)/2], "ratio")
			b.ReportMetric(0, "ns/op") // a round of both says nothing
		})
	}
}

// benchServers starts a name server and a broker and puts the messages into eight queues of topic TopicBench.
func benchServers(b *testing.B, messages, size int) (names string) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	ns, err := namesrv.New(nil)
	require.NoError(b, err)
	served := make(chan error, 1)
	go func() { served <- ns.Serve(context.Background(), l) }()
	b.Cleanup(func() {
		require.NoError(b, ns.Shutdown(context.Background()))
		require.NoError(b, <-served)
	})
	o := &broker.Options{Name: "bench", Port: -1, NameServers: []string{l.Addr().String()}, Dir: b.TempDir(), Memory: 8 << 30}
	o.Store.SegmentSize = 256 << 20
	br, err := broker.Start(b.Context(), o)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, br.Shutdown(context.Background())) })
	client, err := remoting.NewClient(nil)
	require.NoError(b, err)
	defer client.Close()
	resp, err := client.Call(b.Context(), br.Addr(), remoting.NewRequest(remoting.CreateTopic, remoting.String("topic", "TopicBench"),
		remoting.String("defaultTopic", "TBW102"), remoting.Int("readQueueNums", 8), remoting.Int("writeQueueNums", 8), remoting.Int("perm", 6),
		remoting.String("topicFilterType", "SINGLE_TAG"), remoting.Int("topicSysFlag", 0), remoting.Bool("order", false)))
	require.NoError(b, err)
	require.Equal(b, remoting.Success, resp.Code, resp.Remark)
	body := make([]byte, size)
	for i := range messages {
		m := &message.Message{Topic: "TopicBench", QueueID: int32(i % 8), Body: body, BornTimestamp: 1}
		m.Properties = message.Properties(fmt.Sprintf("UNIQ_KEY\x017F000001568E5FFD2B27948D%08X\x02TAGS\x01TagA\x02", i))
		_, err := br.Store().Put(b.Context(), m)
		require.NoError(b, err)
	}
	for {
		resp, err := client.Call(b.Context(), l.Addr().String(), remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", "TopicBench")))
		require.NoError(b, err)
		if resp.Code == remoting.Success {
			return l.Addr().String()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func consumeOurs(b *testing.B, names, group string, messages int) float64 {
	b.Helper()
	count := newCounter(messages)
	c, err := consumer.Start(b.Context(), &consumer.Options{
		NameServers: []string{names}, Group: group, From: consumer.FromFirst, Topics: map[string]string{"TopicBench": "*"},
		Listener: func(_ context.Context, batch *consumer.Batch) error {
			count.add(len(batch.Messages))
			return nil
		},
	})
	require.NoError(b, err)
	rate := count.rate(b)
	require.NoError(b, c.Close(b.Context()))
	return rate
}

func consumeGo(b *testing.B, names, group string, messages int) float64 {
	b.Helper()
	count := newCounter(messages)
	c, err := rocketmq.NewPushConsumer(goconsumer.WithNameServer(primitive.NamesrvAddr{names}), goconsumer.WithGroupName(group),
		goconsumer.WithInstance(group), goconsumer.WithConsumeFromWhere(goconsumer.ConsumeFromFirstOffset), goconsumer.WithConsumeGoroutineNums(20))
	require.NoError(b, err)
	require.NoError(b, c.Subscribe("TopicBench", goconsumer.MessageSelector{}, func(_ context.Context, list ...*primitive.MessageExt) (goconsumer.ConsumeResult, error) {
		count.add(len(list))
		return goconsumer.ConsumeSuccess, nil
	}))
	require.NoError(b, c.Start())
	rate := count.rate(b)
	require.NoError(b, c.Shutdown())
	return rate
}
