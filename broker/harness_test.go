package broker_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// world is a broker in memory. It lives in a synctest bubble, so time is what the test makes it, and a goroutine that is left
// behind fails the test.
type world struct {
	t       *testing.T
	opts    broker.Options
	broker  *broker.Broker
	pipe    *remoting.Pipe
	served  chan error
	stopped bool
}

// small are options of a broker in memory.
func small(dialect string) broker.Options {
	o := broker.Options{Name: "broker-a", Memory: 1 << 30}
	o.Store.FS, o.Store.Dialect = memfs.New(), dialect
	o.Store.SegmentSize, o.Store.QueueSegmentSize, o.Store.IndexSlots, o.Store.IndexEntries = 8<<20, 6000, 100, 400
	o.Store.StateSegmentSize, o.Store.RedoSegmentSize, o.Store.Sparse = 2400, 2000, true
	return o
}

// inWorld runs f beside a broker that is stopped at the end.
func inWorld(t *testing.T, o broker.Options, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		f(t, w)
	})
}

func newWorld(t *testing.T, o broker.Options) *world {
	t.Helper()
	w := &world{t: t, opts: o}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) start() {
	w.t.Helper()
	b, err := broker.New(context.Background(), &w.opts)
	require.NoError(w.t, err)
	w.broker, w.pipe, w.served, w.stopped = b, remoting.NewPipe(), make(chan error, 1), false
	go func() { w.served <- b.Serve(context.Background(), w.pipe) }()
	synctest.Wait() // it listens
	require.True(w.t, b.Ready())
}

func (w *world) stop() {
	w.t.Helper()
	if !w.stopped {
		w.stopped = true
		require.NoError(w.t, w.broker.Shutdown(context.Background()))
		require.NoError(w.t, <-w.served)
	}
}

// peer is one connection to the broker.
type peer struct {
	w *world
	c *remoting.Client

	mu        sync.Mutex
	notices   []string            // groups that requests 40 named
	questions []*remoting.Command // requests 39
}

func (w *world) peer() *peer {
	w.t.Helper()
	p := &peer{w: w}
	c, err := remoting.NewClient(&remoting.ClientOptions{Dial: w.pipe.Dial, Idle: 24 * time.Hour, Handler: p.notice})
	require.NoError(w.t, err)
	p.c = c
	w.t.Cleanup(c.Close)
	return p
}

func (p *peer) notice(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
	p.mu.Lock()
	defer p.mu.Unlock()
	if req.Code == remoting.CheckTransactionState {
		p.questions = append(p.questions, req)
		return nil
	}
	p.notices = append(p.notices, fmt.Sprintf("%d %s", req.Code, req.Fields.Get("consumerGroup")))
	return nil
}

// told gives the notices since the last call.
func (p *peer) told() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.notices
	p.notices = nil
	return list
}

// lose cuts the connection.
func (p *peer) lose() {
	p.c.Disconnect("broker")
	synctest.Wait()
}

func (p *peer) send(req *remoting.Command) *remoting.Command {
	p.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	resp, err := p.c.Call(ctx, "broker", req)
	require.NoError(p.w.t, err)
	require.Equal(p.w.t, remoting.Java, resp.Language)
	return resp
}

func (p *peer) ask(code int32, fields ...remoting.Field) *remoting.Command {
	p.w.t.Helper()
	return p.send(remoting.NewRequest(code, fields...))
}

// outgoing is a message as a client sends it.
type outgoing struct {
	topic, defaultTopic string
	queue               int32
	sysFlag             message.SysFlag
	properties          message.Properties
	body                string
	reconsume, most     int32
	defaultQueues       int32
}

// request makes request 10, 310 or 320.
func (m outgoing) request(code int32) *remoting.Command {
	names := strings.Split("a b c d e f g h i j k l", " ")
	if code == remoting.SendMessage {
		names = strings.Split("producerGroup topic defaultTopic defaultTopicQueueNums queueId sysFlag bornTimestamp flag properties reconsumeTimes unitMode maxReconsumeTimes", " ")
	}
	if m.defaultTopic == "" {
		m.defaultTopic = "TBW102"
	}
	if m.defaultQueues == 0 {
		m.defaultQueues = 4
	}
	values := []any{"PG", m.topic, m.defaultTopic, m.defaultQueues, m.queue, int32(m.sysFlag), 1700000000000, 7, m.properties, m.reconsume, false, m.most}
	req := remoting.NewRequest(code)
	for i, v := range values {
		req.Fields = append(req.Fields, remoting.String(names[i], fmt.Sprint(v)))
	}
	req.Body = []byte(m.body)
	return req
}

func (p *peer) put(m outgoing) *remoting.Command {
	p.w.t.Helper()
	return p.send(m.request(remoting.SendMessageV2))
}

// puts sends messages that must be stored, to queue 0 of a topic.
func (p *peer) puts(topic string, bodies ...string) {
	p.w.t.Helper()
	for _, body := range bodies {
		resp := p.put(outgoing{topic: topic, body: body})
		require.Equal(p.w.t, remoting.Success, resp.Code, resp.Remark)
	}
}

// pulling is a pull of queue 0.
type pulling struct {
	group, topic string
	offset       int64
	count        int
	flags        int32
	tags         string
	commit       int64
	wait         time.Duration
	version      int64
	queue        int32
}

func (q pulling) request() *remoting.Command {
	if q.group == "" {
		q.group = "CG"
	}
	if q.count == 0 {
		q.count = 32
	}
	return remoting.NewRequest(remoting.PullMessage,
		remoting.String("consumerGroup", q.group), remoting.String("topic", q.topic), remoting.Int("queueId", int64(q.queue)),
		remoting.Int("queueOffset", q.offset), remoting.Int("maxMsgNums", int64(q.count)), remoting.Int("sysFlag", int64(q.flags)),
		remoting.Int("commitOffset", q.commit), remoting.Int("suspendTimeoutMillis", q.wait.Milliseconds()),
		remoting.String("subscription", q.tags), remoting.Int("subVersion", q.version))
}

// pull pulls with the subscription in the request, unless flags say otherwise.
func (p *peer) pull(q pulling) *remoting.Command {
	p.w.t.Helper()
	if q.flags == 0 {
		q.flags = 4
	}
	// A pull from the middle takes what is there; the question for the end waits until all that was sent is there.
	p.ask(remoting.GetMaxOffset, remoting.String("topic", q.topic), remoting.Int("queueId", int64(q.queue)))
	return p.send(q.request())
}

// records are the records of an answer's body.
func records(t *testing.T, resp *remoting.Command) (list []*message.Message) {
	t.Helper()
	for b := resp.Body; len(b) > 0; {
		r, err := commitlog.Decode(b)
		require.NoError(t, err)
		list = append(list, r.Message())
		b = b[r.Size:]
	}
	return list
}

func bodies(t *testing.T, resp *remoting.Command) (list []string) {
	t.Helper()
	for _, m := range records(t, resp) {
		list = append(list, string(m.Body))
	}
	return list
}

// heartbeat is the body of request 34 with one consumer group.
func heartbeat(client, group, model string, version int64, topicsAndTags ...string) []byte {
	var subs []string
	for i := 0; i < len(topicsAndTags); i += 2 {
		subs = append(subs, fmt.Sprintf(`{"topic":%q,"subString":%q,"tagsSet":[],"codeSet":[],"subVersion":%d,"expressionType":"TAG"}`,
			topicsAndTags[i], topicsAndTags[i+1], version))
	}
	return fmt.Appendf(nil, `{"clientID":%q,"producerDataSet":[{"groupName":"PG"}],"consumerDataSet":[{"groupName":%q,`+
		`"consumeType":"CONSUME_PASSIVELY","messageModel":%q,"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","unitMode":false,`+
		`"subscriptionDataSet":[%s]}]}`, client, group, model, strings.Join(subs, ","))
}

func (p *peer) beat(body []byte) {
	p.w.t.Helper()
	req := remoting.NewRequest(remoting.Heartbeat)
	req.Body = body
	resp := p.send(req)
	require.Equal(p.w.t, remoting.Success, resp.Code, resp.Remark)
}

// captured returns the requests with that code of all files of testdata/wire.
func captured(t testing.TB, code int32) (frames []*remoting.Command) {
	t.Helper()
	files, err := filepath.Glob("../testdata/wire/*.json")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var list struct {
			Frames []struct {
				Header struct{ Code, Flag int32 }
				Hex    string
			}
		}
		require.NoError(t, json.Unmarshal(text, &list))
		for _, f := range list.Frames {
			if f.Header.Code != code || f.Header.Flag&remoting.FlagResponse != 0 {
				continue
			}
			raw, err := hex.DecodeString(f.Hex)
			require.NoError(t, err)
			c, err := remoting.DecodeFrame(raw[4:])
			require.NoError(t, err)
			frames = append(frames, c)
		}
	}
	require.NotEmpty(t, frames)
	return frames
}

var _ net.Listener = (*remoting.Pipe)(nil)
