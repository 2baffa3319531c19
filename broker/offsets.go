package broker

import (
	"context"
	"errors"
	"math"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// queryConsumerOffset serves 14. What was never committed is 0 where the whole queue can still be had quickly, else it is not
// found, upon which the client begins where it was told to. Errors are not answered ([Broker.orSilence]).
func (b *Broker) queryConsumerOffset(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	group, topic, id := f.Text("consumerGroup"), f.Text("topic"), f.Int32("queueId")
	strict := req.Fields.Get("setZeroIfNotFound") == "false"
	if err := f.Err(); err != nil {
		return nil, err
	}
	offset, ok := b.store.ConsumerOffset(topic, group, id)
	if !ok && !strict {
		var err error
		if ok, err = b.wholeQueueInMemory(ctx, topic, id); err != nil {
			return nil, err
		}
	}
	if !ok {
		return req.Refuse(remoting.QueryNotFound, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"), nil
	}
	return req.Reply(remoting.Success, remoting.Int("offset", offset)), nil
}

// wholeQueueInMemory says whether a queue begins at 0 and its first message is deemed in memory; an empty one is (protocol.md
// E6).
func (b *Broker) wholeQueueInMemory(ctx context.Context, topic string, id int32) (bool, error) {
	res, err := b.store.Get(ctx, rocketstore.GetRequest{Topic: topic, QueueID: id, Max: 1})
	if errors.Is(err, rocketstore.ErrCorrupt) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer res.Release()
	switch res.Status {
	case rocketstore.NoMatchedLogicQueue, rocketstore.NoMessageInQueue:
		return true, nil
	case rocketstore.Found:
		_, end := b.store.Bounds()
		return res.Min == 0 && end-res.Records[0].PhysicalOffset <= b.opts.Memory/100*int64(b.live().MemoryRatio), nil
	}
	return false, nil
}

// updateConsumerOffset serves 15.
func (b *Broker) updateConsumerOffset(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	group, topic, id, offset := f.Text("consumerGroup"), f.Text("topic"), f.Int32("queueId"), f.Int64("commitOffset")
	if err := f.Err(); err != nil {
		return nil, err
	}
	t, ok := b.topics.get(topic)
	switch {
	case !ok: // names that nobody made would fill the file
		return req.Refuse(remoting.TopicNotExist, "topic[%s] not exist, apply first please!", topic), nil
	case !validGroup(group), id < 0, id >= max(t.readQueues, t.writeQueues), offset < 0:
		return req.Refuse(remoting.SystemError, "offset %d of queue %d, group %q: not one of the topic's queues", offset, id, group), nil
	}
	b.store.SetConsumerOffset(topic, group, id, offset)
	return req.Reply(remoting.Success), nil
}

// bounds gives the ends of a queue; 0 and 0 when there is none. Messages whose put returned before are counted.
func (b *Broker) bounds(ctx context.Context, topic string, id int32) (first, end int64, err error) {
	res, err := b.store.Get(ctx, rocketstore.GetRequest{Topic: topic, QueueID: id, Offset: math.MaxInt64})
	return res.Min, res.Max, err
}

// readQueueFields reads what 29 to 32 have in common.
func readQueueFields(f *remoting.FieldReader) (topic string, id int32) {
	return f.Text("topic"), f.Int32("queueId")
}

// queueBound serves 30 and 31.
func (b *Broker) queueBound(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	topic, id := readQueueFields(f)
	if err := f.Err(); err != nil {
		return nil, err
	}
	offset, end, err := b.bounds(ctx, topic, id)
	if err != nil {
		return nil, err
	}
	if req.Code == remoting.GetMaxOffset {
		offset = end
	}
	return req.Reply(remoting.Success, remoting.Int("offset", offset)), nil
}

// searchOffset serves 29: the first message stored at that time or later, else the end; with the boundary UPPER of 5.x the last
// one stored at that time or earlier (protocol.md 16).
func (b *Broker) searchOffset(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	topic, id := readQueueFields(f)
	at := f.Int64("timestamp")
	if err := f.Err(); err != nil {
		return nil, err
	}
	upper := req.Fields.Get("boundaryType") == "UPPER" || req.Fields.Get("boundaryType") == "upper"
	if upper && at < math.MaxInt64 {
		at++
	}
	offset, err := b.store.OffsetAt(ctx, topic, id, at)
	if errors.Is(err, rocketstore.ErrNotFound) {
		offset, err = 0, nil
	} else if upper && err == nil {
		first, _, boundsErr := b.bounds(ctx, topic, id)
		offset, err = max(offset-1, first), boundsErr
	}
	if err != nil {
		return nil, err
	}
	return req.Reply(remoting.Success, remoting.Int("offset", offset)), nil
}

// earliestStoreTime serves 32.
func (b *Broker) earliestStoreTime(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	topic, id := readQueueFields(f)
	if err := f.Err(); err != nil {
		return nil, err
	}
	first, _, err := b.bounds(ctx, topic, id)
	if err != nil {
		return nil, err
	}
	res, err := b.store.Get(ctx, rocketstore.GetRequest{Topic: topic, QueueID: id, Offset: first, Max: 1})
	if err != nil {
		return nil, err
	}
	defer res.Release()
	at := int64(-1)
	if len(res.Records) > 0 {
		at = res.Records[0].StoreTimestamp
	}
	return req.Reply(remoting.Success, remoting.Int("timestamp", at)), nil
}
