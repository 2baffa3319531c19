package broker

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// firstRetryLevel is the delay level of the first retry; each further one has the next level (protocol.md 8.2).
const firstRetryLevel = 3

// sentBack is the typed header of 36.
type sentBack struct {
	offset int64 // physical, of the record that could not be consumed
	group  string
	level  int32 // delay level; 0: by the number of retries, negative: to the dead letters at once
	most   int32 // retries; -1: not given
}

// sendBack serves 36: a consumer could not work with a message, and gets it again later, or never if it was tried too often.
// The answer has no fields; any put but a plain success is an error, upon which the client sends it to its retry topic
// itself.
func (b *Broker) sendBack(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	s := sentBack{offset: f.Int64("offset"), group: f.Text("group"), level: f.Int32("delayLevel"), most: f.OptInt32("maxReconsumeTimes", -1)}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if req.Version < remoting.Version349 {
		s.most = -1
	}
	err := b.sendBackChecked(context.WithoutCancel(ctx), &s)
	if no := (*refusal)(nil); errors.As(err, &no) {
		return req.Refuse(no.code, "%s", no.text), nil
	}
	if err != nil {
		return nil, err
	}
	return req.Reply(remoting.Success), nil
}

func (b *Broker) sendBackChecked(ctx context.Context, s *sentBack) error {
	g, known, err := b.groups.find(s.group, false)
	switch {
	case err != nil:
		return err
	case !known:
		return refused(remoting.SubscriptionGroupNotExist, "subscription group not exist, %s", s.group)
	case b.live().Permission&permWrite == 0:
		return refused(remoting.NoPermission, "the broker[%s] sending message is forbidden", b.opts.AdvertisedIP)
	case g.retryQueues <= 0:
		return nil // such a group has no retries: the message is dropped
	}
	t, err := b.ensureTopic(retryPrefix+s.group, g.retryQueues)
	if err != nil {
		return err
	}
	if t.perm&permWrite == 0 {
		return refused(remoting.NoPermission, "the topic[%s] sending message is forbidden", retryPrefix+s.group)
	}
	m, err := b.consumed(s.offset)
	if err != nil {
		return err
	}
	put, from := b.store.Put, m.Topic
	if limit := s.limit(&g); m.ReconsumeTimes >= limit || s.level < 0 { // E9: the record's own count
		if _, err := b.ensureTopic(deadPrefix+s.group, 1); err != nil {
			return err
		}
		b.opts.Logger.Info("message is dead", "group", s.group, "offset", s.offset, "retries", m.ReconsumeTimes)
		put = b.store.PutNow
		err = b.again(m, deadPrefix+s.group, 0, 0)
	} else {
		// A queue beyond those of the topic is never read.
		err = b.again(m, retryPrefix+s.group, rand.Int32N(max(min(g.retryQueues, t.readQueues), 1)), s.delay(m))
	}
	if err != nil {
		return err
	}
	if _, err = put(ctx, m); err != nil {
		return err
	}
	b.flows.of(flowKey{topic: from, group: s.group, back: true}).add(1, 0)
	return nil
}

// limit is how many retries a message has.
func (s *sentBack) limit(g *group) int32 {
	if s.most >= 0 {
		return s.most
	}
	return g.retryMax
}

// delay is the level at which a message waits for its next try; the store lowers it to the highest there is.
func (s *sentBack) delay(m *message.Message) int64 {
	if s.level > 0 {
		return int64(s.level)
	}
	return max(firstRetryLevel+int64(m.ReconsumeTimes), 1)
}

// consumed is a copy of a message that a consumer can have had.
func (b *Broker) consumed(offset int64) (*message.Message, error) {
	m, err := b.store.MessageAt(offset)
	if errors.Is(err, rocketstore.ErrNotFound) || errors.Is(err, rocketstore.ErrCorrupt) {
		return nil, refused(remoting.SystemError, "look message by offset failed, %d", offset)
	}
	if err != nil {
		return nil, err
	}
	switch kind := m.SysFlag.Transaction(); {
	case kind == message.FlagPrepared, kind == message.FlagRollback, internalTopic(m.Topic):
		return nil, refused(remoting.SystemError, "look message by offset failed, %d: nobody can have consumed it", offset)
	}
	if id, ok := m.Properties.Get(propertyOriginID); !ok || id == "" {
		m.Properties, err = m.Properties.Set(propertyOriginID, message.OffsetID(m.StoreHost, offset))
	}
	return m, err
}

// Properties of a message that is tried again.
const (
	propertyOriginID = "ORIGIN_MESSAGE_ID"
	waitNot          = "false"
)

// again makes a consumed message into the one that is stored for the next try. It is no transaction's any more, though its
// properties still say so (protocol.md E4). Its birth, and its store host but in 5.3, stay.
func (b *Broker) again(m *message.Message, topic string, queue int32, delay int64) error {
	var err error
	if _, ok := m.Properties.Get(message.PropertyRetryTopic); !ok {
		if m.Properties, err = m.Properties.Set(message.PropertyRetryTopic, m.Topic); err != nil {
			return err
		}
	}
	if m.Properties, err = m.Properties.Set(message.PropertyWait, waitNot); err != nil {
		return err
	}
	if delay > 0 {
		m.Properties, err = m.Properties.Set(message.PropertyDelay, strconv.FormatInt(delay, 10))
	} else {
		m.Properties = m.Properties.Delete(message.PropertyDelay)
	}
	m.Topic, m.QueueID, m.ReconsumeTimes = topic, queue, m.ReconsumeTimes+1
	m.SysFlag, m.PreparedTransactionOffset = m.SysFlag.WithTransaction(0), 0
	if b.rules.RenewsStoreHost {
		m.StoreHost = *b.host.Load()
	}
	return err
}

// ensureTopic makes a topic that the broker itself needs, and tells the name servers of a new one.
func (b *Broker) ensureTopic(name string, queues int32) (topic, error) {
	t, made, err := b.topics.ensure(name, queues, permRead|permWrite)
	if err == nil && made {
		b.opts.Logger.Info("topic made", "topic", name, "queues", queues)
		b.names.changed()
	}
	return t, err
}

// internalTopic says whether a topic holds what waits for something, and is read by the broker alone.
func internalTopic(name string) bool {
	return name == scheduleTopic || name == rocketstore.HalfTopicName || name == rocketstore.OpTopicName
}
