package producer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// Callback is told of an asynchronous send's outcome, exactly once, as the caller of [Producer.Send] is. nil: nobody is told.
type Callback func(Result, error)

// Async sends a message without waiting for the answer, nor for a connection or a broker that does not read. When it returns nil the
// callback is called once, on a goroutine of the callback pool; a panic there is logged. When it returns an error the callback is not
// called: the message or the producer's state is wrong, or there are too many sends in flight ([ErrTooManyRequests]).
func (p *Producer) Async(ctx context.Context, m *message.Message, done Callback) error {
	return p.async(ctx, m, target{}, done)
}

// AsyncTo is Async to one queue, which is tried once.
func (p *Producer) AsyncTo(ctx context.Context, m *message.Message, q Queue, done Callback) error {
	return p.async(ctx, m, target{queue: &q}, done)
}

// AsyncSelect is Async to the queue that a selector chooses; it is tried once.
func (p *Producer) AsyncSelect(ctx context.Context, m *message.Message, sel Selector, arg any, done Callback) error {
	return p.async(ctx, m, chosenBy(sel, arg), done)
}

func (p *Producer) async(ctx context.Context, m *message.Message, t target, done Callback) error {
	r, err := p.prepare(m, 0)
	if err != nil {
		return err
	}
	return p.begin(ctx, m, r, t, done)
}

// pending is an asynchronous send.
type pending struct {
	send
	done    Callback
	unwatch func() bool // ends the watch of the caller's context; nil: there is none
	sent    time.Time   // when the last try left, and to which address
	tried   string
	result  Result
	err     error
}

// begin starts what is prepared.
func (p *Producer) begin(ctx context.Context, m *message.Message, r *prepared, t target, done Callback) error {
	if err := p.enter(); err != nil {
		return err
	}
	if err := p.permits.take(ctx, p.ctx, int64(len(r.body)), p.opts.PendingWait); err != nil {
		p.leave()
		p.stats.refused.Add(1)
		p.opts.Logger.Debug("no permit for an async send", "topic", r.topic, "err", err)
		return err
	}
	s := &pending{done: done}
	s.begin(ctx, p, m, r, t, Async)
	if ctx.Done() != nil {
		s.unwatch = context.AfterFunc(ctx, func() { s.rpc.Abort(ctx.Err()) })
	}
	if p.client.Cached(r.topic) == nil || !s.try(true) {
		p.work.Go(func() { s.try(false) }) // what may wait does not keep the caller
	}
	return nil
}

// try makes one try. With quick it does so only if that need not wait, for a connect or for a broker that does not read, and says whether
// it did. Once a try has left, the send is no longer the caller's.
func (s *pending) try(quick bool) bool {
	for {
		s.quick = quick
		req, addr, err := s.next(&s.budget)
		if quick && err == nil && (!s.p.client.Connected(addr) || !s.p.knows(addr)) {
			s.undo()
			return false
		}
		s.sent = time.Now()
		if err == nil {
			s.tried = addr
			err = s.leave(s.patience(quick), addr, req, s, s.p.client.Async)
		}
		if quick && errors.Is(err, errWouldWait) {
			s.undo()
			return false
		}
		if err == nil {
			return true
		}
		result, err, again := s.judge(&s.budget, addr, nil, err, time.Since(s.sent))
		if !again {
			s.complete(result, err)
			return true
		}
		quick = false
	}
}

// patience is the context of a try: one that is quick does not wait at all.
func (s *pending) patience(quick bool) context.Context {
	if quick {
		return hasty{&s.budget}
	}
	return &s.budget
}

// errWouldWait says that a try is not made, since it cannot be made at once.
var errWouldWait = errors.New("has to wait")

// hasty is the budget of who does not wait. What need not be waited for is done all the same.
type hasty struct{ *budget }

// Done implements context.Context.
func (hasty) Done() <-chan struct{} {
	over := make(chan struct{})
	close(over)
	return over
}

// Err implements context.Context.
func (hasty) Err() error { return errWouldWait }

// Answered implements remoting.Waiter: it is told of a try's outcome. Hooks, a log that is written to for each send, and what a further try
// takes may wait, so they have a goroutine.
func (s *pending) Answered(resp *remoting.Command, err error) {
	if s.p.hooksMayWait || s.p.opts.Logger.Enabled(s.p.ctx, slog.LevelDebug) {
		s.p.work.Go(func() { s.answered(resp, err) })
		return
	}
	s.answered(resp, err)
}

func (s *pending) answered(resp *remoting.Command, err error) {
	result, err, again := s.judge(&s.budget, s.tried, resp, s.p.client.Closed(err), time.Since(s.sent))
	if again {
		s.p.work.Go(func() { s.try(false) })
		return
	}
	s.complete(result, err)
}

// complete ends the send and has the callback called.
func (s *pending) complete(r Result, err error) {
	p := s.p
	s.result, s.err = s.finish(r, err)
	if s.unwatch != nil {
		s.unwatch()
	}
	s.budget.end()
	if !p.callbacks.submit(s) {
		go s.run() // only when the pool is closed: nobody waits for it any more
	}
	p.leave()
}

// run calls the callback.
func (s *pending) run() {
	p := s.p
	p.permits.give(int64(len(s.prepared.body))) // now, since the callback may send
	defer func() {
		if v := recover(); v != nil {
			p.opts.Logger.Error("callback panic", "topic", s.prepared.topic, "panic", v)
		}
	}()
	if s.done != nil {
		s.done(s.result, s.err)
	}
}

// permits bound the asynchronous sends in flight.
type permits struct {
	maxCount int
	maxBytes int64

	mu    sync.Mutex
	count int
	bytes int64
	room  chan struct{} // closed when some were given back; nil if nobody waits
}

// take waits for at most wait until there is room, or until the owner ends. One message larger than the limit of bytes is let in alone.
func (l *permits) take(ctx, owner context.Context, bytes int64, wait time.Duration) error {
	room := l.try(bytes)
	if room == nil {
		return nil
	}
	if wait <= 0 {
		return fmt.Errorf("%w: %d sends or %d bytes", ErrTooManyRequests, l.maxCount, l.maxBytes)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for room != nil {
		select {
		case <-room:
			room = l.try(bytes)
		case <-timer.C:
			return fmt.Errorf("%w: %d sends or %d bytes: %w: no permit within %v", ErrTooManyRequests, l.maxCount, l.maxBytes, ErrTimeout, wait)
		case <-ctx.Done():
			return errors.Join(ErrTooManyRequests, ctx.Err())
		case <-owner.Done():
			return fmt.Errorf("%w: no permit before the end: %w", ErrTooManyRequests, ErrClosed)
		}
	}
	return nil
}

// try takes a permit, or returns what to wait for.
func (l *permits) try(bytes int64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 || l.count < l.maxCount && l.bytes+bytes <= l.maxBytes {
		l.count++
		l.bytes += bytes
		return nil
	}
	if l.room == nil {
		l.room = make(chan struct{})
	}
	return l.room
}

func (l *permits) give(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count--
	l.bytes -= bytes
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
}
