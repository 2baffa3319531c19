package remoting

import (
	"context"
	"errors"
	"fmt"
)

// Pending is a request that was sent and whose answer is awaited.
type Pending struct {
	conn   *Conn
	opaque int32
	code   int32
	end    int64         // its last byte's position in the outbox
	answer chan *Command // holds the one answer
}

// Start sends a request and returns without waiting for the answer: requests leave in the order of their Starts. req is not changed
// and may be reused. Each Pending must be waited for. An error matches [ErrNotSent] or the context's.
func (c *Conn) Start(ctx context.Context, req *Command) (*Pending, error) {
	p := &Pending{conn: c, code: req.Code, answer: make(chan *Command, 1)}
	r := *req
	c.mu.Lock()
	for {
		c.opaque++ // wraps; numbers still in use are passed over
		if _, used := c.pending[c.opaque]; !used {
			break
		}
	}
	p.opaque = c.opaque
	c.pending[p.opaque] = p
	c.mu.Unlock()
	r.Opaque, r.Flag = p.opaque, r.Flag&^(FlagResponse|FlagOneway)
	end, err := c.out.put(ctx, &r, true)
	if err != nil {
		c.forget(p)
		return nil, c.notSent(&r, err)
	}
	p.end = end
	return p, nil
}

func (c *Conn) notSent(req *Command, err error) error {
	return fmt.Errorf("%w: request %d to %s: %w", ErrNotSent, req.Code, c.RemoteAddr(), err)
}

func (c *Conn) forget(p *Pending) {
	c.mu.Lock()
	delete(c.pending, p.opaque)
	c.mu.Unlock()
}

// settle hands a response to whom it may concern. Late and unknown ones are dropped; the Go client's oneway requests
// make some.
func (c *Conn) settle(resp *Command) {
	c.mu.Lock()
	p := c.pending[resp.Opaque]
	delete(c.pending, resp.Opaque)
	c.mu.Unlock()
	if p == nil {
		c.opts.log.Debug("response without a request", "opaque", resp.Opaque, "code", resp.Code, "peer", c.RemoteAddr())
		return
	}
	p.answer <- resp
}

// Wait returns the answer, whatever its code is. Else the error matches [ErrTimeout] and the context's error,
// [ErrNotSent], or [ErrClosed].
func (p *Pending) Wait(ctx context.Context) (*Command, error) {
	select {
	case resp := <-p.answer:
		return resp, nil
	case <-ctx.Done():
	case <-p.conn.ctx.Done():
	}
	p.conn.forget(p)
	select {
	case resp := <-p.answer: // it came at the last moment
		return resp, nil
	default:
	}
	peer := p.conn.RemoteAddr()
	if closed := p.conn.Err(); closed != nil {
		<-p.conn.writerDone // so that it is known what was written
		kind := ErrClosed
		if p.conn.out.written.Load() < p.end {
			kind = ErrNotSent
		}
		return nil, fmt.Errorf("%w: request %d to %s: %w", kind, p.code, peer, closed)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w: request %d to %s: %w", ErrTimeout, p.code, peer, ctx.Err())
	}
	return nil, fmt.Errorf("request %d to %s: %w", p.code, peer, ctx.Err())
}

// Call sends a request and waits for the answer: Start and Wait.
func (c *Conn) Call(ctx context.Context, req *Command) (*Command, error) {
	p, err := c.Start(ctx, req)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
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
	if _, err := c.out.put(ctx, &r, true); err != nil {
		return c.notSent(&r, err)
	}
	return nil
}
