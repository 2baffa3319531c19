package broker_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
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

func FuzzReadStatus(f *testing.F) {
	f.Add([]byte(`{"consumerTable":{},"messageQueueTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7}}`))
	f.Add([]byte(`{"messageQueueTable":7}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if queues, err := broker.ReadStatus(b); err == nil { // it is put into an object of ours
			again, err := broker.ReadStatus([]byte(`{"messageQueueTable":` + queues + `}`))
			require.NoError(t, err)
			require.Equal(t, queues, again)
		}
	})
}

// everyCode are the request codes that a broker serves, and some that it does not.
func everyCode() (codes []int32) {
	for code := range int32(400) {
		codes = append(codes, code)
	}
	return append(codes, -1, 361, 901, 200050, 1<<31-1)
}

// FuzzFrames throws bytes at a whole broker.
func FuzzFrames(f *testing.F) {
	good, err := remoting.AppendFrame(nil, remoting.NewRequest(remoting.GetMaxOffset, queueFields("T", 0)...))
	require.NoError(f, err)
	f.Add(good)
	f.Add(append(slices.Clip(good), 0, 0, 0, 200, 1, 2, 3))
	f.Add([]byte{0x16, 3, 1, 0, 5})
	f.Add([]byte("\x7f\xff\xff\xff\x00\x00\x00\x01{"))
	o := small("4.9")
	o.Port = -1
	b, err := broker.Start(f.Context(), &o)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, b.Shutdown(context.Background())) })
	f.Fuzz(func(t *testing.T, text []byte) {
		nc, err := net.Dial("tcp", b.Addr())
		require.NoError(t, err)
		_, _ = nc.Write(text) // which it may have closed before all of it was read
		require.NoError(t, nc.Close())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, err := remoting.NewClient(nil)
		require.NoError(t, err)
		defer c.Close()
		resp, err := c.Call(ctx, b.Addr(), remoting.NewRequest(remoting.GetMaxOffset, queueFields("T", 0)...))
		require.NoError(t, err)
		require.Equal(t, remoting.Success, resp.Code)
	})
}

// addRequests adds captured and plausible requests of all codes to a corpus.
func addRequests(f *testing.F) {
	f.Helper()
	for _, code := range []int32{10, 11, 14, 15, 29, 30, 34, 35, 37, 38, 310, 320} {
		for _, req := range captured(f, code) {
			b, err := remoting.AppendFrame(nil, req)
			require.NoError(f, err)
			f.Add(b)
		}
	}
	for _, code := range everyCode() {
		for _, body := range []string{"", `{"groupName":"G","mqSet":[{"topic":"T"}],"consumerGroup":"G","clientId":"c"}`, "brokerPermission=6\n"} {
			req := remoting.NewRequest(code)
			for _, name := range []string{"topic", "group", "consumerGroup", "producerGroup", "groupName", "clientId", "srcGroup", "destGroup", "key", "msgId", "b", "a", "c"} {
				req.Fields = append(req.Fields, remoting.String(name, "T"))
			}
			for _, name := range []string{"queueId", "timestamp", "offset", "readQueueNums", "writeQueueNums", "perm", "beginTimestamp", "endTimestamp", "maxNum", "d", "e"} {
				req.Fields = append(req.Fields, remoting.Int(name, 1))
			}
			req.Body = []byte(body)
			b, err := remoting.AppendFrame(nil, req)
			require.NoError(f, err)
			f.Add(b)
		}
	}
}

// requestIn is the request that a frame holds, nil if that is none.
func requestIn(frame []byte) *remoting.Command {
	if len(frame) < 4 {
		return nil
	}
	req, err := remoting.DecodeFrame(frame[4:])
	if err != nil || req.IsResponse() {
		return nil
	}
	if req.Code == remoting.PullMessage {
		req.Fields.Set("suspendTimeoutMillis", "1")
	}
	return req
}

// FuzzUnsignedRequests throws requests that nobody signed, or not well, at a broker with access rules: it does nothing for them, whatever they
// ask for, and in whatever name.
func FuzzUnsignedRequests(f *testing.F) { // R-G-13
	addRequests(f)
	o := small("4.9")
	o.Port, o.ACL, o.ACLFile = -1, true, filepath.Join(f.TempDir(), "plain_acl.yml")
	require.NoError(f, os.WriteFile(o.ACLFile, []byte(accessRules), 0o600))
	b, err := broker.Start(f.Context(), &o)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, b.Shutdown(context.Background())) })
	before := b.Stats()
	f.Fuzz(func(t *testing.T, frame []byte) {
		req := requestIn(frame)
		if req == nil {
			return
		}
		if _, signed := req.Fields.Lookup(remoting.FieldSignature); signed { // some of the captured ones, and well
			req.Fields.Set(remoting.FieldSignature, "d3Jvbmc=")
		}
		c, err := remoting.NewClient(nil)
		require.NoError(t, err)
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if resp, err := c.Call(ctx, b.Addr(), req); err == nil {
			require.NotEqual(t, remoting.Success, resp.Code, "code %d", req.Code)
		}
		after := b.Stats()
		require.Equal(t, before.LogEnd, after.LogEnd, "code %d", req.Code)
		require.Equal(t, before.Topics, after.Topics, "code %d", req.Code)
		require.Equal(t, before.Groups, after.Groups, "code %d", req.Code)
	})
}

// FuzzRequests throws requests at a whole broker, which must answer or close, and stay alive.
func FuzzRequests(f *testing.F) {
	addRequests(f)
	o := small("4.9")
	o.Port = -1
	b, err := broker.Start(f.Context(), &o)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, b.Shutdown(context.Background())) })
	f.Fuzz(func(t *testing.T, frame []byte) {
		req := requestIn(frame)
		if req == nil {
			return
		}
		c, err := remoting.NewClient(nil)
		require.NoError(t, err)
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if resp, err := c.Call(ctx, b.Addr(), req); err == nil {
			require.NotEqual(t, "internal error", resp.Remark) // what a panic is answered with
		}
		alive, cancelAlive := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancelAlive()
		resp, err := c.Call(alive, b.Addr(), remoting.NewRequest(remoting.GetMaxOffset, remoting.String("topic", "T"), remoting.Int("queueId", 0)))
		require.NoError(t, err)
		require.Equal(t, remoting.Success, resp.Code)
	})
}
