package consumer

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// serve answers what brokers ask of a consumer besides the notice of other members.
func (c *Consumer) serve(ctx context.Context, req *remoting.Command) *remoting.Command {
	switch req.Code {
	case remoting.ResetConsumerOffset:
		return c.serveReset(ctx, req)
	case remoting.GetConsumerStatus:
		resp := req.Reply(remoting.Success)
		resp.Body = c.appendStatus(nil, req.Fields.Get("topic"))
		return resp
	case remoting.GetConsumerRunningInfo:
		resp := req.Reply(remoting.Success)
		resp.Body = c.appendRunningInfo(nil)
		return resp
	case remoting.ConsumeMessageDirectly:
		return c.serveDirectly(req)
	}
	return remoting.NotSupported(req)
}

// serveReset puts queues to the offsets that an administrator chose (220).
func (c *Consumer) serveReset(ctx context.Context, req *remoting.Command) *remoting.Command {
	offsets, err := ParseOffsets(req.Body)
	if err != nil {
		return req.Refuse(remoting.SystemError, "%v", err)
	}
	moved := map[Queue]int64{}
	for _, p := range c.held() {
		if offset, ok := offsets[p.queue]; ok {
			c.opts.Logger.Info("offset reset", "queue", p.queue.String(), "from", p.at.Load(), "to", offset)
			p.reset(offset)
			moved[p.queue] = offset
		}
	}
	if len(moved) > 0 {
		if err := c.store.write(ctx, moved, true); err != nil {
			return req.Refuse(remoting.SystemError, "%v", err)
		}
	}
	return req.Reply(remoting.Success)
}

// appendStatus appends the offsets of a topic's queues, the body of the answer to 221.
func (c *Consumer) appendStatus(b []byte, topic string) []byte {
	b = append(b, `{"consumerTable":{},"messageQueueTable":{`...)
	first := true
	for _, p := range c.Progress() {
		if topic != "" && p.Queue.Topic != topic {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendQueue(b, p.Queue), ':')
		b = strconv.AppendInt(b, p.Committed, 10)
	}
	return append(b, "}}"...)
}

// appendRunningInfo appends what administrators see of a consumer, the body of the answer to 307.
func (c *Consumer) appendRunningInfo(b []byte) []byte {
	b = append(b, `{"mqTable":{`...)
	for i, p := range c.Progress() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendQueue(b, p.Queue), `:{"commitOffset":`...)
		b = strconv.AppendInt(b, p.Committed, 10)
		b = strconv.AppendInt(append(b, `,"cachedMsgCount":`...), int64(p.Cached), 10)
		b = append(b, `,"droped":false,"lastConsumeTimestamp":0,"lastLockTimestamp":0,"lastPullTimestamp":0,"locked":`...)
		b = strconv.AppendBool(b, c.opts.Orderly && !c.opts.Broadcast)
		b = append(b, `,"transactionMsgCount":0,"tryUnlockTimes":0}`...)
	}
	b = append(b, `},"properties":{`...)
	for i, v := range [][2]string{
		{"PROP_CLIENT_VERSION", "V4_9_7"},
		{"PROP_CONSUME_ORDERLY", strconv.FormatBool(c.opts.Orderly)},
		{"PROP_CONSUME_TYPE", "CONSUME_PASSIVELY"},
		{"PROP_CONSUMER_START_TIMESTAMP", strconv.FormatInt(c.started.UnixMilli(), 10)},
		{"PROP_THREADPOOL_CORE_SIZE", strconv.Itoa(c.opts.Workers)},
	} {
		if i > 0 {
			b = append(b, ',')
		}
		b = fastjson.AppendString(fastjson.AppendKey(b, v[0]), v[1])
	}
	b = append(b, `},"statusTable":{},"subscriptionSet":[`...)
	for i, s := range c.subscriptions() {
		if i > 0 {
			b = append(b, ',')
		}
		w := s.wire()
		b = w.AppendJSON(b)
	}
	return append(b, "]}"...)
}

// serveDirectly lets the listener have one message that an administrator chose (309). Its outcome is the answer; no offset changes.
func (c *Consumer) serveDirectly(req *remoting.Command) *remoting.Command {
	for m, err := range client.DecodeRecords(req.Body, c.net.Options().MaxBody) {
		if err != nil {
			return req.Refuse(remoting.SystemError, "%v", err)
		}
		m.BrokerName = req.Fields.Get("brokerName")
		b := &Batch{Queue: Queue{Topic: m.Topic, BrokerName: m.BrokerName, QueueID: m.QueueID}, Messages: []*message.Received{m}, acked: -1}
		c.rename(m)
		begun := time.Now()
		result, remark := "CR_SUCCESS", ""
		if c.byLoop {
			return req.Refuse(remoting.SystemError, "this consumer has no listener")
		}
		if err = c.guard(b); err != nil {
			result, remark = "CR_LATER", err.Error()
		}
		if errors.Is(err, ErrPanic) {
			result = "CR_THROW_EXCEPTION"
		}
		resp := req.Reply(remoting.Success)
		body := fastjson.AppendString([]byte(`{"autoCommit":true,"consumeResult":`), result)
		body = strconv.AppendBool(append(body, `,"order":`...), c.opts.Orderly)
		body = fastjson.AppendString(append(body, `,"remark":`...), remark)
		body = strconv.AppendInt(append(body, `,"spentTimeMills":`...), time.Since(begun).Milliseconds(), 10)
		resp.Body = append(body, '}')
		return resp
	}
	return req.Refuse(remoting.SystemError, "no message in the request")
}
