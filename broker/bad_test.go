package broker_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

func TestAnOverloadedBrokerSaysBusy(t *testing.T) { // R-D-138, R-G-14, protocol.md 1.3 and 16
	o := small("4.9")
	o.MaxSends, o.MaxPullBytes = 10, 1<<20
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		w.broker.Occupy(10, 1<<20)
		resp := p.put(outgoing{topic: "T", body: "b"})
		require.Equal(t, remoting.SystemBusy, resp.Code)
		require.True(t, strings.HasPrefix(resp.Remark, "[OVERLOAD]"))
		require.Equal(t, remoting.SystemBusy, p.pull(pulling{topic: "T"}).Code)
		// The question for an offset is answered all the same.
		require.Equal(t, remoting.Success, p.ask(remoting.QueryConsumerOffset, queueFields("T", 0)...).Code)
		w.broker.Occupy(-10, -1<<20)
		require.Equal(t, []string{"a"}, bodies(t, p.pull(pulling{topic: "T"}))) // what was refused was not stored
	})
}

// onLoopback starts a broker that listens on a port of its own.
func onLoopback(t *testing.T, o broker.Options) *broker.Broker {
	t.Helper()
	o.Port = -1
	b, err := broker.Start(t.Context(), &o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Shutdown(context.Background())) })
	return b
}

func newClient(t *testing.T) *remoting.Client {
	t.Helper()
	c, err := remoting.NewClient(nil)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func TestWhatIsAcknowledgedWhileStoppingIsStored(t *testing.T) { // R-F-05, protocol.md: never answers a send that it did not store
	o := small("4.9")
	o.Port = -1
	b, err := broker.Start(t.Context(), &o)
	require.NoError(t, err)
	var acknowledged sync.Map
	var count, stopping atomic.Int64
	var senders sync.WaitGroup
	for s := range 4 {
		c := newClient(t)
		senders.Go(func() {
			for i := 0; ; i++ {
				body := fmt.Sprintf("body-%d-%d", s, i)
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				resp, err := c.Call(ctx, b.Addr(), outgoing{topic: "T", body: body}.request(remoting.SendMessageV2))
				cancel()
				if err != nil || resp.Code != remoting.Success {
					if stopping.Load() == 0 {
						t.Errorf("%v %v", resp, err)
					}
					return
				}
				acknowledged.Store(body, true)
				count.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return count.Load() > 500 }, time.Minute, time.Millisecond)
	stopping.Store(1)
	require.NoError(t, b.Shutdown(context.Background()))
	senders.Wait()
	again, err := broker.New(t.Context(), &o)
	require.NoError(t, err)
	defer func() { require.NoError(t, again.Shutdown(context.Background())) }()
	for r, err := range again.Store().Messages("T", 0, 0) {
		require.NoError(t, err)
		acknowledged.Delete(string(r.Body))
	}
	acknowledged.Range(func(body, _ any) bool {
		t.Errorf("%v was acknowledged and is not there", body)
		return true
	})
}

func TestAConsumerThatNeverReadsCostsLittle(t *testing.T) { // R-G-14
	o := small("4.9")
	o.MaxPullBytes = 8 << 20
	b := onLoopback(t, o)
	c := newClient(t)
	for range 20 {
		resp, err := c.Call(t.Context(), b.Addr(), outgoing{topic: "T", body: strings.Repeat("x", 128<<10)}.request(remoting.SendMessageV2))
		require.NoError(t, err)
		require.Equal(t, remoting.Success, resp.Code)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	frame, err := remoting.AppendFrame(nil, pulling{topic: "T", flags: subscribes}.request())
	require.NoError(t, err)
	deaf, err := net.Dial("tcp", b.Addr())
	require.NoError(t, err)
	defer func() { _ = deaf.Close() }()
	require.NoError(t, deaf.SetWriteDeadline(time.Now().Add(2*time.Second)))
	for range 4000 { // a gigabyte of answers
		if _, err := deaf.Write(frame); err != nil {
			break // it is not read any more
		}
	}
	resp, err := c.Call(t.Context(), b.Addr(), remoting.NewRequest(remoting.GetMaxOffset, queueFields("T", 0)...))
	require.NoError(t, err)
	require.Equal(t, "20", resp.Fields.Get("offset")) // others are served
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(64<<20))
}

func TestNonsenseClosesTheConnectionOnly(t *testing.T) { // R-G-14, protocol.md 1
	o := small("4.9")
	o.MaxFrame = 1 << 20
	b := onLoopback(t, o)
	huge := binary.BigEndian.AppendUint32(nil, 1<<20+1)
	for name, text := range map[string][]byte{"noise": []byte("GET / HTTP/1.1\r\n\r\n"), "a frame too large": huge, "no length": {0, 0, 0, 1, 0}} {
		c, err := net.Dial("tcp", b.Addr())
		require.NoError(t, err)
		_, err = c.Write(text)
		require.NoError(t, err)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
		n, err := c.Read(make([]byte, 1))
		require.Zero(t, n, name)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, name)
		require.NoError(t, c.Close())
	}
	resp, err := newClient(t).Call(t.Context(), b.Addr(), outgoing{topic: "T", body: "x"}.request(remoting.SendMessageV2))
	require.NoError(t, err)
	require.Equal(t, remoting.Success, resp.Code)
}

func TestWhatClientsNameIsBounded(t *testing.T) { // R-G-14
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		for round := range 3 {
			var groups []string
			for i := range 4000 {
				groups = append(groups, fmt.Sprintf(`{"groupName":"P%d_%d"}`, round, i))
			}
			p.beat([]byte(`{"clientID":"c","producerDataSet":[` + strings.Join(groups, ",") + `]}`))
		}
		require.Equal(t, 4096, w.broker.Stats().ProducerGroups)
		p.lose()
		require.Zero(t, w.broker.Stats().ProducerGroups)

		q := w.peer()
		beat := remoting.NewRequest(remoting.Heartbeat)
		beat.Body = heartbeat("c", "CG", "CLUSTERING", 1, "T", strings.Repeat("a || ", 300_000))
		resp := q.send(beat)
		require.Equal(t, remoting.SystemError, resp.Code)
		require.Contains(t, resp.Remark, "at most 1048576 are allowed")
		locks := remoting.NewRequest(remoting.LockBatchQueues)
		locks.Body = lockBody(strings.Repeat("c", 2000))
		require.Equal(t, remoting.SystemError, q.send(locks).Code)
	})
}

func TestTheVIPPortIsServedToo(t *testing.T) { // R-F-26
	o := small("4.9")
	o.VIP = true
	for try := range 20 { // the two ports that are tried may be somebody else's
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		o.Port = l.Addr().(*net.TCPAddr).Port
		require.NoError(t, l.Close())
		b, err := broker.Start(t.Context(), &o)
		if err != nil && try < 19 {
			continue
		}
		require.NoError(t, err)
		resp, err := newClient(t).Call(t.Context(), fmt.Sprintf("127.0.0.1:%d", o.Port-2), outgoing{topic: "T", body: "x"}.request(remoting.SendMessageV2))
		require.NoError(t, err)
		require.Equal(t, remoting.Success, resp.Code)
		require.NoError(t, b.Shutdown(context.Background()))
		_, err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", o.Port-2))
		require.Error(t, err)
		return
	}
}
