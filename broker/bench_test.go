package broker_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// loopback is a broker on the disk behind a port of its own, and connections to it.
func loopback(b *testing.B, conns int) (clients []*remoting.Client, addr string) {
	b.Helper()
	o := broker.Options{Name: "broker-a", Dir: b.TempDir()}
	o.Store.SegmentSize = 256 << 20
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	k, err := broker.New(b.Context(), &o)
	require.NoError(b, err)
	served := make(chan error, 1)
	go func() { served <- k.Serve(context.Background(), l) }()
	b.Cleanup(func() {
		require.NoError(b, k.Shutdown(context.Background()))
		require.NoError(b, <-served)
	})
	clients, addr = make([]*remoting.Client, conns), l.Addr().String()
	for i := range clients {
		clients[i], err = remoting.NewClient(nil)
		require.NoError(b, err)
		b.Cleanup(clients[i].Close)
		resp, err := clients[i].Call(b.Context(), addr, outgoing{topic: "T", body: "warm"}.request(remoting.SendMessageV2))
		require.NoError(b, err)
		require.Equal(b, remoting.Success, resp.Code, resp.Remark)
	}
	return clients, addr
}

// BenchmarkSend is a send over the loopback interface, with so many of them under way; the client's part is in it.
func BenchmarkSend(b *testing.B) {
	for _, flying := range []int{1, 64} {
		for _, size := range []int{128, 1024} {
			b.Run(fmt.Sprintf("flying=%d/body=%d", flying, size), func(b *testing.B) {
				clients, addr := loopback(b, min(flying, 4))
				req := outgoing{topic: "T", body: strings.Repeat("x", size), properties: "KEYS\x01k1\x02UNIQ_KEY\x017F0000010000000000000000000000AA\x02WAIT\x01true\x02TAGS\x01TagA\x02"}.request(remoting.SendMessageV2)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				sendAll(b, clients, addr, req, flying)
			})
		}
	}
}

// sendAll sends the request b.N times.
func sendAll(b *testing.B, clients []*remoting.Client, addr string, req *remoting.Command, flying int) {
	b.Helper()
	var left sync.WaitGroup
	b.ResetTimer()
	for i := range flying {
		count := b.N / flying
		if i < b.N%flying {
			count++
		}
		left.Go(func() {
			for range count {
				resp, err := clients[i%len(clients)].Call(context.Background(), addr, req)
				if err != nil || resp.Code != remoting.Success {
					b.Errorf("not sent: %v %v", resp, err)
					return
				}
			}
		})
	}
	left.Wait()
	b.StopTimer()
}
