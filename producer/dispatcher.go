package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// TraceOptions configure an [AsyncDispatcher]. The zero value means the defaults below, which are the original's.
type TraceOptions struct {
	// Topic takes the records. Default RMQ_SYS_TRACE_TOPIC.
	Topic string
	// ClientOptions are how the trace's own producer connects: name servers, TLS, credentials, hooks. Needed, unless the dispatcher
	// belongs to a producer.
	ClientOptions *ClientOptions
	// QueueSize is how many contexts wait at most. Default 1024. Further ones are discarded.
	QueueSize int
	// PoolQueue is how many trace messages wait for a worker at most, Workers how many workers there are before that queue fills,
	// MaxWorkers when it is full. Default 2048, 10, 20.
	PoolQueue, Workers, MaxWorkers int
	// BatchSize is how many contexts one trace message has at most, MaxBytes how many bytes of records. Default 100 and 118 000.
	BatchSize, MaxBytes int
	// Linger is how long a context waits for others. Default 500 ms; the line of 4.4 has 5 ms.
	Linger time.Duration
	// SendTimeout is the time budget of a trace message. Default 5 s.
	SendTimeout time.Duration
	// FlushTimeout is how long a flush waits. Default 500 ms.
	FlushTimeout time.Duration
	// Consumes names the trace's producer group after consuming, for a consumer's dispatcher.
	Consumes bool
	// Logger receives what goes wrong; of discarded records one line a second. Default: discard.
	Logger *slog.Logger
}

func (o TraceOptions) withDefaults() TraceOptions {
	o.Topic = cmp.Or(o.Topic, trace.Topic)
	o.QueueSize = cmp.Or(o.QueueSize, 1024)
	o.PoolQueue = cmp.Or(o.PoolQueue, 2048)
	o.Workers = cmp.Or(o.Workers, 10)
	o.MaxWorkers = max(cmp.Or(o.MaxWorkers, 20), o.Workers)
	o.BatchSize = cmp.Or(o.BatchSize, 100)
	o.MaxBytes = cmp.Or(o.MaxBytes, trace.MaxRecords)
	o.Linger = cmp.Or(o.Linger, 500*time.Millisecond)
	o.SendTimeout = cmp.Or(o.SendTimeout, 5*time.Second)
	o.FlushTimeout = cmp.Or(o.FlushTimeout, 500*time.Millisecond)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return o
}

// check looks for values that would leave the dispatcher standing.
func (o *TraceOptions) check() error {
	for _, v := range []struct {
		name string
		n    int64
	}{
		{"QueueSize", int64(o.QueueSize)},
		{"PoolQueue", int64(o.PoolQueue)},
		{"Workers", int64(o.Workers)},
		{"MaxWorkers", int64(o.MaxWorkers)},
		{"BatchSize", int64(o.BatchSize)},
		{"MaxBytes", int64(o.MaxBytes)},
		{"Linger", int64(o.Linger)},
		{"SendTimeout", int64(o.SendTimeout)},
		{"FlushTimeout", int64(o.FlushTimeout)},
	} {
		if v.n < 0 {
			return fmt.Errorf("%w: trace: %s is negative", ErrOptions, v.name)
		}
	}
	if o.ClientOptions == nil {
		return fmt.Errorf("%w: trace: ClientOptions are needed", ErrOptions)
	}
	return nil
}

// AsyncDispatcher is the default [trace.Dispatcher]: it gathers contexts and sends them as trace messages with a producer of its own,
// never keeping whoever appends. Whatever cannot be sent is discarded and counted.
type AsyncDispatcher struct {
	opts     TraceOptions
	producer *Producer
	queue    chan *trace.Context
	pool     pool

	unsent    atomic.Int64 // contexts in the queue or gathered, and trace messages not answered
	discarded atomic.Int64
	logged    atomic.Int64 // when a discard was last logged, Unix ms

	mu      sync.Mutex
	started bool
	closed  bool
	flush   chan struct{} // has a token: send what is gathered now
	stop    chan struct{}
	worker  sync.WaitGroup
}

// NewAsyncDispatcher returns a dispatcher for the producer or consumer of a group, not started. An error matches [ErrOptions].
func NewAsyncDispatcher(group string, o TraceOptions) (*AsyncDispatcher, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	connect := *o.ClientOptions
	connect.InstanceName = "PID_CLIENT_INNER_TRACE_PRODUCER_" + strings.Join(connect.NameServers, ";")
	connect.Namespace = "" // the trace topic is the brokers' own
	what := "PRODUCE"
	if o.Consumes {
		what = "CONSUME"
	}
	name := "_INNER_TRACE_PRODUCER-" + group + "-" + what + "-" + strconv.FormatUint(uint64(rand.Uint32()), 10)
	p, err := New(&Options{
		Group: name, ClientOptions: connect, SendTimeout: o.SendTimeout, MaxMessageSize: trace.MaxMessage, Logger: o.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	d := &AsyncDispatcher{
		opts: o, producer: p, queue: make(chan *trace.Context, o.QueueSize), flush: make(chan struct{}, 1), stop: make(chan struct{}),
		pool: pool{core: o.Workers, limit: o.MaxWorkers, queue: o.PoolQueue},
	}
	d.pool.around = func(work func()) {
		pprof.Do(context.Background(), pprof.Labels("worker", "MQTraceSendThread_"+group), func(context.Context) { work() })
	}
	return d, nil
}

// Start implements [trace.Dispatcher].
func (d *AsyncDispatcher) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	if d.started {
		return nil
	}
	if err := d.producer.Start(ctx); err != nil {
		return err
	}
	d.started = true
	d.worker.Go(d.run)
	return nil
}

// Append implements [trace.Dispatcher].
func (d *AsyncDispatcher) Append(c *trace.Context) bool {
	d.unsent.Add(1)
	select {
	case <-d.stop:
	default:
		select {
		case d.queue <- c:
			select {
			case <-d.stop: // nobody may look into the queue any more
				d.sweep()
			default:
			}
			return true
		default:
		}
	}
	d.discard(1, "the queue is full or the dispatcher is shut down")
	return false
}

// sweep discards what is left in the queue of a dispatcher that is shut down.
func (d *AsyncDispatcher) sweep() {
	for {
		select {
		case <-d.queue:
			d.discard(1, "the dispatcher is shut down")
		default:
			return
		}
	}
}

// Discarded is how many contexts were dropped ever.
func (d *AsyncDispatcher) Discarded() int64 { return d.discarded.Load() }

// discard counts contexts that are given up.
func (d *AsyncDispatcher) discard(n int, why string) {
	d.unsent.Add(-int64(n))
	all := d.discarded.Add(int64(n))
	now, last := time.Now().UnixMilli(), d.logged.Load()
	if now-last >= 1000 && d.logged.CompareAndSwap(last, now) {
		d.opts.Logger.Warn("trace records discarded", "all", all, "why", why)
	}
}

// run is the worker that gathers contexts.
func (d *AsyncDispatcher) run() {
	batch := &traceBatch{}
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case c := <-d.queue:
			if batch.count == 0 {
				timer.Reset(d.opts.Linger)
			}
			batch = d.gather(batch, c)
		case <-timer.C:
			batch = d.hand(batch)
		case <-d.flush:
			for more := true; more; {
				select {
				case c := <-d.queue:
					batch = d.gather(batch, c)
				default:
					more = false
				}
			}
			batch = d.hand(batch)
		case <-d.stop:
			d.hand(d.rest(batch))
			return
		}
	}
}

// rest gathers what is in the queue at the end.
func (d *AsyncDispatcher) rest(batch *traceBatch) *traceBatch {
	for {
		select {
		case c := <-d.queue:
			batch = d.gather(batch, c)
		default:
			return batch
		}
	}
}

// traceBatch is one trace message in the making.
type traceBatch struct {
	topic string // the original topic of its records
	body  []byte
	keys  []string
	count int

	keyBytes int // of all keys, with what parts them
}

// maxKeyBytes is how many bytes of keys a batch has before the next context begins another: a record has room for 32 767 of
// properties.
const maxKeyBytes = 16_000

// gather adds a context; what is full, or of another topic, is handed over before.
func (d *AsyncDispatcher) gather(batch *traceBatch, c *trace.Context) *traceBatch {
	record := c.AppendTo(nil)
	if len(record) > d.opts.MaxBytes {
		d.discard(1, "a record is larger than a trace message")
		return batch
	}
	topic := ""
	if len(c.Beans) > 0 {
		topic = c.Beans[0].Topic
	}
	if batch.count > 0 && (len(batch.body)+len(record) > d.opts.MaxBytes || batch.topic != topic || batch.keyBytes > maxKeyBytes) {
		batch = d.hand(batch)
	}
	batch.topic = topic
	batch.body = append(batch.body, record...)
	for key := range c.Keys {
		if !slices.Contains(batch.keys, key) {
			batch.keys = append(batch.keys, key)
			batch.keyBytes += len(key) + 1
		}
	}
	if batch.count++; batch.count >= d.opts.BatchSize {
		batch = d.hand(batch)
	}
	return batch
}

// hand gives a batch to the pool and returns an empty one.
func (d *AsyncDispatcher) hand(batch *traceBatch) *traceBatch {
	if batch.count > 0 && !d.pool.submit(job(func() { d.send(batch) })) {
		d.discard(batch.count, "the pool is full")
	}
	return &traceBatch{}
}

// send sends one trace message.
func (d *AsyncDispatcher) send(batch *traceBatch) {
	m := &message.Message{Topic: d.opts.Topic, Body: batch.body}
	if err := m.SetKeys(batch.keys...); err != nil {
		d.opts.Logger.Debug("keys of a trace message", "err", err) // it can still be read in order
	}
	err := d.producer.Async(context.Background(), m, func(_ Result, err error) { d.sent(batch, err) })
	if err != nil {
		d.sent(batch, err)
	}
}

func (d *AsyncDispatcher) sent(batch *traceBatch, err error) {
	if err != nil {
		d.opts.Logger.Warn("trace message not sent", "records", batch.count, "bytes", len(batch.body), "err", err)
		d.discard(batch.count, "the trace topic cannot be sent to")
		return
	}
	d.unsent.Add(-int64(batch.count))
}

// flushStep is the pause between two looks whether all is sent.
const flushStep = 2 * time.Millisecond

// Flush implements [trace.Dispatcher].
func (d *AsyncDispatcher) Flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, d.opts.FlushTimeout)
	defer cancel()
	select {
	case d.flush <- struct{}{}:
	default:
	}
	tick := time.NewTicker(flushStep)
	defer tick.Stop()
	for d.unsent.Load() > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Shutdown implements [trace.Dispatcher].
func (d *AsyncDispatcher) Shutdown(ctx context.Context) error {
	d.mu.Lock()
	started, closed := d.started, d.closed
	d.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	if started {
		d.Flush(ctx)
	}
	close(d.stop)
	d.worker.Wait()
	d.sweep()
	d.pool.close()
	short, cancel := context.WithTimeout(ctx, d.opts.FlushTimeout)
	defer cancel()
	err := d.producer.Shutdown(short)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = nil // what was not sent is counted as discarded
	}
	return errors.Join(err, d.pool.waitFor(context.WithoutCancel(ctx)))
}
