package producer

import (
	"cmp"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// buildTrace sets up tracing if it is wanted. An error leaves the producer without it.
func (p *Producer) buildTrace() {
	if !p.opts.Trace {
		return
	}
	if p.tracer = p.opts.Dispatcher; p.tracer == nil {
		d, err := p.newDispatcher()
		if err != nil {
			p.opts.Logger.Error("trace not set up", "group", p.group, "err", err)
			return
		}
		p.tracer = d
	}
	topic := cmp.Or(strings.TrimSpace(p.opts.TraceTopic), trace.Topic)
	p.hooks = append(p.hooks, &tracing{to: p.tracer, topic: topic, errors: p.opts.TraceErrors})
}

// newDispatcher makes the asynchronous dispatcher of a producer. Its producer connects as this one does.
func (p *Producer) newDispatcher() (*AsyncDispatcher, error) {
	o := p.opts.TraceOptions
	o.Topic = cmp.Or(o.Topic, strings.TrimSpace(p.opts.TraceTopic))
	o.Logger = cmp.Or(o.Logger, p.opts.Logger)
	if o.ClientOptions == nil {
		c := p.client.Options()
		o.ClientOptions = &c
	}
	return NewAsyncDispatcher(p.group, o)
}

// tracing is the hook that makes a trace context of each send.
type tracing struct {
	to     trace.Dispatcher
	topic  string
	errors bool
}

// Name implements SendHook.
func (t *tracing) Name() string { return "trace" }

// untraced says whether sends to a topic leave no trace.
func (t *tracing) untraced(c *SendContext) bool {
	return c == nil || strings.HasPrefix(c.Topic, t.topic)
}

// BeforeSend implements SendHook: it fills in what is known, and sends nothing.
func (t *tracing) BeforeSend(c *SendContext) error {
	if t.untraced(c) {
		return nil
	}
	bean := trace.Bean{Topic: c.Topic, StoreHost: c.Broker, BodyLength: len(c.Body), Type: c.Type}
	if m := c.Message; m != nil {
		bean.Tags, bean.Keys = m.Tag(), m.Property(message.PropertyKeys)
	}
	c.Trace = &trace.Context{Kind: trace.Pub, Time: time.Now().UnixMilli(), Group: c.Group, Beans: []trace.Bean{bean}}
	return nil
}

// AfterSend implements SendHook: it completes the context and hands it to the dispatcher.
func (t *tracing) AfterSend(c *SendContext) error {
	if t.untraced(c) || c.Trace == nil {
		return nil
	}
	failed := c.Result == nil && c.Err != nil && t.errors
	if c.Result == nil && !failed || c.Result != nil && (c.Result.Region == "" || !c.Result.TraceOn) {
		return nil
	}
	x := c.Trace
	x.Cost = (time.Now().UnixMilli() - x.Time) / int64(len(x.Beans))
	bean := &x.Beans[0]
	bean.StoreHost, bean.MessageID = c.Broker, c.MessageID // of the last try
	bean.StoreTime = x.Time + x.Cost/2
	if c.Result != nil {
		x.Success, x.Region, bean.OffsetID = c.Result.Status == OK, c.Result.Region, c.Result.OffsetID
	}
	t.to.Append(x) // it counts what it discards
	return nil
}

// traceEnd notes the end of a transaction.
func (p *Producer) traceEnd(e endContext) {
	if p.tracer == nil {
		return
	}
	region := cmp.Or(e.message.Property(message.PropertyRegion), trace.DefaultRegion)
	p.tracer.Append(&trace.Context{
		Kind: trace.EndTransaction, Time: time.Now().UnixMilli(), Region: region, Group: p.group,
		Beans: []trace.Bean{{
			Topic: e.topic, MessageID: e.id, Tags: e.message.Tag(), Keys: e.message.Property(message.PropertyKeys), StoreHost: e.broker,
			Type: trace.Commit, TransactionID: cmp.Or(e.transactionID, e.id), State: e.state.String(), FromCheck: e.fromCheck,
		}},
	})
}
