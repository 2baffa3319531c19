package remoting_test

import (
	"bytes"
	"context"
	"errors"
	"io"
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

// silent leaves requests of code 2 without an answer.
func silent(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
	if req.Code == 2 {
		return nil
	}
	return echo(ctx, c, req)
}

func TestEachRequestEndsAtItsOwnDeadline(t *testing.T) { // R-D-066
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: silent})
		c := newClient(t, p, remoting.ClientOptions{})
		began := time.Now()
		var ended atomic.Int32
		order := rand.New(rand.NewPCG(1, 2)).Perm(500)
		for _, n := range order {
			after := time.Duration(1+n/2) * 10 * time.Millisecond // two for each time
			require.NoError(t, async(within(t, after), c, remoting.NewRequest(2), func(_ *remoting.Command, err error) {
				require.ErrorIs(t, err, remoting.ErrTimeout)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, after, time.Since(began))
				ended.Add(1)
			}))
			for range 10 { // whose entries are passed over, or cleared away
				require.NoError(t, async(within(t, after), c, remoting.NewRequest(1), func(_ *remoting.Command, err error) {
					require.NoError(t, err)
				}))
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.EqualValues(t, 500, ended.Load())
	})
}

func TestEveryRequestHasOneOutcomeWhateverEndsIt(t *testing.T) { // R-D-065
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: silent, Sequential: true})
		c := newClient(t, p, remoting.ClientOptions{MaxAsync: 5000})
		owner := new(int)
		outcomes := make([]atomic.Int32, 1500)
		pending := make([]remoting.Pending, len(outcomes))
		var callers sync.WaitGroup
		for caller := range 8 {
			callers.Go(func() {
				for i := caller; i < len(outcomes); i += 8 {
					if i%3 == 0 {
						pending[i].Owner = owner
					}
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+i%50)*time.Millisecond)
					err := c.Async(ctx, "a", remoting.NewRequest(int32(1+i%2)), &pending[i], remoting.WaiterFunc(func(*remoting.Command, error) {
						outcomes[i].Add(1)
					}))
					cancel()
					if err != nil {
						outcomes[i].Add(1)
					}
					switch i % 5 {
					case 0:
						go pending[i].Abort(context.Canceled)
					case 1:
						go c.Abort(owner, context.Canceled)
					case 2:
						if i%400 == 2 {
							go c.Disconnect("a")
						}
					}
				}
			})
		}
		callers.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		for i := range outcomes {
			require.EqualValues(t, 1, outcomes[i].Load(), "request %d", i)
		}
	})
}

func TestAbortEndsTheRequestsOfOneOwnerOnly(t *testing.T) { // R-D-133
	bubble(t, func(t *testing.T) {
		_, p := serve(t, &remoting.ServerOptions{Handler: silent})
		c := newClient(t, p, remoting.ClientOptions{})
		got := map[string]chan error{"me": make(chan error, 2), "you": make(chan error, 2)}
		for owner, told := range got {
			err := c.Async(within(t, time.Minute), "a", remoting.NewRequest(2), &remoting.Pending{Owner: owner},
				remoting.WaiterFunc(func(_ *remoting.Command, err error) { told <- err }))
			require.NoError(t, err)
		}
		synctest.Wait()
		why := errors.New("why")
		c.Abort("me", why)
		c.Abort("nobody", why)
		require.ErrorIs(t, <-got["me"], why)
		require.Empty(t, got["you"])
		require.ErrorIs(t, <-got["you"], remoting.ErrTimeout)
		synctest.Wait()
		require.Empty(t, got["me"])
		new(remoting.Pending).Abort(why) // was never begun
	})
}

func TestAnAnswerBeforeItsRequestHarmsNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		near, far := net.Pipe()
		c, err := remoting.NewClient(&remoting.ClientOptions{
			WriteBuffer: 1, Dial: func(context.Context, string) (net.Conn, error) { return near, nil },
		})
		require.NoError(t, err)
		defer c.Close()
		got := make(chan outcome, 2)
		begin := func(body int) error {
			req := remoting.NewRequest(1)
			req.Body = make([]byte, body)
			return c.Begin(within(t, time.Minute), "a", req, new(remoting.Pending), remoting.WaiterFunc(func(resp *remoting.Command, err error) {
				got <- outcome{resp, err}
			}))
		}
		require.NoError(t, begin(100)) // the writer has it, and nobody reads
		synctest.Wait()
		require.NoError(t, begin(100)) // fills the buffer
		begun := make(chan error)
		go func() { begun <- begin(100) }()
		synctest.Wait() // the third waits for room
		frame, err := remoting.AppendFrame(nil, &remoting.Command{Opaque: 3, Flag: remoting.FlagResponse, Remark: "early"})
		require.NoError(t, err)
		_, err = far.Write(bytes.Repeat(frame, 2))
		require.NoError(t, err)
		synctest.Wait()
		require.Empty(t, got, "its request has not left")
		go func() { _, _ = io.Copy(io.Discard, far) }() // until the end
		require.NoError(t, <-begun)
		require.Equal(t, "early", (<-got).resp.Remark)
	})
}

// outcome is what a waiter was told.
type outcome struct {
	resp *remoting.Command
	err  error
}

func TestARequestThatWaitsForRoomIsNotSentAfterItsDeadline(t *testing.T) { // R-D-066
	bubble(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer func() { _ = far.Close() }()
		c, err := remoting.NewClient(&remoting.ClientOptions{
			WriteBuffer: 1, Dial: func(context.Context, string) (net.Conn, error) { return near, nil },
		})
		require.NoError(t, err)
		defer c.Close()
		none := remoting.WaiterFunc(func(*remoting.Command, error) {})
		for range 2 {
			require.NoError(t, c.Begin(within(t, time.Minute), "a", remoting.NewRequest(1), new(remoting.Pending), none))
			synctest.Wait()
		}
		began := time.Now()
		err = c.Begin(within(t, time.Second), "a", remoting.NewRequest(1), new(remoting.Pending), nil)
		require.ErrorIs(t, err, remoting.ErrNotSent)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
	})
}
