package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// askMaster sends a request about a queue to its broker's master, or where there is none to another that answers for it.
func (c *Client) askMaster(ctx context.Context, q Queue, req *remoting.Command) (*remoting.Command, error) {
	addr, _, err := c.Broker(q.BrokerName, 0)
	if err != nil {
		return nil, err
	}
	return c.Do(ctx, addr, req)
}

func queueRequest(code int32, q Queue, fields ...remoting.Field) *remoting.Command {
	return remoting.NewRequest(code, append(fields, remoting.String("topic", q.Topic), remoting.Int("queueId", int64(q.QueueID)),
		remoting.String("bname", q.BrokerName))...)
}

func offsetOf(resp *remoting.Command, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	f := resp.Fields.Reader()
	offset := f.Int64("offset")
	return offset, f.Err()
}

// Members are the client ids of a consumer group, sorted, as a broker of the topic has them (38). An error means that they are not
// known, not that there are none.
func (c *Client) Members(ctx context.Context, topic, group string) ([]string, error) {
	r, err := c.Route(ctx, topic, nil)
	if err != nil {
		return nil, err
	}
	if len(r.Data.Brokers) == 0 {
		return nil, fmt.Errorf("%w: %s has no broker", ErrNoRoute, topic)
	}
	addr := r.Data.Brokers[rand.IntN(len(r.Data.Brokers))].SelectAddr()
	resp, err := c.Do(ctx, addr, remoting.NewRequest(remoting.GetConsumerListByGroup, remoting.String("consumerGroup", group)))
	if err != nil {
		return nil, err
	}
	var ids []string
	j := fastjson.NewReader(string(resp.Body))
	j.Object(func(key string) {
		if key == "consumerIdList" {
			j.Array(func() { ids = append(ids, j.Clone()) })
		}
	})
	slices.Sort(ids)
	return slices.Compact(ids), j.End()
}

// Offset is the offset that the group has stored for a queue (14). [ErrNoOffset] says that the broker has none; any other error says
// nothing about it.
func (c *Client) Offset(ctx context.Context, q Queue, group string) (int64, error) {
	offset, err := offsetOf(c.askMaster(ctx, q, queueRequest(remoting.QueryConsumerOffset, q, remoting.String("consumerGroup", group))))
	if e, ok := errors.AsType[*BrokerError](err); ok && e.Code == remoting.QueryNotFound {
		return 0, fmt.Errorf("%w: group %s, queue %v", ErrNoOffset, group, q)
	}
	return offset, err
}

// CommitOffset stores the group's offset of a queue (15). With wait it is acknowledged, else it is sent oneway.
func (c *Client) CommitOffset(ctx context.Context, q Queue, group string, offset int64, wait bool) error {
	req := queueRequest(remoting.UpdateConsumerOffset, q, remoting.String("consumerGroup", group), remoting.Int("commitOffset", offset))
	if wait {
		_, err := c.askMaster(ctx, q, req)
		return err
	}
	addr, _, err := c.Broker(q.BrokerName, 0)
	if err != nil {
		return err
	}
	return c.Oneway(ctx, addr, req)
}

// MaxOffset is the offset that the queue's next message will have (30), MinOffset that of its first message (31).
func (c *Client) MaxOffset(ctx context.Context, q Queue) (int64, error) {
	return offsetOf(c.askMaster(ctx, q, queueRequest(remoting.GetMaxOffset, q)))
}

// MinOffset is the offset of a queue's first message (31).
func (c *Client) MinOffset(ctx context.Context, q Queue) (int64, error) {
	return offsetOf(c.askMaster(ctx, q, queueRequest(remoting.GetMinOffset, q)))
}

// OffsetAt is the offset of the first message stored at or after a time, ms since 1970 (29).
func (c *Client) OffsetAt(ctx context.Context, q Queue, ms int64) (int64, error) {
	return offsetOf(c.askMaster(ctx, q, queueRequest(remoting.SearchOffsetByTimestamp, q, remoting.Int("timestamp", ms))))
}
