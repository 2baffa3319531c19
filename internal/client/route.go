package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
)

// Queue is one queue of a topic.
type Queue struct {
	Topic, BrokerName string
	QueueID           int32
}

// String is topic@broker:queue.
func (q Queue) String() string {
	return q.Topic + "@" + q.BrokerName + ":" + strconv.Itoa(int(q.QueueID))
}

// Compare orders queues as all members of a consumer group must: by topic, broker name, queue id.
func (q Queue) Compare(other Queue) int {
	if n := strings.Compare(q.Topic, other.Topic); n != 0 {
		return n
	}
	if n := strings.Compare(q.BrokerName, other.BrokerName); n != 0 {
		return n
	}
	return int(q.QueueID) - int(other.QueueID)
}

// Route is where a topic is. It is never changed.
type Route struct {
	Topic string
	Data  *route.Topic
	// Write are the queues that may be sent to: writable ones of brokers with a live master, by broker name and queue id, or those
	// of the order configuration. Read are those that may be read.
	Write, Read []Queue
	// Fallback says that the topic is not known yet and this was made of the default topic's route.
	Fallback bool
}

// Fallback is the topic whose brokers may create a topic that is not known yet, and how many queues that has at most.
type Fallback struct {
	Topic  string
	Queues int32
}

// maxQueues bounds what one answer of a name server can make of a topic.
const maxQueues = 1 << 20

func newRoute(topic string, data *route.Topic) *Route {
	r := &Route{Topic: topic, Data: data}
	masters := map[string]bool{}
	for i := range data.Brokers {
		masters[data.Brokers[i].BrokerName] = data.Brokers[i].Addrs[route.MasterID] != ""
	}
	queues := slices.SortedStableFunc(slices.Values(data.Queues), func(a, b route.QueueData) int {
		return strings.Compare(a.BrokerName, b.BrokerName)
	})
	for _, q := range queues {
		if q.Perm&route.PermRead != 0 {
			r.Read = r.appendQueues(r.Read, q.BrokerName, int64(q.ReadQueueNums))
		}
		if q.Perm&route.PermWrite != 0 && masters[q.BrokerName] {
			r.Write = r.appendQueues(r.Write, q.BrokerName, int64(q.WriteQueueNums))
		}
	}
	if data.OrderConf != "" {
		r.Write = r.ordered(data.OrderConf)
	}
	return r
}

func (r *Route) appendQueues(to []Queue, broker string, n int64) []Queue {
	for id := range min(n, maxQueues-int64(len(to))) {
		to = append(to, Queue{r.Topic, broker, int32(id)})
	}
	return to
}

// ordered reads "broker:count;broker:count". What it says holds whether or not a broker is there, so that keys stay where they are.
func (r *Route) ordered(conf string) (queues []Queue) {
	for item := range strings.SplitSeq(conf, ";") {
		broker, count, _ := strings.Cut(item, ":")
		if n, err := strconv.ParseInt(strings.TrimSpace(count), 10, 32); err == nil {
			queues = r.appendQueues(queues, strings.TrimSpace(broker), n)
		}
	}
	return queues
}

// asFallback is the route of the default topic made one of topic, with at most n queues for each broker.
func (r *Route) asFallback(topic string, n int32) *Route {
	data := *r.Data
	data.OrderConf = ""
	data.Queues = slices.Clone(data.Queues)
	for i := range data.Queues {
		q := &data.Queues[i]
		q.WriteQueueNums, q.ReadQueueNums = min(n, q.WriteQueueNums), min(n, q.ReadQueueNums)
	}
	f := newRoute(topic, &data)
	f.Fallback = true
	return f
}

// routes is the cache of a client.
type routes struct {
	table sync.Map // *Route by topic

	mu      sync.Mutex
	flights map[string]*flight
	brokers atomic.Pointer[map[string]map[int64]string] // address by broker name and id; replaced, never changed
}

// flight is one look-up that many may wait for. route and err are set before done is closed.
type flight struct {
	done  chan struct{}
	route *Route
	err   error
}

func (t *routes) init() {
	t.flights = map[string]*flight{}
	t.brokers.Store(&map[string]map[int64]string{})
}

func (t *routes) get(topic string) *Route {
	if r, ok := t.table.Load(topic); ok {
		return r.(*Route)
	}
	return nil
}

// Route returns where a topic is, from the cache or else from a name server; many callers share one look-up, which is not
// cut short by the end of one caller's context. With a fallback, a topic that nobody knows gets the route of that topic, under its
// own name. Errors match [ErrNoRoute], [ErrNoNameServer], [ErrClosed] or the context's.
func (c *Client) Route(ctx context.Context, topic string, fallback *Fallback) (*Route, error) {
	good := func(r *Route) bool { return r != nil && (!r.Fallback || fallback != nil) }
	if r := c.routes.get(topic); good(r) {
		return r, nil
	}
	r, err := c.wait(ctx, topic, good)
	if fallback == nil || !errors.Is(err, ErrNoRoute) {
		return r, err
	}
	base, err := c.wait(ctx, fallback.Topic, never)
	if err != nil {
		return nil, fmt.Errorf("topic %s: %w", topic, err)
	}
	r = base.asFallback(topic, fallback.Queues)
	if before, there := c.routes.table.LoadOrStore(topic, r); there {
		r = before.(*Route)
	}
	return r, nil
}

// Cached is the route of a topic if it is known already, else nil.
func (c *Client) Cached(topic string) *Route { return c.routes.get(topic) }

// Refresh asks a name server for a topic's route now.
func (c *Client) Refresh(ctx context.Context, topic string) (*Route, error) {
	return c.wait(ctx, topic, never)
}

// never is for whom no route of the cache is good.
func never(*Route) bool { return false }

// wait joins or begins a look-up, unless one has just brought a route that is good.
func (c *Client) wait(ctx context.Context, topic string, good func(*Route) bool) (*Route, error) {
	c.routes.mu.Lock()
	f := c.routes.flights[topic]
	if f == nil {
		if r := c.routes.get(topic); good(r) {
			c.routes.mu.Unlock()
			return r, nil
		}
		f = &flight{done: make(chan struct{})}
		c.routes.flights[topic] = f
		if !c.spawn(func() { c.fly(topic, f) }) {
			delete(c.routes.flights, topic)
			c.routes.mu.Unlock()
			return nil, ErrClosed
		}
	}
	c.routes.mu.Unlock()
	select {
	case <-f.done:
		return f.route, f.err
	case <-ctx.Done():
		return nil, fmt.Errorf("route of topic %s: %w", topic, ctx.Err())
	}
}

// spawn runs f on a goroutine that Close waits for.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.work.Go(f)
	return true
}

func (c *Client) fly(topic string, f *flight) {
	f.route, f.err = c.lookUp(topic)
	c.routes.mu.Lock()
	delete(c.routes.flights, topic)
	c.routes.mu.Unlock()
	close(f.done)
}

// lookUp asks a name server and keeps what it says.
func (c *Client) lookUp(topic string) (*Route, error) {
	req := remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", topic))
	resp, err := c.names.call(c.ctx, req, remoting.Success, remoting.TopicNotExist)
	if err != nil {
		return nil, fmt.Errorf("route of topic %s: %w", topic, c.Closed(err))
	}
	if resp.Code == remoting.TopicNotExist {
		return nil, fmt.Errorf("%w: %s", ErrNoRoute, topic)
	}
	data, err := route.ParseTopic(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoRoute, topic, err)
	}
	r := newRoute(topic, data)
	if before := c.routes.get(topic); before != nil && reflect.DeepEqual(before, r) {
		return before, nil
	}
	c.opts.Logger.Info("route changed", "topic", topic, "write", len(r.Write), "read", len(r.Read))
	c.keep(topic, r)
	return r, nil
}

// refreshLoop keeps the routes of all topics in use.
func (c *Client) refreshLoop() {
	remoting.Every(c.ctx, c.opts.RouteEvery, c.opts.RouteEvery, nil, func() {
		topics := map[string]bool{}
		c.routes.table.Range(func(topic, _ any) bool {
			topics[topic.(string)] = true
			return true
		})
		for _, k := range c.groups().consumers {
			for _, s := range k.Heartbeat().Subscriptions {
				topics[s.Topic] = true
			}
		}
		for _, topic := range slices.Sorted(maps.Keys(topics)) {
			if _, err := c.Refresh(c.ctx, topic); err != nil && c.ctx.Err() == nil && !errors.Is(err, ErrNoRoute) {
				c.opts.Logger.Warn("route not refreshed", "topic", topic, "err", err)
			}
		}
	})
}

// keep takes a route into the cache and the table of brokers, closes the connections of brokers that no route has any more, and has
// heartbeats sent if one has come.
func (c *Client) keep(topic string, r *Route) {
	t := &c.routes
	t.mu.Lock()
	before := t.addrs()
	// Whoever sees the route finds its brokers; those that it replaces go afterwards.
	both := maps.Clone(*t.brokers.Load())
	addBrokers(both, r)
	t.brokers.Store(&both)
	t.table.Store(topic, r)
	brokers := map[string]map[int64]string{}
	t.table.Range(func(_, r any) bool {
		addBrokers(brokers, r.(*Route))
		return true
	})
	addBrokers(brokers, r) // the newest word on a broker's addresses
	t.brokers.Store(&brokers)
	after := t.addrs()
	t.mu.Unlock()
	for _, addr := range before {
		if !slices.Contains(after, addr) {
			c.opts.Logger.Info("broker left all routes", "broker", addr)
			c.rpc.Disconnect(addr)
		}
	}
	if slices.ContainsFunc(after, func(addr string) bool { return !slices.Contains(before, addr) }) {
		c.kickHeartbeat()
	}
}

func addBrokers(brokers map[string]map[int64]string, r *Route) {
	for _, b := range r.Data.Brokers {
		brokers[b.BrokerName] = b.Addrs
	}
}

// addrs are the addresses of all brokers, sorted.
func (t *routes) addrs() []string {
	seen := map[string]bool{}
	for _, ids := range *t.brokers.Load() {
		for _, addr := range ids {
			seen[addr] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// Master is the address of a broker's master. An error matches [ErrNoBroker].
func (c *Client) Master(brokerName string) (string, error) {
	if addr := (*c.routes.brokers.Load())[brokerName][route.MasterID]; addr != "" {
		return addr, nil
	}
	return "", fmt.Errorf("%w: master of %s", ErrNoBroker, brokerName)
}

// Broker is the address of a broker with the given id, or if there is none, of any with the name, the master first; slave says that it
// is none. An error matches [ErrNoBroker].
func (c *Client) Broker(brokerName string, id int64) (addr string, slave bool, err error) {
	ids := (*c.routes.brokers.Load())[brokerName]
	if addr := ids[id]; addr != "" {
		return addr, id != route.MasterID, nil
	}
	for _, other := range slices.Sorted(maps.Keys(ids)) {
		if ids[other] != "" {
			return ids[other], other != route.MasterID, nil
		}
	}
	return "", false, fmt.Errorf("%w: %s", ErrNoBroker, brokerName)
}
