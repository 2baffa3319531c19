package remoting_test

import (
	"bytes"
	"context"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

func quick(*remoting.Command) remoting.Place { return remoting.Quick }

// countedWrites counts how often its connections are written to.
type countedWrites struct {
	*remoting.Pipe
	writes atomic.Int64
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (l *countedWrites) Accept() (net.Conn, error) {
	nc, err := l.Pipe.Accept()
	return countedConn{nc, &l.writes}, err
}

func (c countedConn) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// pipelined are requests one behind the other, their numbers as opaques.
func pipelined(t *testing.T, n int) (frames []byte) {
	t.Helper()
	for i := range int32(n) {
		var err error
		frames, err = remoting.AppendFrame(frames, &remoting.Command{Code: 1, Opaque: i})
		require.NoError(t, err)
	}
	return frames
}

func TestAnswersToWhatCameTogetherLeaveTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, err := remoting.NewServer(&remoting.ServerOptions{Handler: echo, Place: quick})
		require.NoError(t, err)
		l := &countedWrites{Pipe: remoting.NewPipe()}
		served := make(chan error, 1)
		go func() { served <- s.Serve(context.Background(), l) }()
		nc, err := l.Dial(t.Context(), "a")
		require.NoError(t, err)
		// The connection's writer looks once when the first bytes are there; from then on it waits to be told.
		_, err = nc.Write(pipelined(t, 1))
		require.NoError(t, err)
		answers := remoting.NewFrameReader(nc, 0)
		_, err = answers.Next()
		require.NoError(t, err)
		synctest.Wait()
		l.writes.Store(0)
		const requests = 20 // which one read takes
		_, err = nc.Write(pipelined(t, requests))
		require.NoError(t, err)
		for i := range int32(requests) {
			resp, err := answers.Next()
			require.NoError(t, err)
			require.Equal(t, i, resp.Opaque)
		}
		require.EqualValues(t, 1, l.writes.Load())
		s.Close()
		require.NoError(t, <-served)
	})
}

// What is answered stays answered when the bytes behind it are no frame.
func TestAnswersBeforeWrongBytesArrive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: echo, Place: quick})
		nc, err := p.Dial(t.Context(), "a")
		require.NoError(t, err)
		_, err = nc.Write(append(pipelined(t, 3), frame(-1, 0, "")...))
		require.NoError(t, err)
		answers := remoting.NewFrameReader(nc, 0)
		for i := range int32(3) {
			resp, err := answers.Next()
			require.NoError(t, err)
			require.Equal(t, i, resp.Opaque)
		}
		_, err = answers.Next()
		require.Error(t, err)
	})
}

// A disk that stands still holds up none but those who wait for it: what comes behind a request that should have been quick is read and
// answered, the answers that waited for it leave, and its own comes in the end (R-D-138).
func TestAQuickRequestThatTakesLongHoldsUpNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		s, p := serve(t, &remoting.ServerOptions{Place: quick, Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			body := string(req.Body)
			if req.Code == 2 {
				<-release
			}
			if string(req.Body) != body {
				return req.Refuse(remoting.SystemError, "another wrote over %q", body)
			}
			return echo(ctx, c, req)
		}})
		c := newClient(t, p, remoting.ClientOptions{})
		call := func(code int32, body string) {
			req := remoting.NewRequest(code)
			req.Body = []byte(body)
			resp, err := c.Call(within(t, time.Minute), "a", req)
			require.NoError(t, err)
			require.Equal(t, remoting.Success, resp.Code, resp.Remark)
			require.Equal(t, body, string(resp.Body))
		}
		for range 2 { // it can happen again
			var stuck sync.WaitGroup
			for range 3 {
				stuck.Go(func() { call(2, "stuck") })
			}
			synctest.Wait()
			began := time.Now()
			call(1, "passes")
			require.Less(t, time.Since(began), time.Second)
			for range 100 {
				call(1, "passes at once")
			}
			release <- struct{}{}
			release <- struct{}{}
			release <- struct{}{}
			stuck.Wait()
			call(1, "alone again")
		}
		synctest.Wait()
		require.Zero(t, s.Stats().InFlight)
	})
}

// A server whose connection has a request that takes long ends when it is told to, and with the answer.
func TestShutdownWaitsForAQuickRequestThatTakesLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		s, p := serve(t, &remoting.ServerOptions{Place: quick, Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			<-release
			return echo(ctx, c, req)
		}})
		c := newClient(t, p, remoting.ClientOptions{})
		answered := make(chan error, 1)
		go func() {
			_, err := c.Call(within(t, time.Minute), "a", remoting.NewRequest(1))
			answered <- err
		}()
		time.Sleep(time.Second)
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(context.Background()) }()
		time.Sleep(time.Second)
		close(release)
		require.NoError(t, <-answered)
		require.NoError(t, <-down)
	})
}

// Frames of all sizes around those of the buffers come whole, quick ones too, whose bodies lie in it.
func TestFramesAroundTheSizesOfTheBuffersArriveWhole(t *testing.T) {
	_, addr := overTCP(t, &remoting.ServerOptions{Place: quick, Handler: func(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
		return req.Reply(remoting.Success, remoting.Int("crc", int64(crc32.ChecksumIEEE(req.Body))))
	}})
	nc, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer func() { _ = nc.Close() }()
	random := rand.New(rand.NewPCG(1, 2))
	var frames []byte
	var want []int64
	for i := range int32(300) {
		around := []int{0, 100, 4 << 10, 64 << 10, 70 << 10}[random.IntN(5)]
		body := bytes.Repeat([]byte{byte(i)}, max(0, around+random.IntN(300)-200))
		want = append(want, int64(crc32.ChecksumIEEE(body)))
		frames, err = remoting.AppendFrame(frames, &remoting.Command{Code: 1, Opaque: i, Body: body})
		require.NoError(t, err)
	}
	go func() {
		for len(frames) > 0 {
			n := min(len(frames), 1+random.IntN(200<<10))
			if _, err := nc.Write(frames[:n]); err != nil {
				return // the answers will be missing
			}
			frames = frames[n:]
		}
	}()
	answers := remoting.NewFrameReader(nc, 0)
	for i, crc := range want {
		resp, err := answers.Next()
		require.NoError(t, err)
		require.EqualValues(t, i, resp.Opaque)
		got := resp.Fields.Reader()
		require.Equal(t, crc, got.Int64("crc"))
		require.NoError(t, got.Err())
	}
}
