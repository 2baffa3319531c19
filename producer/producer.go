package producer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rocketstore/rocketstore/trace"
)

// The states of a producer, in their order.
const (
	created int32 = iota
	running
	stopped
)

// Producer sends the messages of one group. Its methods may be called from many goroutines.
type Producer struct {
	opts       Options // set by New, read-only after it
	group      string  // with the namespace
	client     *Client
	ownsClient bool
	hooks      []SendHook
	// hooksMayWait says that there are others than tracing by our dispatcher, which never waits.
	hooksMayWait bool
	tracer       trace.Dispatcher // nil: no trace
	compressors  compressors

	ctx    context.Context // ends when what is pending is given up
	cancel context.CancelFunc

	life    sync.Mutex // held while starting, and while the state becomes stopped
	state   atomic.Int32
	sends   atomic.Int64  // under way
	locals  atomic.Int64  // transactions, of which a part is the listener's, and requests that wait for a reply
	drained chan struct{} // has a token when one of both became 0 after the stop

	rounds    rounds
	latencies *latencies // nil: not used
	old       oldBrokers
	permits   permits
	callbacks pool
	answers   sync.Pool      // of empty channels for one answer
	work      sync.WaitGroup // goroutines that make tries which may wait, or call hooks
	checks    pool
	requests  requests
	stats     stats

	stopping sync.Once
	stopErr  error
}

// New returns a producer that is not started. An error matches [ErrOptions].
func New(o *Options) (*Producer, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Producer{opts: opts, client: opts.Client, hooks: opts.Hooks, drained: make(chan struct{}, 1)}
	if p.client == nil {
		if p.client, err = NewClient(&opts.ClientOptions); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOptions, err)
		}
		p.ownsClient = true
	}
	if opts.Compression == ZSTD {
		if p.compressors.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(opts.CallbackWorkers)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrOptions, err)
		}
	}
	p.group = p.client.Namespace().Wrap(opts.Group)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.permits = permits{maxCount: opts.MaxPending, maxBytes: opts.MaxPendingBytes}
	p.callbacks = pool{core: opts.CallbackWorkers, limit: opts.CallbackWorkers, queue: opts.MaxPending}
	p.checks = pool{core: opts.CheckWorkers, limit: opts.CheckWorkers, queue: opts.CheckQueue}
	p.requests.waiting = map[string]chan reply{}
	if opts.AvoidSlow {
		p.latencies = &latencies{steps: opts.Latency, brokers: map[string]fault{}}
	}
	p.hooksMayWait = len(p.hooks) > 0 || opts.Dispatcher != nil
	p.buildTrace()
	return p, nil
}

// Start registers the producer with its client instance. An error matches [ErrDuplicateGroup], or [ErrState] if it was started before;
// the producer is then of no more use.
func (p *Producer) Start(ctx context.Context) error {
	p.life.Lock()
	defer p.life.Unlock()
	if !p.state.CompareAndSwap(created, running) {
		return fmt.Errorf("start: %w", p.stateError())
	}
	if err := p.client.RegisterProducer(p.group, p); err != nil {
		p.state.Store(stopped)
		if p.ownsClient {
			p.client.Close()
		}
		return err
	}
	if p.tracer != nil {
		if err := p.tracer.Start(ctx); err != nil {
			p.opts.Logger.Error("trace not started", "group", p.group, "err", err) // sends go on without it
		}
	}
	return nil
}

// Client is the producer's client instance.
func (p *Producer) Client() *Client { return p.client }

// Group is the producer's group, with the namespace.
func (p *Producer) Group() string { return p.group }

func (p *Producer) stateError() error {
	switch p.state.Load() {
	case created:
		return fmt.Errorf("%w: not started", ErrState)
	case running:
		return fmt.Errorf("%w: started already", ErrState)
	}
	return fmt.Errorf("%w: %w", ErrState, ErrClosed)
}

// enter counts a send, if the producer runs.
func (p *Producer) enter() error {
	p.sends.Add(1)
	if p.state.Load() != running {
		p.leave()
		return p.stateError()
	}
	return nil
}

func (p *Producer) leave() { p.less(&p.sends) }

// less takes one from what a shutdown waits for.
func (p *Producer) less(count *atomic.Int64) {
	if count.Add(-1) == 0 && p.state.Load() == stopped {
		select {
		case p.drained <- struct{}{}:
		default:
		}
	}
}

// Shutdown takes no further sends and waits for those under way: for answers and their callbacks, for replies, for local transactions, and
// for checks that the listener has begun. When ctx ends first, sends fail with [ErrClosed], and each that was asynchronous gets its
// callback. Then the trace is flushed, brokers are told, and the connections closed, unless the client instance is shared. No
// goroutine of the producer is left but those of callbacks, listeners, hooks and selectors that have not returned. Called from one of these it waits for
// itself until ctx ends. A second call waits for the same and returns the same.
func (p *Producer) Shutdown(ctx context.Context) error {
	p.stopping.Do(func() { p.stopErr = p.stop(ctx) })
	return p.stopErr
}

func (p *Producer) stop(ctx context.Context) error {
	p.life.Lock()
	before := p.state.Swap(stopped)
	p.life.Unlock()
	var errs []error
	if before == running {
		errs = append(errs, p.drain(ctx))
	}
	p.checks.close()
	if err := p.checks.waitFor(ctx); err != nil { // those that wait see that it is over
		errs = append(errs, fmt.Errorf("shutdown: transaction listener: %w", err))
	}
	p.cancel()
	if p.sends.Load() == 0 { // else the user's code keeps them
		p.work.Wait()
	}
	if p.tracer != nil {
		errs = append(errs, p.tracer.Shutdown(ctx))
	}
	if before == running {
		p.client.UnregisterProducer(ctx, p.group)
	}
	if p.ownsClient {
		p.client.Close()
	}
	if p.compressors.zstd != nil {
		errs = append(errs, p.compressors.zstd.Close())
	}
	return errors.Join(errs...)
}

// lastSends is how long sends that are given up have for their hooks.
const lastSends = time.Second

// drain waits until no send is under way and no callback runs, or gives up what is.
func (p *Producer) drain(ctx context.Context) error {
	err := p.await(ctx, &p.sends, &p.locals)
	if err != nil {
		p.cancel()
		p.client.Abort(p, context.Canceled)
		last, stop := context.WithTimeout(context.Background(), lastSends)
		defer stop()
		_ = p.await(last, &p.sends) // short: each of them ends now, unless the user's code keeps it
		p.callbacks.flood()
		p.callbacks.close()
		return fmt.Errorf("shutdown: %w", err)
	}
	p.callbacks.close()
	if err := p.callbacks.waitFor(ctx); err != nil {
		p.callbacks.flood()
		return fmt.Errorf("shutdown: callbacks have not returned: %w", err)
	}
	return nil
}

// await returns when nothing of what is counted is under way.
func (p *Producer) await(ctx context.Context, counts ...*atomic.Int64) error {
	for _, n := range counts {
		for n.Load() > 0 {
			select {
			case <-p.drained:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}
