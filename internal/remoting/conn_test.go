package remoting_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// serve runs a server on a pipe until the test ends. It is called inside a synctest bubble, which fails when a
// goroutine is left.
func serve(t *testing.T, o *remoting.ServerOptions) (*remoting.Server, *remoting.Pipe) {
	t.Helper()
	s, err := remoting.NewServer(o)
	require.NoError(t, err)
	p := remoting.NewPipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), p) }()
	t.Cleanup(func() {
		s.Close()
		require.NoError(t, <-served)
	})
	return s, p
}

func newClient(t *testing.T, p *remoting.Pipe, o remoting.ClientOptions) *remoting.Client {
	t.Helper()
	if o.Dial == nil {
		o.Dial = p.Dial
	}
	c, err := remoting.NewClient(&o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// within bounds a test's waiting; inside a bubble it costs no time.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func echo(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
	resp := req.Reply(remoting.Success, req.Fields...)
	resp.Body = req.Body
	return resp
}

// bubble is synctest.Test with a name of the subject; cleanups run inside.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestCallGetsItsOwnAnswer(t *testing.T) { // R-D-062
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			n, _ := strconv.Atoi(req.Fields.Get("n"))
			time.Sleep(time.Duration(100-n) * time.Millisecond) // answers come in the opposite order
			return echo(ctx, c, req)
		}})
		c := newClient(t, p, remoting.ClientOptions{})
		var wg sync.WaitGroup
		for n := range 100 {
			wg.Go(func() {
				req := remoting.NewRequest(1, remoting.Int("n", int64(n)))
				if n%2 == 1 {
					req.Codec = remoting.Binary
				}
				resp, err := c.Call(within(t, time.Second), "a", req)
				require.NoError(t, err)
				require.Equal(t, strconv.Itoa(n), resp.Fields.Get("n"))
				require.Equal(t, req.Codec, resp.Codec)
				require.Equal(t, remoting.Java, resp.Language)
			})
		}
		wg.Wait()
		require.Equal(t, int64(1), c.Connects()) // R-D-053, R-D-060
	})
}

func TestAThousandCallersShareOneConnect(t *testing.T) { // R-D-054
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: echo})
		var dials atomic.Int32
		c := newClient(t, p, remoting.ClientOptions{Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			dials.Add(1)
			time.Sleep(time.Second)
			return p.Dial(ctx, addr)
		}})
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				_, err := c.Conn(within(t, 2*time.Second), "a")
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.Equal(t, int32(1), dials.Load())
	})
}

func TestAConnectThatHangsFailsAfterThreeSecondsAndIsTriedAnew(t *testing.T) { // R-D-054, R-D-055, R-D-059
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: echo})
		var fine atomic.Bool
		c := newClient(t, p, remoting.ClientOptions{Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			if fine.Load() {
				return p.Dial(ctx, addr)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		began := time.Now()
		_, err := c.Call(within(t, time.Minute), "a", remoting.NewRequest(1))
		require.ErrorIs(t, err, remoting.ErrConnect)
		require.Equal(t, 3*time.Second, time.Since(began))
		_, err = c.Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.ErrorIs(t, err, remoting.ErrConnect)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(3 * time.Second)
		fine.Store(true)
		_, err = c.Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.NoError(t, err)
	})
}

func TestACallWithoutAnAnswerTimesOutAndALateAnswerIsDropped(t *testing.T) { // R-D-062, R-D-063
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			if req.Fields.Get("late") != "" {
				time.Sleep(5 * time.Second)
			}
			return echo(ctx, c, req)
		}})
		c := newClient(t, p, remoting.ClientOptions{})
		_, err := c.Call(within(t, time.Second), "a", remoting.NewRequest(1, remoting.String("late", "yes")))
		require.ErrorIs(t, err, remoting.ErrTimeout)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(10 * time.Second)
		_, err = c.Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.NoError(t, err)
		require.Equal(t, int64(1), c.Connects())
	})
}

func TestClosedConnectionFailsWhatWaitsAtOnce(t *testing.T) { // R-D-056, R-D-063
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: func(_ context.Context, c *remoting.Conn, _ *remoting.Command) *remoting.Command {
			c.Close()
			return nil
		}})
		c := newClient(t, p, remoting.ClientOptions{})
		began := time.Now()
		_, err := c.Call(within(t, time.Minute), "a", remoting.NewRequest(1))
		require.ErrorIs(t, err, remoting.ErrClosed)
		require.NotErrorIs(t, err, remoting.ErrNotSent)
		require.Zero(t, time.Since(began))
	})
}

func TestARequestThatNeverLeftIsNotSent(t *testing.T) { // R-D-063
	bubble(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := newClient(t, nil, remoting.ClientOptions{Dial: func(context.Context, string) (net.Conn, error) { return near, nil }})
		failed := make(chan error)
		go func() {
			_, err := c.Call(within(t, time.Minute), "a", remoting.NewRequest(1)) // nobody reads
			failed <- err
		}()
		synctest.Wait()
		require.NoError(t, far.Close())
		require.ErrorIs(t, <-failed, remoting.ErrNotSent)
	})
}

func TestBothSidesMayAskWithTheSameNumber(t *testing.T) { // protocol.md 1.3
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			back, err := c.Call(ctx, remoting.NewRequest(39, remoting.String("from", "server")))
			require.NoError(t, err)
			require.Equal(t, int32(1), req.Opaque)
			return req.Reply(remoting.Success, remoting.String("client said", back.Remark))
		}})
		c := newClient(t, p, remoting.ClientOptions{Handler: func(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
			require.Equal(t, int32(1), req.Opaque)
			return req.Refuse(remoting.Success, "hello %s", req.Fields.Get("from"))
		}})
		resp, err := c.Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.NoError(t, err)
		require.Equal(t, "hello server", resp.Fields.Get("client said"))
	})
}

func TestOnewayIsNeverAnswered(t *testing.T) { // R-D-068
	bubble(t, func(t *testing.T) {
		var seen []int32
		_, p := serve(t, &remoting.ServerOptions{Sequential: true, Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			seen = append(seen, req.Code)
			return echo(ctx, c, req)
		}})
		nc, err := p.Dial(t.Context(), "a")
		require.NoError(t, err)
		defer nc.Close()
		var out []byte
		for code := range int32(3) {
			out, err = remoting.AppendFrame(out, &remoting.Command{Code: code, Opaque: code, Flag: remoting.FlagOneway})
			require.NoError(t, err)
		}
		out, err = remoting.AppendFrame(out, &remoting.Command{Code: 9, Opaque: 9})
		require.NoError(t, err)
		_, err = nc.Write(out)
		require.NoError(t, err)
		resp, err := remoting.NewFrameReader(nc, 0).Next()
		require.NoError(t, err)
		require.Equal(t, int32(9), resp.Opaque)
		require.Equal(t, []int32{0, 1, 2, 9}, seen)
	})
}

func TestALateAnswerGoesToItsRequest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Sequential: true, Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			time.AfterFunc(15*time.Second, func() {
				require.NoError(t, c.Respond(ctx, req, &remoting.Command{Code: remoting.PullNotFound}))
			})
			return nil
		}})
		c := newClient(t, p, remoting.ClientOptions{})
		resp, err := c.Call(within(t, 20*time.Second), "a", remoting.NewRequest(remoting.PullMessage))
		require.NoError(t, err)
		require.Equal(t, remoting.PullNotFound, resp.Code)
	})
}

func TestUnservedCodesAndPanicsAreAnswered(t *testing.T) { // R-C-53
	bubble(t, func(t *testing.T) {
		_, none := serve(t, nil)
		resp, err := newClient(t, none, remoting.ClientOptions{}).Call(within(t, time.Second), "a", remoting.NewRequest(4711))
		require.NoError(t, err)
		require.Equal(t, remoting.RequestCodeNotSupported, resp.Code)
		require.Equal(t, " request type 4711 not supported", resp.Remark)

		s, p := serve(t, &remoting.ServerOptions{Handler: func(context.Context, *remoting.Conn, *remoting.Command) *remoting.Command { panic("bug") }})
		c := newClient(t, p, remoting.ClientOptions{})
		for range 3 {
			resp, err = c.Call(within(t, time.Second), "a", remoting.NewRequest(1))
			require.NoError(t, err)
			require.Equal(t, remoting.SystemError, resp.Code)
		}
		require.Equal(t, int64(3), s.Stats().Requests)
		require.Equal(t, int64(1), c.Connects())
	})
}

func TestAnAnswerThatCannotBeEncodedIsAnError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: func(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
			return req.Reply(0, remoting.String("huge", string(bytes.Repeat([]byte("x"), 1<<24))))
		}})
		resp, err := newClient(t, p, remoting.ClientOptions{}).Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.NoError(t, err)
		require.Equal(t, remoting.SystemError, resp.Code)
	})
}

func TestIdleConnectionsAreClosedByBothSides(t *testing.T) { // R-D-056, R-C-39
	bubble(t, func(t *testing.T) {
		var closed []time.Duration
		began := time.Now()
		s, p := serve(t, &remoting.ServerOptions{Handler: echo, OnClose: func(c *remoting.Conn) {
			closed = append(closed, time.Since(began))
			require.ErrorIs(t, c.Err(), remoting.ErrIdle)
		}})
		nc, err := p.Dial(t.Context(), "a") // never says a word
		require.NoError(t, err)
		far, err := p.Dial(t.Context(), "b") // says something after 100 s
		require.NoError(t, err)
		b, err := remoting.AppendFrame(nil, remoting.NewRequest(1))
		require.NoError(t, err)
		time.Sleep(100 * time.Second)
		_, err = far.Write(b)
		require.NoError(t, err)
		_, err = remoting.NewFrameReader(far, 0).Next()
		require.NoError(t, err)
		time.Sleep(119 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, s.Stats().Connections) // the silent one went at 120 s
		time.Sleep(2 * time.Second)
		_, err = far.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		_, err = nc.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		synctest.Wait()
		require.Equal(t, []time.Duration{220 * time.Second}, closed)
	})
}

func TestWritingKeepsAConnectionAlive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		opened := make(chan *remoting.Conn, 1)
		_, p := serve(t, &remoting.ServerOptions{OnOpen: func(c *remoting.Conn) { opened <- c }})
		c := newClient(t, p, remoting.ClientOptions{Handler: func(context.Context, *remoting.Conn, *remoting.Command) *remoting.Command { return nil }})
		near, err := c.Conn(t.Context(), "a")
		require.NoError(t, err)
		require.NoError(t, near.Oneway(t.Context(), remoting.NewRequest(1)))
		far := <-opened
		for range 10 { // the client only reads
			time.Sleep(100 * time.Second)
			require.NoError(t, far.Oneway(t.Context(), remoting.NewRequest(40)))
		}
		synctest.Wait()
		require.NoError(t, near.Err())
		require.NoError(t, far.Err())
	})
}

func TestAFrameThatDoesNotEndClosesTheConnection(t *testing.T) { // R-G-14: half-open and slow peers
	bubble(t, func(t *testing.T) {
		var why error
		s, p := serve(t, &remoting.ServerOptions{Handler: echo, OnClose: func(c *remoting.Conn) { why = c.Err() }})
		nc, err := p.Dial(t.Context(), "a")
		require.NoError(t, err)
		defer nc.Close()
		stream, _ := threeFrames(t)
		for i := range 20 { // a byte each two seconds would keep an idle timer away for ever
			if _, err = nc.Write(stream[i : i+1]); err != nil {
				break
			}
			time.Sleep(2 * time.Second)
		}
		require.Error(t, err)
		synctest.Wait()
		require.ErrorIs(t, why, remoting.ErrSlow)
		require.Zero(t, s.Stats().Connections)
	})
}

func TestAPeerThatDoesNotReadIsCutOffAndHarmsNobody(t *testing.T) { // R-G-14: slow readers
	bubble(t, func(t *testing.T) {
		var why error
		s, p := serve(t, &remoting.ServerOptions{
			WriteBuffer: 1 << 10, MaxInFlightPerConn: 4,
			Handler: func(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
				resp := req.Reply(0)
				resp.Body = make([]byte, 100<<10)
				return resp
			},
			OnClose: func(c *remoting.Conn) { why = errors.Join(why, c.Err()) },
		})
		slow, err := p.Dial(t.Context(), "slow")
		require.NoError(t, err)
		defer slow.Close()
		b, err := remoting.AppendFrame(nil, remoting.NewRequest(1))
		require.NoError(t, err)
		asked := 0
		for range 100 {
			require.NoError(t, slow.SetWriteDeadline(time.Now().Add(time.Second)))
			if _, err = slow.Write(b); err != nil {
				break
			}
			asked++
		}
		require.Less(t, asked, 20) // it is not read any more
		require.Less(t, s.Stats().BytesWaiting, int64(500<<10))
		good := newClient(t, p, remoting.ClientOptions{})
		_, err = good.Call(within(t, time.Second), "a", remoting.NewRequest(1))
		require.NoError(t, err)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, why, remoting.ErrSlow)
		require.Equal(t, 1, s.Stats().Connections)
	})
}
