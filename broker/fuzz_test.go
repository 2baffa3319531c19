package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

func FuzzReadBatch(f *testing.F) {
	f.Add(batchBody("one", "TAGS\x01a", "two", ""))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	for _, req := range captured(f, remoting.SendBatchMessage) {
		f.Add(req.Body)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := broker.ReadBatch(b); err == nil {
			require.LessOrEqual(t, n*22, len(b))
		}
	})
}

func FuzzReadHeartbeat(f *testing.F) {
	for _, req := range captured(f, remoting.Heartbeat) {
		f.Add(req.Body)
	}
	f.Add([]byte(`{"clientID":1,"consumerDataSet":[{"subscriptionDataSet":[{"codeSet":["x"]}]}]}`))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = broker.ReadHeartbeat(b) })
}

func FuzzReadLocks(f *testing.F) {
	f.Add(lockBody("c"))
	f.Add([]byte(`{"mqSet":[{}]}`))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = broker.ReadLocks(b) })
}

// FuzzRequests throws requests at a whole broker, which must answer or close, and stay alive.
func FuzzRequests(f *testing.F) {
	for _, code := range []int32{10, 11, 14, 15, 29, 30, 34, 35, 37, 38, 310, 320} {
		for _, req := range captured(f, code) {
			b, err := remoting.AppendFrame(nil, req)
			require.NoError(f, err)
			f.Add(b)
		}
	}
	o := small("4.9")
	o.Port = -1
	b, err := broker.Start(f.Context(), &o)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, b.Shutdown(context.Background())) })
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) < 4 {
			return
		}
		req, err := remoting.DecodeFrame(frame[4:])
		if err != nil || req.IsResponse() {
			return
		}
		if req.Code == remoting.PullMessage {
			req.Fields.Set("suspendTimeoutMillis", "1")
		}
		c, err := remoting.NewClient(nil)
		require.NoError(t, err)
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, _ = c.Call(ctx, b.Addr(), req)
		alive, cancelAlive := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancelAlive()
		resp, err := c.Call(alive, b.Addr(), remoting.NewRequest(remoting.GetMaxOffset, remoting.String("topic", "T"), remoting.Int("queueId", 0)))
		require.NoError(t, err)
		require.Equal(t, remoting.Success, resp.Code)
	})
}
