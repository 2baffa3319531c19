package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// ErrOptions is the class of what is wrong with options.
var ErrOptions = errors.New("consumer options")

// ErrClosed is returned by whatever is called after Close.
var ErrClosed = client.ErrClosed

// Client is one client instance: one id, one connection to each broker. Producers and consumers of different groups may share it.
type Client = client.Client

// ClientOptions configure a [Client].
type ClientOptions = client.Options

// NewClient returns a client instance to share. Its owner closes it, after the producers and consumers that use it.
func NewClient(o *ClientOptions) (*Client, error) { return client.New(o) }

// Credentials sign requests for a broker that checks them.
type Credentials = client.Credentials

// ParseNameServers reads "host:port;host:port", the form of Java's namesrvAddr.
func ParseNameServers(list string) []string { return client.ParseNameServers(list) }

// From says where a group begins to read a queue that it has no offset of.
type From int

// The places. A queue of which the broker still has everything, and has it in memory, is begun at its start whatever is said here: that
// is how brokers answer the question for the offset.
const (
	// FromLast begins behind what is there.
	FromLast From = iota
	// FromFirst begins with the first message there is.
	FromFirst
	// FromTime begins with the first message stored at or after Options.Since.
	FromTime
)

func (f From) wire() string {
	return [...]string{"CONSUME_FROM_LAST_OFFSET", "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"}[f]
}

// Listener consumes messages of one queue, [Options.BatchSize] at most. nil means that they are consumed, an error that they are
// to come again; a panic counts as an error. The context ends when the consumer is closed and its Close has no more time.
type Listener func(ctx context.Context, b *Batch) error

// Batch is what a listener gets.
type Batch struct {
	Queue    Queue
	Messages []*message.Received
	// DelayLevel says when the messages that failed come again: 0 is for the broker to decide (level 3 and one more each time), 1 to 18 a
	// level, -1 sends them to the dead letter queue. Orderly listeners do not use it.
	DelayLevel int32
	// Suspend is for how long an orderly listener's queue rests after an error, from 10 ms to 30 s. It begins as Options.Suspend.
	Suspend time.Duration

	acked  int // the first so many are consumed, whatever the listener returns; -1: as it returns
	number int64
	p      *process
}

// Ack says that the first n messages are consumed, and those after them have to come again, whatever the listener returns.
func (b *Batch) Ack(n int) { b.acked = min(max(n, 0), len(b.Messages)) }

// consumed is how many of the first messages are.
func (b *Batch) consumed(err error) int {
	switch {
	case b.acked >= 0:
		return b.acked
	case err != nil:
		return 0
	}
	return len(b.Messages)
}

// Options configure a [Consumer]. Group and Topics are needed, and NameServers or one of Client and ClientOptions; the zero value of
// all else means the defaults below.
type Options struct {
	// NameServers are the host:port of all name servers; short for those of ClientOptions.
	NameServers []string
	// ClientOptions are those of the consumer's own client instance.
	ClientOptions ClientOptions
	// Client is an instance to share instead; ClientOptions and NameServers then mean nothing.
	Client *Client
	// Group is shared by all members, which must subscribe to the same. Java: consumerGroup.
	Group string
	// Topics are the subscription expressions by topic: "*" or "tag1 || tag2".
	Topics map[string]string
	// Broadcast gives each member all messages; its offsets are kept in a file below OffsetDir, default ~/.rocketmq_offsets, and what
	// fails is dropped. The client's instance name should then be set, so that a new process finds the file. Java: messageModel.
	Broadcast bool
	OffsetDir string
	// From is where a new group begins. Since is the time for FromTime, default half an hour ago. Java: consumeFromWhere, consumeTimestamp.
	From  From
	Since time.Time

	// Listener gets the messages; without one they are taken from [Consumer.Messages].
	Listener Listener
	// Orderly calls the listener for one batch of a queue at a time, in the queue's order and under its lock at the broker, so that no
	// other member has it too. What fails is tried again before what follows. Java: MessageListenerOrderly.
	Orderly bool
	// Suspend is for how long a queue rests after an orderly listener's error. Default 1 s. Java: suspendCurrentQueueTimeMillis.
	Suspend time.Duration
	// Workers are how many listeners run at once. Default 20; 1 without a listener. Java: consumeThreadMin.
	Workers int
	// BatchSize is how many messages a listener gets at most. Default 1. Java: consumeMessageBatchMaxSize.
	BatchSize int
	// MaxReconsume is how often a message comes again before it goes to the dead letter queue. 0 is the original's default: 16, and
	// without end for orderly listeners. Java: maxReconsumeTimes.
	MaxReconsume int32
	// ConsumeTimeout is how long a listener may take before its message is sent back as if it had failed. Default 15 min. Java:
	// consumeTimeout.
	ConsumeTimeout time.Duration

	// PullBatch is how many messages one pull asks for, PullInterval the pause between two. Default 32 and none. Java: pullBatchSize,
	// pullInterval.
	PullBatch    int
	PullInterval time.Duration
	// MaxCached, MaxCachedBytes and MaxSpan bound what is pulled ahead of each queue: messages, bytes of their bodies, and how far
	// apart the offsets of those not consumed may lie, which does not bind orderly listeners. Default 1000, 100 MiB, 2000. Java:
	// pullThresholdForQueue, pullThresholdSizeForQueue, consumeConcurrentlyMaxSpan.
	MaxCached      int
	MaxCachedBytes int64
	MaxSpan        int64

	// Strategy divides the queues among the members. Default [Average]. Java: allocateMessageQueueStrategy.
	Strategy Strategy
	// RebalanceEvery and SaveEvery are the times between two rebalances, and two times that the offsets are stored. Default 20 s and 5 s.
	// Java: rocketmq.client.rebalance.waitInterval, persistConsumerOffsetInterval.
	RebalanceEvery, SaveEvery time.Duration

	// Hooks see each batch before and after the listener, in this order.
	Hooks []Hook
	// Trace gets a note before and after each call of the listener; the consumer starts it and shuts it down. One that sends them to the
	// trace topic is in package producer.
	Trace trace.Dispatcher
	// Logger receives what happens to the consumer, never a line per message. Default: discard.
	Logger *slog.Logger
}

// Hook sees what a listener consumes. Its methods may be called from many goroutines and must not change the batch.
type Hook interface {
	// Before is called before the listener.
	Before(ctx context.Context, b *Batch)
	// After is called after it, with its error and how long it took.
	After(ctx context.Context, b *Batch, err error, took time.Duration)
}

// The bounds of Batch.Suspend.
const (
	minSuspend = 10 * time.Millisecond
	maxSuspend = 30 * time.Second
)

// The defaults of the original.
const (
	defaultWorkers     = 20
	defaultPullBatch   = 32
	defaultCached      = 1000
	defaultCachedBytes = 100 << 20
	defaultSpan        = 2000
	defaultReconsume   = 16
	orderlyReconsume   = 1<<31 - 1
	defaultSince       = 30 * time.Minute
	defaultTimeout     = 15 * time.Minute
	maxBatch           = 1 << 16
	maxGroup           = 255
)

// withDefaults copies, fills and checks.
func (o *Options) withDefaults() (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	errs := d.check()
	if d.Since.IsZero() {
		d.Since = time.Now().Add(-defaultSince)
	}
	d.Suspend = min(max(cmp.Or(d.Suspend, time.Second), minSuspend), maxSuspend)
	d.PullBatch = cmp.Or(d.PullBatch, defaultPullBatch)
	if d.Listener == nil {
		d.Workers, d.BatchSize = cmp.Or(d.Workers, 1), cmp.Or(d.BatchSize, d.PullBatch)
	}
	d.Workers = cmp.Or(d.Workers, defaultWorkers)
	d.BatchSize = cmp.Or(d.BatchSize, 1)
	d.ConsumeTimeout = cmp.Or(d.ConsumeTimeout, defaultTimeout)
	d.MaxCached = cmp.Or(d.MaxCached, defaultCached)
	d.MaxCachedBytes = cmp.Or(d.MaxCachedBytes, defaultCachedBytes)
	if d.MaxSpan = cmp.Or(d.MaxSpan, defaultSpan); d.Orderly {
		d.MaxSpan = 0
	}
	if d.MaxReconsume == 0 {
		if d.MaxReconsume = defaultReconsume; d.Orderly {
			d.MaxReconsume = orderlyReconsume
		}
	}
	if d.Strategy == nil {
		d.Strategy = Average{}
	}
	d.RebalanceEvery = cmp.Or(d.RebalanceEvery, 20*time.Second)
	d.SaveEvery = cmp.Or(d.SaveEvery, 5*time.Second)
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	d.ClientOptions.Logger = cmp.Or(d.ClientOptions.Logger, d.Logger)
	if d.NameServers != nil {
		d.ClientOptions.NameServers = d.NameServers
	}
	if err := errors.Join(errs...); err != nil {
		return d, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return d, nil
}

// check says what is wrong.
func (o *Options) check() (errs []error) {
	errs = append(errs, checkGroup(o.Group))
	if len(o.Topics) == 0 {
		errs = append(errs, errors.New("no topic is subscribed to"))
	}
	if o.From < FromLast || o.From > FromTime {
		errs = append(errs, fmt.Errorf("From is %d", o.From))
	}
	for _, v := range []struct {
		name    string
		n, most int64
	}{
		{"Workers", int64(o.Workers), maxBatch},
		{"BatchSize", int64(o.BatchSize), maxBatch},
		{"PullBatch", int64(o.PullBatch), maxBatch},
		{"MaxCached", int64(o.MaxCached), 1 << 30},
		{"MaxCachedBytes", o.MaxCachedBytes, 1 << 50},
		{"MaxSpan", o.MaxSpan, 1 << 50},
		{"MaxReconsume", int64(o.MaxReconsume), orderlyReconsume},
		{"Suspend", int64(o.Suspend), int64(maxSuspend)},
		{"ConsumeTimeout", int64(o.ConsumeTimeout), 1 << 62},
		{"PullInterval", int64(o.PullInterval), 1 << 62},
		{"RebalanceEvery", int64(o.RebalanceEvery), 1 << 62},
		{"SaveEvery", int64(o.SaveEvery), 1 << 62},
	} {
		if v.n < 0 || v.n > v.most {
			errs = append(errs, fmt.Errorf("%s is %d, allowed are 0 to %d", v.name, v.n, v.most))
		}
	}
	return errs
}

// checkGroup says what is wrong with the name of a group.
func checkGroup(group string) error {
	switch {
	case group == "":
		return errors.New("no group is given")
	case len(group) > maxGroup:
		return fmt.Errorf("the group has %d characters, at most %d are allowed", len(group), maxGroup)
	case !message.ValidTopic(group):
		return fmt.Errorf("the group %q holds other characters than letters, digits, %%, |, - and _", group)
	case strings.EqualFold(group, "DEFAULT_CONSUMER"):
		return fmt.Errorf("the group %s is the original's default, which is not allowed", group)
	}
	return nil
}
