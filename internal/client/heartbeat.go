package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
)

// ConsumerData is what a heartbeat says of a consumer group's member.
type ConsumerData struct {
	Group string
	// Passive is the push consumer; else the consumer pulls on its own account.
	Passive bool
	// Broadcast gives each member all messages.
	Broadcast bool
	// From is where a new group begins: CONSUME_FROM_LAST_OFFSET (also for ""), CONSUME_FROM_FIRST_OFFSET or CONSUME_FROM_TIMESTAMP.
	From          string
	Subscriptions []Subscription
}

// Subscription is one topic that a consumer group wants.
type Subscription struct {
	Topic string
	// Expression is "*" or tags parted by "||"; Tags are the tags, Codes their Java hashes.
	Expression string
	Tags       []string
	Codes      []int32
	// Version is the time of the last change, ms since 1970.
	Version int64
	// Type is TAG (also for "") or SQL92.
	Type string
}

// members are the groups of a client at one moment.
type members struct {
	producers []string
	consumers []Consumer
}

func (c *Client) groups() members {
	c.mu.RLock()
	defer c.mu.RUnlock()
	m := members{producers: slices.Sorted(maps.Keys(c.producers))}
	for _, group := range slices.Sorted(maps.Keys(c.consumers)) {
		m.consumers = append(m.consumers, c.consumers[group])
	}
	return m
}

// kickHeartbeat has heartbeats sent soon.
func (c *Client) kickHeartbeat() {
	select {
	case c.beat <- struct{}{}:
	default:
	}
}

func (c *Client) heartbeatLoop() {
	remoting.Every(c.ctx, time.Second, c.opts.HeartbeatEvery, c.beat, func() { c.Heartbeat(c.ctx) })
}

// Heartbeat tells all brokers of the client's groups now, and returns when they have answered or failed to within the call timeout.
func (c *Client) Heartbeat(ctx context.Context) {
	m := c.groups()
	if len(m.producers) == 0 && len(m.consumers) == 0 {
		return
	}
	body := appendHeartbeat(nil, c.id, m)
	var all sync.WaitGroup
	for _, addr := range c.heartbeatAddrs(len(m.consumers) > 0) {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, c.opts.CallTimeout)
			defer cancel()
			req := remoting.NewRequest(remoting.Heartbeat)
			req.Body = body
			resp, err := c.Do(ctx, addr, req)
			if err != nil {
				if c.ctx.Err() == nil {
					c.opts.Logger.Warn("heartbeat", "broker", addr, "err", err)
				}
				return
			}
			c.mu.Lock()
			c.versions[addr] = resp.Version
			c.mu.Unlock()
		})
	}
	all.Wait()
}

// HeartbeatBody is what a heartbeat of now says.
func (c *Client) HeartbeatBody() []byte { return appendHeartbeat(nil, c.id, c.groups()) }

// heartbeatAddrs are the brokers to tell; slaves matter to consumers only.
func (c *Client) heartbeatAddrs(slaves bool) []string {
	if slaves {
		return c.routes.addrs()
	}
	var addrs []string
	for _, ids := range *c.routes.brokers.Load() {
		if addr := ids[route.MasterID]; addr != "" {
			addrs = append(addrs, addr)
		}
	}
	slices.Sort(addrs)
	return slices.Compact(addrs)
}

// Version is the version ordinal that a broker answered its last heartbeat with, 0 if it has not.
func (c *Client) Version(addr string) int32 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.versions[addr]
}

// Met says whether a broker's version is known, or that it does not say.
func (c *Client) Met(addr string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, met := c.versions[addr]
	return met
}

// Meet returns when [Client.Met] is true, after a heartbeat if it is not, or after patience. Callers at one time share one heartbeat.
func (c *Client) Meet(ctx context.Context, addr string, patience time.Duration) {
	if c.Met(addr) {
		return
	}
	c.mu.Lock()
	done, under := c.meetings[addr]
	if !under && c.ctx.Err() == nil {
		done = make(chan struct{})
		c.meetings[addr] = done
		c.work.Go(func() { c.introduce(addr, patience, done) })
	}
	c.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
}

// introduce sends one broker a heartbeat. Without an answer the broker counts as one that does not say its version, until the
// connection is lost: nobody waits for that again.
func (c *Client) introduce(addr string, patience time.Duration, done chan struct{}) {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	req := remoting.NewRequest(remoting.Heartbeat)
	req.Body = c.HeartbeatBody()
	resp, err := c.Call(ctx, addr, req)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.versions[addr] = resp.Version
	case errors.Is(err, remoting.ErrTimeout):
		if _, met := c.versions[addr]; !met {
			c.versions[addr] = 0
		}
	}
	delete(c.meetings, addr)
	close(done)
}

// connectionLost has the groups made known again to a broker that goes on: it forgot them with the connection.
func (c *Client) connectionLost(addr string, _ *remoting.Conn) {
	c.mu.Lock()
	_, broker := c.versions[addr]
	delete(c.versions, addr)
	c.mu.Unlock()
	if broker && c.ctx.Err() == nil {
		c.kickHeartbeat()
	}
}

// appendHeartbeat appends the body of request 34, its members in alphabetical order as fastjson has them.
func appendHeartbeat(b []byte, id string, m members) []byte {
	b = fastjson.AppendString(append(b, `{"clientID":`...), id)
	b = append(b, `,"consumerDataSet":[`...)
	for i, k := range m.consumers {
		if i > 0 {
			b = append(b, ',')
		}
		b = k.Heartbeat().appendJSON(b)
	}
	b = append(b, `],"producerDataSet":[`...)
	for i, group := range m.producers {
		if i > 0 {
			b = append(b, ',')
		}
		b = fastjson.AppendString(append(b, `{"groupName":`...), group)
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

func (d ConsumerData) appendJSON(b []byte) []byte {
	from, kind, model := d.From, "CONSUME_ACTIVELY", "CLUSTERING"
	if from == "" {
		from = "CONSUME_FROM_LAST_OFFSET"
	}
	if d.Passive {
		kind = "CONSUME_PASSIVELY"
	}
	if d.Broadcast {
		model = "BROADCASTING"
	}
	b = fastjson.AppendString(append(b, `{"consumeFromWhere":`...), from)
	b = fastjson.AppendString(append(b, `,"consumeType":`...), kind)
	b = fastjson.AppendString(append(b, `,"groupName":`...), d.Group)
	b = fastjson.AppendString(append(b, `,"messageModel":`...), model)
	b = append(b, `,"subscriptionDataSet":[`...)
	for i := range d.Subscriptions {
		if i > 0 {
			b = append(b, ',')
		}
		b = d.Subscriptions[i].AppendJSON(b)
	}
	return append(b, `],"unitMode":false}`...)
}

// AppendJSON appends the subscription as heartbeats and request 46 have it.
func (s *Subscription) AppendJSON(b []byte) []byte {
	kind := s.Type
	if kind == "" {
		kind = "TAG"
	}
	b = append(b, `{"classFilterMode":false,"codeSet":[`...)
	for i, code := range s.Codes {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(code), 10)
	}
	b = fastjson.AppendString(append(b, `],"expressionType":`...), kind)
	b = fastjson.AppendString(append(b, `,"subString":`...), s.Expression)
	b = strconv.AppendInt(append(b, `,"subVersion":`...), s.Version, 10)
	b = append(b, `,"tagsSet":[`...)
	for i, tag := range s.Tags {
		if i > 0 {
			b = append(b, ',')
		}
		b = fastjson.AppendString(b, tag)
	}
	b = fastjson.AppendString(append(b, `],"topic":`...), s.Topic)
	return append(b, '}')
}
