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
	return resp
}

func (b *Broker) refuse(c *remoting.Conn, req *remoting.Command, err error) *remoting.Command {
	b.opts.Logger.Warn("request refused", "code", req.Code, "peer", c.RemoteAddr(), "err", err)
	if errors.Is(err, rocketstore.ErrClosed) {
		return req.Refuse(remoting.ServiceNotAvailable, "the broker is shutting down")
	}
	return req.Refuse(remoting.SystemError, "%v", err)
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
		b.opts.Logger.Warn("no answer", "code", req.Code, "peer", c.RemoteAddr(), "err", err)
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
