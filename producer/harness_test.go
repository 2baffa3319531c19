package producer_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/mqtest"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
)

// world is a name server and brokers in memory.
type world struct {
	t     *testing.T
	net   *mqtest.Net
	names *mqtest.Names
}

func newWorld(t *testing.T) *world {
	n := mqtest.New(t)
	return &world{t, n, n.ServeNames("ns:9876")}
}

// fakeBroker answers sends as a real one does, or as a test says.
type fakeBroker struct {
	name, addr string

	mu     sync.Mutex
	reqs   []*remoting.Command
	conns  []*remoting.Conn
	answer func(req *remoting.Command) *remoting.Command // nil result: the usual answer
	stored int64
}

// broker starts a broker named name.
func (w *world) broker(name string) *fakeBroker {
	b := &fakeBroker{name: name, addr: "10.0.0." + strconv.Itoa(int(name[0]-'a')+1) + ":10911"}
	w.net.Serve(b.addr, b.handle)
	return b
}

// topic puts a topic on brokers.
func (w *world) topic(topic string, queues int32, brokers ...*fakeBroker) {
	var pairs []string
	for _, b := range brokers {
		pairs = append(pairs, b.name, b.addr)
	}
	w.names.Set(topic, queues, pairs...)
}

func isSend(code int32) bool {
	switch code {
	case remoting.SendMessage, remoting.SendMessageV2, remoting.SendBatchMessage, remoting.SendReplyMessage, remoting.SendReplyMessageV2:
		return true
	}
	return false
}

// noAnswer is what an answer function returns to leave a request without one.
var noAnswer = &remoting.Command{}

func (b *fakeBroker) handle(_ context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
	b.mu.Lock()
	b.reqs, b.conns = append(b.reqs, req), append(b.conns, c)
	answer := b.answer
	b.mu.Unlock()
	if answer != nil {
		switch resp := answer(req); resp {
		case nil:
		case noAnswer:
			return nil
		default:
			return resp
		}
	}
	if isSend(req.Code) {
		return b.ok(req, remoting.Success)
	}
	return req.Reply(remoting.Success)
}

// ok is the answer to a send that was stored.
func (b *fakeBroker) ok(req *remoting.Command, code int32) *remoting.Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stored++
	host, err := message.ParseHost(b.addr)
	if err != nil {
		panic(err)
	}
	queue := req.Fields.Get("e")
	if queue == "" {
		queue = req.Fields.Get("queueId")
	}
	return req.Reply(code, remoting.String("msgId", message.OffsetID(host, b.stored*100)), remoting.String("queueId", queue),
		remoting.Int("queueOffset", b.stored), remoting.String("MSG_REGION", "DefaultRegion"), remoting.String("TRACE_ON", "true"))
}

// answers sets what the broker answers from now on.
func (b *fakeBroker) answers(f func(req *remoting.Command) *remoting.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = f
}

// refuses makes the broker refuse all sends.
func (b *fakeBroker) refuses(code int32) {
	b.answers(func(req *remoting.Command) *remoting.Command {
		if isSend(req.Code) {
			return req.Refuse(code, "told to by the test")
		}
		return nil
	})
}

// got are the requests with one of the codes, all sends for none.
func (b *fakeBroker) got(codes ...int32) (found []*remoting.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, req := range b.reqs {
		for _, code := range codes {
			if req.Code == code {
				found = append(found, req)
			}
		}
		if len(codes) == 0 && isSend(req.Code) {
			found = append(found, req)
		}
	}
	return found
}

// conn is a connection on which the broker was asked.
func (b *fakeBroker) conn() *remoting.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conns[len(b.conns)-1]
}

// properties are those of a send.
func properties(req *remoting.Command) map[string]string {
	p := req.Fields.Get("i")
	if req.Code == remoting.SendMessage {
		p = req.Fields.Get("properties")
	}
	return message.Properties(p).Map()
}

// start starts a producer in the world.
func (w *world) start(o producer.Options) *producer.Producer {
	w.t.Helper()
	p := w.make(o)
	require.NoError(w.t, p.Start(w.t.Context()))
	return p
}

// make makes one that is shut down with the test.
func (w *world) make(o producer.Options) *producer.Producer {
	w.t.Helper()
	if o.Group == "" {
		o.Group = "PG"
	}
	o.ClientOptions.Dial = w.net.Dial
	if o.NameServers == nil && o.ClientOptions.NameServers == nil {
		o.NameServers = []string{"ns:9876"}
	}
	p, err := producer.New(&o)
	require.NoError(w.t, err)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Shutdown(ctx) // a test that cares has done it
	})
	return p
}

func msg(topic, body string) *message.Message {
	return &message.Message{Topic: topic, Body: []byte(body)}
}

// outcome is what a callback was told.
type outcome struct {
	result producer.Result
	err    error
}

// into is a callback that hands over what it is told.
func into(c chan<- outcome) producer.Callback {
	return func(r producer.Result, err error) { c <- outcome{r, err} }
}
