package consumer

import (
	"errors"
	"time"

	"github.com/rocketstore/rocketstore/message"
)

// consumeInOrder lets the listener have one batch of a queue after the other, as long as the queue's lock is held.
func (c *Consumer) consumeInOrder(p *process) {
	for !p.dropped() {
		number, list, come := p.peek(c.opts.BatchSize)
		if len(list) == 0 {
			select {
			case <-come:
			case <-p.ctx.Done():
			}
			continue
		}
		select {
		case c.orderly <- struct{}{}: // in the order of the asking, so that no queue has a worker for long
		case <-p.ctx.Done():
			return
		}
		rest := c.consumeFirst(p, number, list)
		<-c.orderly
		sleep(p.ctx, rest)
	}
}

// consumeFirst consumes the first messages of a queue, and says for how long the queue has to rest.
func (c *Consumer) consumeFirst(p *process, number int64, list []*message.Received) time.Duration {
	if !c.opts.Broadcast && !p.isLocked() && !c.relock(p) {
		return lockRetry
	}
	if p.dropped() || !p.begin(number, len(list), time.Now()) {
		return 0
	}
	b := c.newBatch(p, number, list)
	err := c.call(b)
	done := b.consumed(err)
	c.figures.consumed.Add(int64(done))
	p.settle(number, done)
	failed := list[done:]
	if len(failed) == 0 || errors.Is(err, errUnfinished) {
		return 0
	}
	c.figures.failed.Add(int64(len(failed)))
	c.opts.Logger.Debug("messages not consumed", "queue", b.Queue.String(), "offset", failed[0].QueueOffset, "count", len(failed), "err", err)
	again := false
	for i, m := range failed {
		if !c.giveUp(p, number+int64(done+i), m) {
			again = true
		}
	}
	if !again {
		return 0
	}
	return min(max(b.Suspend, minSuspend), maxSuspend)
}

// giveUp sends a message that has failed too many times on to the dead letter queue, and settles it; else it counts one try more.
func (c *Consumer) giveUp(p *process, number int64, m *message.Received) bool {
	if m.ReconsumeTimes < c.opts.MaxReconsume || c.opts.Broadcast {
		m.ReconsumeTimes++
		return false
	}
	if err := c.resend(c.listen, m, m.ReconsumeTimes, -1); err != nil {
		c.failed("message not sent to the dead letter queue", err, "queue", p.queue.String(), "offset", m.QueueOffset)
		m.ReconsumeTimes++
		return false
	}
	c.figures.sentBack.Add(1)
	c.figures.dead.Add(1)
	p.settle(number, 1)
	return true
}
