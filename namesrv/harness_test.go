package namesrv_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/namesrv"
)

// world is a name server in memory. It lives in a synctest bubble, so time is what the test makes it, and a goroutine
// that is left behind fails the test.
type world struct {
	t      *testing.T
	server *namesrv.Server
	pipe   *remoting.Pipe
}

// inWorld runs f beside a name server that is stopped at the end.
func inWorld(t *testing.T, o *namesrv.Options, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		f(t, w)
		require.Empty(t, w.server.Inconsistencies()) // R-C-44
	})
}

func newWorld(t *testing.T, o *namesrv.Options) *world {
	t.Helper()
	s, err := namesrv.New(o)
	require.NoError(t, err)
	w := &world{t, s, remoting.NewPipe()}
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background(), w.pipe) }()
	t.Cleanup(func() {
		require.NoError(t, s.Shutdown(context.Background()))
		require.NoError(t, <-served)
	})
	synctest.Wait() // it listens
	return w
}

// peer is one connection to the name server.
type peer struct {
	w *world
	c *remoting.Client
}

func (w *world) peer() *peer {
	w.t.Helper()
	c, err := remoting.NewClient(&remoting.ClientOptions{Dial: w.pipe.Dial, Idle: 24 * time.Hour})
	require.NoError(w.t, err)
	w.t.Cleanup(c.Close)
	return &peer{w, c}
}

// lose cuts the connection.
func (p *peer) lose() {
	p.c.Disconnect("namesrv")
	synctest.Wait()
}

func (p *peer) send(req *remoting.Command) *remoting.Command {
	p.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	resp, err := p.c.Call(ctx, "namesrv", req)
	require.NoError(p.w.t, err)
	require.Equal(p.w.t, remoting.Java, resp.Language)
	return resp
}

func (p *peer) ask(code int32, fields ...remoting.Field) *remoting.Command {
	p.w.t.Helper()
	return p.send(remoting.NewRequest(code, fields...))
}

// broker is what a broker says of itself.
type broker struct {
	cluster, name, addr string
	id                  int64
	version             int64 // the counter of its data version
	topics              []route.TopicConfig
	filters             []string
	extra               remoting.Fields
	from                int32 // version ordinal, 407 if 0
	compressed          bool
	state               int64
}

func (b broker) fields() remoting.Fields {
	return remoting.Fields{
		remoting.String("clusterName", b.cluster), remoting.String("brokerName", b.name), remoting.String("brokerAddr", b.addr),
		remoting.Int("brokerId", b.id),
	}
}

// registration is the request with which the broker reports.
func (b broker) registration(t testing.TB) *remoting.Command {
	t.Helper()
	req := remoting.NewRequest(remoting.RegisterBroker, b.fields()...)
	if b.from != 0 {
		req.Version = b.from
	}
	g := route.Registration{
		DataVersion: route.DataVersion{Timestamp: 1, Counter: b.version, StateVersion: b.state}, Topics: b.topics, FilterServers: b.filters,
	}
	body, err := g.Append(nil, route.RegistrationForm{Version: req.Version, Compressed: b.compressed, Misspelt: req.Version < 213})
	require.NoError(t, err)
	req.Body = body
	req.Fields = append(req.Fields, remoting.String("haServerAddr", b.addr+"2"), remoting.Bool("compressed", b.compressed))
	req.Fields = append(req.Fields, remoting.Int("bodyCrc32", int64(route.Checksum(body))))
	for _, f := range b.extra {
		req.Fields.Set(f.Name, f.Value)
	}
	return req
}

func (p *peer) register(b broker) *remoting.Command {
	p.w.t.Helper()
	resp := p.send(b.registration(p.w.t))
	require.Equal(p.w.t, remoting.Success, resp.Code, resp.Remark)
	return resp
}

func topic(name string, queues, perm int32) route.TopicConfig {
	return route.TopicConfig{Name: name, ReadQueueNums: queues, WriteQueueNums: queues, Perm: perm, FilterType: "SINGLE_TAG"}
}

// brokerA is a master with two topics.
func brokerA() broker {
	return broker{cluster: "c1", name: "a", addr: "10.0.0.1:10911", topics: []route.TopicConfig{topic("T1", 4, 6), topic("T2", 8, 6)}}
}

// route asks for a topic; nil when it is unknown.
func (w *world) route(topic string) *route.Topic {
	w.t.Helper()
	resp := w.peer().ask(remoting.GetRouteByTopic, remoting.String("topic", topic))
	if resp.Code == remoting.TopicNotExist {
		return nil
	}
	require.Equal(w.t, remoting.Success, resp.Code, resp.Remark)
	r, err := route.ParseTopic(resp.Body)
	require.NoError(w.t, err)
	return r
}

// queues are the queue numbers of a topic by broker.
func (w *world) queues(topic string) map[string]int32 {
	w.t.Helper()
	r, m := w.route(topic), map[string]int32{}
	if r == nil {
		return m
	}
	for _, q := range r.Queues {
		m[q.BrokerName] = q.ReadQueueNums
	}
	return m
}

// captured returns the raw frames of the requests with that name in a file of testdata/wire.
func captured(t testing.TB, file, name string) (frames []*remoting.Command) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../testdata/wire", file))
	require.NoError(t, err)
	var list struct {
		Frames []struct {
			Name   string
			Header struct{ Flag int32 }
			Hex    string
		}
	}
	require.NoError(t, json.Unmarshal(text, &list))
	for _, f := range list.Frames {
		if f.Name == name && f.Header.Flag&remoting.FlagResponse == 0 {
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
