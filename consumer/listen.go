package consumer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// ErrPanic is matched by the error that a listener's panic becomes.
var ErrPanic = errors.New("listener panic")

// The times of the original's concurrent listeners.
const (
	retryLocally = 5 * time.Second // after a send-back that failed
	timeoutEvery = time.Minute     // between two looks for listeners that hang
	timeoutLevel = 3               // delay level of their messages
	maxOverdue   = 16              // messages of a queue that one look sends back
)

// submit hands messages of a queue to the workers, in batches. It waits while they have too much already.
func (c *Consumer) submit(p *process, number int64, list []*message.Received) {
	for len(list) > 0 {
		n := min(len(list), c.opts.BatchSize)
		b := c.newBatch(p, number, list[:n:n])
		select {
		case c.batches <- b:
		case <-p.ctx.Done():
			return
		}
		number += int64(n)
		list = list[n:]
	}
}

func (c *Consumer) newBatch(p *process, number int64, list []*message.Received) *Batch {
	return &Batch{Queue: p.queue, Messages: list, Suspend: c.opts.Suspend, acked: -1, number: number, p: p}
}

// worker consumes batches until the consumer closes.
func (c *Consumer) worker() {
	for {
		select {
		case <-c.ctx.Done():
			return
		default:
		}
		select {
		case b := <-c.batches:
			c.consume(b)
		case <-c.ctx.Done():
			return
		}
	}
}

// consume lets the listener have a batch, and settles it.
func (c *Consumer) consume(b *Batch) {
	p := b.p
	if p.dropped() || !p.begin(b.number, len(b.Messages), time.Now()) {
		return
	}
	err := c.call(b)
	done := b.consumed(err)
	c.figures.consumed.Add(int64(done))
	failed := b.Messages[done:]
	if errors.Is(err, errUnfinished) {
		failed = nil // they are left as they are
	} else if len(failed) > 0 {
		c.figures.failed.Add(int64(len(failed)))
		c.opts.Logger.Debug("messages not consumed", "queue", b.Queue.String(), "offset", failed[0].QueueOffset, "count", len(failed), "err", err)
	}
	p.settle(b.number, done)
	for i, m := range failed {
		number := b.number + int64(done+i)
		if p.isSettled(number) { // sent back since the listener took too long
			continue
		}
		if c.opts.Broadcast {
			c.opts.Logger.Warn("message dropped, broadcast has no retry", "queue", b.Queue.String(), "offset", m.QueueOffset, "err", err)
			p.settle(number, 1)
			continue
		}
		if c.sendBack(c.listen, m, b.DelayLevel) {
			p.settle(number, 1)
			continue
		}
		m.ReconsumeTimes++
		c.work.Go(func() {
			if sleep(p.ctx, retryLocally) {
				c.submit(p, number, []*message.Received{m})
			}
		})
	}
}

// call runs hooks, trace and the listener.
func (c *Consumer) call(b *Batch) error {
	for _, h := range c.opts.Hooks {
		h.Before(c.listen, b)
	}
	var note *trace.Context
	if c.tracer != nil {
		note = c.tracer.before(b)
	}
	begun := time.Now()
	err := c.guard(b)
	took := time.Since(begun)
	if c.tracer != nil {
		c.tracer.after(note, err, took)
	}
	c.figures.listened.Add(int64(took))
	c.figures.batches.Add(1)
	for _, h := range c.opts.Hooks {
		h.After(c.listen, b, err, took)
	}
	return err
}

// guard makes a panic of the listener an error.
func (c *Consumer) guard(b *Batch) (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.opts.Logger.Error("listener panic", "queue", b.Queue.String(), "offset", b.Messages[0].QueueOffset, "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", ErrPanic, v)
		}
	}()
	return c.opts.Listener(c.listen, b)
}

// sendBackOverdue sends messages back whose listeners take too long, so that they do not hold the queue's offset for ever.
func (c *Consumer) sendBackOverdue() {
	for _, p := range c.held() {
		for range maxOverdue {
			number, m := p.overdue(time.Now().Add(-c.opts.ConsumeTimeout))
			if m == nil {
				break
			}
			c.opts.Logger.Warn("listener takes too long", "queue", p.queue.String(), "offset", m.QueueOffset)
			if !c.opts.Broadcast && !c.sendBack(p.ctx, m, timeoutLevel) {
				break
			}
			c.figures.overdue.Add(1)
			p.settle(number, 1)
		}
	}
}

// SendBack has a message that was received come again: after the time of a delay level, 0 for the broker to decide, -1 to the
// dead letter queue. A broadcast message cannot be sent back. The error is that of the last way that was tried.
func (c *Consumer) SendBack(ctx context.Context, m *message.Received, delayLevel int32) error {
	switch {
	case !c.isOpen.Load():
		return ErrClosed
	case c.opts.Broadcast:
		return errors.New("a broadcast message cannot be sent back")
	}
	return c.trySendBack(ctx, m, delayLevel)
}
