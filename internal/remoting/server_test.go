package remoting_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

func TestConnectionsBeyondTheLimitAreClosed(t *testing.T) { // R-G-14
	bubble(t, func(t *testing.T) {
		s, p := serve(t, &remoting.ServerOptions{Handler: echo, MaxConns: 2})
		var first net.Conn
		for i := range 3 {
			nc, err := p.Dial(t.Context(), "a")
			require.NoError(t, err)
			defer nc.Close()
			if i == 0 {
				first = nc
			}
		}
		synctest.Wait()
		st := s.Stats()
		require.Equal(t, 2, st.Connections)
		require.Equal(t, int64(2), st.Accepted)
		require.Equal(t, int64(1), st.Refused)
		require.NoError(t, first.Close())
		synctest.Wait()
		_, err := newClient(t, p, remoting.ClientOptions{}).Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.NoError(t, err)
	})
}

func TestRequestsBeyondTheLimitAreAnsweredBusy(t *testing.T) { // R-G-14, protocol.md 1.3
	bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		s, p := serve(t, &remoting.ServerOptions{MaxInFlight: 3, Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			<-release
			return echo(ctx, c, req)
		}})
		c := newClient(t, p, remoting.ClientOptions{})
		var ok, busy atomic.Int32
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				resp, err := c.Call(within(t, time.Minute), "a", remoting.NewRequest(1))
				require.NoError(t, err)
				if resp.Code == remoting.SystemBusy {
					require.Contains(t, resp.Remark, "[OVERLOAD]")
					busy.Add(1)
				} else {
					ok.Add(1)
				}
			})
		}
		synctest.Wait()
		require.Equal(t, int32(2), busy.Load())
		require.Equal(t, int64(3), s.Stats().InFlight)
		close(release)
		wg.Wait()
		require.Equal(t, int32(3), ok.Load())
	})
}

func TestWrongBytesCloseTheirConnectionOnly(t *testing.T) { // R-D-050
	bubble(t, func(t *testing.T) {
		var why []error
		s, p := serve(t, &remoting.ServerOptions{Handler: echo, MaxFrame: 1 << 20, OnClose: func(c *remoting.Conn) { why = append(why, c.Err()) }})
		good := newClient(t, p, remoting.ClientOptions{})
		_, err := good.Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.NoError(t, err)
		bad := [][]byte{
			frame(-1, 0, ""), frame(1<<20+1, 0, ""), frame(3, 0, ""), frame(20, 0x00ffffff, "                "), frame(6, 2, "[]"),
			[]byte("GET / HTTP/1.1\r\n\r\n"),
		}
		for _, b := range bad {
			nc, err := p.Dial(t.Context(), "a")
			require.NoError(t, err)
			_, _ = nc.Write(b)
			_, err = nc.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			synctest.Wait()
		}
		require.Len(t, why, len(bad))
		for _, err := range why {
			require.ErrorIs(t, err, remoting.ErrFrame)
		}
		require.Equal(t, int64(len(bad)), s.Stats().FrameErrors)
		_, err = good.Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.NoError(t, err)
		require.Equal(t, int64(1), good.Connects())
	})
}

func TestLargeFramesShareABudget(t *testing.T) { // R-G-14
	bubble(t, func(t *testing.T) {
		s, p := serve(t, &remoting.ServerOptions{Handler: echo, MaxFrameBytes: 1 << 20})
		begin := func() net.Conn {
			nc, err := p.Dial(t.Context(), "a")
			require.NoError(t, err)
			_, err = nc.Write(frame(2<<20, 0, ""))
			require.NoError(t, err)
			return nc
		}
		holder := begin()
		_, err := holder.Write(make([]byte, 600<<10))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, int64(960<<10), s.Stats().LargeFrames) // 1 MiB of buffer, the first 64 KiB free
		second := begin()
		_, err = second.Write(make([]byte, 600<<10))
		require.Error(t, err) // closed: what it holds would go above the limit
		small := newClient(t, p, remoting.ClientOptions{})
		_, err = small.Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.NoError(t, err)
		require.NoError(t, holder.Close())
		synctest.Wait()
		require.Zero(t, s.Stats().LargeFrames)
		req := remoting.NewRequest(1)
		req.Body = make([]byte, 900<<10)
		resp, err := small.Call(within(t, time.Second), "a", req)
		require.NoError(t, err)
		require.Len(t, resp.Body, len(req.Body))
		synctest.Wait()
		require.Zero(t, s.Stats().LargeFrames)
	})
}

func TestAFloodOfUnknownCodesIsAnsweredAndHarmsNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, p := serve(t, nil)
		c := newClient(t, p, remoting.ClientOptions{})
		var got atomic.Int32
		for i := range 1000 {
			require.NoError(t, async(within(t, time.Minute), c, remoting.NewRequest(int32(i)), func(resp *remoting.Command, err error) {
				if err == nil && resp.Code == remoting.RequestCodeNotSupported {
					got.Add(1)
				}
			}))
		}
		synctest.Wait()
		require.Equal(t, int32(1000), got.Load())
	})
}

func TestShutdownAnswersWhatWasReadAndClosesTheRest(t *testing.T) { // R-C-12, R-G-09
	bubble(t, func(t *testing.T) {
		closed := 0
		s, p := serve(t, &remoting.ServerOptions{
			Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
				time.Sleep(5 * time.Second)
				return echo(ctx, c, req)
			},
			OnClose: func(*remoting.Conn) { closed++ },
		})
		silent, err := p.Dial(t.Context(), "a")
		require.NoError(t, err)
		defer silent.Close()
		c := newClient(t, p, remoting.ClientOptions{})
		answered := make(chan error, 1)
		go func() {
			_, err := c.Call(within(t, time.Minute), "a", remoting.NewRequest(1))
			answered <- err
		}()
		synctest.Wait()
		began := time.Now()
		require.NoError(t, s.Shutdown(within(t, 10*time.Second)))
		require.Equal(t, 5*time.Second, time.Since(began))
		require.NoError(t, <-answered)
		require.Equal(t, 1, closed)
		_, err = silent.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		synctest.Wait() // the client has seen the end too
		_, err = c.Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.ErrorIs(t, err, remoting.ErrConnect)
		require.NoError(t, s.Shutdown(within(t, time.Second))) // twice is fine
		require.ErrorIs(t, s.Serve(t.Context(), remoting.NewPipe()), remoting.ErrClosed)
	})
}

func TestShutdownEndsRequestsAtItsDeadline(t *testing.T) { // R-C-12
	bubble(t, func(t *testing.T) {
		s, p := serve(t, &remoting.ServerOptions{Handler: func(ctx context.Context, _ *remoting.Conn, _ *remoting.Command) *remoting.Command {
			<-ctx.Done()
			return nil
		}})
		c := newClient(t, p, remoting.ClientOptions{})
		failed := make(chan error, 1)
		go func() {
			_, err := c.Call(within(t, time.Hour), "a", remoting.NewRequest(1))
			failed <- err
		}()
		synctest.Wait()
		began := time.Now()
		require.ErrorIs(t, s.Shutdown(within(t, 3*time.Second)), context.DeadlineExceeded)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.ErrorIs(t, <-failed, remoting.ErrClosed)
	})
}

func TestServeEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, err := remoting.NewServer(nil)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		p := remoting.NewPipe()
		nc := make(chan net.Conn, 1)
		go func() {
			c, _ := p.Dial(t.Context(), "a")
			nc <- c
			cancel()
		}()
		require.NoError(t, s.Serve(ctx, p))
		_, err = (<-nc).Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	})
}

// failing is a listener whose Accept fails a few times.
type failing struct {
	net.Listener
	errs []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return nil, err
	}
	return f.Listener.Accept()
}

func TestServeOutlivesFailedAccepts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, err := remoting.NewServer(&remoting.ServerOptions{Handler: echo})
		require.NoError(t, err)
		p := remoting.NewPipe()
		l := &failing{Listener: p, errs: []error{errors.New("too many open files"), errors.New("again")}}
		served := make(chan error, 1)
		go func() { served <- s.Serve(t.Context(), l) }()
		c := newClient(t, p, remoting.ClientOptions{})
		_, err = c.Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.NoError(t, err)
		require.NoError(t, p.Close()) // somebody else's doing
		require.ErrorIs(t, <-served, net.ErrClosed)
		s.Close()
	})
}

func TestOnCloseComesAfterTheLastHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var order []string
		_, p := serve(t, &remoting.ServerOptions{
			OnOpen: func(*remoting.Conn) { order = append(order, "open") },
			Handler: func(context.Context, *remoting.Conn, *remoting.Command) *remoting.Command {
				time.Sleep(time.Second)
				order = append(order, "handled")
				return nil
			},
			OnClose: func(*remoting.Conn) { order = append(order, "closed") },
		})
		c := newClient(t, p, remoting.ClientOptions{})
		require.NoError(t, c.Oneway(t.Context(), "a", remoting.NewRequest(1)))
		synctest.Wait()
		c.Disconnect("a")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"open", "handled", "closed"}, order)
	})
}

func TestWrongOptionsAreNamed(t *testing.T) {
	_, err := remoting.NewServer(&remoting.ServerOptions{MaxConns: -1, Idle: -time.Second, TLS: remoting.ServerTLS{Mode: remoting.TLSEnforcing}})
	require.ErrorContains(t, err, "MaxConns -1")
	require.ErrorContains(t, err, "Idle -1")
	require.ErrorContains(t, err, "certificate")
	_, err = remoting.NewServer(&remoting.ServerOptions{TLS: remoting.ServerTLS{Mode: 7}})
	require.ErrorContains(t, err, "TLS mode 7")
	_, err = remoting.NewClient(&remoting.ClientOptions{MaxAsync: -1, MaxFrame: -2})
	require.ErrorContains(t, err, "MaxAsync")
	require.ErrorContains(t, err, "MaxFrame -2")
}

func ExampleServer() {
	s, err := remoting.NewServer(&remoting.ServerOptions{Handler: func(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
		return req.Reply(remoting.Success, remoting.String("value", "for "+req.Fields.Get("key")))
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := remoting.NewPipe() // or net.Listen
	done := make(chan error)
	go func() { done <- s.Serve(context.Background(), p) }()

	c, err := remoting.NewClient(&remoting.ClientOptions{Dial: p.Dial})
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := c.Call(context.Background(), "anywhere", remoting.NewRequest(remoting.GetKVConfig, remoting.String("key", "k")))
	fmt.Println(resp.Code, resp.Fields.Get("value"), err)
	c.Close()
	fmt.Println(s.Shutdown(context.Background()), <-done)
	// Output:
	// 0 for k <nil>
	// <nil> <nil>
}
