package broker

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// heartbeat is the body of request 34.
type heartbeat struct {
	clientID  string
	producers []string
	consumers []*consumerData
}

// consumerData is one consumer group of a heartbeat.
type consumerData struct {
	group, kind, model, from string
	subscriptions            map[string]*subscription
	unchanged                bool // 5.x: the subscriptions are not repeated
}

// size is about what is kept of it, bytes.
func (d *consumerData) size() int64 {
	const group, each, code = 512, 256, 16
	n := group + len(d.group) + len(d.kind) + len(d.model) + len(d.from)
	for topic, s := range d.subscriptions {
		n += each + len(topic) + len(s.expression) + code*len(s.filter.codes)
	}
	return int64(n)
}

// Bounds of one heartbeat; real ones have a handful of each.
const (
	maxHeartbeat       = 1 << 20 // bytes, which what is kept of it holds in memory
	maxHeartbeatGroups = 1 << 12
	maxSubscriptions   = 1 << 14
)

// readHeartbeat decodes the body of request 34. An error matches fastjson.ErrSyntax or says what is too much.
func readHeartbeat(body []byte) (*heartbeat, error) {
	if len(body) > maxHeartbeat {
		return nil, fmt.Errorf("heartbeat of %d bytes, at most %d are allowed", len(body), maxHeartbeat)
	}
	var h heartbeat
	r := fastjson.NewReader(string(body))
	unchanged := false
	r.Object(func(key string) {
		switch key {
		case "clientID":
			h.clientID = r.Text()
		case "producerDataSet":
			r.Array(func() { h.producers = append(h.producers, readProducer(r)) })
		case "consumerDataSet":
			r.Array(func() { h.consumers = append(h.consumers, readConsumer(r)) })
		case "withoutSub":
			unchanged = r.Bool()
		}
	})
	if err := r.End(); err != nil {
		return nil, err
	}
	if len(h.clientID) > maxClientID {
		return nil, fmt.Errorf("heartbeat of a client id of %d bytes, at most %d are allowed", len(h.clientID), maxClientID)
	}
	if n := len(h.producers) + len(h.consumers); n > maxHeartbeatGroups {
		return nil, fmt.Errorf("heartbeat of %d groups, at most %d are allowed", n, maxHeartbeatGroups)
	}
	for _, c := range h.consumers {
		if c.unchanged = unchanged; len(c.subscriptions) > maxSubscriptions {
			return nil, fmt.Errorf("group %s subscribes to %d topics, at most %d are allowed", c.group, len(c.subscriptions), maxSubscriptions)
		}
	}
	return &h, nil
}

func readProducer(r *fastjson.Reader) (group string) {
	r.Object(func(key string) {
		if key == "groupName" {
			group = r.Text()
		}
	})
	return group
}

func readConsumer(r *fastjson.Reader) *consumerData {
	c := &consumerData{subscriptions: map[string]*subscription{}}
	r.Object(func(key string) {
		switch key {
		case "groupName":
			c.group = r.Clone()
		case "consumeType":
			c.kind = r.Clone()
		case "messageModel":
			c.model = r.Clone()
		case "consumeFromWhere":
			c.from = r.Clone()
		case "subscriptionDataSet":
			r.Array(func() {
				if topic, s := readSubscription(r); len(c.subscriptions) <= maxSubscriptions {
					c.subscriptions[topic] = s
				}
			})
		}
	})
	return c
}

func readSubscription(r *fastjson.Reader) (topic string, s *subscription) {
	s = &subscription{}
	r.Object(func(key string) {
		switch key {
		case "topic":
			topic = r.Clone()
		case "subString":
			s.expression = strings.Clone(strings.TrimSpace(r.Text()))
		case "codeSet":
			r.Array(func() { s.filter.add(r.Int32()) })
		case "tagsSet":
			r.Array(func() { s.filter.add(message.HashString(r.Text())) })
		case "subVersion":
			s.version = r.Int64()
		case "expressionType":
			kind := r.Text()
			s.sql = kind != "" && kind != "TAG"
		}
	})
	switch {
	case s.expression == "" || s.expression == "*":
		s.filter = filter{}
	case len(s.filter.codes) == 0:
		s.filter = parseTags(s.expression)
	}
	return topic, s
}

// filter chooses messages by the code of their tag. The zero value takes all.
type filter struct{ codes map[int32]struct{} }

func (f *filter) add(code int32) {
	if f.codes == nil {
		f.codes = map[int32]struct{}{}
	}
	f.codes[code] = struct{}{}
}

// takes says whether a queue unit's tags code passes. As in Java only its low half is looked at.
func (f *filter) takes(tagsCode int64) bool {
	if f.codes == nil {
		return true
	}
	_, ok := f.codes[int32(tagsCode)]
	return ok
}

// parseTags reads "a || b"; one without a tag takes all.
func parseTags(expression string) (f filter) {
	if expression = strings.TrimSpace(expression); expression == "" || expression == "*" {
		return f
	}
	for tag := range strings.SplitSeq(expression, "||") {
		if tag = strings.TrimSpace(tag); tag != "" {
			f.add(message.HashString(tag))
		}
	}
	return f
}

// heartbeat serves 34.
func (b *Broker) heartbeat(_ context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	h, err := readHeartbeat(req.Body)
	if err != nil {
		return nil, err
	}
	m := member{id: strings.Clone(h.clientID), language: req.Language, version: req.Version, seen: time.Now()}
	made, err := b.makeGroups(h.consumers)
	if made {
		b.names.changed()
	}
	if err != nil {
		return nil, err
	}
	for _, d := range h.consumers {
		g, known := b.groups.get(d.group)
		if !known {
			b.opts.Logger.Warn("heartbeat of an unknown group", "group", short(d.group), "peer", c.RemoteAddr())
			continue
		}
		changed, err := b.clients.beatConsumer(d, c, m)
		if err != nil {
			return nil, err
		}
		if changed {
			b.opts.Logger.Info("consumer group changed", "group", d.group, "client", m.id, "peer", c.RemoteAddr())
			b.notify(d.group, g.notify)
		}
	}
	for _, group := range h.producers {
		b.clients.beatProducer(group, c, m)
	}
	return req.Reply(remoting.Success), nil
}

// short is the beginning of a text of any length, for the log.
func short(text string) string { return text[:min(len(text), 2*maxGroupLength)] }

// makeGroups makes the groups that are not there, if they may be made, and the retry topics of all that are. Each file is written once,
// however many they are. It reports whether a topic is new.
func (b *Broker) makeGroups(consumers []*consumerData) (made bool, err error) {
	var names []string
	for _, d := range consumers {
		names = append(names, d.group)
	}
	if !b.live().NoAutoGroups {
		if err := b.groups.make(names); err != nil {
			return false, err
		}
	}
	var retries []*config.Topic
	for _, name := range names {
		if g, known := b.groups.get(name); known && validGroup(name) {
			retries = append(retries, plainTopic(retryPrefix+name, max(g.retryQueues, 1)))
		}
	}
	return b.topics.makeAll(retries)
}

// noticeTimeout bounds what one notice may wait for a client that does not read.
const noticeTimeout = 3 * time.Second

// notify tells all clients of a group that its members or topics changed (40).
func (b *Broker) notify(group string, wanted bool) {
	if b.live().NoNotify || !wanted {
		return
	}
	for _, c := range b.clients.conns(group) {
		b.tell(c, remoting.NotifyConsumerIDsChanged, nil, remoting.String("consumerGroup", group))
	}
}

// tell sends a request to a client that it does not answer, without waiting for one that does not read.
func (b *Broker) tell(c *remoting.Conn, code int32, body []byte, fields ...remoting.Field) {
	b.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(b.ctx, noticeTimeout)
		defer cancel()
		req := remoting.NewRequest(code, fields...)
		req.Body = body
		if err := c.Oneway(ctx, req); err != nil {
			b.opts.Logger.Debug("notice not sent", "code", code, "peer", c.RemoteAddr(), "err", err)
		}
	})
}

// unregisterClient serves 35.
func (b *Broker) unregisterClient(_ context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	if group := req.Fields.Get("producerGroup"); group != "" {
		b.clients.leaveProducer(group, c)
	}
	if group := req.Fields.Get("consumerGroup"); group != "" && b.clients.leaveConsumer(group, c) {
		g, known := b.groups.get(group)
		b.notify(group, !known || g.notify)
	}
	return req.Reply(remoting.Success), nil
}

// connectionLost does for a client that is gone what it would have asked for itself.
func (b *Broker) connectionLost(c *remoting.Conn) {
	for _, group := range b.clients.lost(c) {
		b.notify(group, true)
	}
}

// consumerList serves 38.
func (b *Broker) consumerList(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	group := f.Text("consumerGroup")
	if err := f.Err(); err != nil {
		return nil, err
	}
	ids := b.clients.memberIDs(group)
	if len(ids) == 0 {
		return req.Refuse(remoting.SystemError, "no consumer for this group, %s", group), nil
	}
	resp := req.Reply(remoting.Success)
	body := append(resp.Body, `{"consumerIdList":[`...)
	for i, id := range ids {
		if i > 0 {
			body = append(body, ',')
		}
		body = fastjson.AppendString(body, id)
	}
	resp.Body = append(body, "]}"...)
	return resp, nil
}
