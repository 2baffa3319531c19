package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Consumer is a push consumer, one member of a group. Its methods may be called from many goroutines.
type Consumer struct {
	opts   Options // set by Start, read-only after it
	net    *client.Client
	group  string // with the namespace
	retry  string // the group's retry topic
	store  offsetStore
	limits limits
	// started is when; byLoop says that there is no listener but loops over Messages, active that it is a [Puller]'s, fresh that
	// stored offsets are not looked at.
	started               time.Time
	byLoop, active, fresh bool

	ctx    context.Context // ends when Close begins: no more pulls, rebalances, batches
	cancel context.CancelFunc
	listen context.Context // ends when Close has no more time: listeners are to give up
	quit   context.CancelFunc
	work   sync.WaitGroup // loops, workers, late retries
	kick   chan struct{}  // holds one token: rebalance now

	batches chan *Batch   // to the workers
	orderly chan struct{} // one token per orderly listener that runs
	offers  chan *offer   // from the listener of Messages
	errs    chan error    // what went wrong, for Messages

	figures figures
	tracer  *tracer // nil: no trace

	balancing sync.Mutex // held by one rebalance
	mu        sync.Mutex
	subs      map[string]*Subscription // by topic, with the namespace; the retry topic included
	told      map[string]int64         // version of each that brokers know
	queues    map[Queue]*process
	leaving   map[Queue]struct{} // lost queues whose listener still runs

	closing sync.Once
	closed  error
	isOpen  atomic.Bool
	paused  atomic.Bool
}

// Start returns a consumer that takes part in its group. It does not wait until it has queues, and does not fail when no name
// server or broker answers yet: it goes on trying, and what goes wrong is logged and told by [Consumer.Messages]. An error
// matches [ErrOptions] or [ErrExpression], or is of the file of a broadcast consumer's offsets.
func Start(ctx context.Context, o *Options) (*Consumer, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	opts.ClientOptions.KeepInstanceName = opts.ClientOptions.KeepInstanceName || opts.Broadcast
	c, err := newConsumer(ctx, &opts)
	if err != nil {
		return nil, err
	}
	if err := c.begin(); err != nil {
		c.disconnect()
		return nil, err
	}
	return c, nil
}

// newConsumer makes a consumer without goroutines.
func newConsumer(ctx context.Context, opts *Options) (*Consumer, error) {
	network, err := connect(opts.Client, &opts.ClientOptions)
	if err != nil {
		return nil, err
	}
	c := &Consumer{
		opts: *opts, net: network, kick: make(chan struct{}, 1), started: time.Now(), byLoop: opts.Listener == nil,
		limits: limits{opts.MaxCached, opts.MaxCachedBytes, opts.MaxSpan},
		subs:   map[string]*Subscription{}, told: map[string]int64{}, queues: map[Queue]*process{}, leaving: map[Queue]struct{}{},
		batches: make(chan *Batch, 2*opts.MaxCached), orderly: make(chan struct{}, opts.Workers),
		offers: make(chan *offer), errs: make(chan error, 16),
	}
	c.group = network.Namespace().Wrap(opts.Group)
	c.retry = client.RetryPrefix + c.group
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	c.listen, c.quit = context.WithCancel(context.WithoutCancel(ctx))
	return c, nil
}

// disconnect closes the client unless it is somebody else's.
func (c *Consumer) disconnect() {
	if c.opts.Client == nil {
		c.net.Close()
	}
	c.cancel()
	c.quit()
}

// connect returns the client to share, or else one of its own.
func connect(shared *Client, own *ClientOptions) (*Client, error) {
	if shared != nil {
		return shared, nil
	}
	c, err := client.New(own)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return c, nil
}

// begin makes what can fail, and then starts the goroutines.
func (c *Consumer) begin() error {
	now := time.Now().UnixMilli()
	for topic, expression := range c.opts.Topics {
		s, err := ParseSubscription(c.net.Namespace().Wrap(topic), expression)
		if err != nil {
			return err
		}
		s.Version = now
		c.subs[s.Topic] = s
	}
	if c.opts.Listener == nil {
		c.opts.Listener = c.offer
	}
	if c.opts.Broadcast {
		local, err := newLocalOffsets(c.opts.OffsetDir, c.net.ID(), c.group)
		if err != nil {
			return err
		}
		if c.store, err = openBroadcastStore(local); err != nil {
			return err
		}
	} else {
		c.store = &groupStore{net: c.net, group: c.group}
		c.subs[c.retry] = &Subscription{Topic: c.retry, Expression: everything, Version: now}
	}
	if c.opts.Trace != nil {
		if err := c.opts.Trace.Start(c.listen); err != nil {
			return fmt.Errorf("trace: %w", err)
		}
		c.tracer = &tracer{c, c.opts.Trace}
	}
	if err := c.net.RegisterConsumer(c.group, member{c}); err != nil {
		return err
	}
	c.isOpen.Store(true)
	c.work.Go(c.rebalanceLoop)
	c.work.Go(func() { remoting.Every(c.ctx, 2*c.opts.SaveEvery, c.opts.SaveEvery, nil, func() { c.save(c.ctx) }) })
	switch {
	case !c.opts.Orderly:
		for range c.opts.Workers {
			c.work.Go(c.worker)
		}
		c.work.Go(func() { remoting.Every(c.ctx, timeoutEvery, timeoutEvery, nil, c.sendBackOverdue) })
	case !c.opts.Broadcast:
		c.work.Go(func() { remoting.Every(c.ctx, time.Second, lockEvery, nil, c.renewLocks) })
	}
	return nil
}

// sleep waits and says whether it did to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// ClientID is the id by which brokers and the other members know this one.
func (c *Consumer) ClientID() string { return c.net.ID() }

// Subscribe adds a topic or changes its expression, while the consumer runs. An error matches [ErrExpression] or [ErrClosed].
func (c *Consumer) Subscribe(ctx context.Context, topic, expression string) error {
	s, err := ParseSubscription(c.net.Namespace().Wrap(topic), expression)
	if err != nil {
		return err
	}
	if !c.isOpen.Load() {
		return ErrClosed
	}
	c.mu.Lock()
	s.Version = time.Now().UnixMilli()
	if before := c.subs[s.Topic]; before != nil {
		s.Version = max(s.Version, before.Version+1)
	}
	c.subs[s.Topic] = s
	for q, p := range c.queues {
		if q.Topic == s.Topic {
			p.sub.Store(s)
		}
	}
	c.mu.Unlock()
	c.beat(ctx)
	c.rebalanceSoon()
	return nil
}

// Unsubscribe gives a topic up. Its queues are lost to this member with the next rebalance, which comes at once.
func (c *Consumer) Unsubscribe(topic string) {
	c.mu.Lock()
	delete(c.subs, c.net.Namespace().Wrap(topic))
	c.mu.Unlock()
	c.rebalanceSoon()
}

// Pause holds the pulls of all queues back; what is cached is still consumed. Resume ends that.
func (c *Consumer) Pause() { c.pause(true) }

// Resume has the pulls go on.
func (c *Consumer) Resume() { c.pause(false) }

func (c *Consumer) pause(paused bool) {
	c.paused.Store(paused)
	for _, p := range c.held() {
		p.pause(paused)
	}
}

// held are the queues of this member, in no order.
func (c *Consumer) held() []*process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.queues))
}

// Queues are the queues that this member has now, sorted.
func (c *Consumer) Queues() []Queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sortQueues(slices.Collect(maps.Keys(c.queues)))
}

// failed logs what went wrong and keeps it for Messages, unless there is much of it already.
func (c *Consumer) failed(text string, err error, args ...any) {
	if c.ctx.Err() != nil {
		return
	}
	c.opts.Logger.Warn(text, append(args, "err", err)...)
	select {
	case c.errs <- fmt.Errorf("%s: %w", text, err):
	default:
	}
}

// Close stops the pulls, waits until the listeners that run have returned, stores the offsets, gives the locks back, leaves the
// group and closes the connections. When ctx ends first, the listeners' context ends; Close still waits for them, and its error is the
// context's. What was pulled and not begun comes again, here or at another member. A second call waits for the same. It must not be
// called from a listener or the body of a loop over [Consumer.Messages].
func (c *Consumer) Close(ctx context.Context) error {
	c.closing.Do(func() { c.closed = c.close(ctx) })
	return c.closed
}

func (c *Consumer) close(ctx context.Context) error {
	c.isOpen.Store(false)
	c.cancel()
	stop := context.AfterFunc(ctx, c.quit)
	defer stop()
	c.work.Wait()
	err := ctx.Err()
	if err != nil { // the rest is little: a few seconds are granted
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), c.net.Options().CallTimeout)
		defer cancel()
	}
	c.balancing.Lock() // for one that is under way
	defer c.balancing.Unlock()
	var all sync.WaitGroup
	for _, p := range c.held() {
		all.Go(func() { c.lose(ctx, p) })
	}
	all.Wait()
	c.work.Wait() // for those that take longer
	if c.tracer != nil {
		err = errors.Join(err, c.tracer.close(ctx))
	}
	c.net.UnregisterConsumer(ctx, c.group)
	c.disconnect()
	return err
}
