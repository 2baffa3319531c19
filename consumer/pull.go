package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// Bits of a pull's system flag.
const (
	pullCommits   = 1 // the commit offset counts
	pullMayWait   = 2 // the broker may hold the pull until something comes
	pullSubscribe = 4 // the expression is in the pull itself
)

// The times of the original's pulls.
const (
	pullSuspend   = 15 * time.Second // the broker holds a pull that finds nothing
	pullTimeout   = 30 * time.Second
	pullFull      = 50 * time.Millisecond // after which limits are looked at again
	pullFailed    = 3 * time.Second
	pullThrottled = 20 * time.Millisecond // FLOW_CONTROL
	pullUntold    = time.Second           // the broker does not know the subscription yet
	pullMoved     = 10 * time.Second      // what is cached may take so long when the offset is to change
)

// pulled is a decoded answer to a pull.
type pulled struct {
	code     int32
	remark   string
	next     int64
	messages []*message.Received
	bad      []badMessage
	err      error // what ends messages early
}

// badMessage is one whose body cannot be read.
type badMessage struct {
	m   *message.Received
	err error
}

// pullLoop pulls a queue until it is lost.
func (c *Consumer) pullLoop(p *process) {
	for !p.dropped() {
		if room, full := p.full(c.limits); full {
			c.figures.flowWaits.Add(1)
			waitFor(p.ctx, room, pullFull)
			continue
		}
		if c.opts.Orderly && !c.opts.Broadcast && !p.isLocked() {
			if !c.relock(p) {
				sleep(p.ctx, lockRetry)
			}
			continue
		}
		sleep(p.ctx, max(c.pullOnce(p), c.opts.PullInterval))
	}
}

// waitFor waits for an event, for some time at most.
func waitFor(ctx context.Context, event <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-event:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// pullOnce sends one pull and deals with the answer. It says how long to wait before the next.
func (c *Consumer) pullOnce(p *process) time.Duration {
	ctx, end, offset, epoch := p.beginPull(pullTimeout)
	defer end()
	c.figures.pulls.Add(1)
	addr, slave, err := c.net.Broker(p.queue.BrokerName, p.from.Load())
	var resp *remoting.Command
	if err == nil {
		resp, err = c.net.Call(ctx, addr, c.pullRequest(p, offset, slave))
	}
	if err != nil {
		if p.dropped() || errors.Is(err, context.Canceled) { // by a reset or a pause
			return 0
		}
		c.figures.pullErrors.Add(1)
		c.failed("pull", err, "queue", p.queue.String())
		return pullFailed
	}
	answer, err := c.readPull(p, resp)
	if err != nil {
		c.figures.pullErrors.Add(1)
		c.failed("answer to a pull", err, "queue", p.queue.String(), "broker", addr)
		return pullFailed
	}
	switch answer.code {
	case remoting.Success:
		return c.found(p, epoch, offset, answer)
	case remoting.PullNotFound, remoting.PullRetryImmediately:
		p.took(epoch, answer.next, nil)
		return 0
	case remoting.PullOffsetMoved:
		c.move(p, epoch, offset, answer.next)
		return 0
	}
	return c.refused(p, addr, answer)
}

// pullRequest makes request 11.
func (c *Consumer) pullRequest(p *process, offset int64, slave bool) *remoting.Command {
	sub := p.sub.Load()
	flags, commit, version := int64(pullMayWait), int64(0), int64(0)
	if c.active {
		flags |= pullSubscribe
	} else {
		version = c.version(sub.Topic)
		if at := p.at.Load(); !c.opts.Broadcast && at > 0 {
			commit = at
			if !slave { // which keeps no offsets
				flags |= pullCommits
			}
		}
	}
	req := remoting.NewRequest(remoting.PullMessage,
		remoting.String("consumerGroup", c.group), remoting.String("topic", p.queue.Topic), remoting.Int("queueId", int64(p.queue.QueueID)),
		remoting.Int("queueOffset", offset), remoting.Int("maxMsgNums", int64(c.opts.PullBatch)), remoting.Int("sysFlag", flags),
		remoting.Int("commitOffset", commit), remoting.Int("suspendTimeoutMillis", pullSuspend.Milliseconds()),
		remoting.Int("subVersion", version), remoting.String("expressionType", "TAG"), remoting.String("bname", p.queue.BrokerName))
	if c.active {
		req.Fields = append(req.Fields, remoting.String("subscription", sub.Expression))
	}
	return req
}

// readPull decodes an answer. Messages that the subscription does not want are left out.
func (c *Consumer) readPull(p *process, resp *remoting.Command) (*pulled, error) {
	a := &pulled{code: resp.Code, remark: resp.Remark}
	switch resp.Code {
	case remoting.Success, remoting.PullNotFound, remoting.PullRetryImmediately, remoting.PullOffsetMoved:
	default:
		return a, nil
	}
	f := resp.Fields.Reader()
	a.next = f.Int64("nextBeginOffset")
	p.minOffset.Store(f.OptInt64("minOffset", 0))
	p.maxOffset.Store(f.OptInt64("maxOffset", 0))
	p.from.Store(f.OptInt64("suggestWhichBrokerId", 0))
	if err := f.Err(); err != nil {
		return nil, err
	}
	if a.next < 0 {
		return nil, fmt.Errorf("nextBeginOffset is %d", a.next)
	}
	if resp.Code == remoting.Success {
		c.decode(p, resp.Body, a)
	}
	return a, nil
}

// decode takes the messages out of an answer's body. After a record that cannot be believed the rest is lost with this answer, and
// the next pull begins with it.
func (c *Consumer) decode(p *process, body []byte, a *pulled) {
	sub := p.sub.Load()
	a.messages = make([]*message.Received, 0, c.opts.PullBatch)
	last := int64(-1)
	for m, err := range client.DecodeRecords(body, c.net.Options().MaxBody) {
		if errors.Is(err, client.ErrRecord) {
			a.err = err
			if last >= 0 {
				a.next = last + 1
			}
			return
		}
		last = m.QueueOffset
		m.BrokerName = p.queue.BrokerName
		if !sub.Takes(m.Tag()) {
			c.figures.filtered.Add(1)
			continue
		}
		c.rename(m)
		if err != nil {
			a.bad = append(a.bad, badMessage{m, err})
			continue
		}
		a.messages = append(a.messages, m)
	}
}

// rename gives a message the topic that the user knows: that before the retry, without the namespace.
func (c *Consumer) rename(m *message.Received) {
	if m.Topic == c.retry {
		if topic, ok := m.Properties.Get(message.PropertyRetryTopic); ok {
			m.Topic = topic
		}
	}
	m.Topic = c.net.Namespace().Unwrap(m.Topic)
}

// found hands the messages of an answer on.
func (c *Consumer) found(p *process, epoch, offset int64, a *pulled) time.Duration {
	if a.err != nil {
		c.figures.pullErrors.Add(1)
		c.failed("answer to a pull", a.err, "queue", p.queue.String(), "offset", offset)
		if len(a.messages) == 0 && len(a.bad) == 0 {
			return pullFailed
		}
	}
	for _, b := range a.bad { // before the offset can pass them
		c.failed("message given up", b.err, "queue", p.queue.String(), "offset", b.m.QueueOffset)
		if !c.bury(p, b.m) {
			return 0
		}
	}
	number, added, ok := p.took(epoch, a.next, a.messages)
	if !ok {
		return 0
	}
	c.figures.received.Add(int64(len(added)))
	if !c.opts.Orderly {
		c.submit(p, number, added)
	}
	return 0
}

// bury sends a message that nobody can read to the dead letter queue, and tries until it is there.
func (c *Consumer) bury(p *process, m *message.Received) bool {
	if c.opts.Broadcast || c.active {
		return true
	}
	for !c.sendBack(p.ctx, m, -1) {
		if !sleep(p.ctx, retryLocally) {
			return false
		}
	}
	return true
}

// move goes on at another offset, which the broker named since there is nothing at the one asked for. What is cached gets some time
// before.
func (c *Consumer) move(p *process, epoch, offset, next int64) {
	c.opts.Logger.Warn("offset out of range", "queue", p.queue.String(), "offset", offset, "next", next)
	c.figures.moved.Add(1)
	until := time.Now().Add(pullMoved)
	for {
		left := time.Until(until)
		room, empty := p.empty(epoch)
		if empty || left <= 0 || p.dropped() {
			break
		}
		waitFor(p.ctx, room, left)
	}
	if p.dropped() || !p.resetIn(epoch, next) {
		return
	}
	if err := c.store.write(p.ctx, map[Queue]int64{p.queue: next}, true); err != nil {
		c.failed("offset not stored", err, "queue", p.queue.String())
	}
}

// refused deals with an answer that is an error.
func (c *Consumer) refused(p *process, addr string, a *pulled) time.Duration {
	c.figures.pullErrors.Add(1)
	err := &client.BrokerError{Code: a.code, Remark: a.remark, Addr: addr, Request: remoting.PullMessage}
	switch a.code {
	case remoting.FlowControl:
		return pullThrottled
	case remoting.SubscriptionNotExist, remoting.SubscriptionNotLatest:
		// The broker was started anew, or another member told it something older.
		c.opts.Logger.Info("broker does not know the subscription", "queue", p.queue.String(), "err", err)
		c.beat(p.ctx)
		return pullUntold
	}
	c.failed("pull", err, "queue", p.queue.String())
	return pullFailed
}
