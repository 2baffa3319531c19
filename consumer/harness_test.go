package consumer_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/consumer"
	"github.com/rocketstore/rocketstore/internal/mqtest"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/namesrv"
)

const nameServer = "ns1:9876"

// world is a name server and brokers of ours in memory. It lives in a synctest bubble, so time is what the test makes it, and a
// goroutine that is left behind fails the test.
type world struct {
	t       *testing.T
	net     *mqtest.Net
	brokers map[string]*served
	sender  *remoting.Client
}

// served is one broker, which can be stopped and started again on its store.
type served struct {
	opts   broker.Options
	broker *broker.Broker
	ended  chan error
}

// inWorld runs f beside a name server and the brokers that are named.
func inWorld(t *testing.T, names []string, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: mqtest.New(t), brokers: map[string]*served{}}
		w.startNames()
		c, err := remoting.NewClient(&remoting.ClientOptions{Dial: w.net.Dial, Idle: 24 * time.Hour})
		require.NoError(t, err)
		w.sender = c
		t.Cleanup(c.Close)
		for i, name := range names {
			o := broker.Options{Name: name, AdvertisedIP: "10.0.0." + strconv.Itoa(i+1), Port: 10911, NameServers: []string{nameServer}, Memory: 1 << 30}
			o.Client = &remoting.ClientOptions{Dial: w.net.Dial}
			o.Store.FS, o.Store.Dialect, o.Store.Sparse = memfs.New(), "4.9", true
			o.Store.SegmentSize, o.Store.QueueSegmentSize, o.Store.IndexSlots, o.Store.IndexEntries = 4<<20, 6000, 100, 400
			w.brokers[name] = &served{opts: o}
			w.start(name)
		}
		f(t, w)
	})
}

func (w *world) startNames() {
	s, err := namesrv.New(nil)
	require.NoError(w.t, err)
	ended := make(chan error, 1)
	l := w.net.Listen(nameServer)
	go func() { ended <- s.Serve(context.Background(), l) }()
	synctest.Wait() // it listens
	w.t.Cleanup(func() {
		require.NoError(w.t, s.Shutdown(context.Background()))
		require.NoError(w.t, <-ended)
	})
}

func (s *served) addr() string { return s.opts.AdvertisedIP + ":" + strconv.Itoa(s.opts.Port) }

// start starts a broker and waits until it is registered.
func (w *world) start(name string) {
	w.t.Helper()
	s := w.brokers[name]
	b, err := broker.New(context.Background(), &s.opts)
	require.NoError(w.t, err)
	s.broker, s.ended = b, make(chan error, 1)
	l := w.net.Listen(s.addr())
	go func() { s.ended <- b.Serve(context.Background(), l) }()
	synctest.Wait()
	w.t.Cleanup(func() { w.stop(name) })
}

func (w *world) stop(name string) {
	if s := w.brokers[name]; s.broker != nil {
		require.NoError(w.t, s.broker.Shutdown(context.Background()))
		require.NoError(w.t, <-s.ended)
		s.broker = nil
	}
}

// send puts a message into a queue; the topic gets four queues. It gives the queue offset.
func (w *world) send(name, topic string, queue int32, tag, body string) string {
	w.t.Helper()
	properties := ""
	if tag != "" {
		properties = "TAGS\x01" + tag + "\x02"
	}
	values := []any{"PG", topic, "TBW102", 4, queue, 0, time.Now().UnixMilli(), 0, properties}
	req := remoting.NewRequest(remoting.SendMessageV2)
	for i, v := range values {
		req.Fields = append(req.Fields, remoting.String(string(rune('a'+i)), fmt.Sprint(v)))
	}
	req.Body = []byte(body)
	resp, err := w.sender.Call(w.t.Context(), w.brokers[name].addr(), req)
	require.NoError(w.t, err)
	require.Equal(w.t, remoting.Success, resp.Code, resp.Remark)
	return resp.Fields.Get("queueOffset")
}

// fill sends messages PREFIX0, PREFIX1, … in turn to the four queues of a topic on each broker that there is.
func (w *world) fill(topic, prefix string, n int) (bodies []string) {
	w.t.Helper()
	var names []string
	for name := range w.brokers {
		names = append(names, name)
	}
	slices.Sort(names)
	for i := range n {
		body := prefix + strconv.Itoa(i)
		w.send(names[i%len(names)], topic, int32(i/len(names)%4), "Tag"+strconv.Itoa(i%3), body)
		bodies = append(bodies, body)
	}
	synctest.Wait() // the topic is registered
	return bodies
}

// stored is what a broker has as a group's offset, or the answer's code with a minus.
func (w *world) stored(name, group, topic string, queue int32) string {
	w.t.Helper()
	resp, err := w.sender.Call(w.t.Context(), w.brokers[name].addr(), remoting.NewRequest(remoting.QueryConsumerOffset,
		remoting.String("consumerGroup", group), remoting.String("topic", topic), remoting.Int("queueId", int64(queue)), remoting.String("setZeroIfNotFound", "false")))
	require.NoError(w.t, err)
	if resp.Code != remoting.Success {
		return strconv.Itoa(-int(resp.Code))
	}
	return resp.Fields.Get("offset")
}

// bodies are those of queue 0 of a topic in a broker's store.
func (w *world) bodies(name, topic string) (list []string) {
	w.t.Helper()
	for r, err := range w.brokers[name].broker.Store().Messages(topic, 0, 0) {
		require.NoError(w.t, err)
		list = append(list, string(r.Body))
	}
	return list
}

// seen is what a listener got, in its order.
type seen struct {
	mu   sync.Mutex
	list []*message.Received
	fail func(m *message.Received) error
}

func (s *seen) listen(_ context.Context, b *consumer.Batch) error {
	for i, m := range b.Messages {
		s.mu.Lock()
		s.list = append(s.list, m)
		fail := s.fail
		s.mu.Unlock()
		if fail != nil {
			if err := fail(m); err != nil {
				b.Ack(i)
				return err
			}
		}
	}
	return nil
}

func (s *seen) bodies() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.list {
		list = append(list, string(m.Body))
	}
	return list
}

func (s *seen) topics() (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.list {
		list = append(list, m.Topic)
	}
	return list
}

func (s *seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
}

func (s *seen) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.list)
}

// options are those of a member that begins at the first message.
func (w *world) options(instance string, s *seen, topics ...string) consumer.Options {
	o := consumer.Options{
		NameServers: []string{nameServer}, ClientOptions: consumer.ClientOptions{Dial: w.net.Dial, InstanceName: instance},
		Group: "CG", From: consumer.FromFirst, Topics: map[string]string{},
	}
	if s != nil {
		o.Listener = s.listen
	}
	for _, topic := range topics {
		name, expression, _ := strings.Cut(topic, ":")
		o.Topics[name] = expression
	}
	return o
}

func (w *world) consume(o consumer.Options) *consumer.Consumer {
	w.t.Helper()
	c, err := consumer.Start(w.t.Context(), &o)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, c.Close(context.Background())) })
	return c
}

// settle lets what is under way end, and then d pass.
func settle(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}
