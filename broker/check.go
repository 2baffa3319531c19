package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// checker asks producers what became of their transactions (39): those that heartbeats made known. It implements
// [rocketstore.Checker] for both engines; the producers' answers are requests 37.
type checker struct{ broker *Broker }

// checksOf has the store ask producers through this broker, unless the embedder has a way of his own (R-B-40).
func (b *Broker) checksOf(o *rocketstore.Options) {
	b.noChecks.Store(b.opts.NoTransactionChecks)
	c := &o.Checks
	if c.Checker == nil {
		c.Checker = checker{b}
	}
	if c.MaxAge == 0 {
		c.MaxAge = o.Retention.MaxAge
	}
	enabled := c.Enabled
	c.Enabled = func() bool { return b.ready.Load() && !b.noChecks.Load() && (enabled == nil || enabled()) }
	if c.Slave == nil {
		c.Slave = func() bool { return b.opts.ID != 0 }
	}
}

// SetTransactionChecks says whether producers are asked what became of their transactions, from the next round on (R-B-29).
func (b *Broker) SetTransactionChecks(on bool) { b.noChecks.Store(!on) }

// maxAsked bounds how many producers of a group are tried for one question.
const maxAsked = 8

// Check sends the question to one producer of exactly that group, another one each time. It never waits: one that does not
// read what it is sent is passed over, as it would hold up all other questions.
func (k checker) Check(ctx context.Context, r rocketstore.CheckRequest) error {
	b := k.broker
	producers := b.clients.producersOf(r.Group, maxAsked)
	if len(producers) == 0 {
		return rocketstore.ErrNoProducer
	}
	req := b.question(&r)
	ctx, cancel := context.WithCancel(ctx)
	cancel() // what has room in a connection's buffer goes there all the same
	var failed error
	for _, c := range producers {
		err := c.Oneway(ctx, req)
		if err == nil {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	return fmt.Errorf("%w: %w", rocketstore.ErrNoProducer, failed)
}

// question is request 39. The fields of later lines do no harm to clients of earlier ones; the message is what the producer
// sent, compressed if it was (protocol.md 7, E3).
func (b *Broker) question(r *rocketstore.CheckRequest) *remoting.Command {
	req := remoting.NewRequest(remoting.CheckTransactionState,
		remoting.Int("tranStateTableOffset", r.Number), remoting.Int("commitLogOffset", r.PhysicalOffset))
	if id := message.Lookup(r.Record.Properties, message.PropertyUniqueKey); len(id) > 0 {
		req.Fields = append(req.Fields, remoting.String("msgId", string(id)), remoting.String("transactionId", string(id)))
	}
	req.Fields = append(req.Fields, remoting.String("offsetMsgId", message.OffsetID(r.Record.StoreHost, r.PhysicalOffset)))
	if b.rules.NamesRegion { // 5.3
		req.Fields = append(req.Fields, remoting.String("topic", rocketstore.HalfTopicName), remoting.String("bname", b.opts.Name))
	}
	req.Body = r.Record.AppendTo(make([]byte, 0, r.Record.EncodedSize()))
	return req
}
