package producer

import (
	"fmt"
	"time"

	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// Mode is how a message is sent.
type Mode int

// The modes.
const (
	Sync Mode = iota
	Async
	Oneway
)

// SendHook sees each send. An error or a panic of a hook is logged; it changes nothing for the send or for other hooks. The methods may
// be called from many goroutines.
type SendHook interface {
	// Name is what the log calls it.
	Name() string
	// BeforeSend is called once the message is ready and its broker chosen, once for all tries.
	BeforeSend(c *SendContext) error
	// AfterSend is called once the outcome is known, of an asynchronous send before its callback. A oneway send has neither Result nor
	// error.
	AfterSend(c *SendContext) error
}

// SendContext is what hooks know of a send.
type SendContext struct {
	// Group is the producer's.
	Group string
	// Message is the user's, of a batch the first one, and must not be changed. Topic is its topic with the namespace, MessageID the
	// unique id, Body what goes over the wire, compressed or as a batch.
	Message   *message.Message
	Topic     string
	MessageID string
	Body      []byte
	Type      trace.MessageType
	Mode      Mode
	// Queue and Broker are where the last try went.
	Queue  Queue
	Broker string
	// Began is when the send began, Cost how long it took, Tries how many requests it took.
	Began time.Time
	Cost  time.Duration
	Tries int
	// Result is nil for a send without one, Err is why.
	Result *Result
	Err    error
	// Trace is the tracing hook's own.
	Trace *trace.Context
}

// endContext is what the tracing of a transaction's end knows.
type endContext struct {
	message           *message.Message
	topic, id, broker string
	transactionID     string
	state             TransactionState
	fromCheck         bool
}

// before calls the hooks at a send's beginning.
func (p *Producer) before(c *SendContext) {
	for _, h := range p.hooks {
		p.guard(h, "before", func() error { return h.BeforeSend(c) })
	}
}

// after calls the hooks at a send's end.
func (p *Producer) after(c *SendContext) {
	for _, h := range p.hooks {
		p.guard(h, "after", func() error { return h.AfterSend(c) })
	}
}

func (p *Producer) guard(h SendHook, when string, f func() error) {
	defer func() {
		if v := recover(); v != nil {
			p.opts.Logger.Error("send hook", "hook", nameOf(h), "when", when, "err", fmt.Sprintf("panic: %v", v))
		}
	}()
	if err := f(); err != nil {
		p.opts.Logger.Warn("send hook", "hook", nameOf(h), "when", when, "err", err)
	}
}

// nameOf is a hook's name, also of one that cannot say it.
func nameOf(h SendHook) (name string) {
	defer func() {
		if v := recover(); v != nil {
			name = fmt.Sprintf("%T", h)
		}
	}()
	return h.Name()
}
