package producer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// replyType is the MSG_TYPE of a reply.
const replyType = "reply"

// send is one message on its way. Only one goroutine at a time works on it.
type send struct {
	p        *Producer
	prepared *prepared
	msg      *message.Message // the user's; of a batch the first
	mode     Mode
	target   target

	began    time.Time
	born     string
	limit    int // tries at most
	tries    int
	brokers  []string
	room     [3]string // of brokers, so that it needs no memory of its own
	quick    bool      // this try must not wait; what it needs is there, or it is not made
	short    bool      // the last try's fields had short names
	last     string    // broker of the last try
	hooks    *SendContext
	stored   *Result // the last result that was stored but not OK, while others are tried
	queueFor Queue   // of the last try
	kept     bool    // the next try goes where the last one, which did not count, was to go

	budget budget           // all tries together
	rpc    remoting.Pending // the last try
	req    remoting.Command // its request, whose fields are in fields
	fields [maxFields]remoting.Field
	answer chan answer // has the outcome of a try that is waited for; nil: none is
}

// answer is what came of a try.
type answer struct {
	resp *remoting.Command
	err  error
}

// target is where a caller wants a message. The zero value is any queue.
type target struct {
	queue    *Queue
	selector Selector
	arg      any
}

// chosenBy is a target that a selector chooses; one that is missing is an error when it is asked.
func chosenBy(sel Selector, arg any) target {
	if sel == nil {
		sel = func([]Queue, *message.Message, any) (Queue, error) { return Queue{}, errors.New("no selector") }
	}
	return target{selector: sel, arg: arg}
}

func (t *target) fixed() bool { return t.queue != nil || t.selector != nil }

// Send sends a message and waits for the broker's answer, trying other brokers after a failure. The error is a [*SendError] or says what
// is wrong with the message or the producer's state. A nil error comes with a status that may be other than [OK].
func (p *Producer) Send(ctx context.Context, m *message.Message) (Result, error) {
	return p.sync(ctx, m, target{})
}

// SendTo is Send to one queue, which is tried once.
func (p *Producer) SendTo(ctx context.Context, m *message.Message, q Queue) (Result, error) {
	return p.sync(ctx, m, target{queue: &q})
}

// SendSelect is Send to the queue that a selector chooses; it is tried once.
func (p *Producer) SendSelect(ctx context.Context, m *message.Message, sel Selector, arg any) (Result, error) {
	return p.sync(ctx, m, chosenBy(sel, arg))
}

func (p *Producer) sync(ctx context.Context, m *message.Message, t target) (Result, error) {
	r, err := p.prepare(m, 0)
	if err != nil {
		return Result{}, err
	}
	return p.wait(ctx, m, r, t)
}

// wait sends what is prepared and waits for the outcome.
func (p *Producer) wait(ctx context.Context, m *message.Message, r *prepared, t target) (Result, error) {
	if err := p.enter(); err != nil {
		return Result{}, err
	}
	defer p.leave()
	var s send
	s.begin(ctx, p, m, r, t, Sync)
	defer s.budget.end()
	return s.try(&s.budget)
}

// begin makes s, which is zero, a send. It may be part of something larger.
func (s *send) begin(ctx context.Context, p *Producer, m *message.Message, r *prepared, t target, mode Mode) {
	s.p, s.prepared, s.msg, s.target, s.mode, s.began, s.limit = p, r, m, t, mode, time.Now(), 1+p.opts.Retries
	s.budget.begin(ctx, p.ctx, s.began, p.opts.SendTimeout)
	s.rpc.Owner = p
	born := s.began.UnixMilli()
	if p.opts.KeepBorn && m.BornTimestamp > 0 {
		born = m.BornTimestamp
	}
	s.born = strconv.FormatInt(born, 10)
	switch {
	case mode == Oneway, t.fixed() && !p.opts.RetrySameQueue:
		s.limit = 1
	case mode == Async:
		s.limit = 1 + p.opts.AsyncRetries
	}
	p.stats.begin(mode)
}

// try makes tries, each of which waits, until one is final.
func (s *send) try(ctx context.Context) (Result, error) {
	for {
		req, addr, err := s.next(ctx)
		var resp *remoting.Command
		began := time.Now()
		if err == nil {
			resp, err = s.call(ctx, addr, req)
		}
		result, err, again := s.judge(ctx, addr, resp, err, time.Since(began))
		if !again {
			return s.finish(result, err)
		}
	}
}

// call makes one try that waits.
func (s *send) call(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	p := s.p
	var free bool
	if s.answer, free = p.answers.Get().(chan answer); !free {
		s.answer = make(chan answer, 1)
	}
	defer p.answers.Put(s.answer) // it is empty: a try has one outcome
	if err := s.leave(ctx, addr, req, s, p.client.Begin); err != nil {
		return nil, err
	}
	var a answer
	select {
	case a = <-s.answer:
	case <-s.budget.parent.Done():
		s.rpc.Abort(s.budget.parent.Err())
		a = <-s.answer
	}
	return a.resp, p.client.Closed(a.err)
}

// Answered implements remoting.Waiter for a try that is waited for.
func (s *send) Answered(resp *remoting.Command, err error) { s.answer <- answer{resp, err} }

// leave hands a try to the network. What ends the send before it is begun is seen here, since nobody would end its try.
func (s *send) leave(ctx context.Context, addr string, req *remoting.Command, w remoting.Waiter, begin beginner) error {
	if s.p.opts.TryTimeout < s.p.opts.SendTimeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.p.opts.TryTimeout)
		defer cancel()
	}
	if err := begin(ctx, addr, req, &s.rpc, w); err != nil {
		return err
	}
	if err := s.budget.Err(); err != nil {
		s.rpc.Abort(err)
	}
	return nil
}

// beginner is how a client instance begins a request.
type beginner func(ctx context.Context, addr string, req *remoting.Command, p *remoting.Pending, w remoting.Waiter) error

// next chooses the queue of the next try and makes its request.
func (s *send) next(ctx context.Context) (*remoting.Command, string, error) {
	if ctx.Err() != nil {
		return nil, "", s.ended(ctx)
	}
	q, err := s.choose(ctx)
	if err != nil {
		s.limit = s.tries // no broker to try: that is final
		return nil, "", err
	}
	s.last, s.queueFor = q.BrokerName, q
	if s.brokers == nil {
		s.brokers = s.room[:0]
	}
	s.brokers = append(s.brokers, q.BrokerName)
	s.tries++
	addr, err := s.p.client.Master(q.BrokerName)
	if err != nil {
		return nil, "", err
	}
	if len(s.p.hooks) > 0 {
		s.hook(q, addr)
	}
	if !s.quick && s.p.opts.Dialect.ClientShortNames {
		s.p.client.Meet(ctx, addr, s.p.opts.SendTimeout/4)
	}
	s.short = s.p.short(addr)
	if s.prepared.batch && !s.short && s.p.opts.Dialect.ClientShortNames {
		return nil, addr, &BrokerError{
			Code: remoting.RequestCodeNotSupported, Remark: "a broker of its line takes no batches", Addr: addr, Request: remoting.SendBatchMessage,
		}
	}
	return s.request(q), addr, nil
}

// undo forgets the last try: it does not count, and the next one goes to its queue. A queue's turn is not lost by it, and a selector is not
// asked again.
func (s *send) undo() {
	s.tries--
	s.brokers = s.brokers[:len(s.brokers)-1]
	s.kept = true
}

// hook tells the hooks of the send's beginning, and later of its newest broker.
func (s *send) hook(q Queue, addr string) {
	if c := s.hooks; c != nil {
		c.Queue, c.Broker = q, addr
		return
	}
	s.hooks = &SendContext{
		Group: s.p.group, Message: s.msg, Topic: s.prepared.topic, MessageID: s.prepared.id, Body: s.prepared.body,
		Type: s.prepared.kind, Mode: s.mode, Queue: q, Broker: addr, Began: s.began,
	}
	s.p.before(s.hooks)
}

// choose is the queue of the next try.
func (s *send) choose(ctx context.Context) (Queue, error) {
	p, topic := s.p, s.prepared.topic
	if s.kept {
		s.kept = false
		return s.queueFor, nil
	}
	if q := s.target.queue; q != nil {
		if wrapped := p.client.Namespace().Wrap(q.Topic); wrapped != topic {
			return Queue{}, fmt.Errorf("%w: queue %v is not one of topic %s", ErrSelector, q, topic)
		}
		if _, err := p.client.Master(q.BrokerName); err != nil {
			if _, err := p.route(ctx, topic); err != nil {
				return Queue{}, err
			}
		}
		return Queue{Topic: topic, BrokerName: q.BrokerName, QueueID: q.QueueID}, nil
	}
	if s.target.selector != nil && s.tries > 0 {
		return s.queueFor, nil
	}
	r, err := p.route(ctx, topic)
	if err != nil {
		return Queue{}, err
	}
	if s.target.selector != nil {
		q, err := selected(s.target.selector, p.seen(r.Write), s.msg, s.target.arg)
		q.Topic = topic
		return q, err
	}
	return p.rounds.next(topic, r.Write, s.last, p.latencies), nil
}

// seen are queues as the user knows them, without the namespace.
func (p *Producer) seen(queues []Queue) []Queue {
	ns := p.client.Namespace()
	if ns == "" {
		return queues
	}
	queues = slices.Clone(queues)
	for i := range queues {
		queues[i].Topic = ns.Unwrap(queues[i].Topic)
	}
	return queues
}

// route is where a topic can be written.
func (p *Producer) route(ctx context.Context, topic string) (*client.Route, error) {
	r := p.client.Cached(topic)
	if r == nil {
		var err error
		r, err = p.client.Route(ctx, topic, &client.Fallback{Topic: p.opts.DefaultTopic, Queues: p.opts.DefaultTopicQueues})
		if err != nil {
			return nil, err
		}
	}
	if len(r.Write) == 0 {
		return nil, fmt.Errorf("%w: no queue of %s can be written", ErrNoRoute, topic)
	}
	return r, nil
}

// judge says what the outcome of a try means: again is true when another one is to be made.
func (s *send) judge(ctx context.Context, addr string, resp *remoting.Command, err error, took time.Duration) (Result, error, bool) {
	p := s.p
	if err != nil {
		if isNetwork(err) {
			p.noteLatency(s.last, errorLatency)
		}
		return Result{}, err, s.mayRepeat(ctx, err)
	}
	status, stored := statusOf(resp.Code)
	if !stored {
		p.noteLatency(s.last, took)
		if resp.Code == remoting.RequestCodeNotSupported && s.fallBack(addr) {
			s.undo()
			return Result{}, nil, true
		}
		err := &BrokerError{Code: resp.Code, Remark: resp.Remark, Addr: addr, Request: remoting.SendMessageV2}
		return Result{}, err, s.mode == Sync && slices.Contains(p.opts.RetryCodes, resp.Code) && s.tries < s.limit && ctx.Err() == nil
	}
	p.noteLatency(s.last, took)
	r, err := readResult(resp, status, s.queueFor, addr)
	if err != nil {
		p.opts.Logger.Warn("bad send response", "topic", s.prepared.topic, "broker", addr, "err", err)
		return Result{}, err, false
	}
	r.MessageID = s.prepared.id
	if r.Queue.Topic = s.prepared.topic; p.client.Namespace() != "" {
		r.Queue.Topic = p.client.Namespace().Unwrap(r.Queue.Topic)
	}
	if status != OK && p.opts.RetryNotStored && s.mode == Sync && s.tries < s.limit && ctx.Err() == nil {
		stored := r // so that other results need no memory of their own
		s.stored = &stored
		return r, nil, true
	}
	return r, nil, false
}

// isNetwork says whether a broker was not reached or did not answer.
func isNetwork(err error) bool {
	return errors.Is(err, ErrConnect) || errors.Is(err, ErrNotSent) || errors.Is(err, ErrTimeout) || errors.Is(err, ErrDisconnected)
}

// mayRepeat says whether a try that had no answer is followed by another. A broker without a known address counts as one that was not
// reached.
func (s *send) mayRepeat(ctx context.Context, err error) bool {
	if s.tries >= s.limit || ctx.Err() != nil || s.mode == Oneway {
		return false
	}
	return isNetwork(err) || errors.Is(err, client.ErrNoBroker) && s.mode == Sync
}

func (p *Producer) noteLatency(broker string, took time.Duration) {
	if p.latencies != nil {
		p.latencies.note(broker, took)
	}
}

// ended is why the context of a send ended.
func (s *send) ended(ctx context.Context) error {
	switch {
	case s.p.ctx.Err() != nil:
		return ErrClosed
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: the budget of %v is spent: %w", ErrTimeout, s.p.opts.SendTimeout, ctx.Err())
	}
	return ctx.Err()
}

// finish ends a send: figures, hooks, the caller's error.
func (s *send) finish(r Result, err error) (Result, error) {
	p := s.p
	if err != nil && s.stored != nil {
		r, err = *s.stored, nil
	}
	if err != nil {
		if p.ctx.Err() != nil && !errors.Is(err, ErrClosed) {
			err = fmt.Errorf("%w: %w", ErrClosed, err)
		}
		err = &SendError{
			Topic: s.prepared.topic, MessageID: s.prepared.id, Tries: s.tries, Brokers: slices.Clone(s.brokers), Elapsed: time.Since(s.began), Err: err,
		}
	}
	took := time.Since(s.began)
	p.stats.end(s, took, err)
	if err == nil && r.Status != OK {
		p.stats.notStored.Add(1)
	}
	if len(p.hooks) > 0 && s.hooks == nil {
		s.hook(Queue{}, "") // it came to no broker
	}
	if c := s.hooks; c != nil {
		c.Cost, c.Tries, c.Err = took, s.tries, err
		if err == nil && s.mode != Oneway {
			result := r // so that sends without hooks need no memory for it
			c.Result = &result
		}
		p.after(c)
	}
	if !p.opts.Logger.Enabled(p.ctx, slog.LevelDebug) {
		return r, err
	}
	p.opts.Logger.Debug("send result", "topic", s.prepared.topic, "id", s.prepared.id, "status", r.Status, "tries", s.tries, "err", err)
	return r, err
}

// Oneway hands a message to the network. A nil error does not mean that a broker has it; it is never tried again.
func (p *Producer) Oneway(ctx context.Context, m *message.Message) error {
	return p.oneway(ctx, m, target{})
}

// OnewayTo is Oneway to one queue.
func (p *Producer) OnewayTo(ctx context.Context, m *message.Message, q Queue) error {
	return p.oneway(ctx, m, target{queue: &q})
}

// OnewaySelect is Oneway to the queue that a selector chooses.
func (p *Producer) OnewaySelect(ctx context.Context, m *message.Message, sel Selector, arg any) error {
	return p.oneway(ctx, m, chosenBy(sel, arg))
}

func (p *Producer) oneway(ctx context.Context, m *message.Message, t target) error {
	r, err := p.prepare(m, 0)
	if err != nil {
		return err
	}
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	var s send
	s.begin(ctx, p, m, r, t, Oneway)
	defer s.budget.end()
	req, addr, err := s.next(&s.budget)
	if err == nil {
		err = p.client.Oneway(&s.budget, addr, req)
	}
	if errors.Is(err, ErrTooManyRequests) {
		p.opts.Logger.Debug("no permit for a oneway send", "topic", r.topic, "err", err)
	} else if isNetwork(err) {
		p.opts.Logger.Debug("oneway send", "topic", r.topic, "err", err)
	}
	_, err = s.finish(Result{}, err)
	return err
}
