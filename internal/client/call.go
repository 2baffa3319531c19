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
		return nil, c.closed(err)
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

// Async sends a request and calls done exactly once, from another goroutine, unless it returns an error itself. See
// [remoting.Client.Async].
func (c *Client) Async(ctx context.Context, addr string, req *remoting.Command, done func(*remoting.Command, error)) error {
	req = c.before(addr, req)
	err := c.rpc.Async(ctx, addr, req, func(resp *remoting.Command, err error) {
		if err == nil {
			c.after(addr, req, resp)
		}
		done(resp, c.closed(err))
	})
	return c.closed(err)
}

// Oneway sends a request that is not answered.
func (c *Client) Oneway(ctx context.Context, addr string, req *remoting.Command) error {
	return c.closed(c.rpc.Oneway(ctx, addr, c.before(addr, req)))
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

// closed adds [ErrClosed] where the client's end is the reason.
func (c *Client) closed(err error) error {
	if err != nil && c.ctx.Err() != nil {
		return errors.Join(ErrClosed, err)
	}
	return err
}
