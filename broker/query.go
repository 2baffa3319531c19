package broker

import (
	"context"
	"errors"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Bounds of one answer to 12. The first record is always given.
const (
	maxQueried      = 64
	maxQueriedBytes = 4 << 20
	maxUniqueHits   = 32
)

// queryMessage serves 12: records of a topic that have a key, newest first, or one unique id. There is no answer with nothing in it: that
// is not found (22).
func (b *Broker) queryMessage(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	q := rocketstore.QueryRequest{
		Topic: f.Text("topic"), Key: f.Text("key"), Max: int(min(f.Int32("maxNum"), maxQueried)), Begin: f.Int64("beginTimestamp"), End: f.Int64("endTimestamp"),
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if req.Fields.Get("_UNIQUE_KEY_QUERY") == "true" {
		q.Max = maxUniqueHits
	}
	resp := req.Reply(remoting.Success)
	if q.Key != "" && q.Max > 0 && q.End > 0 && q.End >= q.Begin { // the store takes an end of 0 for none
		var err error
		if resp.Body, err = b.found(ctx, q); err != nil {
			return nil, err
		}
	}
	if len(resp.Body) == 0 {
		return req.Refuse(remoting.QueryNotFound, "can not find message, maybe time range not correct"), nil
	}
	at, offset := b.store.IndexEnd()
	resp.Fields = remoting.Fields{remoting.Int("indexLastUpdateTimestamp", at), remoting.Int("indexLastUpdatePhyoffset", offset)}
	return resp, nil
}

// found are the records that a query finds, one behind the other. What is damaged is left out.
func (b *Broker) found(ctx context.Context, q rocketstore.QueryRequest) (body []byte, err error) {
	for r, err := range b.store.Query(ctx, q) {
		if errors.Is(err, rocketstore.ErrCorrupt) {
			b.opts.Logger.Error("message cannot be read", "topic", q.Topic, "key", q.Key, "err", err)
			continue
		}
		if err != nil {
			return nil, err
		}
		if len(body) > 0 && len(body)+int(r.Size) > maxQueriedBytes {
			break
		}
		raw, err := b.store.RawAt(r.PhysicalOffset)
		if err != nil {
			continue // deleted meanwhile
		}
		body = append(body, raw...)
	}
	return body, nil
}

// viewMessage serves 33: the record at a physical offset, which is the second part of an offset message id.
func (b *Broker) viewMessage(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	offset := f.Int64("offset")
	if err := f.Err(); err != nil {
		return nil, err
	}
	raw, err := b.store.RawAt(offset)
	switch {
	case errors.Is(err, rocketstore.ErrNotFound), errors.Is(err, rocketstore.ErrCorrupt):
		return req.Refuse(remoting.SystemError, "can not find message by the offset, %d", offset), nil
	case err != nil:
		return nil, err
	}
	resp := req.Reply(remoting.Success)
	resp.Body = raw
	return resp, nil
}
