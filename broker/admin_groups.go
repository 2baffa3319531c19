package broker

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Bounds of what a group may ask for: each retry queue is a folder.
const (
	maxRetryQueues = 1 << 10
	maxRetries     = 1 << 20
)

// readGroup decodes the body of 200. An error matches fastjson.ErrSyntax.
func readGroup(body []byte) (*config.Group, error) {
	g := config.NewGroup("")
	r := fastjson.NewReader(string(body))
	r.Object(func(key string) {
		switch key {
		case "groupName":
			g.Name = r.Clone()
		case "consumeEnable":
			g.ConsumeEnable = r.Bool()
		case "consumeFromMinEnable":
			g.ConsumeFromMinEnable = r.Bool()
		case "consumeBroadcastEnable":
			g.ConsumeBroadcastEnable = r.Bool()
		case "consumeMessageOrderly":
			g.ConsumeMessageOrderly = r.Bool()
		case "retryQueueNums":
			g.RetryQueues = r.Int32()
		case "retryMaxTimes":
			g.RetryMaxTimes = r.Int32()
		case "brokerId":
			g.BrokerID = r.Int64()
		case "whichBrokerWhenConsumeSlowly":
			g.WhichBrokerWhenConsumeSlowly = r.Int64()
		case "notifyConsumerIdsChangedEnable":
			g.NotifyConsumerIDsChanged = r.Bool()
		}
	})
	return g, r.End()
}

// createGroup serves 200: it makes a consumer group, or changes one.
func (b *Broker) createGroup(_ context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	g, err := readGroup(req.Body)
	if err != nil {
		return nil, err
	}
	if !validGroup(g.Name) || g.RetryQueues < 0 || g.RetryQueues > maxRetryQueues || g.RetryMaxTimes < -1 || g.RetryMaxTimes > maxRetries {
		return req.Refuse(remoting.SystemError, "group %q: %d retry queues, %d retries: allowed are a name of 1 to %d letters, digits and %%, |, - or _, "+
			"0 to %d queues and -1 to %d retries", g.Name, g.RetryQueues, g.RetryMaxTimes, maxGroupLength, maxRetryQueues, maxRetries), nil
	}
	if err := b.groups.put(g); err != nil {
		return nil, err
	}
	b.audit(c, req, "group put", "group", g.Name, "enabled", g.ConsumeEnable, "retries", g.RetryMaxTimes)
	return req.Reply(remoting.Success), nil
}

// deleteGroup serves 207.
func (b *Broker) deleteGroup(_ context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	name := f.Text("groupName")
	if err := f.Err(); err != nil {
		return nil, err
	}
	if err := b.groups.remove(name); err != nil {
		return nil, err
	}
	b.flows.forget(func(k flowKey) bool { return k.group == name })
	offsets := f.OptBool("removeOffset")
	if offsets {
		b.store.ForgetConsumerOffsets(func(_, group string) bool { return group == name })
	}
	b.audit(c, req, "group deleted", "group", name, "offsets", offsets)
	return req.Reply(remoting.Success), nil
}

func (g *groups) put(c *config.Group) error {
	g.mu.Lock()
	if there, ok := g.table.Table.Get(c.Name); ok {
		there.ConsumeEnable, there.ConsumeFromMinEnable, there.ConsumeBroadcastEnable = c.ConsumeEnable, c.ConsumeFromMinEnable, c.ConsumeBroadcastEnable
		there.RetryQueues, there.RetryMaxTimes, there.BrokerID = c.RetryQueues, c.RetryMaxTimes, c.BrokerID
		there.WhichBrokerWhenConsumeSlowly, there.NotifyConsumerIDsChanged = c.WhichBrokerWhenConsumeSlowly, c.NotifyConsumerIDsChanged
		there.ConsumeMessageOrderly = c.ConsumeMessageOrderly
	} else {
		g.table.Table.Set(c.Name, c)
	}
	g.table.Version.Advance(time.Now().UnixMilli())
	g.mu.Unlock()
	return g.save()
}

func (g *groups) remove(name string) error {
	g.mu.Lock()
	if _, ok := g.table.Table.Get(name); ok {
		g.table.Table.Delete(name)
		g.table.Version.Advance(time.Now().UnixMilli())
	}
	g.mu.Unlock()
	return g.save()
}

// allGroups serves 201.
func (b *Broker) allGroups(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	b.groups.mu.RLock()
	defer b.groups.mu.RUnlock()
	o := fastjson.OpenObject(nil)
	o.B = appendVersion(o.Key("dataVersion"), b.groups.table.Version)
	table := fastjson.OpenObject(o.Key("subscriptionGroupTable"))
	for name, g := range b.groups.table.Table.All() {
		v := fastjson.OpenObject(table.Key(name))
		v.Int("brokerId", g.BrokerID)
		v.Bool("consumeBroadcastEnable", g.ConsumeBroadcastEnable)
		v.Bool("consumeEnable", g.ConsumeEnable)
		v.Bool("consumeFromMinEnable", g.ConsumeFromMinEnable)
		v.Text("groupName", name)
		v.Bool("notifyConsumerIdsChangedEnable", g.NotifyConsumerIDsChanged)
		v.Int("retryMaxTimes", int64(g.RetryMaxTimes))
		v.Int("retryQueueNums", int64(g.RetryQueues))
		v.Int("whichBrokerWhenConsumeSlowly", g.WhichBrokerWhenConsumeSlowly)
		table.B = v.Close()
	}
	o.B = table.Close()
	return withBody(req, o.Close())
}

func appendVersion(text []byte, v *config.DataVersion) []byte {
	o := fastjson.OpenObject(text)
	o.Int("counter", v.Counter)
	o.Int("timestamp", v.Timestamp)
	return o.Close()
}

// connection is one client of a group, as the tools see it.
type connection struct {
	member
	addr string
}

func appendConnection(text []byte, c connection) []byte {
	o := fastjson.OpenObject(text)
	o.Text("clientAddr", c.addr)
	o.Text("clientId", c.id)
	o.Text("language", c.language.String())
	o.Int("version", int64(c.version))
	return o.Close()
}

func connectionsOf(members map[*remoting.Conn]*member) (list []connection) {
	for c, m := range members {
		list = append(list, connection{*m, c.RemoteAddr()})
	}
	slices.SortFunc(list, func(a, b connection) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.addr, b.addr)) })
	return list
}

// consumerConnections serves 203.
func (b *Broker) consumerConnections(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	name := f.Text("consumerGroup")
	if err := f.Err(); err != nil {
		return nil, err
	}
	b.clients.mu.RLock()
	defer b.clients.mu.RUnlock()
	g := b.clients.consumers[name]
	if g == nil {
		return req.Refuse(remoting.ConsumerNotOnline, "the consumer group[%s] not online", name), nil
	}
	o := fastjson.OpenObject(nil)
	o.B = fastjson.AppendArray(o.Key("connectionSet"), connectionsOf(g.members), appendConnection)
	o.Text("consumeFromWhere", g.from)
	o.Text("consumeType", g.kind)
	o.Text("messageModel", g.model)
	table := fastjson.OpenObject(o.Key("subscriptionTable"))
	for topic, s := range g.subscriptions {
		table.B = appendSubscription(table.Key(topic), topic, s)
	}
	o.B = table.Close()
	return withBody(req, o.Close())
}

func appendSubscription(text []byte, topic string, s *subscription) []byte {
	kind := "TAG"
	if s.sql {
		kind = "SQL92"
	}
	tags := []string{}
	for tag := range strings.SplitSeq(s.expression, "||") {
		if tag = strings.TrimSpace(tag); tag != "" && tag != "*" && !s.sql {
			tags = append(tags, tag)
		}
	}
	o := fastjson.OpenObject(text)
	o.Bool("classFilterMode", false)
	o.Text("expressionType", kind)
	o.Text("subString", s.expression)
	o.Int("subVersion", s.version)
	o.B = fastjson.AppendArray(o.Key("tagsSet"), tags, fastjson.AppendString)
	o.Text("topic", topic)
	return o.Close()
}

// producerConnections serves 204.
func (b *Broker) producerConnections(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	name := f.Text("producerGroup")
	if err := f.Err(); err != nil {
		return nil, err
	}
	b.clients.mu.RLock()
	defer b.clients.mu.RUnlock()
	members := b.clients.producers[name]
	if len(members) == 0 {
		return req.Refuse(remoting.SystemError, "the producer group[%s] not exist", name), nil
	}
	o := fastjson.OpenObject(nil)
	o.B = fastjson.AppendArray(o.Key("connectionSet"), connectionsOf(members), appendConnection)
	return withBody(req, o.Close())
}
