package producer

import (
	"context"
	"fmt"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// TransactionState is the fate of a prepared message.
type TransactionState int32

// The states, as the wire has them.
const (
	// Unknown leaves the message prepared; the broker asks again.
	Unknown TransactionState = 0
	// Commit lets consumers see the message.
	Commit TransactionState = 8
	// Rollback drops it.
	Rollback TransactionState = 12
)

// String is the name in the original.
func (s TransactionState) String() string {
	switch s {
	case Commit:
		return trace.StateCommit
	case Rollback:
		return trace.StateRollback
	}
	return trace.StateUnknown
}

// TransactionListener decides transactions. An error or a panic means [Unknown], and its text is sent to the broker; so does a state
// that does not exist.
type TransactionListener interface {
	// Execute runs the local transaction for a message that was prepared; its unique id is in result, arg is the sender's.
	Execute(ctx context.Context, m *message.Message, result Result, arg any) (TransactionState, error)
	// Check finds out what became of the local transaction of a message, maybe of an earlier process. The broker asks until it is told.
	Check(ctx context.Context, m *message.Received) (TransactionState, error)
}

// Executor runs a local transaction, as [TransactionListener.Execute] does.
type Executor func(ctx context.Context, m *message.Message, result Result, arg any) (TransactionState, error)

// TransactionResult is what became of a transaction's message as far as its sender knows.
type TransactionResult struct {
	Result
	// State is what the broker was told.
	State TransactionState
	// Err is the local transaction's error.
	Err error
}

// SendInTransaction sends a message that consumers do not see yet, runs the local transaction of Options.Listener, and tells the broker
// its outcome. A message that is stored but not [OK] is rolled back without running it. A delay of the message is taken out. The broker
// asks later when the outcome did not reach it. The error is that of [Producer.Send], or [ErrNoListener].
func (p *Producer) SendInTransaction(ctx context.Context, m *message.Message, arg any) (TransactionResult, error) {
	if p.opts.Listener == nil {
		return TransactionResult{}, ErrNoListener
	}
	return p.transact(ctx, m, p.opts.Listener.Execute, arg)
}

// SendInTransactionBy is SendInTransaction with a local transaction of its own. Checks go to Options.Listener, without which they
// are answered [Unknown].
func (p *Producer) SendInTransactionBy(ctx context.Context, m *message.Message, execute Executor, arg any) (TransactionResult, error) {
	if execute == nil {
		return TransactionResult{}, ErrNoListener
	}
	return p.transact(ctx, m, execute, arg)
}

func (p *Producer) transact(ctx context.Context, m *message.Message, execute Executor, arg any) (TransactionResult, error) {
	r, err := p.prepare(m, message.FlagPrepared, message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, p.group)
	if err != nil {
		return TransactionResult{}, err
	}
	p.locals.Add(1)
	defer p.less(&p.locals)
	var t TransactionResult
	if t.Result, err = p.wait(ctx, m, r, target{}); err != nil {
		return TransactionResult{}, err
	}
	if t.TransactionID == "" {
		t.TransactionID = t.MessageID
	}
	if t.State = Rollback; t.Status == OK {
		t.State, t.Err = p.decide(func() (TransactionState, error) { return execute(ctx, m, t.Result, arg) })
	}
	if err := p.endTransaction(ctx, m, r, &t); err != nil {
		p.opts.Logger.Warn("end of a transaction not sent", "id", t.MessageID, "state", t.State, "err", err) // a check will ask
	}
	return t, nil
}

// decide asks a listener; whatever goes wrong leaves the outcome open.
func (p *Producer) decide(ask func() (TransactionState, error)) (state TransactionState, err error) {
	defer func() {
		if v := recover(); v != nil {
			state, err = Unknown, fmt.Errorf("panic: %v", v)
			p.opts.Logger.Error("transaction listener", "err", err)
		}
	}()
	state, err = ask()
	if err != nil {
		return Unknown, err
	}
	if state != Commit && state != Rollback {
		return Unknown, nil
	}
	return state, nil
}

// endTransaction tells the broker that has the prepared message what became of it.
func (p *Producer) endTransaction(ctx context.Context, m *message.Message, r *prepared, t *TransactionResult) error {
	_, offset, err := message.ParseOffsetID(t.OffsetID)
	if err != nil {
		return err
	}
	addr, err := p.client.Master(t.Queue.BrokerName)
	if err != nil {
		return err
	}
	fields := remoting.Fields{
		remoting.String("producerGroup", p.group), remoting.Int("tranStateTableOffset", t.QueueOffset),
		remoting.Int("commitLogOffset", offset), remoting.Int("commitOrRollback", int64(t.State)),
		remoting.Bool("fromTransactionCheck", false), remoting.String("msgId", t.MessageID),
		remoting.String("bname", t.Queue.BrokerName),
	}
	if t.TransactionID != t.MessageID { // the broker's word for it
		fields = append(fields, remoting.String("transactionId", t.TransactionID))
	}
	req := remoting.NewRequest(remoting.EndTransaction, fields...)
	if t.Err != nil {
		req.Remark = "executeLocalTransactionBranch exception: " + t.Err.Error()
	}
	p.traceEnd(endContext{m, r.topic, t.MessageID, addr, t.TransactionID, t.State, false})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.opts.SendTimeout) // also when the sender has gone meanwhile
	defer cancel()
	return p.client.Oneway(ctx, addr, req)
}

// CheckTransaction implements client.Producer: it has the listener asked on the pool of checks.
func (p *Producer) CheckTransaction(addr string, req *remoting.Command, m *message.Received) {
	p.stats.checks.Add(1)
	work := func() {
		if p.state.Load() == running {
			p.answerCheck(addr, req, m)
		}
	}
	if !p.checks.submit(job(work)) {
		p.opts.Logger.Warn("check of a transaction dropped", "id", m.ID(), "limit", p.opts.CheckQueue) // the broker asks again
	}
}

func (p *Producer) answerCheck(addr string, req *remoting.Command, m *message.Received) {
	if p.client.Namespace() != "" {
		m.Topic = p.client.Namespace().Unwrap(m.Topic)
	}
	state, err := p.decide(func() (TransactionState, error) {
		if p.opts.Listener == nil {
			return Unknown, ErrNoListener
		}
		return p.opts.Listener.Check(p.ctx, m)
	})
	if err != nil {
		p.opts.Logger.Warn("check of a transaction", "id", m.ID(), "err", err)
	}
	f := req.Fields.Reader()
	answer := remoting.NewRequest(remoting.EndTransaction,
		remoting.String("producerGroup", p.group), remoting.Int("tranStateTableOffset", f.Int64("tranStateTableOffset")),
		remoting.Int("commitLogOffset", f.Int64("commitLogOffset")), remoting.Int("commitOrRollback", int64(state)),
		remoting.Bool("fromTransactionCheck", true), remoting.String("msgId", m.ID()))
	if f.Err() != nil {
		p.opts.Logger.Warn("check of a transaction", "id", m.ID(), "err", f.Err())
		return
	}
	for _, name := range []string{"transactionId", "bname"} {
		if value, ok := req.Fields.Lookup(name); ok {
			answer.Fields = append(answer.Fields, remoting.String(name, value))
		}
	}
	if err != nil {
		answer.Remark = "checkLocalTransactionState Exception: " + err.Error()
	}
	p.traceEnd(endContext{&m.Message, m.Topic, m.ID(), addr, req.Fields.Get("transactionId"), state, true})
	ctx, cancel := context.WithTimeout(p.ctx, 3*time.Second)
	defer cancel()
	if err := p.client.Oneway(ctx, addr, answer); err != nil {
		p.opts.Logger.Warn("answer to a check not sent", "id", m.ID(), "err", err)
	}
}
