package broker

import (
	"context"
	"errors"
	"runtime/debug"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// operation answers one kind of request. An error is answered with SystemError and its text, a closed store with
// ServiceNotAvailable; nothing and no error means that the answer comes later, or never.
type operation func(b *Broker, ctx context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error)

// operationOf finds what serves a request code, nil if nothing does.
func operationOf(code int32) operation {
	switch code {
	case remoting.SendMessage, remoting.SendMessageV2, remoting.SendBatchMessage:
		return (*Broker).send
	case remoting.PullMessage, remoting.LitePullMessage:
		return (*Broker).pull
	case remoting.QueryConsumerOffset:
		return (*Broker).queryConsumerOffset
	case remoting.UpdateConsumerOffset:
		return (*Broker).updateConsumerOffset
	case remoting.SearchOffsetByTimestamp:
		return (*Broker).searchOffset
	case remoting.GetMaxOffset, remoting.GetMinOffset:
		return (*Broker).queueBound
	case remoting.GetEarliestStoreTime:
		return (*Broker).earliestStoreTime
	case remoting.Heartbeat:
		return (*Broker).heartbeat
	case remoting.UnregisterClient:
		return (*Broker).unregisterClient
	case remoting.GetConsumerListByGroup:
		return (*Broker).consumerList
	case remoting.ConsumerSendMessageBack:
		return (*Broker).sendBack
	case remoting.QueryMessage:
		return (*Broker).queryMessage
	case remoting.ViewMessageByID:
		return (*Broker).viewMessage
	case remoting.EndTransaction:
		return (*Broker).endTransaction
	case remoting.LockBatchQueues:
		return (*Broker).lockQueues
	case remoting.UnlockBatchQueues:
		return (*Broker).unlockQueues
	case remoting.CheckClientConfig:
		return (*Broker).checkClientConfig
	}
	return adminOperation(code)
}

// maxQuickSend is the largest body, bytes, of a send that is worked on before the next request of its connection is read.
const maxQuickSend = 32 << 10

// placeOf says where a request is worked on. Some must not be overtaken: a client that gives a queue back stores where it was, waits for
// no answer, and may ask for that offset, or store another, at once. And a send that waits neither for the disk nor for a worker nor for
// an embedder's hook takes less time than waking a goroutine for it.
func (b *Broker) placeOf(req *remoting.Command) remoting.Place {
	switch req.Code {
	case remoting.UpdateConsumerOffset:
		return remoting.InOrder
	case remoting.SendMessage, remoting.SendMessageV2, remoting.SendBatchMessage:
		if b.quickSends && len(req.Body) <= maxQuickSend {
			return remoting.Quick
		}
	}
	return remoting.Apart
}

// handle answers one request.
func (b *Broker) handle(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command {
	op := operationOf(req.Code)
	b.figures.count(req.Code, op != nil)
	if op == nil {
		return remoting.NotSupported(req)
	}
	if req.Code == remoting.QueryConsumerOffset {
		return b.orSilence(ctx, c, req, op)
	}
	resp, err := b.guarded(ctx, c, req, op)
	if err != nil {
		return b.refuse(c, req, err)
	}
	if resp != nil && len(resp.Body) > largeAnswer && !req.IsOneway() {
		return b.handOver(ctx, c, req, resp)
	}
	return resp
}

// largeAnswer is the size of a body, bytes, from which answers share what slow readers may keep waiting.
const largeAnswer = 1 << 10

// handOver puts a large answer into the connection's buffer and returns nil, or what to answer instead.
func (b *Broker) handOver(ctx context.Context, c *remoting.Conn, req, resp *remoting.Command) *remoting.Command {
	size := int64(len(resp.Body))
	if !b.reserve(c, size, 0) {
		return req.Refuse(remoting.SystemBusy, "%s", tooMuchWaits)
	}
	err := b.respond(ctx, c, req, resp, size)
	switch {
	case errors.Is(err, remoting.ErrFrame):
		return b.refuse(c, req, err)
	case err != nil && ctx.Err() == nil && !errors.Is(err, remoting.ErrClosed):
		b.opts.Logger.Warn("answer dropped", "code", req.Code, "peer", c.RemoteAddr(), "err", err)
	}
	return nil
}

const tooMuchWaits = "[OVERLOAD]too many answers wait to be read"

// reserve counts bytes of an answer that is about to be made, besides those that it has already; false, and not counted, when all answers
// together would hold too much. Those that wait for room, or in the connections' buffers, count only against connections that have much waiting or in the
// making: who reads is served.
func (b *Broker) reserve(c *remoting.Conn, bytes, already int64) bool {
	limit := b.live().MaxPullBytes
	making, here := b.pullBytes.Add(bytes), c.Hold(bytes)
	if making <= limit {
		reads := c.Waiting() <= onTheWay && (here == bytes+already || here <= limit/partOfOne)
		if reads || making+b.stuckBytes.Load()+b.net.Waiting() <= limit {
			return true
		}
	}
	b.unreserve(c, bytes)
	b.figures.busy.Add(1)
	return false
}

const (
	// partOfOne is the part of the bound that a connection with nothing waiting may have in the making, whatever the others do; a
	// single answer may be larger.
	partOfOne = 16
	// onTheWay is what may wait for a connection that reads, bytes: a part of its last answer that it has already, but that is not
	// counted as written yet.
	onTheWay = 256 << 10
)

func (b *Broker) unreserve(c *remoting.Conn, bytes int64) {
	b.pullBytes.Add(-bytes)
	c.Hold(-bytes)
}

// respond puts an answer, of which so many bytes are reserved, into the connection's buffer, where it may wait for room.
func (b *Broker) respond(ctx context.Context, c *remoting.Conn, req, resp *remoting.Command, reserved int64) error {
	b.stuckBytes.Add(reserved)
	b.pullBytes.Add(-reserved)
	defer func() {
		b.stuckBytes.Add(-reserved)
		c.Hold(-reserved)
	}()
	return c.Respond(ctx, req, resp)
}

func (b *Broker) refuse(c *remoting.Conn, req *remoting.Command, err error) *remoting.Command {
	resp := req.Refuse(remoting.SystemError, "%v", err)
	b.opts.Logger.Warn("request refused", "code", req.Code, "peer", c.RemoteAddr(), "err", resp.Remark) // which is not as long as a frame
	if errors.Is(err, rocketstore.ErrClosed) {
		return req.Refuse(remoting.ServiceNotAvailable, "the broker is shutting down")
	}
	return resp
}

// orSilence answers with what op has to say, but closes the connection where that is an error.
func (b *Broker) orSilence(ctx context.Context, c *remoting.Conn, req *remoting.Command, op operation) (resp *remoting.Command) {
	defer func() {
		if v := recover(); v != nil {
			b.opts.Logger.Error("handler panic", "code", req.Code, "panic", v, "stack", string(debug.Stack()))
			c.Close()
			resp = nil
		}
	}()
	resp, err := b.guarded(ctx, c, req, op)
	if err != nil {
		b.opts.Logger.Warn("no answer", "code", req.Code, "peer", c.RemoteAddr(), "err", req.Refuse(0, "%v", err).Remark)
		c.Close()
		return nil
	}
	return resp
}

// checkClientConfig serves 46, which clients send for subscriptions by SQL only.
func (b *Broker) checkClientConfig(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	return req.Refuse(remoting.SystemError, "%s", noSQL), nil
}

const noSQL = "The broker does not support consumer to filter message by SQL92"

// endTransaction serves 37. An outcome that is not known yet has no answer at all.
func (b *Broker) endTransaction(ctx context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	end := rocketstore.TransactionEnd{
		ProducerGroup: f.Text("producerGroup"), PreparedOffset: f.Int64("commitLogOffset"), Number: f.Int64("tranStateTableOffset"),
		Unasked: !f.OptBool("fromTransactionCheck"),
	}
	outcome := f.Int32("commitOrRollback")
	if err := f.Err(); err != nil {
		return nil, err
	}
	const commit, rollback = 8, 12
	switch outcome {
	case commit:
		end.Commit = true
	case rollback:
	default:
		return nil, nil
	}
	switch _, err := b.store.EndTransaction(context.WithoutCancel(ctx), end); { // also when the connection ends meanwhile
	case errors.Is(err, rocketstore.ErrTooLate):
		return req.Refuse(remoting.IllegalOperation, "%v", err), nil
	case errors.Is(err, rocketstore.ErrAlreadyEnded), errors.Is(err, rocketstore.ErrSyncTimeout): // a commit that came twice is done
	case err != nil:
		return nil, err
	}
	return req.Reply(remoting.Success), nil
}
