//go:build interop

package interop_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	goproducer "github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/namesrv"
	"github.com/rocketstore/rocketstore/producer"
)

// benchPeers starts a name server and a broker of ours in this process and gives the name server's address.
func benchPeers(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	s, err := namesrv.New(&namesrv.Options{})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	b.Cleanup(func() {
		cancel()
		require.NoError(b, <-served)
	})
	o := broker.Options{Name: "bench", Port: -1, NameServers: []string{l.Addr().String()}, Dir: b.TempDir()}
	o.Store.SegmentSize = 256 << 20
	k, err := broker.Start(ctx, &o)
	require.NoError(b, err)
	b.Cleanup(func() {
		end, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = k.Shutdown(end) // what was measured is measured
	})
	return l.Addr().String()
}

// sender is one client's way to send one body.
type sender struct {
	sync  func(ctx context.Context, body []byte) error
	async func(ctx context.Context, body []byte, done func(error)) error
}

func ourSender(b *testing.B, ns string) sender {
	b.Helper()
	p, err := producer.New(&producer.Options{Group: "PG_BENCH_OURS", NameServers: []string{ns}, SendTimeout: 30 * time.Second})
	require.NoError(b, err)
	require.NoError(b, p.Start(b.Context()))
	b.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return sender{
		func(ctx context.Context, body []byte) error {
			_, err := p.Send(ctx, &message.Message{Topic: "Bench", Body: body})
			return err
		},
		func(ctx context.Context, body []byte, done func(error)) error {
			return p.Async(ctx, &message.Message{Topic: "Bench", Body: body}, func(_ producer.Result, err error) { done(err) })
		},
	}
}

func goSender(b *testing.B, ns string) sender {
	b.Helper()
	rlog.SetLogLevel("fatal")
	p, err := rocketmq.NewProducer(goproducer.WithNameServer(primitive.NamesrvAddr{ns}), goproducer.WithGroupName("PG_BENCH_GO"),
		goproducer.WithSendMsgTimeout(30*time.Second))
	require.NoError(b, err)
	require.NoError(b, p.Start())
	b.Cleanup(func() { _ = p.Shutdown() })
	return sender{
		func(ctx context.Context, body []byte) error {
			_, err := p.SendSync(ctx, primitive.NewMessage("Bench", body))
			return err
		},
		func(ctx context.Context, body []byte, done func(error)) error {
			return p.SendAsync(ctx, func(_ context.Context, _ *primitive.SendResult, err error) { done(err) }, primitive.NewMessage("Bench", body))
		},
	}
}

// BenchmarkProducers compares our producer with the Go client's against one broker of ours in this process; with -count the two take
// turns.
func BenchmarkProducers(b *testing.B) {
	ns := benchPeers(b)
	clients := map[string]sender{"ours": ourSender(b, ns), "go": goSender(b, ns)}
	for _, s := range clients {
		require.NoError(b, s.sync(b.Context(), []byte("route and connection")))
	}
	for _, size := range []int{128, 1024} {
		body := bytes.Repeat([]byte("x"), size)
		for _, name := range []string{"ours", "go"} {
			b.Run(fmt.Sprintf("mode=sync16/body=%d/client=%s", size, name), func(b *testing.B) { report(b, benchSync, clients[name], body) })
		}
		for _, name := range []string{"ours", "go"} {
			b.Run(fmt.Sprintf("mode=async/body=%d/client=%s", size, name), func(b *testing.B) { report(b, benchAsync, clients[name], body) })
		}
	}
}

// report runs a load and says how many sends a second were answered, and how long the median one and the 99th of a hundred took.
func report(b *testing.B, load func(*testing.B, sender, []byte) []time.Duration, s sender, body []byte) {
	b.ReportAllocs()
	began := time.Now()
	took := load(b, s, body)
	all := time.Since(began) // with the last answers, for which the loop does not wait
	slices.Sort(took)
	b.ReportMetric(float64(len(took))/all.Seconds(), "msg/s")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// benchSync sends with 16 senders, each of which waits for its answers, and gives how long each send took.
func benchSync(b *testing.B, s sender, body []byte) (took []time.Duration) {
	var mu sync.Mutex
	next := make(chan struct{}, 1024)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			var own []time.Duration
			for range next {
				began := time.Now()
				if err := s.sync(b.Context(), body); err != nil {
					b.Error(err)
				}
				own = append(own, time.Since(began))
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
		})
	}
	for b.Loop() {
		next <- struct{}{}
	}
	close(next)
	all.Wait()
	return took
}

// benchAsync keeps 1000 sends in flight and gives how long each took until its callback.
func benchAsync(b *testing.B, s sender, body []byte) (took []time.Duration) {
	slots := make(chan struct{}, 1000)
	var mu sync.Mutex
	for b.Loop() {
		slots <- struct{}{}
		began := time.Now()
		err := s.async(b.Context(), body, func(err error) {
			if err != nil {
				b.Error(err)
			}
			mu.Lock()
			took = append(took, time.Since(began))
			mu.Unlock()
			<-slots
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
	return took
}
