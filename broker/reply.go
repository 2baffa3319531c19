package broker

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Properties of a reply.
const (
	propertyReplyTo  = "REPLY_TO_CLIENT"
	propertyPushTime = "PUSH_REPLY_TIME"
)

// reply serves 324 and 325: what a consumer answers to a request goes to the client that waits for it (326), and is stored like
// any message (protocol.md 4.7). A reply that nobody took is not stored.
func (b *Broker) reply(ctx context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	s, err := readSend(req)
	if err != nil {
		return nil, err
	}
	if _, err = b.topicForSend(s); err == nil {
		err = b.pushReply(ctx, c, req, s)
	}
	if no := (*refusal)(nil); errors.As(err, &no) {
		b.figures.sendsRefused.Add(1)
		return req.Refuse(no.code, "%s", no.text), nil
	}
	if err != nil {
		return nil, err
	}
	return b.send(ctx, c, req)
}

// pushReply hands a reply to its client and waits until that has it.
func (b *Broker) pushReply(ctx context.Context, c *remoting.Conn, req *remoting.Command, s *sendRequest) error {
	id, ok := s.properties.Get(propertyReplyTo)
	if !ok {
		return refused(remoting.SystemError, "%s is null, can not reply message", propertyReplyTo)
	}
	client := b.clients.producer(id)
	if client == nil {
		return refused(remoting.SystemError, "push reply message fail, channel of <%s> not found.", id)
	}
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	properties, err := s.properties.Set(propertyPushTime, now)
	if err != nil {
		return refused(remoting.MessageIllegal, "%v", err)
	}
	push := remoting.NewRequest(remoting.PushReplyMessage,
		remoting.String("bornHost", c.RemoteAddr()), remoting.String("storeHost", b.host.Load().String()), remoting.String("storeTimestamp", now),
		remoting.String("producerGroup", s.group), remoting.String("topic", s.topic), remoting.String("defaultTopic", s.defaultTopic),
		remoting.Int("defaultTopicQueueNums", int64(s.defaultQueues)), remoting.Int("queueId", int64(max(s.queueID, 0))),
		remoting.Int("sysFlag", int64(s.sysFlag)), remoting.Int("bornTimestamp", s.born), remoting.Int("flag", int64(s.flag)),
		remoting.String("properties", string(properties)), remoting.Int("reconsumeTimes", int64(s.reconsumeTimes)), remoting.Bool("unitMode", false))
	push.Body = req.Body
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	answer, err := client.Call(ctx, push)
	if err != nil || answer.Code != remoting.Success {
		b.opts.Logger.Warn("reply not taken", "client", id, "err", err)
		return refused(remoting.SystemError, "push reply message to %s fail.", id)
	}
	return nil
}
