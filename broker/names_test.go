package broker_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/namesrv"
)

// nameServers are name servers of ours in the bubble, by address.
type nameServers struct {
	t     *testing.T
	mu    sync.Mutex // guards pipes
	pipes map[string]*remoting.Pipe
	all   map[string]*namesrv.Server
	ended map[string]chan error
}

func (n *nameServers) start(addr string) {
	n.t.Helper()
	s, err := namesrv.New(nil)
	require.NoError(n.t, err)
	pipe, ended := remoting.NewPipe(), make(chan error, 1)
	n.mu.Lock()
	n.pipes[addr] = pipe
	n.mu.Unlock()
	n.all[addr], n.ended[addr] = s, ended
	go func() { ended <- s.Serve(context.Background(), pipe) }()
	synctest.Wait()
}

func (n *nameServers) stop(addr string) {
	n.t.Helper()
	require.NoError(n.t, n.all[addr].Shutdown(context.Background()))
	require.NoError(n.t, <-n.ended[addr])
	synctest.Wait()
}

func (n *nameServers) dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	pipe := n.pipes[addr]
	n.mu.Unlock()
	return pipe.Dial(ctx, addr)
}

// topic asks one name server; nil when it does not know the topic.
func (n *nameServers) topic(addr, topic string) *route.Topic {
	n.t.Helper()
	c, err := remoting.NewClient(&remoting.ClientOptions{Dial: n.dial})
	require.NoError(n.t, err)
	defer c.Close()
	resp, err := c.Call(context.Background(), addr, remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", topic)))
	require.NoError(n.t, err)
	if resp.Code == remoting.TopicNotExist {
		return nil
	}
	r, err := route.ParseTopic(resp.Body)
	require.NoError(n.t, err)
	return r
}

func TestTheBrokerKeepsAllNameServersInformed(t *testing.T) { // R-F-17, R-F-27, protocol.md 16 "Our registration"
	synctest.Test(t, func(t *testing.T) {
		n := &nameServers{t: t, pipes: map[string]*remoting.Pipe{}, all: map[string]*namesrv.Server{}, ended: map[string]chan error{}}
		n.start("one:9876")
		n.start("two:9876")
		o := small("4.9")
		o.AdvertisedIP, o.NameServers = "192.0.2.7", []string{"one:9876", "two:9876"}
		o.Client = &remoting.ClientOptions{Dial: n.dial}
		w := newWorld(t, o)
		for _, addr := range o.NameServers {
			r := n.topic(addr, "TBW102")
			require.NotNil(t, r)
			require.Equal(t, "192.0.2.7:10911", r.Brokers[0].Addrs[0])
			require.Equal(t, int32(7), r.Queues[0].Perm)
			require.Nil(t, n.topic(addr, "T"))
		}
		w.peer().puts("T", "a") // the answer comes when all name servers know the topic
		for _, addr := range o.NameServers {
			r := n.topic(addr, "T")
			require.NotNil(t, r)
			require.Equal(t, int32(4), r.Queues[0].WriteQueueNums)
			require.NotNil(t, n.topic(addr, "TBW102")) // the full set
		}
		require.Equal(t, 2, w.broker.Stats().Registered)

		n.stop("one:9876")
		require.Equal(t, 1, w.broker.Stats().Registered)
		began := time.Now()
		w.peer().puts("U", "a")
		require.LessOrEqual(t, time.Since(began), time.Second) // one that is down holds up nobody
		require.NotNil(t, n.topic("two:9876", "U"))
		n.start("one:9876")
		time.Sleep(31 * time.Second)
		synctest.Wait()
		require.NotNil(t, n.topic("one:9876", "U"))

		time.Sleep(5 * time.Minute) // it stays
		require.NotNil(t, n.topic("one:9876", "U"))
		w.stop()
		for _, addr := range o.NameServers {
			require.Nil(t, n.topic(addr, "T"))
			require.Equal(t, int64(1), n.all[addr].Stats().Unregistered)
			n.stop(addr)
		}
	})
}
