package producer

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/message"
)

// reply is what a request waits for.
type reply struct{ message *message.Received }

// requests are the request messages that wait for a reply, by correlation id.
type requests struct {
	mu      sync.Mutex
	waiting map[string]chan reply
}

func (q *requests) add(id string) chan reply {
	c := make(chan reply, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[id] = c
	return c
}

func (q *requests) take(id string) (chan reply, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c, ok := q.waiting[id]
	delete(q.waiting, id)
	return c, ok
}

// Request sends a message and waits for the reply of the consumer that gets it, which it makes with [Reply]. The context's deadline
// is also how long the reply is of use; without one it is the send's time budget. Errors are those of [Producer.Send]; one
// that matches [ErrTimeout] says that the message was stored and no reply came.
func (p *Producer) Request(ctx context.Context, m *message.Message) (*message.Received, error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(p.opts.SendTimeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	if m == nil {
		return nil, fmt.Errorf("%w: no message", ErrInvalidMessage)
	}
	id := p.client.UniqueID()
	asked := *m
	for _, pair := range [][2]string{
		{message.PropertyCorrelationID, id},
		{message.PropertyReplyToClient, p.client.ID()},
		{message.PropertyReplyTTL, strconv.FormatInt(time.Until(deadline).Milliseconds(), 10)},
	} {
		var err error
		if asked.Properties, err = asked.Properties.Set(pair[0], pair[1]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidMessage, err)
		}
	}
	p.locals.Add(1) // a shutdown waits for the reply too
	defer p.less(&p.locals)
	answer := p.requests.add(id)
	defer p.requests.take(id)
	if err := p.knownTo(ctx, asked.Topic); err != nil {
		return nil, err
	}
	if _, err := p.Send(ctx, &asked); err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		return r.message, nil
	case <-p.ctx.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: reply to a message of topic %s: %w", ErrTimeout, m.Topic, ctx.Err())
	}
}

// knownTo has the topic's brokers know this client before the request reaches them: else they could not bring the reply.
func (p *Producer) knownTo(ctx context.Context, topic string) error {
	r, err := p.route(ctx, p.client.Namespace().Wrap(topic))
	if err != nil {
		return err
	}
	for _, q := range r.Write {
		if addr, err := p.client.Master(q.BrokerName); err == nil && p.client.Version(addr) == 0 {
			p.client.Heartbeat(ctx)
			break
		}
	}
	return nil
}

// TakeReply implements client.Producer.
func (p *Producer) TakeReply(m *message.Received) bool {
	c, ok := p.requests.take(m.Property(message.PropertyCorrelationID))
	if ok {
		c <- reply{m}
	}
	return ok
}

// Reply makes the reply to a message that was sent with [Producer.Request]; the consumer sends it with a producer of its own. The
// error matches [ErrInvalidMessage] when the message asks for none.
func Reply(to *message.Received, body []byte) (*message.Message, error) {
	cluster := to.Property(message.PropertyCluster)
	id, client := to.Property(message.PropertyCorrelationID), to.Property(message.PropertyReplyToClient)
	if cluster == "" || id == "" || client == "" {
		return nil, fmt.Errorf("%w: message %s asks for no reply", ErrInvalidMessage, to.ID())
	}
	m := &message.Message{Topic: cluster + "_REPLY_TOPIC", Body: body}
	pairs := []string{
		message.PropertyMessageType, replyType, message.PropertyCorrelationID, id, message.PropertyReplyToClient, client,
	}
	if ttl := to.Property(message.PropertyReplyTTL); ttl != "" {
		pairs = append(pairs, message.PropertyReplyTTL, ttl)
	}
	var err error
	m.Properties, err = message.NewProperties(pairs...)
	return m, err
}
