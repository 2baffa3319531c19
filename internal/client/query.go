package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// Query finds the messages of a topic that have a key, or a unique id, in the index of every broker that has the topic (12): at most
// limit of each, stored between two times, ms since 1970 (end 0: now and later). Keys that only share their hash are left out. Errors
// of single brokers come together with what the others found.
func (c *Client) Query(ctx context.Context, topic, key string, limit int, begin, end int64) ([]*message.Received, error) {
	r, err := c.Route(ctx, topic, nil)
	if err != nil {
		return nil, err
	}
	if end == 0 {
		end = math.MaxInt64
	}
	var found []*message.Received
	var errs []error
	for i := range r.Data.Brokers {
		b := &r.Data.Brokers[i]
		list, err := c.queryOne(ctx, b.SelectAddr(), remoting.NewRequest(remoting.QueryMessage,
			remoting.String("topic", topic), remoting.String("key", key), remoting.Int("maxNum", int64(limit)),
			remoting.Int("beginTimestamp", begin), remoting.Int("endTimestamp", end)))
		for _, m := range list {
			if m.Topic == topic && (m.Property(message.PropertyUniqueKey) == key || slices.Contains(m.Keys(), key)) {
				m.BrokerName = b.BrokerName
				found = append(found, m)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("broker %s: %w", b.BrokerName, err))
		}
	}
	return found, errors.Join(errs...)
}

// queryOne asks one broker. That it has nothing is no error.
func (c *Client) queryOne(ctx context.Context, addr string, req *remoting.Command) (list []*message.Received, err error) {
	resp, err := c.Do(ctx, addr, req)
	if e, ok := errors.AsType[*BrokerError](err); ok && (e.Code == remoting.QueryNotFound || e.Code == remoting.NoMessage) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for m, err := range DecodeRecords(resp.Body, c.opts.MaxBody) {
		if err != nil {
			return list, err
		}
		list = append(list, m)
	}
	return list, nil
}
