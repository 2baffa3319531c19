package broker

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// checker asks producers what became of their transactions (39): those that heartbeats made known. It implements
// [rocketstore.Checker] for both engines; the producers' answers are requests 37. The store calls it from one goroutine.
type checker struct {
	broker *Broker
	stuck  map[*remoting.Conn]time.Time // that did not take a question in time, and until when they are not waited for
}

// checksOf has the store ask producers through this broker, unless the embedder has a way of his own (R-B-40).
func (b *Broker) checksOf(o *rocketstore.Options) {
	b.noChecks.Store(b.opts.NoTransactionChecks)
	c := &o.Checks
	if c.Checker == nil {
		c.Checker = &checker{b, map[*remoting.Conn]time.Time{}}
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

// Bounds of one question: how many producers of a group are tried, how long one is waited for that does not read what it is
// sent, and for how long such a one is not waited for again, since that holds up all other questions.
const (
	maxAsked  = 8
	askWait   = 500 * time.Millisecond
	stuckTime = 10 * time.Second
)

// Check sends the question to one producer of exactly that group, another one each time.
func (k *checker) Check(ctx context.Context, r rocketstore.CheckRequest) error {
	producers := k.broker.clients.producersOf(r.Group, maxAsked)
	if len(producers) == 0 {
		return rocketstore.ErrNoProducer
	}
	req := k.broker.question(&r)
	now, cancel := context.WithCancel(ctx)
	cancel() // what has room in a connection's buffer goes there all the same
	for _, c := range producers {
		if c.Oneway(now, req) == nil {
			return nil
		}
	}
	maps.DeleteFunc(k.stuck, func(_ *remoting.Conn, until time.Time) bool { return !time.Now().Before(until) })
	failed := rocketstore.ErrNoProducer
	for _, c := range producers {
		if _, known := k.stuck[c]; known {
			continue
		}
		soon, cancel := context.WithTimeout(ctx, askWait)
		err := c.Oneway(soon, req)
		cancel()
		if err == nil {
			return nil
		}
		failed = fmt.Errorf("%w: %w", failed, err)
		k.stuck[c] = time.Now().Add(stuckTime)
	}
	return failed
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
