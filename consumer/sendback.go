package consumer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// sendBackTimeout limits one request, as in the original.
const sendBackTimeout = 5 * time.Second

// retryDelay is the delay level of a first retry; each further one is a level higher.
const retryDelay = 3

// sendBack is trySendBack that logs and counts.
func (c *Consumer) sendBack(ctx context.Context, m *message.Received, level int32) bool {
	err := c.trySendBack(ctx, m, level)
	if err != nil {
		c.failed("message not sent back", err, "broker", m.BrokerName, "offset", m.PhysicalOffset)
		return false
	}
	c.figures.sentBack.Add(1)
	if level < 0 || m.ReconsumeTimes >= c.opts.MaxReconsume {
		c.figures.dead.Add(1)
	}
	return true
}

// trySendBack asks the message's broker to deliver it again (36). Where that fails, the message is sent to the retry topic as a new
// one, to any broker that has the topic.
func (c *Consumer) trySendBack(ctx context.Context, m *message.Received, level int32) error {
	addr, err := c.net.Master(m.BrokerName)
	if err == nil {
		req := remoting.NewRequest(remoting.ConsumerSendMessageBack,
			remoting.Int("offset", m.PhysicalOffset), remoting.String("group", c.group), remoting.Int("delayLevel", int64(level)),
			remoting.String("originMsgId", m.ID()), remoting.String("originTopic", c.net.Namespace().Wrap(m.Topic)), remoting.Bool("unitMode", false),
			remoting.Int("maxReconsumeTimes", int64(c.opts.MaxReconsume)), remoting.String("bname", m.BrokerName))
		_, err = c.ask(ctx, addr, req)
	}
	if err == nil {
		return nil
	}
	if again := c.resend(ctx, m, m.ReconsumeTimes+1, level); again != nil {
		return errors.Join(err, again)
	}
	return nil
}

func (c *Consumer) ask(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	ctx, cancel := context.WithTimeout(ctx, sendBackTimeout)
	defer cancel()
	return c.net.Do(ctx, addr, req)
}

// resend sends a message to the retry topic as a new one that is to come for the given time. With the count at the limit, the broker
// puts it into the dead letter queue.
func (c *Consumer) resend(ctx context.Context, m *message.Received, times, level int32) error {
	r, err := c.net.Route(ctx, c.retry, nil)
	if err != nil {
		return err
	}
	if len(r.Write) == 0 {
		return fmt.Errorf("%w: %s has no queue to write to", client.ErrNoRoute, c.retry)
	}
	properties, err := c.retryProperties(m, times)
	if err != nil {
		return err
	}
	most := c.opts.MaxReconsume
	if level < 0 {
		times = max(times, most)
	}
	for _, q := range r.Write {
		addr, masterErr := c.net.Master(q.BrokerName)
		if err = masterErr; err != nil {
			continue
		}
		req := remoting.NewRequest(remoting.SendMessage,
			remoting.String("producerGroup", "CLIENT_INNER_PRODUCER"), remoting.String("topic", c.retry), remoting.String("defaultTopic", "TBW102"),
			remoting.Int("defaultTopicQueueNums", 4), remoting.Int("queueId", int64(q.QueueID)), remoting.Int("sysFlag", 0),
			remoting.Int("bornTimestamp", time.Now().UnixMilli()), remoting.Int("flag", int64(m.Flag)),
			remoting.String("properties", string(properties)), remoting.Int("reconsumeTimes", int64(times)), remoting.Bool("unitMode", false),
			remoting.Int("maxReconsumeTimes", int64(most)), remoting.Bool("batch", false))
		req.Body = m.Body
		var resp *remoting.Command
		if resp, err = c.askRaw(ctx, addr, req); err == nil && stored(resp.Code) {
			return nil
		} else if err == nil {
			err = &client.BrokerError{Code: resp.Code, Remark: resp.Remark, Addr: addr, Request: req.Code}
		}
	}
	return err
}

func (c *Consumer) askRaw(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	ctx, cancel := context.WithTimeout(ctx, sendBackTimeout)
	defer cancel()
	return c.net.Call(ctx, addr, req)
}

// stored says whether an answer to a send means that the message is there.
func stored(code int32) bool {
	switch code {
	case remoting.Success, remoting.FlushDiskTimeout, remoting.SlaveNotAvailable, remoting.FlushSlaveTimeout:
		return true
	}
	return false
}

// retryProperties are those of the new message: where it came from, and what makes it come later. The counts are in the request's
// header.
func (c *Consumer) retryProperties(m *message.Received, times int32) (message.Properties, error) {
	p := m.Properties
	for _, name := range []string{message.PropertyTransactionPrepared, propertyReconsume, propertyMaxReconsume} {
		p = p.Delete(name)
	}
	origin, ok := p.Get(propertyOriginID)
	if !ok {
		origin = m.ID()
	}
	for _, v := range []struct{ name, value string }{
		{propertyOriginID, origin},
		{message.PropertyRetryTopic, c.net.Namespace().Wrap(m.Topic)},
		{message.PropertyDelay, strconv.Itoa(int(retryDelay + times - 1))},
	} {
		var err error
		if p, err = p.Set(v.name, v.value); err != nil {
			return "", fmt.Errorf("property %s: %w", v.name, err)
		}
	}
	return p, nil
}

// Properties of messages that come again.
const (
	propertyOriginID     = "ORIGIN_MESSAGE_ID"
	propertyReconsume    = "RECONSUME_TIME"
	propertyMaxReconsume = "MAX_RECONSUME_TIMES"
)
