package consumer_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/message"
)

// fake is a broker that does what a test tells it: topic T with queues of its own, and answers that a real broker gives rarely. Its group
// has one member.
type fake struct {
	w    *world
	addr string

	mu      sync.Mutex
	queues  [][]*message.Received
	first   []int64
	offsets map[int32]int64                               // stored by the group
	answer  func(req *remoting.Command) *remoting.Command // before all else; nil: as usual
	asked   []*remoting.Command
	came    chan struct{} // closed at each put
	id      string
	peer    *remoting.Conn
}

// newFake starts a broker with so many queues and makes it known.
func newFake(w *world, queues int) *fake {
	f := &fake{
		w: w, addr: "10.9.9.9:10911", queues: make([][]*message.Received, queues), first: make([]int64, queues), offsets: map[int32]int64{}, came: make(chan struct{}),
	}
	w.net.Kill(nameServer)
	w.net.ServeNames(nameServer).Set("T", int32(queues), "fake", f.addr)
	w.net.Serve(f.addr, f.handle)
	return f
}

// put appends a message to a queue.
func (f *fake) put(queue int32, body string, change ...func(m *message.Message)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := &message.Received{
		Message:        message.Message{Topic: "T", QueueID: queue, Body: []byte(body), BornTimestamp: time.Now().UnixMilli()},
		QueueOffset:    f.first[queue] + int64(len(f.queues[queue])),
		StoreTimestamp: time.Now().UnixMilli(),
	}
	m.PhysicalOffset = m.QueueOffset * 1000
	for _, c := range change {
		c(&m.Message)
	}
	f.queues[queue] = append(f.queues[queue], m)
	close(f.came)
	f.came = make(chan struct{})
}

// requests are those with a code that came so far.
func (f *fake) requests(code int32) (list []*remoting.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, req := range f.asked {
		if req.Code == code {
			list = append(list, req)
		}
	}
	return list
}

// committed are the offsets that the group has stored.
func (f *fake) committed() map[int32]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.offsets)
}

func (f *fake) tell(answer func(req *remoting.Command) *remoting.Command) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// conn is the connection of the one member.
func (f *fake) conn(t *testing.T) *remoting.Conn {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NotNil(t, f.peer)
	return f.peer
}

func (f *fake) handle(ctx context.Context, conn *remoting.Conn, req *remoting.Command) *remoting.Command {
	f.mu.Lock()
	f.peer = conn
	f.asked = append(f.asked, req)
	answer := f.answer
	f.mu.Unlock()
	if answer != nil {
		if resp := answer(req); resp != nil {
			return resp
		}
	}
	fields := req.Fields.Reader()
	switch req.Code {
	case remoting.Heartbeat:
		f.readHeartbeat(req.Body)
	case remoting.GetConsumerListByGroup:
		f.mu.Lock()
		defer f.mu.Unlock()
		resp := req.Reply(remoting.Success)
		resp.Body = fmt.Appendf(nil, `{"consumerIdList":[%q]}`, f.id)
		return resp
	case remoting.QueryConsumerOffset:
		f.mu.Lock()
		defer f.mu.Unlock()
		if offset, ok := f.offsets[fields.Int32("queueId")]; ok {
			return req.Reply(remoting.Success, remoting.Int("offset", offset))
		}
		return req.Refuse(remoting.QueryNotFound, "Not found")
	case remoting.UpdateConsumerOffset:
		f.mu.Lock()
		defer f.mu.Unlock()
		if fields.Text("topic") == "T" {
			f.offsets[fields.Int32("queueId")] = fields.Int64("commitOffset")
		}
	case remoting.GetMaxOffset, remoting.SearchOffsetByTimestamp:
		return req.Reply(remoting.Success, remoting.Int("offset", f.find(fields.Int32("queueId"), fields.OptInt64("timestamp", 1<<62))))
	case remoting.LockBatchQueues:
		resp := req.Reply(remoting.Success)
		resp.Body = lockedAll(req.Body)
		return resp
	case remoting.PullMessage:
		return f.pull(ctx, req)
	}
	return req.Reply(remoting.Success)
}

// lockedAll answers a request for locks with all queues in it.
func lockedAll(body []byte) []byte {
	r := fastjson.NewReader(string(body))
	set := "[]"
	r.Object(func(key string) {
		if key == "mqSet" {
			set = r.Raw()
		}
	})
	return []byte(`{"lockOKMQSet":` + set + `}`)
}

func (f *fake) readHeartbeat(body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := fastjson.NewReader(string(body))
	r.Object(func(key string) {
		if key == "clientID" {
			f.id = r.Clone()
		}
	})
}

// find is the offset of the first message stored at or after a time.
func (f *fake) find(queue int32, ms int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.queues[queue], func(m *message.Received) bool { return m.StoreTimestamp >= ms })
	if i < 0 {
		i = len(f.queues[queue])
	}
	return f.first[queue] + int64(i)
}

// pull answers as a broker does, and holds a pull that finds nothing.
func (f *fake) pull(ctx context.Context, req *remoting.Command) *remoting.Command {
	fields := req.Fields.Reader()
	queue, offset, count := fields.Int32("queueId"), fields.Int64("queueOffset"), int(fields.Int32("maxMsgNums"))
	timer := time.NewTimer(15 * time.Second)
	defer timer.Stop()
	for {
		resp, came := f.tryPull(req, queue, offset, count)
		if resp.Code != remoting.PullNotFound {
			return resp
		}
		select {
		case <-came:
		case <-timer.C:
			return resp
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *fake) tryPull(req *remoting.Command, queue int32, offset int64, count int) (*remoting.Command, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list, first := f.queues[queue], f.first[queue]
	end := first + int64(len(list))
	reply := func(code int32, next int64) *remoting.Command {
		return req.Reply(code, remoting.Int("suggestWhichBrokerId", route.MasterID), remoting.Int("nextBeginOffset", next),
			remoting.Int("minOffset", first), remoting.Int("maxOffset", end))
	}
	switch {
	case offset < first:
		return reply(remoting.PullOffsetMoved, first), f.came
	case offset > end:
		return reply(remoting.PullOffsetMoved, end), f.came
	case offset == end:
		return reply(remoting.PullNotFound, offset), f.came
	}
	list = list[offset-first:]
	list = list[:min(count, len(list))]
	resp := reply(remoting.Success, offset+int64(len(list)))
	for _, m := range list {
		resp.Body = appendRecord(resp.Body, m)
	}
	return resp, f.came
}

// appendRecord appends a message as a broker stores it.
func appendRecord(b []byte, m *message.Received) []byte {
	record, err := commitlog.AppendMessage(nil, &m.Message, dialect.V49(), 4<<20)
	if err != nil {
		panic(err)
	}
	r, err := commitlog.Decode(record)
	if err != nil {
		panic(err)
	}
	r.QueueOffset, r.PhysicalOffset, r.StoreTimestamp = m.QueueOffset, m.PhysicalOffset, m.StoreTimestamp
	return r.AppendTo(b)
}
