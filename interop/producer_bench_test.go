//go:build interop

package interop_test

import (
	"bytes"
	"context"
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
	body := bytes.Repeat([]byte("x"), 1024)
	for _, s := range clients {
		require.NoError(b, s.sync(b.Context(), body)) // route and connection
	}
	for _, name := range []string{"ours", "go"} {
		s := clients[name]
		b.Run("mode=sync16/client="+name, func(b *testing.B) { benchSync(b, s, body) })
	}
	for _, name := range []string{"ours", "go"} {
		s := clients[name]
		b.Run("mode=async/client="+name, func(b *testing.B) { benchAsync(b, s, body) })
	}
}

// benchSync sends with 16 senders, each of which waits for its answers.
func benchSync(b *testing.B, s sender, body []byte) {
	b.ReportAllocs()
	var mu sync.Mutex
	var took []time.Duration
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
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// benchAsync keeps 1000 sends in flight.
func benchAsync(b *testing.B, s sender, body []byte) {
	b.ReportAllocs()
	slots := make(chan struct{}, 1000)
	for b.Loop() {
		slots <- struct{}{}
		err := s.async(b.Context(), body, func(err error) {
			if err != nil {
				b.Error(err)
			}
			<-slots
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
}
