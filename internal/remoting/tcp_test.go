package remoting_test

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// overTCP runs a server on loopback and a client of it.
func overTCP(t testing.TB, o *remoting.ServerOptions) (c *remoting.Client, addr string) {
	t.Helper()
	s, err := remoting.NewServer(o)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	c, err = remoting.NewClient(&remoting.ClientOptions{SocketBuffer: o.SocketBuffer})
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		s.Close()
		require.NoError(t, <-served)
	})
	return c, l.Addr().String()
}

func TestOverRealSockets(t *testing.T) { // R-D-055, R-D-057
	c, addr := overTCP(t, &remoting.ServerOptions{SocketBuffer: 65_535, Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
		peer := c.RemoteAddrPort()
		if !peer.Addr().Is4() || peer.String() != c.RemoteAddr() {
			return req.Refuse(remoting.SystemError, "%s", peer)
		}
		return echo(ctx, c, req)
	}})
	for _, size := range []int{0, 1, 4095, 4096, 64 << 10, 1 << 20, 10 << 20} {
		req := remoting.NewRequest(1)
		req.Body = make([]byte, size)
		resp, err := c.Call(t.Context(), addr, req)
		require.NoError(t, err)
		require.Equal(t, remoting.Success, resp.Code, resp.Remark)
		require.Len(t, resp.Body, size)
	}
	require.Equal(t, int64(1), c.Connects())
	_, err := c.Call(t.Context(), "127.0.0.1:1", remoting.NewRequest(1))
	require.ErrorIs(t, err, remoting.ErrConnect)
}

// A peer that closes without having read the answers is still heard to its end: the Go client stores its offsets so when it stops.
func TestWhatAPeerSentBeforeItClosedIsHandled(t *testing.T) {
	const requests = 30 // which the socket holds all, and the reader's buffer not
	closed := make(chan struct{})
	var handled atomic.Int64
	gone := make(chan struct{})
	_, addr := overTCP(t, &remoting.ServerOptions{
		Sequential: true, OnClose: func(*remoting.Conn) { close(gone) },
		Handler: func(_ context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			<-closed
			if handled.Add(1) == 1 { // nothing is read before its answer could not be written
				require.NoError(t, c.Respond(t.Context(), req, req.Reply(remoting.Success)))
				require.Eventually(t, func() bool { return c.Respond(t.Context(), req, req.Reply(remoting.Success)) != nil }, time.Minute, time.Millisecond)
			}
			return req.Reply(remoting.Success)
		},
	})
	nc, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	for range requests {
		req := remoting.NewRequest(15)
		req.Body = make([]byte, 512)
		frame, err := remoting.AppendFrame(nil, req)
		require.NoError(t, err)
		_, err = nc.Write(frame)
		require.NoError(t, err)
	}
	require.NoError(t, nc.(*net.TCPConn).SetLinger(0)) // which answers that are not read do as well
	require.NoError(t, nc.Close())
	close(closed)
	<-gone
	require.Equal(t, int64(requests), handled.Load())
}

// All together may have so much waiting, and each a little: who reads is served all the same (R-G-14: slow reader protection).
func TestThoseWhoDoNotReadShareWhatMayWait(t *testing.T) {
	const many, most, each = 40, 1 << 20, 2 * 64 << 10 // what is being written, and what waits behind it
	var asked atomic.Int64
	s, err := remoting.NewServer(&remoting.ServerOptions{MaxWaiting: most, MaxInFlightPerConn: 4, Handler: func(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
		resp := req.Reply(remoting.Success)
		resp.Body = make([]byte, 4000)
		asked.Add(1)
		return resp
	}})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), l) }()
	defer func() { s.Close(); require.NoError(t, <-served) }()
	frame, err := remoting.AppendFrame(nil, remoting.NewRequest(1))
	require.NoError(t, err)
	for range many {
		nc, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer func() { _ = nc.Close() }()
		require.NoError(t, nc.(*net.TCPConn).SetReadBuffer(4096))
		require.NoError(t, nc.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
		for range 2000 { // eight megabytes of answers
			if _, err := nc.Write(frame); err != nil {
				break
			}
		}
	}
	last := int64(-1)
	require.Eventually(t, func() bool { now := asked.Load(); same := now == last; last = now; return same }, time.Minute, 200*time.Millisecond)
	require.Greater(t, s.Waiting(), int64(most))
	require.Less(t, s.Waiting(), int64(most+1<<20+many*(each+2*4100)))
	c, err := remoting.NewClient(nil)
	require.NoError(t, err)
	defer c.Close()
	for range 50 {
		resp, err := c.Call(t.Context(), l.Addr().String(), remoting.NewRequest(1))
		require.NoError(t, err)
		require.Len(t, resp.Body, 4000)
	}
}

// A request of a kind that keeps its order is done before the next of its connection begins, whatever that is.
func TestRequestsThatKeepTheirOrder(t *testing.T) {
	var stored atomic.Int64
	c, addr := overTCP(t, &remoting.ServerOptions{
		Place: func(req *remoting.Command) remoting.Place {
			if req.Code == 15 {
				return remoting.InOrder
			}
			return remoting.Apart
		},
		Handler: func(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
			if req.Code == 15 {
				n, _ := strconv.ParseInt(req.Fields.Get("offset"), 10, 32)
				stored.Store(n)
				return nil
			}
			return req.Reply(int32(stored.Load()))
		},
	})
	for i := range int32(2000) {
		require.NoError(t, c.Oneway(t.Context(), addr, remoting.NewRequest(15, remoting.Int("offset", int64(i)))))
		resp, err := c.Call(t.Context(), addr, remoting.NewRequest(14))
		require.NoError(t, err)
		require.Equal(t, i, resp.Code)
	}
}

func BenchmarkCall(b *testing.B) {
	req := remoting.NewRequest(310, remoting.String("a", "group"), remoting.String("b", "topic"), remoting.Int("e", 3),
		remoting.String("i", "KEYS\x01key1\x02TAGS\x01TagA\x02"))
	req.Body = make([]byte, 1024)
	for _, codec := range []remoting.Codec{remoting.JSON, remoting.Binary} {
		req.Codec = codec
		name := map[remoting.Codec]string{remoting.JSON: "json", remoting.Binary: "binary"}[codec]
		for _, callers := range []int{1, 64} {
			b.Run("codec="+name+"/callers="+map[int]string{1: "1", 64: "64"}[callers], func(b *testing.B) {
				c, addr := overTCP(b, &remoting.ServerOptions{Handler: echo})
				b.SetParallelism(callers)
				b.ReportAllocs()
				b.SetBytes(int64(len(req.Body)))
				call := func() {
					if _, err := c.Call(b.Context(), addr, req); err != nil {
						b.Error(err)
					}
				}
				if callers == 1 {
					for b.Loop() {
						call()
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						call()
					}
				})
			})
		}
	}
}

func BenchmarkFrame(b *testing.B) {
	frames := captures(b)["java533_client.json"]
	raw := frames[0].bytes(b)
	for _, f := range frames {
		if f.Header.Code == remoting.SendMessageV2 {
			raw = f.bytes(b)
		}
	}
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := remoting.DecodeFrame(raw[4:]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("append", func(b *testing.B) {
		c, err := remoting.DecodeFrame(raw[4:])
		require.NoError(b, err)
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			if buf, err = remoting.AppendFrame(buf[:0], c); err != nil {
				b.Fatal(err)
			}
		}
	})
}
