package remoting

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Waiter is told the outcome of a request.
type Waiter interface {
	// Answered is called exactly once for each request that was begun, with the answer or an error as of [Conn.Call]. It must not wait:
	// it runs on the goroutine that reads the connection, or keeps its deadlines, or began the request.
	Answered(resp *Command, err error)
}

// WaiterFunc is a waiter that is a function.
type WaiterFunc func(resp *Command, err error)

// Answered implements Waiter.
func (f WaiterFunc) Answered(resp *Command, err error) { f(resp, err) }

// Pending is a request whose answer is awaited. The zero value is ready for use. From the outcome on it may be used for another
// request, before that only Abort may be called.
type Pending struct {
	// Owner is whose request it is, for [Client.Abort].
	Owner any

	waiter  Waiter
	permits chan struct{} // has a token of the request, which is then eager; nil: it needs none
	code    int32
	end     int64 // its last byte's position in the outbox

	conn   atomic.Pointer[Conn] // where it was begun last, under which number
	opaque atomic.Int32

	// These are guarded by the connection's lock. Until it is ready a request is its beginner's alone, who may still wait for
	// room in the outbox; what comes for it meanwhile is kept in early.
	ready bool
	early *Command
	until int64 // its deadline, nanoseconds since the connection was made; 0: none
}

// begin sends a request whose outcome w is told, until when at the latest; the zero time is no limit. It returns without waiting for the
// answer: requests leave in the order of their begins. ctx counts only while it waits for room. req is not changed and may be reused
// after the outcome. An error matches [ErrNotSent] or [ErrClosed]; w is then not told.
func (c *Conn) begin(ctx context.Context, req *Command, p *Pending, w Waiter, until time.Time) error {
	r := *req
	r.Flag &^= FlagResponse | FlagOneway
	p.waiter, p.code = w, req.Code
	c.mu.Lock()
	for {
		c.opaque++ // wraps; numbers still in use are passed over
		if _, used := c.pending[c.opaque]; !used {
			break
		}
	}
	r.Opaque = c.opaque
	p.ready, p.early, p.until = false, nil, 0
	p.conn.Store(c)
	p.opaque.Store(r.Opaque)
	c.pending[r.Opaque] = p
	c.mu.Unlock()
	end, err := c.out.put(ctx, &r, true, p.permits != nil)
	if err != nil {
		c.mu.Lock()
		delete(c.pending, r.Opaque)
		c.mu.Unlock()
		return c.notSent(&r, err)
	}
	resp, err := c.begun(p, r.Opaque, end, until)
	if resp != nil {
		p.tell(resp, nil)
	}
	return err
}

// begun makes p a request like all others, unless its answer is here already or the connection has ended.
func (c *Conn) begun(p *Pending, opaque int32, end int64, until time.Time) (early *Command, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.end = end
	switch {
	case p.early != nil:
		delete(c.pending, opaque)
		return p.early, nil
	case c.failed:
		delete(c.pending, opaque)
		return nil, c.lost(p)
	}
	p.ready = true
	if !until.IsZero() {
		p.until = max(1, int64(until.Sub(c.src.born)))
		c.due.add(c, p.until, opaque)
	}
	return nil, nil
}

func (c *Conn) notSent(req *Command, err error) error {
	return fmt.Errorf("%w: request %d to %s: %w", ErrNotSent, req.Code, c.RemoteAddr(), err)
}

// lost is the error of a request whose connection has ended, and the writer with it.
func (c *Conn) lost(p *Pending) error {
	kind := ErrClosed
	if c.out.written.Load() < p.end {
		kind = ErrNotSent
	}
	return fmt.Errorf("%w: request %d to %s: %w", kind, p.code, c.RemoteAddr(), c.Err())
}

// givenUp is the error of a request that nobody waits for any more.
func (c *Conn) givenUp(p *Pending, cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("%w: request %d to %s: %w", ErrTimeout, p.code, c.RemoteAddr(), cause)
	}
	return fmt.Errorf("request %d to %s: %w", p.code, c.RemoteAddr(), cause)
}

// tell hands over the outcome. Who calls it has taken p from the connection's pending ones, so that there is one outcome. The permit
// is given back first, since the waiter may begin another request.
func (p *Pending) tell(resp *Command, err error) {
	c, code := p.conn.Load(), p.code
	if permits := p.permits; permits != nil {
		p.permits = nil
		<-permits
	}
	defer func() {
		if v := recover(); v != nil {
			c.opts.log.Error("callback panic", "code", code, "peer", c.RemoteAddr(), "panic", v)
		}
	}()
	p.waiter.Answered(resp, err)
}

// Abort ends the wait for the answer: if there was no outcome yet, it is an error that matches the cause, and [ErrTimeout] where that is
// the end of a deadline. The peer may have seen the request.
func (p *Pending) Abort(cause error) {
	c := p.conn.Load()
	if c == nil {
		return
	}
	opaque := p.opaque.Load()
	c.mu.Lock()
	mine := c.pending[opaque] == p && p.ready
	if mine {
		delete(c.pending, opaque)
	}
	c.mu.Unlock()
	if mine {
		p.tell(nil, c.givenUp(p, cause))
	}
}

// settle hands a response to whom it may concern. Late and unknown ones are dropped; the Go client's oneway requests
// make some.
func (c *Conn) settle(resp *Command) {
	c.mu.Lock()
	p := c.pending[resp.Opaque]
	early := p != nil && !p.ready
	if early {
		p.early = resp
	} else {
		delete(c.pending, resp.Opaque)
	}
	c.mu.Unlock()
	switch {
	case p == nil:
		c.opts.log.Debug("response without a request", "opaque", resp.Opaque, "code", resp.Code, "peer", c.RemoteAddr())
	case !early:
		p.tell(resp, nil)
	}
}

// takeAll takes the pending requests of an owner, or all of them, apart from those that their beginners still have.
func (c *Conn) takeAll(mine func(*Pending) bool) (taken []*Pending) {
	for opaque, p := range c.pending {
		if p.ready && mine(p) {
			delete(c.pending, opaque)
			taken = append(taken, p)
		}
	}
	return taken
}

// failAll tells all that the connection has ended. The writer must have ended before, so that it is known what was written.
func (c *Conn) failAll() {
	c.mu.Lock()
	c.failed = true
	taken := c.takeAll(func(*Pending) bool { return true })
	c.mu.Unlock()
	for _, p := range taken {
		p.tell(nil, c.lost(p))
	}
}

// abort is [Client.Abort] for one connection.
func (c *Conn) abort(owner any, cause error) {
	c.mu.Lock()
	taken := c.takeAll(func(p *Pending) bool { return p.Owner == owner })
	c.mu.Unlock()
	for _, p := range taken {
		p.tell(nil, c.givenUp(p, cause))
	}
}

// call is a request that a goroutine waits for.
type call struct {
	Pending
	outcome chan outcome
}

type outcome struct {
	resp *Command
	err  error
}

// Answered implements Waiter.
func (w *call) Answered(resp *Command, err error) { w.outcome <- outcome{resp, err} }

// Call sends a request and returns the answer, whatever its code is. Else the error matches [ErrTimeout] and the context's error,
// [ErrNotSent], or [ErrClosed].
func (c *Conn) Call(ctx context.Context, req *Command) (*Command, error) {
	w := &call{outcome: make(chan outcome, 1)}
	if err := c.begin(ctx, req, &w.Pending, w, time.Time{}); err != nil {
		return nil, err
	}
	var o outcome
	select {
	case o = <-w.outcome:
	case <-ctx.Done():
		w.Abort(ctx.Err())
		o = <-w.outcome
	}
	return o.resp, o.err
}

// Oneway sends a request that is not answered. It returns when the request is in the connection's buffer; whether it
// arrives is not known.
func (c *Conn) Oneway(ctx context.Context, req *Command) error {
	r := *req
	r.Flag = r.Flag&^FlagResponse | FlagOneway
	c.mu.Lock()
	c.opaque++
	r.Opaque = c.opaque
	c.mu.Unlock()
	if _, err := c.out.put(ctx, &r, true, false); err != nil {
		return c.notSent(&r, err)
	}
	return nil
}
