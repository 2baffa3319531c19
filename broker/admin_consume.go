package broker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// topicsOf are the topics that a group has stored offsets of, each once.
func (b *Broker) topicsOf(group string) (topics []string) {
	for _, p := range b.store.ConsumerOffsets() {
		if p.Group == group && !slices.Contains(topics, p.Topic) {
			topics = append(topics, p.Topic)
		}
	}
	return topics
}

// subscribes says whether a group that is connected wants a topic; one that is not may have.
func (b *Broker) subscribes(group, topic string) bool {
	b.clients.mu.RLock()
	defer b.clients.mu.RUnlock()
	g := b.clients.consumers[group]
	return g == nil || len(g.subscriptions) == 0 || g.subscriptions[topic] != nil
}

// consumeState is what 208 says of a queue.
type consumeState struct{ end, offset, consumed int64 }

// consumeStats serves 208.
func (b *Broker) consumeStats(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	group, topic := f.Text("consumerGroup"), req.Fields.Get("topic")
	if err := f.Err(); err != nil {
		return nil, err
	}
	topics := []string{topic}
	if strings.TrimSpace(topic) == "" {
		topics = b.topicsOf(group)
	}
	var queues []queueName
	var states []consumeState
	perSecond := 0.0
	for _, topic := range topics {
		t, ok := b.topics.get(topic)
		if !ok || !b.subscribes(group, topic) {
			continue
		}
		q, s, err := b.consumeStates(ctx, group, topic, t.readQueues)
		if err != nil {
			return nil, err
		}
		queues, states, perSecond = append(queues, q...), append(states, s...), perSecond+b.flows.perSecond(topic, group)
	}
	return withBody(req, b.appendConsumeStats(nil, perSecond, queues, states))
}

// consumeStates says where a group is in the first queues of a topic.
func (b *Broker) consumeStates(ctx context.Context, group, topic string, n int32) (queues []queueName, states []consumeState, err error) {
	for id := range n {
		_, end, err := b.bounds(ctx, topic, id)
		if err != nil {
			return nil, nil, err
		}
		offset, _ := b.store.ConsumerOffset(topic, group, id)
		offset = max(offset, 0)
		q := queueName{topic, id}
		queues, states = append(queues, q), append(states, consumeState{end, offset, b.storeTime(ctx, q, offset-1)})
	}
	return queues, states, nil
}

func (b *Broker) appendConsumeStats(text []byte, perSecond float64, queues []queueName, states []consumeState) []byte {
	o := fastjson.OpenObject(text)
	o.B = appendDouble(o.Key("consumeTps"), perSecond)
	o.B = appendQueueTable(b, o.Key("offsetTable"), queues, states, func(text []byte, s consumeState) []byte {
		v := fastjson.OpenObject(text)
		v.Int("brokerOffset", s.end)
		v.Int("consumerOffset", s.offset)
		v.Int("lastTimestamp", s.consumed)
		return v.Close()
	})
	return o.Close()
}

// groupsOfTopic serves 300: the groups that are connected and want a topic, and those that have stored offsets of it.
func (b *Broker) groupsOfTopic(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	topic := f.Text("topic")
	if err := f.Err(); err != nil {
		return nil, err
	}
	var groups []string
	for _, p := range b.store.ConsumerOffsets() {
		if p.Topic == topic && p.Group != rocketstore.TransactionGroup {
			groups = append(groups, p.Group)
		}
	}
	b.clients.mu.RLock()
	for name, g := range b.clients.consumers {
		if g.subscriptions[topic] != nil {
			groups = append(groups, name)
		}
	}
	b.clients.mu.RUnlock()
	slices.Sort(groups)
	o := fastjson.OpenObject(nil)
	o.B = fastjson.AppendArray(o.Key("groupList"), slices.Compact(groups), fastjson.AppendString)
	return withBody(req, o.Close())
}

// consumeTimeSpan serves 303.
func (b *Broker) consumeTimeSpan(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	topic, group := f.Text("topic"), f.Text("group")
	if err := f.Err(); err != nil {
		return nil, err
	}
	t, ok := b.topics.get(topic)
	if !ok {
		return req.Refuse(remoting.TopicNotExist, "topic[%s] not exist", topic), nil
	}
	var spans [][]byte
	for id := range t.writeQueues {
		q := queueName{topic, id}
		first, end, err := b.bounds(ctx, topic, id)
		if err != nil {
			return nil, err
		}
		offset, _ := b.store.ConsumerOffset(topic, group, id)
		behind := int64(0)
		if offset < end {
			behind = time.Now().UnixMilli() - b.storeTime(ctx, q, max(offset, first))
		}
		consumed := b.storeTime(ctx, q, max(offset-1, first))
		o := fastjson.OpenObject(nil)
		o.Int("consumeTimeStamp", consumed)
		o.Int("delayTime", behind)
		o.Int("maxTimeStamp", b.storeTime(ctx, q, end-1))
		o.B = b.appendQueue(o.Key("messageQueue"), q)
		o.Int("minTimeStamp", b.storeTime(ctx, q, first))
		spans = append(spans, o.Close())
	}
	o := fastjson.OpenObject(nil)
	o.B = fastjson.AppendArray(o.Key("consumeTimeSpanSet"), spans, func(text, span []byte) []byte { return append(text, span...) })
	return withBody(req, o.Close())
}

// allConsumerOffsets serves 43.
func (b *Broker) allConsumerOffsets(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	var keys []string
	tables := map[string]map[int32]int64{}
	for _, p := range b.store.ConsumerOffsets() {
		key := p.Topic + "@" + p.Group
		if tables[key] == nil {
			tables[key] = map[int32]int64{}
			keys = append(keys, key)
		}
		tables[key][p.QueueID] = p.Offset
	}
	o := fastjson.OpenObject(nil)
	table := fastjson.OpenObject(o.Key("offsetTable"))
	for _, key := range keys {
		table.B = appendIntTable(table.Key(key), tables[key])
	}
	o.B = table.Close()
	return withBody(req, o.Close())
}

// allDelayOffsets serves 45.
func (b *Broker) allDelayOffsets(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	o := fastjson.OpenObject(nil)
	o.B = appendIntTable(o.Key("offsetTable"), b.store.DelayOffsets())
	return withBody(req, o.Close())
}

// resetRequest is the typed header of 222.
type resetRequest struct {
	topic, group string
	time         int64 // ms; -1: the end
	force        bool  // also forwards
}

// resetOffsets serves 222: it says where a group's reading of each queue is at that time, and has its clients go there (220).
func (b *Broker) resetOffsets(ctx context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	r := resetRequest{topic: f.Text("topic"), group: f.Text("group"), time: f.Int64("timestamp"), force: f.OptBool("isForce")}
	if err := f.Err(); err != nil {
		return nil, err
	}
	t, ok := b.topics.get(r.topic)
	if !ok {
		return req.Refuse(remoting.SystemError, "[reset-offset] reset offset failed, no topic in this broker. topic=%s", r.topic), nil
	}
	queues, offsets := make([]queueName, t.writeQueues), make([]int64, t.writeQueues)
	for id := range t.writeQueues {
		committed, ok := b.store.ConsumerOffset(r.topic, r.group, id)
		if !ok {
			return req.Refuse(remoting.SystemError, "THe consumer group <%s> not exist", r.group), nil
		}
		offset, err := b.offsetAt(ctx, queueName{r.topic, id}, r.time)
		if err != nil {
			return nil, err
		}
		if !r.force {
			offset = min(offset, committed)
		}
		queues[id], offsets[id] = queueName{r.topic, id}, offset
	}
	o := fastjson.OpenObject(nil)
	o.B = appendQueueTable(b, o.Key("offsetTable"), queues, offsets, appendInt)
	body := o.Close()
	conns := b.clients.conns(r.group)
	if len(conns) == 0 {
		return req.Refuse(remoting.ConsumerNotOnline, "Consumer not online, so can not reset offset, Group: %s Topic: %s Timestamp: %d", r.group, r.topic, r.time), nil
	}
	b.audit(c, req, "offsets reset", "group", r.group, "topic", r.topic, "time", r.time, "force", r.force)
	for _, client := range conns {
		b.tell(client, remoting.ResetConsumerOffset, body, remoting.String("topic", r.topic), remoting.String("group", r.group),
			remoting.Int("timestamp", r.time), remoting.Bool("isForce", r.force))
	}
	return withBody(req, body)
}

// offsetAt is the first message stored at that time or later, the end for -1.
func (b *Broker) offsetAt(ctx context.Context, q queueName, at int64) (int64, error) {
	if at == -1 {
		_, end, err := b.bounds(ctx, q.topic, q.id)
		return end, err
	}
	offset, err := b.store.OffsetAt(ctx, q.topic, q.id, at)
	if errors.Is(err, rocketstore.ErrNotFound) {
		return 0, nil
	}
	return offset, err
}

// cloneOffsets serves 314: a group goes on where another one is.
func (b *Broker) cloneOffsets(_ context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	from, to, topic := f.Text("srcGroup"), f.Text("destGroup"), req.Fields.Get("topic")
	if err := f.Err(); err != nil {
		return nil, err
	}
	if !validGroup(to) {
		return req.Refuse(remoting.SystemError, "destGroup %q is no group's name", to), nil
	}
	cloned := 0
	for _, p := range b.store.ConsumerOffsets() {
		if _, known := b.topics.get(p.Topic); known && p.Group == from && (topic == "" || topic == p.Topic) {
			b.store.SetConsumerOffset(p.Topic, to, p.QueueID, p.Offset)
			cloned++
		}
	}
	b.audit(c, req, "offsets cloned", "from", from, "to", to, "topic", topic, "queues", cloned)
	return req.Reply(remoting.Success), nil
}
