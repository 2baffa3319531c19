package remoting_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// async is Async with a function for a waiter.
func async(ctx context.Context, c *remoting.Client, req *remoting.Command, done func(*remoting.Command, error)) error {
	return c.Async(ctx, "a", req, new(remoting.Pending), remoting.WaiterFunc(done))
}

func TestAsyncCallsBackExactlyOnce(t *testing.T) { // R-D-064, R-D-065
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			if req.Code == 2 {
				return nil
			}
			return echo(ctx, c, req)
		}})
		c := newClient(t, p, remoting.ClientOptions{MaxAsync: 2})
		type result struct {
			resp *remoting.Command
			err  error
		}
		results := make(chan result, 10)
		call := func(code int32) {
			require.NoError(t, async(within(t, time.Second), c, remoting.NewRequest(code), func(resp *remoting.Command, err error) {
				results <- result{resp, err}
				panic("in the callback")
			}))
		}
		call(1)
		require.NoError(t, (<-results).err)
		call(2)
		require.ErrorIs(t, (<-results).err, remoting.ErrTimeout)
		for range 5 { // permits came back although the callbacks panic
			call(1)
			require.NoError(t, (<-results).err)
		}
		synctest.Wait()
		require.Empty(t, results)
	})
}

func TestAsyncRequestsLeaveInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var seen []string
		_, p := serve(t, &remoting.ServerOptions{Sequential: true, Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			seen = append(seen, req.Fields.Get("n"))
			return echo(ctx, c, req)
		}})
		c := newClient(t, p, remoting.ClientOptions{})
		var want []string
		for n := range 1000 {
			want = append(want, strconv.Itoa(n))
			require.NoError(t, async(within(t, time.Minute), c, remoting.NewRequest(1, remoting.Int("n", int64(n))), func(*remoting.Command, error) {}))
		}
		synctest.Wait()
		require.Equal(t, want, seen)
	})
}

func TestWithoutAPermitTheCallerIsToldToSlowDown(t *testing.T) { // R-D-061, R-D-067, R-D-069
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: func(context.Context, *remoting.Conn, *remoting.Command) *remoting.Command { return nil }})
		c := newClient(t, p, remoting.ClientOptions{MaxAsync: 1})
		none := func(*remoting.Command, error) {}
		require.NoError(t, async(within(t, time.Minute), c, remoting.NewRequest(1), none))
		began := time.Now()
		err := async(within(t, time.Second), c, remoting.NewRequest(1), none)
		require.ErrorIs(t, err, remoting.ErrTooManyRequests)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		over, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, async(over, c, remoting.NewRequest(1), none), remoting.ErrTooManyRequests)
		require.Equal(t, time.Second, time.Since(began))
		require.NoError(t, async(within(t, 2*time.Minute), c, remoting.NewRequest(1), none)) // waits for the first to time out
		require.Equal(t, time.Minute, time.Since(began))
	})
}

func TestAClosedClientSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: func(context.Context, *remoting.Conn, *remoting.Command) *remoting.Command { return nil }})
		c := newClient(t, p, remoting.ClientOptions{})
		got := make(chan error, 1)
		require.NoError(t, async(t.Context(), c, remoting.NewRequest(1), func(_ *remoting.Command, err error) { got <- err }))
		synctest.Wait()
		c.Close()
		c.Close()
		require.ErrorIs(t, <-got, remoting.ErrClosed)
		_, err := c.Call(t.Context(), "a", remoting.NewRequest(1))
		require.ErrorIs(t, err, remoting.ErrClosed)
		require.ErrorIs(t, c.Oneway(t.Context(), "a", remoting.NewRequest(1)), remoting.ErrClosed)
		require.ErrorIs(t, async(t.Context(), c, remoting.NewRequest(1), nil), remoting.ErrClosed)
	})
}

func TestALostConnectionIsMadeAnew(t *testing.T) { // R-D-059
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: echo})
		var lost []string
		c := newClient(t, p, remoting.ClientOptions{OnClose: func(addr string, _ *remoting.Conn) { lost = append(lost, addr) }})
		for range 3 {
			_, err := c.Call(within(t, time.Second), "a", remoting.NewRequest(1))
			require.NoError(t, err)
			c.Disconnect("a")
			synctest.Wait()
		}
		c.Disconnect("never seen")
		require.Equal(t, int64(3), c.Connects())
		require.Equal(t, []string{"a", "a", "a"}, lost)
	})
}

func TestDisconnectWhileConnecting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: echo})
		c := newClient(t, p, remoting.ClientOptions{Dial: slowly(p)})
		failed := make(chan error, 1)
		go func() {
			_, err := c.Conn(within(t, time.Minute), "a")
			failed <- err
		}()
		synctest.Wait()
		c.Disconnect("a")
		require.ErrorIs(t, <-failed, remoting.ErrConnect)
	})
}

func TestRequestsAreSignedAndCheckedOverTheWire(t *testing.T) { // R-G-13
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: func(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
			if err := remoting.Verify(req, func(key string) (string, bool) { return "secret", key == "me" }); err != nil {
				return req.Refuse(remoting.SystemError, "%v", err)
			}
			return echo(ctx, c, req)
		}})
		req := remoting.NewRequest(1, remoting.String("topic", "T"))
		req.Body = []byte("body")
		for _, tt := range []struct {
			credentials *remoting.Credentials
			want        string
		}{
			{&remoting.Credentials{AccessKey: "me", SecretKey: "secret"}, ""},
			{&remoting.Credentials{AccessKey: "me", SecretKey: "secret", SecurityToken: "tok"}, ""},
			{&remoting.Credentials{AccessKey: "me", SecretKey: "wrong"}, "does not fit"},
			{&remoting.Credentials{AccessKey: "you", SecretKey: "secret"}, `no account for access key "you"`},
			{nil, "no access key"},
		} {
			c := newClient(t, p, remoting.ClientOptions{Credentials: tt.credentials})
			resp, err := c.Call(within(t, time.Second), "a", req)
			require.NoError(t, err)
			require.Contains(t, resp.Remark, tt.want)
			require.Equal(t, tt.want == "", resp.Code == remoting.Success)
			require.NotContains(t, resp.Remark, "secret")
		}
		require.Len(t, req.Fields, 1) // the caller's request is not changed
	})
}
