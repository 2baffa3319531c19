package broker_test

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// withNameServer runs f beside a broker whose one name server is reached by dial; dials says how often that was tried. From the
// thousandth try on nothing answers, so that a broker without any pause does not stop the clock.
func withNameServer(t *testing.T, dial func() (net.Conn, error), f func(t *testing.T, w *world, dials *atomic.Int64)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		o := small("4.9")
		o.NameServers = []string{"one:9876"}
		o.Client = &remoting.ClientOptions{Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			if dials.Add(1) > 1000 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return dial()
		}}
		f(t, newWorld(t, o), &dials)
	})
}

func TestADeadNameServerIsTriedOnceInAPeriod(t *testing.T) { // R-F-17
	refused := func() (net.Conn, error) { return nil, errors.New("connection refused") }
	withNameServer(t, refused, func(t *testing.T, w *world, dials *atomic.Int64) {
		time.Sleep(time.Hour)
		require.Greater(t, dials.Load(), int64(100))
		require.Less(t, dials.Load(), int64(140))
		w.peer().puts("T", "a") // and holds up nobody
	})
}

func TestANameServerThatDropsConnectionsIsNotAskedWithoutAPause(t *testing.T) { // R-F-17
	drops := func() (net.Conn, error) {
		near, far := net.Pipe()
		return near, far.Close()
	}
	withNameServer(t, drops, func(t *testing.T, _ *world, dials *atomic.Int64) {
		time.Sleep(time.Hour)
		require.Greater(t, dials.Load(), int64(100))
		require.Less(t, dials.Load(), int64(140))
	})
}

func TestANameServerThatNeverAnswersHoldsUpNobodyForLong(t *testing.T) { // R-F-17, R-G-11
	silent := func() (net.Conn, error) {
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }()
		return near, nil
	}
	withNameServer(t, silent, func(t *testing.T, w *world, _ *atomic.Int64) {
		for _, topic := range []string{"T", "U"} {
			began := time.Now()
			w.peer().puts(topic, "a")
			require.LessOrEqual(t, time.Since(began), time.Second)
		}
		began := time.Now()
		w.stop()
		require.LessOrEqual(t, time.Since(began), 3*time.Second)
	})
}
