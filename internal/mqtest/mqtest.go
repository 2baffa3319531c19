// Package mqtest is a network in memory with name servers and brokers of a test's own, on which the tests of clients run inside a
// synctest bubble. It is imported by tests only.
package mqtest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
)

// Net connects addresses with the servers of a test.
type Net struct {
	tb testing.TB

	mu     sync.Mutex
	pipes  map[string]*remoting.Pipe
	stop   map[string]func()
	silent map[string]bool
	dials  map[string]int
}

// New returns a network without servers. They end with the test.
func New(tb testing.TB) *Net {
	n := &Net{
		tb: tb, pipes: map[string]*remoting.Pipe{}, stop: map[string]func(){}, silent: map[string]bool{}, dials: map[string]int{},
	}
	tb.Cleanup(func() {
		n.mu.Lock()
		stops := n.stop
		n.stop = map[string]func(){}
		n.mu.Unlock()
		for _, stop := range stops {
			stop()
		}
	})
	return n
}

// Dial is for the Dial option of a client.
func (n *Net) Dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	p, silent := n.pipes[addr], n.silent[addr]
	n.dials[addr]++
	n.mu.Unlock()
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if p == nil {
		return nil, fmt.Errorf("dial %s: connection refused", addr)
	}
	return p.Dial(ctx, addr)
}

// Dials is how many connects to addr were begun.
func (n *Net) Dials(addr string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dials[addr]
}

// Silence makes connects to addr neither succeed nor fail until their time is over.
func (n *Net) Silence(addr string, silent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent[addr] = silent
}

// Serve starts a server at addr.
func (n *Net) Serve(addr string, h remoting.Handler) {
	s, err := remoting.NewServer(&remoting.ServerOptions{Handler: h})
	if err != nil {
		n.tb.Fatal(err)
	}
	p := remoting.NewPipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(context.Background(), p) // it ends by Kill
	}()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pipes[addr] = p
	n.stop[addr] = func() {
		s.Close()
		<-ended
	}
}

// Listen is for a server of the test's own, which has to accept from it and to end itself: what dials addr is accepted there.
func (n *Net) Listen(addr string) *remoting.Pipe {
	p := remoting.NewPipe()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pipes[addr] = p
	return p
}

// Kill ends the server at addr with all its connections.
func (n *Net) Kill(addr string) {
	n.mu.Lock()
	stop := n.stop[addr]
	delete(n.stop, addr)
	delete(n.pipes, addr)
	n.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// Names is a name server of a test. Its methods may be called while it serves.
type Names struct {
	mu     sync.Mutex
	topics map[string]*route.Topic
	asked  map[string]int
	code   int32
}

// ServeNames starts a name server at addr that knows no topic.
func (n *Net) ServeNames(addr string) *Names {
	s := NewNames()
	n.Serve(addr, s.Handle)
	return s
}

// NewNames returns a name server that a test serves itself.
func NewNames() *Names { return &Names{topics: map[string]*route.Topic{}, asked: map[string]int{}} }

// Handle answers request 105.
func (s *Names) Handle(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Code != remoting.GetRouteByTopic {
		return remoting.NotSupported(req)
	}
	topic := req.Fields.Get("topic")
	s.asked[topic]++
	if s.code != 0 {
		return req.Refuse(s.code, "told to by the test")
	}
	t := s.topics[topic]
	if t == nil {
		return req.Refuse(remoting.TopicNotExist, "No topic route info in name server for the topic: %s", topic)
	}
	resp := req.Reply(remoting.Success)
	resp.Body = t.AppendJSON(nil, route.Form{})
	return resp
}

// Set puts a topic on brokers, given as name and address in turn, with so many queues on each. Without brokers the topic is removed.
func (s *Names) Set(topic string, queues int32, namesAndAddrs ...string) {
	t := &route.Topic{}
	for i := 0; i+1 < len(namesAndAddrs); i += 2 {
		name := namesAndAddrs[i]
		t.Queues = append(t.Queues, route.QueueData{
			BrokerName: name, ReadQueueNums: queues, WriteQueueNums: queues, Perm: route.PermRead | route.PermWrite,
		})
		t.Brokers = append(t.Brokers, route.BrokerData{
			Cluster: "c", BrokerName: name, Addrs: map[int64]string{route.MasterID: namesAndAddrs[i+1]},
		})
	}
	s.SetRoute(topic, t)
}

// SetRoute sets a topic's whole route; one without brokers removes it.
func (s *Names) SetRoute(topic string, t *route.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[topic] = t; len(t.Brokers) == 0 {
		delete(s.topics, topic)
	}
}

// Refuse makes all answers an error with the code; 0 ends that.
func (s *Names) Refuse(code int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
}

// Asked is how often a topic was asked for.
func (s *Names) Asked(topic string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[topic]
}
