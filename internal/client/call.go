package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Call sends a request and returns the answer, whatever its code is. Errors are those of package remoting; [ErrClosed] besides.
func (c *Client) Call(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	req = c.before(addr, req)
	resp, err := c.rpc.Call(ctx, addr, req)
	if err != nil {
		return nil, c.Closed(err)
	}
	c.after(addr, req, resp)
	return resp, nil
}

// Do is Call that makes an answer other than SUCCESS a [*BrokerError].
func (c *Client) Do(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	resp, err := c.Call(ctx, addr, req)
	if err != nil {
		return nil, err
	}
	return resp, success(addr, req, resp)
}

// Begin is [remoting.Client.Begin]; w is told errors as they are, see [Client.Closed].
func (c *Client) Begin(ctx context.Context, addr string, req *remoting.Command, p *remoting.Pending, w remoting.Waiter) error {
	req, w = c.hooked(addr, req, w)
	return c.Closed(c.rpc.Begin(ctx, addr, req, p, w))
}

// Async is Begin for requests that are not to be too many, see [remoting.Client.Async].
func (c *Client) Async(ctx context.Context, addr string, req *remoting.Command, p *remoting.Pending, w remoting.Waiter) error {
	req, w = c.hooked(addr, req, w)
	return c.Closed(c.rpc.Async(ctx, addr, req, p, w))
}

// Abort ends the wait for the answers to an owner's requests, see [remoting.Client.Abort].
func (c *Client) Abort(owner any, cause error) { c.rpc.Abort(owner, cause) }

// hooked lets the hooks see a request, and later its answer.
func (c *Client) hooked(addr string, req *remoting.Command, w remoting.Waiter) (*remoting.Command, remoting.Waiter) {
	if len(c.opts.Hooks) == 0 {
		return req, w
	}
	req = c.before(addr, req)
	return req, &hooked{c, addr, req, w}
}

// hooked is a waiter behind the hooks.
type hooked struct {
	client *Client
	addr   string
	req    *remoting.Command
	then   remoting.Waiter
}

// Answered implements remoting.Waiter. It has a goroutine of its own, since a hook may take its time.
func (h *hooked) Answered(resp *remoting.Command, err error) {
	tell := func() {
		if err == nil {
			h.client.after(h.addr, h.req, resp)
		}
		h.then.Answered(resp, err)
	}
	if !h.client.spawn(tell) {
		tell() // nothing else waits for this goroutine any more
	}
}

// Oneway sends a request that is not answered.
func (c *Client) Oneway(ctx context.Context, addr string, req *remoting.Command) error {
	return c.Closed(c.rpc.Oneway(ctx, addr, c.before(addr, req)))
}

// Connected says whether a request to addr would leave without waiting for a connect.
func (c *Client) Connected(addr string) bool { return c.rpc.Connected(addr) }

// Connects is how many connects were begun ever.
func (c *Client) Connects() int64 { return c.rpc.Connects() }

// before lets the hooks see req, or a copy of it, since they may add fields.
func (c *Client) before(addr string, req *remoting.Command) *remoting.Command {
	if len(c.opts.Hooks) == 0 {
		return req
	}
	r := *req
	r.Fields = slices.Clone(req.Fields)
	for _, h := range c.opts.Hooks {
		c.guard("before request", func() { h.BeforeRequest(addr, &r) })
	}
	return &r
}

func (c *Client) after(addr string, req, resp *remoting.Command) {
	for _, h := range c.opts.Hooks {
		c.guard("after response", func() { h.AfterResponse(addr, req, resp) })
	}
}

// guard keeps a hook's panic from what the request is part of: a send's callback, the loop of heartbeats.
func (c *Client) guard(when string, hook func()) {
	defer func() {
		if v := recover(); v != nil {
			c.opts.Logger.Error("RPC hook", "when", when, "err", fmt.Sprintf("panic: %v", v))
		}
	}()
	hook()
}

// Closed adds [ErrClosed] where the client's end is the reason.
func (c *Client) Closed(err error) error {
	if err != nil && c.ctx.Err() != nil {
		return errors.Join(ErrClosed, err)
	}
	return err
}
