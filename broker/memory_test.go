package broker_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// heap is what lives, bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools are emptied by the second
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// deaf connects, asks again and again, and never reads. It returns when everything was written or nothing is taken any more.
func deaf(t *testing.T, addr string, times int, req *remoting.Command) {
	t.Helper()
	frame, err := remoting.AppendFrame(nil, req)
	require.NoError(t, err)
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
	for range times {
		if _, err := c.Write(frame); err != nil {
			return // it is not read any more
		}
	}
}

func TestThoseWhoNeverReadShareABound(t *testing.T) { // R-G-14: slow reader protection
	o := small("4.9")
	o.MaxPullBytes = 16 << 20
	o.Store.SegmentSize = 16 << 20
	b := onLoopback(t, o)
	c := newClient(t)
	for range 3 { // each larger than what a pull gives otherwise
		resp, err := c.Call(t.Context(), b.Addr(), outgoing{topic: "T", body: strings.Repeat("x", 4<<20-1000)}.request(remoting.SendMessageV2))
		require.NoError(t, err)
		require.Equal(t, remoting.Success, resp.Code)
	}
	before := heap()
	for _, req := range []*remoting.Command{
		pulling{topic: "T", flags: subscribes}.request(), remoting.NewRequest(remoting.ViewMessageByID, remoting.Int("offset", 0)),
	} {
		for range 6 {
			deaf(t, b.Addr(), 20, req)
		}
	}
	settled(t, b)
	// Twelve connections with a frame of 4 MiB being written and one behind it at the most, and the bound; what is just being made
	// passes. All answers together are a gigabyte.
	require.Eventually(t, func() bool { return heap()-before < int64(12*2*5+16+64)<<20 }, time.Minute, 100*time.Millisecond)
	require.Positive(t, b.Stats().Busy)
	for range 10 { // while the answers to the others wait, which is for longer than that: who reads is served, once what is being made has passed
		require.Eventually(t, func() bool {
			resp, err := c.Call(t.Context(), b.Addr(), pulling{topic: "T", flags: subscribes}.request())
			return err == nil && resp.Code == remoting.Success
		}, 20*time.Second, time.Millisecond)
	}
}

// settled waits until no request is handled that could end.
func settled(t *testing.T, b *broker.Broker) {
	t.Helper()
	last := int64(-1)
	require.Eventually(t, func() bool {
		now := b.Stats().Busy
		same := now == last
		last = now
		return same
	}, time.Minute, 100*time.Millisecond)
}

func TestHeldPullsKeepNothingOfTheirRequests(t *testing.T) { // R-G-14
	o := small("4.9")
	o.MaxHeld = 1000
	b := onLoopback(t, o)
	c := newClient(t)
	resp, err := c.Call(t.Context(), b.Addr(), outgoing{topic: "T", body: "x"}.request(remoting.SendMessageV2))
	require.NoError(t, err)
	require.Equal(t, remoting.Success, resp.Code)
	hold := func(q pulling, padding int) {
		req := q.request()
		req.Fields = append(req.Fields, remoting.String("padding", strings.Repeat("p", padding)))
		require.NoError(t, c.Async(context.Background(), b.Addr(), req, new(remoting.Pending), remoting.WaiterFunc(func(*remoting.Command, error) {})))
	}
	before := heap()
	for range 100 {
		hold(pulling{topic: "T", offset: 1, flags: subscribes | mayWait, wait: time.Minute}, 1<<20)
	}
	require.Eventually(t, func() bool { return b.Stats().Held == 100 }, time.Minute, time.Millisecond)
	// What was just read or written may be there for a moment.
	require.Eventually(t, func() bool { return heap()-before < int64(30)<<20 }, time.Minute, 100*time.Millisecond)
	// Those that name many tags count as many.
	var tags []string
	for i := range 20_000 {
		tags = append(tags, strconv.Itoa(i))
	}
	many := pulling{topic: "T", offset: 1, flags: subscribes | mayWait, wait: time.Minute, tags: strings.Join(tags, "||")}
	for range 10 {
		hold(many, 0)
	}
	require.Eventually(t, func() bool { return b.Stats().Busy >= 8 }, time.Minute, time.Millisecond)
}

// countingFS counts the files that are put in their place.
type countingFS struct {
	mappedfile.FS

	renames atomic.Int64
}

func (f *countingFS) Rename(from, to string) error {
	f.renames.Add(1)
	return f.FS.Rename(from, to)
}

func TestAHeartbeatOfManyGroupsWritesEachFileOnce(t *testing.T) { // R-G-14
	o := small("4.9")
	files := &countingFS{FS: o.Store.FS}
	o.Store.FS = files
	inWorld(t, o, func(t *testing.T, w *world) {
		var groups []string
		for i := range 4000 {
			groups = append(groups, fmt.Sprintf(`{"groupName":"G%d","subscriptionDataSet":[{"topic":"T","subString":"*"}]}`, i))
		}
		before := files.renames.Load()
		p := w.peer()
		p.beat([]byte(`{"clientID":"c","consumerDataSet":[` + strings.Join(groups, ",") + `]}`))
		require.LessOrEqual(t, files.renames.Load()-before, int64(4)) // two tables, each with its backup
		require.Equal(t, 4000, w.broker.Stats().ConsumerGroups)
		require.Equal(t, remoting.Success, p.ask(remoting.GetConsumerListByGroup, remoting.String("consumerGroup", "G3999")).Code)
	})
}

func TestWhatConsumersSubscribeToIsBounded(t *testing.T) { // R-G-14
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		var topics []string
		for i := range 16_000 {
			topics = append(topics, fmt.Sprintf(`{"topic":"T%d","subString":"a"}`, i))
		}
		set := `"subscriptionDataSet":[` + strings.Join(topics, ",") + `]}]}`
		before, refused := heap(), 0
		for i := range 25 {
			beat := remoting.NewRequest(remoting.Heartbeat)
			beat.Body = fmt.Appendf(nil, `{"clientID":"c","consumerDataSet":[{"groupName":"G%d",%s`, i, set)
			if resp := p.send(beat); resp.Code != remoting.Success {
				require.Contains(t, resp.Remark, "too many groups or subscriptions")
				refused++
			}
		}
		require.Positive(t, refused)
		require.Less(t, heap()-before, int64(150)<<20)
		p.lose()
		require.Zero(t, w.broker.Stats().ConsumerGroups)
		q := w.peer() // what is gone counts no more
		q.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		require.Less(t, heap()-before, int64(20)<<20)

		long := strings.Repeat("p", 2000) // no producer group has such a name
		q.beat([]byte(`{"clientID":"c","producerDataSet":[{"groupName":"` + long + `"}]}`))
		require.Equal(t, remoting.SystemError, q.ask(remoting.GetProducerConnections, remoting.String("producerGroup", long)).Code)
	})
}
