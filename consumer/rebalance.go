package consumer

import (
	"context"
	"slices"
	"time"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// member is the consumer as its client sees it.
type member struct{ c *Consumer }

// Heartbeat implements client.Consumer.
func (m member) Heartbeat() client.ConsumerData {
	c := m.c
	d := client.ConsumerData{Group: c.group, Passive: !c.active, Broadcast: c.opts.Broadcast, From: c.opts.From.wire()}
	for _, s := range c.subscriptions() {
		d.Subscriptions = append(d.Subscriptions, s.wire())
	}
	return d
}

// wire is the subscription as a heartbeat has it.
func (s *Subscription) wire() client.Subscription {
	return client.Subscription{Topic: s.Topic, Expression: s.Expression, Tags: s.Tags, Codes: s.Codes, Version: s.Version}
}

// MembersChanged implements client.Consumer.
func (m member) MembersChanged() { m.c.rebalanceSoon() }

// Serve implements client.Consumer.
func (m member) Serve(ctx context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command {
	return m.c.serve(ctx, req)
}

// subscriptions are those of now, by topic. They are not changed but replaced.
func (c *Consumer) subscriptions() (list []*Subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.subs {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *Subscription) int { return compareText(a.Topic, b.Topic) })
	return list
}

// beat tells the brokers of the subscriptions as they are, and from then on the pulls claim these versions: a broker refuses a
// pull with a version that it was not told.
func (c *Consumer) beat(ctx context.Context) {
	now := c.subscriptions()
	c.net.Heartbeat(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range now {
		c.told[s.Topic] = max(c.told[s.Topic], s.Version)
	}
}

// version is what a pull of a topic claims to know.
func (c *Consumer) version(topic string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told[topic]
}

// rebalanceSoon has a rebalance begin at once, or follow the one that is under way.
func (c *Consumer) rebalanceSoon() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// rebalanceRetry is when a rebalance that was not complete is tried again.
const rebalanceRetry = time.Second

// rebalanceLoop rebalances at the start, after each notice, and now and then.
func (c *Consumer) rebalanceLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-c.kick:
		case <-c.ctx.Done():
			return
		}
		next := c.opts.RebalanceEvery
		if !c.rebalance(c.ctx) {
			next = min(next, rebalanceRetry)
		}
		timer.Reset(next)
	}
}

// rebalance makes the queues of this member what its share is. It reports false when something that it needs is not known yet, or a
// queue could not be begun.
func (c *Consumer) rebalance(ctx context.Context) bool {
	c.balancing.Lock()
	defer c.balancing.Unlock()
	c.figures.rebalances.Add(1)
	complete, changed := true, false
	subs := c.subscriptions()
	if !c.known(ctx, subs) {
		complete = false
	}
	for _, s := range subs {
		share, ok := c.share(ctx, s.Topic)
		if !ok {
			complete = false
			continue
		}
		topicChanged, ok := c.own(ctx, s, share)
		changed = changed || topicChanged
		complete = complete && ok
	}
	for _, p := range c.held() { // topics that were given up
		if !slices.ContainsFunc(subs, func(s *Subscription) bool { return s.Topic == p.queue.Topic }) {
			c.lose(ctx, p)
		}
	}
	if changed && ctx.Err() == nil {
		c.renew(subs)
		c.beat(ctx)
	}
	return complete
}

// known has the routes looked up, and the brokers told of this member before it asks who the members are. It reports false when a
// route is missing.
func (c *Consumer) known(ctx context.Context, subs []*Subscription) bool {
	complete, fresh := true, false
	for _, s := range subs {
		if c.net.Cached(s.Topic) != nil {
			continue
		}
		if _, err := c.net.Route(ctx, s.Topic, nil); err != nil {
			complete = false
			if s.Topic != c.retry { // which brokers make upon the heartbeat
				c.failed("no route", err, "topic", s.Topic)
			}
			continue
		}
		fresh = true
	}
	if fresh {
		c.beat(ctx)
	}
	return complete
}

// share computes this member's queues of a topic; false when the topic or the members are not known.
func (c *Consumer) share(ctx context.Context, topic string) ([]Queue, bool) {
	r := c.net.Cached(topic)
	if r == nil {
		return nil, false
	}
	queues := sortQueues(slices.Clone(r.Read))
	if c.opts.Broadcast {
		return queues, true
	}
	ids, err := c.members(ctx, topic)
	if err == nil && !slices.Contains(ids, c.net.ID()) { // a broker that was started anew has forgotten this member
		c.beat(ctx)
		ids, err = c.members(ctx, topic)
	}
	if err != nil {
		c.failed("members of the group not known", err, "topic", topic)
		return nil, false
	}
	return c.opts.Strategy.Allocate(c.group, c.net.ID(), queues, sortClients(ids)), true
}

func (c *Consumer) members(ctx context.Context, topic string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.net.Options().CallTimeout)
	defer cancel()
	return c.net.Members(ctx, topic, c.group)
}

// own gives queues of a topic up that are not in the share, and takes those that are new. It reports whether the queues are
// others now, and false when not all could be taken.
func (c *Consumer) own(ctx context.Context, s *Subscription, share []Queue) (changed, complete bool) {
	for _, p := range c.held() {
		if p.queue.Topic == s.Topic && !slices.Contains(share, p.queue) {
			c.lose(ctx, p)
			changed = true
		}
	}
	complete = true
	for _, q := range share {
		taken, ok := c.take(ctx, q, s)
		changed = changed || taken
		complete = complete && ok
	}
	return changed, complete
}

// take begins to consume a queue, unless that is done already. It reports false when it cannot yet.
func (c *Consumer) take(ctx context.Context, q Queue, s *Subscription) (taken, ok bool) {
	c.mu.Lock()
	_, here := c.queues[q]
	_, leaving := c.leaving[q]
	c.mu.Unlock()
	if here || leaving || ctx.Err() != nil {
		return false, here
	}
	ordered := c.opts.Orderly && !c.opts.Broadcast
	if ordered && !c.lock(ctx, q) {
		return false, false
	}
	offset, err := c.startOffset(ctx, q)
	if err != nil {
		c.failed("queue not begun", err, "queue", q.String())
		return false, false
	}
	p := newProcess(c.ctx, q, s, offset)
	p.pause(c.paused.Load())
	if ordered {
		p.lockedAt.Store(time.Now().UnixNano())
	}
	c.mu.Lock()
	c.queues[q] = p
	c.mu.Unlock()
	c.opts.Logger.Info("queue taken", "queue", q.String(), "offset", offset)
	p.work.Go(func() { c.pullLoop(p) })
	if c.opts.Orderly {
		p.work.Go(func() { c.consumeInOrder(p) })
	}
	return true, true
}

// unlockWait is how long a rebalance waits for the listener of a queue that is lost.
const unlockWait = time.Second

// lose gives a queue up: no more pulls and batches, and the offset stored. An orderly listener that runs is waited for before
// the offset is stored and the lock given back, for a little here and then beside the rebalance.
func (c *Consumer) lose(ctx context.Context, p *process) {
	ctx = context.WithoutCancel(ctx) // each request has its own limit
	p.cancel()
	c.mu.Lock()
	if c.queues[p.queue] != p {
		c.mu.Unlock()
		return
	}
	delete(c.queues, p.queue)
	if c.opts.Orderly {
		c.leaving[p.queue] = struct{}{}
	}
	c.mu.Unlock()
	c.opts.Logger.Info("queue lost", "queue", p.queue.String(), "offset", p.at.Load())
	if !c.opts.Orderly {
		p.work.Wait() // the pull loop ends at once
		c.storeLast(ctx, p)
		return
	}
	done := make(chan struct{})
	c.work.Go(func() { c.leave(ctx, p, done) })
	timer := time.NewTimer(unlockWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// leave waits for the listener of a queue that is lost, stores the offset and gives the lock back.
func (c *Consumer) leave(ctx context.Context, p *process, done chan<- struct{}) {
	p.work.Wait()
	c.storeLast(ctx, p)
	if !c.opts.Broadcast {
		c.unlock(ctx, p.queue)
	}
	c.mu.Lock()
	delete(c.leaving, p.queue)
	c.mu.Unlock()
	close(done)
	c.rebalanceSoon() // the queue may have come back meanwhile
}

// storeLast stores the offset of a queue that is lost, so that the next member finds it. The pull that was under way may have carried
// an older one, which the broker may take later than this: so it is looked at once more.
func (c *Consumer) storeLast(ctx context.Context, p *process) {
	at := p.at.Load()
	err := c.store.write(ctx, map[Queue]int64{p.queue: at}, true)
	if err == nil {
		if stored, readErr := c.store.read(ctx, p.queue); readErr == nil && stored < at {
			err = c.store.write(ctx, map[Queue]int64{p.queue: at}, true)
		}
	}
	if err != nil {
		c.opts.Logger.Warn("offset of a lost queue not stored", "queue", p.queue.String(), "err", err)
	}
}

// renew gives the subscriptions a new version, as the original does when a member's queues change.
func (c *Consumer) renew(subs []*Subscription) {
	now := time.Now().UnixMilli()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range subs {
		if c.subs[s.Topic] != s {
			continue
		}
		n := *s
		n.Version = max(now, s.Version+1)
		c.subs[s.Topic] = &n
		for q, p := range c.queues {
			if q.Topic == s.Topic {
				p.sub.Store(&n)
			}
		}
	}
}
