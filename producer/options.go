package producer

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// Client is one client instance: one id, one connection to each broker. Producers and consumers of different groups may share it.
type Client = client.Client

// ClientOptions configure a [Client].
type ClientOptions = client.Options

// Credentials sign requests for a broker that checks them.
type Credentials = client.Credentials

// RPCHook sees every request of a client and its answer.
type RPCHook = client.RPCHook

// NewClient returns a client instance to share. Its owner closes it, after the producers and consumers that use it.
func NewClient(o *ClientOptions) (*Client, error) { return client.New(o) }

// ParseNameServers reads "host:port;host:port".
func ParseNameServers(list string) []string { return client.ParseNameServers(list) }

// Queue is one queue of a topic.
type Queue = client.Queue

// Compression is how bodies are compressed.
type Compression int

// The compressions. Readers before 4.9.4 know ZLIB only.
const (
	ZLIB Compression = iota
	LZ4
	ZSTD
)

// Options configure a [Producer]. Group is needed, and NameServers or one of Client and ClientOptions; the zero value of all else means
// the default.
type Options struct {
	// Group is the producer group. Java: producerGroup.
	Group string
	// NameServers are the host:port of all name servers; short for those of ClientOptions.
	NameServers []string
	// ClientOptions are those of the producer's own client instance.
	ClientOptions ClientOptions
	// Client is an instance to share instead; ClientOptions and NameServers then mean nothing.
	Client *Client

	// SendTimeout is the time budget of one send with all its tries. Default 3 s. Java: sendMsgTimeout.
	SendTimeout time.Duration
	// TryTimeout limits one try within it. Default: what is left of the budget. Java 5.x: sendMsgMaxTimeoutPerRequest.
	TryTimeout time.Duration
	// Retries is how often a send is tried again at another broker, AsyncRetries the same for asynchronous ones; negative: never.
	// Default 2 each. Java: retryTimesWhenSendFailed, retryTimesWhenSendAsyncFailed.
	Retries, AsyncRetries int
	// RetryCodes are the broker's answers after which a send is tried again. Default: 17, 14, 1, 16, 204, 205; in dialect 5.3
	// also 2 and 1500.
	RetryCodes []int32
	// RetryNotStored tries another broker too when the message is stored but not [OK]. Java: retryAnotherBrokerWhenNotStoreOK.
	RetryNotStored bool
	// RetrySameQueue tries a send to a chosen queue again at that queue. Default: such sends are tried once.
	RetrySameQueue bool
	// AvoidSlow passes over brokers that answered slowly or not for a while. Java: sendLatencyFaultEnable.
	AvoidSlow bool
	// Latency is the table for AvoidSlow, in ascending order. Default: [DefaultLatency].
	Latency []LatencyStep

	// MaxMessageSize limits a body, and the messages of a batch together, bytes. Default 4 MiB; dialect 3.1 128 KiB. Java: maxMessageSize.
	MaxMessageSize int
	// CompressFrom is the length from which on a body is compressed, bytes; negative: never. Default 4096; under high load 8192 spares
	// the processor. Java: compressMsgBodyOverHowmuch.
	CompressFrom int
	// CompressLevel is zlib's level, 1 to 9. Default 5; -1 is level 0. Java: rocketmq.message.compressLevel.
	CompressLevel int
	// Compression is how. Java: compressType.
	Compression Compression
	// KeepLarger sends a body as it is when compressing does not make it smaller. The original sends it compressed.
	KeepLarger bool

	// MaxPending limits the asynchronous sends that have not called back, MaxPendingBytes their bodies. Default 65 535 (dialect 3.1:
	// 128) and 256 MiB. Beyond them Async returns [ErrTooManyRequests], at once or after it waited for PendingWait.
	MaxPending      int
	MaxPendingBytes int64
	PendingWait     time.Duration
	// CallbackWorkers is how many callbacks run at once. Default: the number of processors. Java: clientCallbackExecutorThreads.
	CallbackWorkers int

	// DefaultTopic is the topic whose brokers may create unknown ones, DefaultTopicQueues how many queues these get. Default TBW102
	// and 4. Java: createTopicKey, defaultTopicQueueNums.
	DefaultTopic       string
	DefaultTopicQueues int32

	// KeepBorn sends a message's BornTimestamp as it is where it has one: for messages that come from elsewhere. Default: the time of
	// the send.
	KeepBorn bool

	// Listener decides transactions and answers checks; for [Producer.SendInTransaction].
	Listener TransactionListener
	// CheckWorkers is how many checks run at once, CheckQueue how many may wait; further ones are dropped, and the broker asks again.
	// Default 1 and 2000. Java: checkThreadPoolMinSize, checkRequestHoldMax.
	CheckWorkers, CheckQueue int

	// Hooks see every send, in this order. Java: SendMessageHook.
	Hooks []SendHook
	// Trace sends a record of each send to the trace topic. Java: enableMsgTrace.
	Trace bool
	// TraceTopic is a topic of one's own for that. Default RMQ_SYS_TRACE_TOPIC. A topic whose name begins with it is not traced.
	// Java: customizedTraceTopic.
	TraceTopic string
	// TraceErrors records sends that failed too.
	TraceErrors bool
	// TraceOptions tune the dispatcher.
	TraceOptions TraceOptions
	// Dispatcher takes the records instead of the asynchronous one.
	Dispatcher trace.Dispatcher

	// Dialect is the line whose clients' constants are the defaults. Default 4.9. A broker of 3.1, which leaves the requests of later lines
	// without an answer, is known by the version in its answer to a heartbeat, for which the first send to a broker waits; it is sent the
	// old form. The dialect of 3.1 spares that heartbeat.
	Dialect *dialect.Dialect
	// Logger receives what goes wrong, and at debug level each send's result. Default: discard.
	Logger *slog.Logger
}

// defaultGroup is what Java calls a group that nobody named.
const defaultGroup = "DEFAULT_PRODUCER"

var legalGroup = regexp.MustCompile(`^[%|a-zA-Z0-9_-]+$`)

func checkGroup(group string) error {
	switch {
	case group == "" || group == defaultGroup:
		return fmt.Errorf("group %q is not a name of one's own", group)
	case len(group) > 255:
		return fmt.Errorf("group of %d bytes, at most 255 are allowed", len(group))
	case !legalGroup.MatchString(group):
		return fmt.Errorf("group %q has other characters than letters, digits and %% | - _", group)
	}
	return nil
}

// orDefault is n, the default for 0, and 0 for a negative number.
func orDefault(n, d int) int {
	switch {
	case n == 0:
		return d
	case n < 0:
		return 0
	}
	return n
}

func (o *Options) withDefaults() (Options, error) {
	var d Options
	if o != nil {
		d = *o
	}
	err := errors.Join(checkGroup(d.Group), d.check())
	d.Dialect = cmp.Or(d.Dialect, dialect.V49())
	d.SendTimeout = cmp.Or(d.SendTimeout, 3*time.Second)
	d.TryTimeout = cmp.Or(d.TryTimeout, d.SendTimeout)
	d.Retries = orDefault(d.Retries, 2)
	d.AsyncRetries = orDefault(d.AsyncRetries, d.Dialect.ClientAsyncRetries)
	if d.RetryCodes = slices.Clone(d.RetryCodes); d.RetryCodes == nil {
		d.RetryCodes = []int32{
			remoting.TopicNotExist, remoting.ServiceNotAvailable, remoting.SystemError, remoting.NoPermission, remoting.NoBuyerID,
			remoting.NotInCurrentUnit,
		}
		if d.Dialect.ClientRetriesBusy {
			d.RetryCodes = append(d.RetryCodes, remoting.SystemBusy, remoting.GoAway)
		}
	}
	if d.Latency = slices.Clone(d.Latency); d.Latency == nil {
		d.Latency = DefaultLatency()
	}
	d.MaxMessageSize = cmp.Or(d.MaxMessageSize, d.Dialect.ClientMaxBody)
	d.CompressFrom = cmp.Or(d.CompressFrom, 4096)
	d.CompressLevel = cmp.Or(d.CompressLevel, 5)
	d.MaxPending = cmp.Or(d.MaxPending, d.Dialect.ClientMaxAsync)
	d.MaxPendingBytes = cmp.Or(d.MaxPendingBytes, 256<<20)
	d.CallbackWorkers = cmp.Or(d.CallbackWorkers, runtime.NumCPU())
	d.DefaultTopic = cmp.Or(d.DefaultTopic, "TBW102")
	d.DefaultTopicQueues = cmp.Or(d.DefaultTopicQueues, 4)
	d.CheckWorkers = cmp.Or(d.CheckWorkers, 1)
	d.CheckQueue = cmp.Or(d.CheckQueue, 2000)
	d.Hooks = slices.Clone(d.Hooks)
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	if d.NameServers != nil {
		d.ClientOptions.NameServers = d.NameServers
	}
	d.ClientOptions.MaxAsync = cmp.Or(d.ClientOptions.MaxAsync, d.Dialect.ClientMaxAsync)
	d.ClientOptions.MaxOneway = cmp.Or(d.ClientOptions.MaxOneway, d.Dialect.ClientMaxOneway)
	if err != nil {
		return d, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return d, nil
}

// check looks at what has no default for a wrong value.
func (o *Options) check() error {
	var errs []error
	for _, v := range []struct {
		name string
		n    int64
	}{
		{"SendTimeout", int64(o.SendTimeout)},
		{"TryTimeout", int64(o.TryTimeout)},
		{"MaxMessageSize", int64(o.MaxMessageSize)},
		{"MaxPending", int64(o.MaxPending)},
		{"MaxPendingBytes", o.MaxPendingBytes},
		{"PendingWait", int64(o.PendingWait)},
		{"CallbackWorkers", int64(o.CallbackWorkers)},
		{"DefaultTopicQueues", int64(o.DefaultTopicQueues)},
		{"CheckWorkers", int64(o.CheckWorkers)},
		{"CheckQueue", int64(o.CheckQueue)},
	} {
		if v.n < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", v.name))
		}
	}
	if o.CompressLevel < -1 || o.CompressLevel > 9 {
		errs = append(errs, fmt.Errorf("CompressLevel %d is not from -1 to 9", o.CompressLevel))
	}
	if o.Compression < ZLIB || o.Compression > ZSTD {
		errs = append(errs, fmt.Errorf("unknown Compression %d", o.Compression))
	}
	if slices.Contains(o.Hooks, nil) {
		errs = append(errs, errors.New("a hook is nil"))
	}
	if !slices.IsSortedFunc(o.Latency, func(a, b LatencyStep) int { return cmp.Compare(a.From, b.From) }) {
		errs = append(errs, errors.New("the steps of Latency are not in ascending order"))
	}
	if topic := strings.TrimSpace(o.TraceTopic); topic != "" && !message.ValidTopic(topic) {
		errs = append(errs, fmt.Errorf("TraceTopic %q is no topic", o.TraceTopic))
	}
	return errors.Join(errs...)
}
