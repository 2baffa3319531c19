package consumer

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// figures count what happens.
type figures struct {
	pulls, pullErrors, flowWaits, moved                           atomic.Int64
	received, filtered, consumed, failed, sentBack, dead, overdue atomic.Int64
	batches, listened, rebalances                                 atomic.Int64
}

// Stats are figures of a consumer since it was started.
type Stats struct {
	// Pulls were sent; PullErrors of them failed or were refused. FlowWaits counts the times that a queue was not pulled since too much
	// of it was cached, OffsetsMoved the times that a broker named another offset than the one asked for.
	Pulls, PullErrors, FlowWaits, OffsetsMoved int64
	// Received messages were given to the listener's side, Filtered ones had another tag with the hash of one that is wanted.
	Received, Filtered int64
	// Consumed and Failed count the listener's outcomes, by message; SentBack ones were given back to a broker, Dead of them to come no
	// more. Overdue ones were sent back since their listener took too long.
	Consumed, Failed, SentBack, Dead, Overdue int64
	// Batches is how often the listener was called, Listening the time that it took in all.
	Batches   int64
	Listening time.Duration
	// Rebalances were begun.
	Rebalances int64
	// Queues are held now; Cached messages of them wait or are being consumed, with bodies of CachedBytes bytes; Lag is how many messages
	// lie between the offsets to be committed and the ends of the queues, as far as the last answers tell.
	Queues, Cached   int
	CachedBytes, Lag int64
}

// Stats reads the figures.
func (c *Consumer) Stats() Stats {
	f := &c.figures
	s := Stats{
		Pulls: f.pulls.Load(), PullErrors: f.pullErrors.Load(), FlowWaits: f.flowWaits.Load(), OffsetsMoved: f.moved.Load(),
		Received: f.received.Load(), Filtered: f.filtered.Load(), Consumed: f.consumed.Load(), Failed: f.failed.Load(),
		SentBack: f.sentBack.Load(), Dead: f.dead.Load(), Overdue: f.overdue.Load(), Batches: f.batches.Load(),
		Listening: time.Duration(f.listened.Load()), Rebalances: f.rebalances.Load(),
	}
	for _, p := range c.held() {
		count, bytes := p.cached()
		s.Queues++
		s.Cached += count
		s.CachedBytes += bytes
		s.Lag += p.progress().Lag()
	}
	return s
}

// Progress is how far a queue has been consumed.
type Progress struct {
	Queue Queue
	// Committed is the next offset to be stored, Next the next one to be pulled; Min and Max are the ends of the queue, as the last
	// answer to a pull told them.
	Committed, Next, Min, Max int64
	// Cached messages were pulled and are not consumed.
	Cached int
}

// Lag is how many messages are not consumed, as far as is known.
func (p Progress) Lag() int64 { return max(0, p.Max-max(p.Committed, p.Min)) }

func (p *process) progress() Progress {
	count, _ := p.cached()
	return Progress{
		Queue: p.queue, Committed: p.at.Load(), Next: p.position(), Min: p.minOffset.Load(), Max: p.maxOffset.Load(), Cached: count,
	}
}

// Progress is that of the queues that this member has now, sorted.
func (c *Consumer) Progress() []Progress { return progressOf(c.held()) }

func progressOf(list []*process) []Progress {
	progress := make([]Progress, len(list))
	for i, p := range list {
		progress[i] = p.progress()
	}
	slices.SortFunc(progress, func(a, b Progress) int { return CompareQueues(a.Queue, b.Queue) })
	return progress
}

// TopicProgress is that of all queues of a topic that can be read, sorted, with the ends that the brokers tell now: of a queue that
// this member does not have, Committed and Next are the offset that is stored, else where the group would begin. Retry topics are
// topics of their own. An error says that a queue's offsets are not known.
func (c *Consumer) TopicProgress(ctx context.Context, topic string) ([]Progress, error) {
	r, err := c.net.Route(ctx, c.net.Namespace().Wrap(topic), nil)
	if err != nil {
		return nil, err
	}
	held := map[Queue]*process{}
	for _, p := range c.held() {
		held[p.queue] = p
	}
	list := make([]Progress, 0, len(r.Read))
	for _, q := range sortQueues(slices.Clone(r.Read)) {
		p, err := c.askProgress(ctx, q, held[q])
		if err != nil {
			return nil, fmt.Errorf("queue %v: %w", q, err)
		}
		list = append(list, p)
	}
	return list, nil
}

// askProgress asks a broker for the ends of a queue; held is nil when this member does not have it.
func (c *Consumer) askProgress(ctx context.Context, q Queue, held *process) (p Progress, err error) {
	p.Queue = q
	if held != nil {
		p = held.progress()
	} else if p.Committed, _, err = c.beginning(ctx, q); err != nil {
		return p, err
	} else {
		p.Next = p.Committed
	}
	ctx, cancel := context.WithTimeout(ctx, offsetTimeout)
	defer cancel()
	if p.Min, err = c.net.MinOffset(ctx, q); err != nil {
		return p, err
	}
	p.Max, err = c.net.MaxOffset(ctx, q)
	return p, err
}
