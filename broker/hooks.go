package broker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Hooks let an embedder see what a broker does, and refuse what it must not do (R-F-24). Each may be nil. They may be called from
// many goroutines; what they do, the client waits for.
type Hooks struct {
	// Before is called with each request that is served, after its rights were checked. An error is answered with its text and
	// the code for "no permission"; for the question of a consumer's offset (14), to which no error may be answered, the
	// connection is closed. The next requests of a connection wait for the hooks of the one that stores an offset (15).
	Before func(ctx context.Context, r *Request) error
	// After is called when the request was served. Code is that of the answer, -1 when there is none or it comes later, as that of
	// a pull that waits.
	After func(ctx context.Context, r *Request, code int32, took time.Duration)
	// Pulled is called for messages that are handed to a consumer.
	Pulled func(group, topic string, queueID int32, messages int)
	// Queued is called for each message that came into its queue. It must not block: the dispatch waits for it.
	Queued func(u rocketstore.QueuedUnit)
}

// Request is what a hook sees of one.
type Request struct {
	// Code is the request code of the original: 10, 310, 320 send, 11 pulls, 37 ends a transaction.
	Code int32
	// Peer is the client's host:port.
	Peer string
	// Topic and Group are those that the header names, "" if it names none.
	Topic, Group string
	// Body must not be changed, nor kept.
	Body []byte

	fields remoting.Fields
}

// Field is any field of the header, "" if it is not there.
func (r *Request) Field(name string) string { return r.fields.Get(name) }

func hooked(c *remoting.Conn, req *remoting.Command) *Request {
	r := &Request{Code: req.Code, Peer: c.RemoteAddr(), Body: req.Body, fields: slices.Clone(req.Fields)} // a hook may keep it
	r.Topic, r.Group = req.Fields.Get("topic"), req.Fields.Get("consumerGroup")
	switch req.Code {
	case remoting.SendMessage, remoting.SendReplyMessage, remoting.SendMessageV2, remoting.SendBatchMessage, remoting.SendReplyMessageV2:
		r.Topic, r.Group = req.Fields.Get(sendTopic.nameIn(req.Code)), req.Fields.Get(sendGroup.nameIn(req.Code))
	case remoting.EndTransaction:
		r.Group = req.Fields.Get("producerGroup")
	case remoting.ConsumerSendMessageBack, remoting.InvokeResetOffset, remoting.InvokeConsumerStatus:
		r.Group = req.Fields.Get("group")
	}
	return r
}

// serveHooked lets op serve a request, with the hooks around it.
func (b *Broker) serveHooked(ctx context.Context, c *remoting.Conn, req *remoting.Command, op operation) (*remoting.Command, error) {
	r := hooked(c, req)
	if before := b.opts.Hooks.Before; before != nil {
		if err := before(ctx, r); err != nil {
			if req.Code == remoting.QueryConsumerOffset {
				return nil, err
			}
			return req.Refuse(remoting.NoPermission, "%v", err), nil
		}
	}
	began := time.Now()
	resp, err := op(b, ctx, c, req)
	if after := b.opts.Hooks.After; after != nil {
		code := int32(-1)
		switch {
		case errors.Is(err, rocketstore.ErrClosed):
			code = remoting.ServiceNotAvailable
		case err != nil:
			code = remoting.SystemError
		case resp != nil:
			code = resp.Code
		}
		after(ctx, r, code, time.Since(began))
	}
	return resp, err
}
