package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// ErrNotAssigned says that a queue is not among those that a [Puller] reads.
var ErrNotAssigned = errors.New("queue not assigned")

// PullOptions configure a [Puller]. Group is needed, and NameServers or one of Client and ClientOptions.
type PullOptions struct {
	// NameServers are the host:port of all name servers; short for those of ClientOptions.
	NameServers []string
	// ClientOptions are those of the puller's own client instance, Client is one to share instead.
	ClientOptions ClientOptions
	Client        *Client
	// Group is under which offsets are stored.
	Group string
	// From is where a queue begins of which the group has no offset. Since is the time for FromTime, default half an hour ago.
	From  From
	Since time.Time
	// Fresh begins each queue where From says, whatever offset the group has. Brokers say that a group without one is at the start of a
	// queue that is whole (see [From]), so without Fresh a reader for nobody gets what it has not asked for.
	Fresh bool
	// NoSave leaves the offsets to [Puller.Commit]; else those of what earlier polls gave are stored each SaveEvery, default 5 s, and by
	// Close. Java: autoCommit, autoCommitIntervalMillis.
	NoSave    bool
	SaveEvery time.Duration
	// PullBatch, MaxCached and MaxCachedBytes are as in [Options]. Java: pullBatchSize, pullThresholdForQueue, pullThresholdSizeForQueue.
	PullBatch      int
	MaxCached      int
	MaxCachedBytes int64
	// Logger receives what happens to it, never a line per message. Default: discard.
	Logger *slog.Logger
}

// Puller is a pull consumer: it reads the queues that it is assigned, without sharing them with anybody. It pulls ahead of the polls
// within limits. Its methods may be called from many goroutines.
type Puller struct {
	c      *Consumer
	noSave bool

	mu   sync.Mutex
	last *Batch // what the last poll gave: consumed when the next one comes
}

// StartPull returns a puller without queues. An error matches [ErrOptions].
func StartPull(ctx context.Context, o *PullOptions) (*Puller, error) {
	var d PullOptions
	if o != nil {
		d = *o
	}
	// A subscription is needed by the common check only; it is chosen with each assignment.
	opts, err := (&Options{
		NameServers: d.NameServers, ClientOptions: d.ClientOptions, Client: d.Client, Group: d.Group, From: d.From, Since: d.Since,
		SaveEvery: d.SaveEvery, PullBatch: d.PullBatch, MaxCached: d.MaxCached, MaxCachedBytes: d.MaxCachedBytes, MaxSpan: 1 << 50,
		Topics: map[string]string{"": everything}, Logger: d.Logger,
	}).withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := newConsumer(ctx, &opts)
	if err != nil {
		return nil, err
	}
	c.active, c.fresh = true, d.Fresh
	c.store = &groupStore{net: c.net, group: c.group}
	if err := c.net.RegisterConsumer(c.group, member{c}); err != nil {
		c.disconnect()
		return nil, err
	}
	c.isOpen.Store(true)
	p := &Puller{c: c, noSave: d.NoSave}
	if !d.NoSave {
		c.work.Go(func() { remoting.Every(c.ctx, c.opts.SaveEvery, c.opts.SaveEvery, nil, func() { c.save(c.ctx) }) })
	}
	return p, nil
}

// Queues are all queues of a topic that can be read, sorted.
func (p *Puller) Queues(ctx context.Context, topic string) ([]Queue, error) {
	r, err := p.c.net.Route(ctx, p.c.net.Namespace().Wrap(topic), nil)
	if err != nil {
		return nil, err
	}
	return sortQueues(slices.Clone(r.Read)), nil
}

// Assign makes these the queues to read, of the messages that the expression takes. One that is read already goes on where it is; a
// new one begins at the group's offset, else where PullOptions.From says. An error matches [ErrExpression] or [ErrClosed], or
// is of a queue whose offset is not known; the others are assigned.
func (p *Puller) Assign(ctx context.Context, expression string, queues ...Queue) error {
	c := p.c
	if !c.isOpen.Load() {
		return ErrClosed
	}
	c.balancing.Lock()
	defer c.balancing.Unlock()
	for _, q := range c.held() {
		if !slices.Contains(queues, q.queue) {
			p.giveUp(ctx, q)
		}
	}
	subs := map[string]*Subscription{}
	for _, q := range queues {
		s, err := ParseSubscription(q.Topic, expression)
		if err != nil {
			return err
		}
		s.Version = time.Now().UnixMilli()
		subs[q.Topic] = s
	}
	c.mu.Lock()
	c.subs = subs
	for q, held := range c.queues {
		held.sub.Store(subs[q.Topic])
	}
	c.mu.Unlock()
	var errs []error
	for _, q := range queues {
		if err := p.add(ctx, q, subs[q.Topic]); err != nil {
			errs = append(errs, fmt.Errorf("queue %v: %w", q, err))
		}
	}
	return errors.Join(errs...)
}

// giveUp ends the reading of a queue.
func (p *Puller) giveUp(ctx context.Context, q *process) {
	if !p.noSave {
		p.c.lose(ctx, q)
		return
	}
	q.cancel()
	p.c.mu.Lock()
	delete(p.c.queues, q.queue)
	p.c.mu.Unlock()
	q.work.Wait()
}

// add begins to read a queue unless that is done already.
func (p *Puller) add(ctx context.Context, q Queue, s *Subscription) error {
	c := p.c
	c.mu.Lock()
	_, here := c.queues[q]
	c.mu.Unlock()
	if here {
		return nil
	}
	if _, err := c.net.Route(ctx, q.Topic, nil); err != nil { // which also tells where the broker is
		return err
	}
	offset, _, err := c.beginning(ctx, q)
	if err != nil {
		return err
	}
	n := newProcess(c.ctx, q, s, offset)
	c.mu.Lock()
	c.queues[q] = n
	c.mu.Unlock()
	n.work.Go(func() { c.pullLoop(n) })
	return nil
}

// Poll gives messages of one queue, in its order, as soon as there are any. What the poll before gave counts as consumed now. An
// error is the context's, matches [ErrClosed], or tells what went wrong with the pulls meanwhile; then the polls may go on.
func (p *Puller) Poll(ctx context.Context) ([]*message.Received, error) {
	p.settleLast()
	c := p.c
	for {
		if !c.isOpen.Load() {
			return nil, ErrClosed
		}
		select {
		case b := <-c.batches:
			if b.p.dropped() || !b.p.begin(b.number, len(b.Messages), time.Now()) {
				continue
			}
			p.mu.Lock()
			p.last = b
			p.mu.Unlock()
			return b.Messages, nil
		case err := <-c.errs:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.ctx.Done():
			return nil, ErrClosed
		}
	}
}

// settleLast makes what the last poll gave consumed.
func (p *Puller) settleLast() {
	p.mu.Lock()
	b := p.last
	p.last = nil
	p.mu.Unlock()
	if b != nil {
		n := b.p.settle(b.number, len(b.Messages))
		p.c.figures.consumed.Add(int64(n))
	}
}

// Commit stores the offsets of all queues, behind everything that was polled so far, and waits until the brokers have them.
func (p *Puller) Commit(ctx context.Context) error {
	p.settleLast()
	offsets := map[Queue]int64{}
	for _, q := range p.c.held() {
		offsets[q.queue] = q.at.Load()
	}
	return p.c.store.write(ctx, offsets, true)
}

// Committed is the offset that the group has stored for a queue; false if there is none.
func (p *Puller) Committed(ctx context.Context, q Queue) (int64, bool, error) {
	offset, err := p.c.store.read(ctx, q)
	if noOffset(err) {
		return 0, false, nil
	}
	return offset, err == nil, err
}

// Position is the offset of the next message of a queue that was not polled. An error matches [ErrNotAssigned].
func (p *Puller) Position(q Queue) (int64, error) {
	n, err := p.assigned(q)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.last; b != nil && b.p == n {
		return b.Messages[len(b.Messages)-1].QueueOffset + 1, nil
	}
	return n.at.Load(), nil
}

func (p *Puller) assigned(q Queue) (*process, error) {
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	if n := p.c.queues[q]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("%w: %v", ErrNotAssigned, q)
}

// Seek makes offset the next one of a queue to be polled. An offset where nothing is gets corrected by the broker, as far as needed.
// An error matches [ErrNotAssigned].
func (p *Puller) Seek(q Queue, offset int64) error {
	n, err := p.assigned(q)
	if err != nil {
		return err
	}
	if offset < 0 {
		return fmt.Errorf("queue %v: offset %d is negative", q, offset)
	}
	n.reset(offset)
	return nil
}

// SeekToBegin goes to the first message that a queue has, SeekToEnd behind its last, SeekToTime to the first that was stored at that
// time or later. Errors are those of [Puller.Seek] and of the question for the offset.
func (p *Puller) SeekToBegin(ctx context.Context, q Queue) error {
	return p.seek(q, func() (int64, error) { return p.c.net.MinOffset(ctx, q) })
}

// SeekToEnd goes behind the last message of a queue.
func (p *Puller) SeekToEnd(ctx context.Context, q Queue) error {
	return p.seek(q, func() (int64, error) { return p.c.net.MaxOffset(ctx, q) })
}

// SeekToTime goes to the first message of a queue that was stored at that time or later, else behind the last.
func (p *Puller) SeekToTime(ctx context.Context, q Queue, at time.Time) error {
	return p.seek(q, func() (int64, error) { return p.c.net.OffsetAt(ctx, q, at.UnixMilli()) })
}

func (p *Puller) seek(q Queue, where func() (int64, error)) error {
	if _, err := p.assigned(q); err != nil {
		return err
	}
	offset, err := where()
	if err != nil {
		return err
	}
	return p.Seek(q, offset)
}

// Pause ends the pulls of queues for now; what was pulled ahead is still polled. Resume lets them go on. An error matches
// [ErrNotAssigned].
func (p *Puller) Pause(queues ...Queue) error { return p.pause(true, queues) }

// Resume has paused queues pulled again.
func (p *Puller) Resume(queues ...Queue) error { return p.pause(false, queues) }

func (p *Puller) pause(paused bool, queues []Queue) error {
	for _, q := range queues {
		n, err := p.assigned(q)
		if err != nil {
			return err
		}
		n.pause(paused)
	}
	return nil
}

// Progress is that of the assigned queues, sorted.
func (p *Puller) Progress() []Progress { return p.c.Progress() }

// TopicProgress is [Consumer.TopicProgress] of a puller.
func (p *Puller) TopicProgress(ctx context.Context, topic string) ([]Progress, error) {
	return p.c.TopicProgress(ctx, topic)
}

// Stats reads the figures.
func (p *Puller) Stats() Stats { return p.c.Stats() }

// Close ends the reading, stores the offsets unless [PullOptions.NoSave] is set, and closes the connections. What the last poll gave
// counts as consumed. A second call does nothing.
func (p *Puller) Close(ctx context.Context) error {
	p.settleLast()
	if p.noSave {
		p.c.mu.Lock()
		held := slices.Collect(maps.Values(p.c.queues))
		p.c.mu.Unlock()
		for _, q := range held {
			p.giveUp(ctx, q)
		}
	}
	return p.c.Close(ctx)
}
