package consumer

import (
	"context"
	"errors"
	"iter"

	"github.com/rocketstore/rocketstore/message"
)

// errUnfinished says that the consumer closed before the messages of a batch were taken.
var errUnfinished = errors.New("closed before the messages were taken")

// offer is a batch that waits to be taken by a loop over Messages.
type offer struct {
	messages []*message.Received
	taken    chan int // how many of them a loop has consumed; sent once
}

// Messages yields the messages one by one; it is for a consumer without a listener. A message is consumed when the loop comes
// for the next one, so one in whose body the loop was left with break or return comes again; a loop that is to end with what it has
// consumed cancels ctx and goes on. Of one queue the messages come in order as long as one loop runs; several may run, on
// goroutines of their own. What cannot be consumed is given to [Consumer.SendBack].
//
// With an error the message is nil. It tells what went wrong meanwhile, such as a broker that is down or a topic that is not known;
// the loop may go on. The sequence ends with ctx and with [Consumer.Close].
func (c *Consumer) Messages(ctx context.Context) iter.Seq2[*message.Received, error] {
	return func(yield func(*message.Received, error) bool) {
		for ctx.Err() == nil && c.ctx.Err() == nil {
			select {
			case o := <-c.offers:
				if !c.yieldOffer(ctx, o, yield) {
					return
				}
			case err := <-c.errs:
				if !yield(nil, err) {
					return
				}
			case <-ctx.Done():
			case <-c.ctx.Done():
			}
		}
	}
}

// yieldOffer yields the messages of a batch and says how many were consumed, also when the loop's body panics.
func (c *Consumer) yieldOffer(ctx context.Context, o *offer, yield func(*message.Received, error) bool) bool {
	n := 0
	defer func() { o.taken <- n }()
	for _, m := range o.messages {
		if ctx.Err() != nil || c.ctx.Err() != nil {
			return true
		}
		if !yield(m, nil) {
			return false
		}
		n++
	}
	return true
}

// offer is the listener of a consumer whose messages are taken from Messages.
func (c *Consumer) offer(ctx context.Context, b *Batch) error {
	done := 0
	for done < len(b.Messages) {
		o := &offer{b.Messages[done:], make(chan int, 1)}
		select {
		case c.offers <- o:
			done += <-o.taken
		case <-ctx.Done():
		case <-c.ctx.Done():
		case <-b.p.ctx.Done(): // the queue is lost, so another member has them
		}
		if done < len(b.Messages) && (ctx.Err() != nil || c.ctx.Err() != nil || b.p.dropped()) {
			b.Ack(done)
			return errUnfinished
		}
	}
	return nil
}
