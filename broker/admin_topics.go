package broker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/message"
)

// maxQueues bounds the queues of a topic.
const maxQueues = 1 << 16

// isSystemTopic says whether a topic is the broker's own: it is neither made nor deleted by an administrator.
func (b *Broker) isSystemTopic(name string) bool {
	for _, t := range systemTopics(&b.opts, b.rules) {
		if t.Name == name {
			return true
		}
	}
	switch name {
	case defaultTopic, scheduleTopic, rocketstore.HalfTopicName, rocketstore.OpTopicName, rocketstore.GiveUpTopicName, b.opts.TraceTopicName:
		return true
	}
	return strings.HasPrefix(name, "rmq_sys_")
}

// createTopic serves 17: it makes a topic, or changes one.
func (b *Broker) createTopic(_ context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	t := config.NewTopic(strings.Clone(f.Text("topic")))
	t.ReadQueues, t.WriteQueues, t.Perm = f.Int32("readQueueNums"), f.Int32("writeQueueNums"), f.Int32("perm")
	t.SysFlag, t.Order = f.OptInt32("topicSysFlag", 0), f.OptBool("order")
	if kind := req.Fields.Get("topicFilterType"); kind == "MULTI_TAG" {
		t.FilterType = kind
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	switch {
	case !message.ValidTopic(t.Name) || len(t.Name) > maxTopicLength:
		return req.Refuse(remoting.SystemError, "The specified topic %q is no name of 1 to %d letters, digits and %%, |, - or _", t.Name, maxTopicLength), nil
	case b.isSystemTopic(t.Name):
		return req.Refuse(remoting.SystemError, "The topic[%s] is conflict with system topic.", t.Name), nil
	case t.ReadQueues < 0, t.WriteQueues < 0, t.ReadQueues > maxQueues, t.WriteQueues > maxQueues, t.Perm&^(permRead|permWrite|permInherit) != 0:
		return req.Refuse(remoting.SystemError, "topic %s: %d read and %d write queues, perm %d: allowed are 0 to %d queues and perm 0 to 7",
			t.Name, t.ReadQueues, t.WriteQueues, t.Perm, maxQueues), nil
	}
	if err := b.topics.put(t); err != nil {
		return nil, err
	}
	b.audit(c, req, "topic put", "topic", t.Name, "read", t.ReadQueues, "write", t.WriteQueues, "perm", t.Perm, "order", t.Order)
	b.names.changed()
	return req.Reply(remoting.Success), nil
}

// deleteTopic serves 215. The messages stay until retention takes them; a topic of that name that is made later goes on behind them.
func (b *Broker) deleteTopic(_ context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	name := f.Text("topic")
	if err := f.Err(); err != nil {
		return nil, err
	}
	if b.isSystemTopic(name) || name == "" {
		return req.Refuse(remoting.SystemError, "The topic[%s] is conflict with system topic.", name), nil
	}
	was, err := b.topics.remove(name)
	if err != nil {
		return nil, err
	}
	b.flows.forget(func(k flowKey) bool { return k.topic == name })
	if was {
		b.audit(c, req, "topic deleted", "topic", name)
		b.names.changed()
	}
	return req.Reply(remoting.Success), nil
}

// put makes a topic or changes the one that is there.
func (t *topics) put(c *config.Topic) error {
	t.mu.Lock()
	if there, ok := t.table.Table.Get(c.Name); ok {
		there.ReadQueues, there.WriteQueues, there.Perm, there.FilterType = c.ReadQueues, c.WriteQueues, c.Perm, c.FilterType
		there.SysFlag, there.Order = c.SysFlag, c.Order
	} else {
		t.table.Table.Set(c.Name, c)
	}
	t.table.Version.Advance(time.Now().UnixMilli())
	t.mu.Unlock()
	if err := t.save(); err != nil {
		return fmt.Errorf("topic %s: %w", c.Name, err)
	}
	return nil
}

// remove takes a topic out; was says that it was there.
func (t *topics) remove(name string) (was bool, err error) {
	t.mu.Lock()
	if _, was = t.table.Table.Get(name); was {
		t.table.Table.Delete(name)
		t.table.Version.Advance(time.Now().UnixMilli())
	}
	t.mu.Unlock()
	if err := t.save(); err != nil {
		return was, fmt.Errorf("topic %s: %w", name, err)
	}
	return was, nil
}

// touch makes the table a new one to the name servers, after a change of what the broker allows.
func (t *topics) touch() error {
	t.mu.Lock()
	t.table.Version.Advance(time.Now().UnixMilli())
	t.mu.Unlock()
	return t.save()
}

// allTopics serves 21.
func (b *Broker) allTopics(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	all := b.topics.registration(permRead|permWrite, b.rules)
	body, err := all.Append(nil, route.RegistrationForm{Misspelt: req.Version < remoting.Version400})
	if err != nil {
		return nil, err
	}
	return withBody(req, body)
}

// systemTopicList serves 305.
func (b *Broker) systemTopicList(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	var list []string
	for _, t := range systemTopics(&b.opts, b.rules) {
		list = append(list, t.Name)
	}
	o := fastjson.OpenObject(nil)
	o.B = fastjson.AppendArray(o.Key("topicList"), list, fastjson.AppendString)
	return withBody(req, o.Close())
}

// topicStats serves 202.
func (b *Broker) topicStats(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	name := f.Text("topic")
	if err := f.Err(); err != nil {
		return nil, err
	}
	t, ok := b.topics.get(name)
	if !ok {
		return req.Refuse(remoting.TopicNotExist, "topic[%s] not exist", name), nil
	}
	type state struct{ first, end, changed int64 }
	queues, states := make([]queueName, t.writeQueues), make([]state, t.writeQueues)
	for id := range t.writeQueues {
		first, end, err := b.bounds(ctx, name, id)
		if err != nil {
			return nil, err
		}
		queues[id] = queueName{name, id}
		states[id] = state{first, end, b.storeTime(ctx, queueName{name, id}, end-1)}
	}
	o := fastjson.OpenObject(nil)
	o.B = appendQueueTable(b, o.Key("offsetTable"), queues, states, func(text []byte, s state) []byte {
		v := fastjson.OpenObject(text)
		v.Int("lastUpdateTimestamp", s.changed)
		v.Int("maxOffset", s.end)
		v.Int("minOffset", s.first)
		return v.Close()
	})
	return withBody(req, o.Close())
}

// storeTime is when a message was stored, ms; 0 where there is none that can be read.
func (b *Broker) storeTime(ctx context.Context, q queueName, offset int64) int64 {
	if offset < 0 {
		return 0
	}
	res, err := b.store.Get(ctx, rocketstore.GetRequest{Topic: q.topic, QueueID: q.id, Offset: offset, Max: 1})
	defer res.Release()
	if err != nil || len(res.Records) == 0 {
		return 0
	}
	return res.Records[0].StoreTimestamp
}
