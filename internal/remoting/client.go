package remoting

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// ClientOptions configure a [Client]. The zero value, and nil, mean the defaults below.
type ClientOptions struct {
	// Dial makes a connection. Default: TCP with no-delay on and keep-alive off.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// TLS, if not nil, encrypts every connection. Without a ServerName the address's host is used.
	TLS *tls.Config
	// Handler answers the requests of servers (39, 40, 220, …); without one they are refused.
	Handler Handler
	// Credentials, if not nil, sign every request.
	Credentials *Credentials
	// OnClose is told of each connection that ended.
	OnClose func(addr string, c *Conn)
	// ConnectTimeout limits connecting, and waiting for another goroutine's connect. Default 3 s.
	ConnectTimeout time.Duration
	// MaxAsync and MaxOneway limit such requests in flight, oneway ones until they are in a connection's buffer. Default
	// 65 535 each.
	MaxAsync, MaxOneway int
	// The limits of each connection, as in [ServerOptions].
	MaxFrame, MaxInFlightPerConn, WriteBuffer, SocketBuffer int
	Idle, FrameTimeout, WriteTimeout                        time.Duration
	// Logger receives what goes wrong with connections. Default: discard.
	Logger *slog.Logger
}

func (o *ClientOptions) withDefaults() (ClientOptions, connOptions, error) {
	var d ClientOptions
	if o != nil {
		d = *o
	}
	s, err := (&ServerOptions{
		MaxFrame: d.MaxFrame, MaxInFlightPerConn: d.MaxInFlightPerConn, WriteBuffer: d.WriteBuffer, Idle: d.Idle,
		FrameTimeout: d.FrameTimeout, WriteTimeout: d.WriteTimeout, SocketBuffer: d.SocketBuffer,
		Logger: d.Logger,
	}).withDefaults()
	if d.ConnectTimeout < 0 || d.MaxAsync < 0 || d.MaxOneway < 0 {
		err = errors.Join(err, errors.New("ConnectTimeout, MaxAsync or MaxOneway is negative"))
	}
	d.ConnectTimeout = cmp.Or(d.ConnectTimeout, 3*time.Second)
	d.MaxAsync = cmp.Or(d.MaxAsync, 65_535)
	d.MaxOneway = cmp.Or(d.MaxOneway, 65_535)
	d.Logger = s.Logger
	if d.Dial == nil {
		dialer := &net.Dialer{KeepAlive: -1}
		d.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) }
	}
	return d, connOptions{
		handler: d.Handler, maxFrame: s.MaxFrame, maxInFlight: s.MaxInFlightPerConn, writeBuffer: s.WriteBuffer, idle: s.Idle,
		frameTimeout: s.FrameTimeout, writeTimeout: s.WriteTimeout, log: s.Logger,
	}, err
}

// Client keeps one connection per address and sends requests through it. Its methods may be called from many goroutines.
type Client struct {
	opts   ClientOptions
	conn   connOptions
	limits limits
	async  chan struct{} // one token per async request in flight
	oneway chan struct{}

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // connects and connections

	mu     sync.Mutex
	closed bool
	links  map[string]*link

	connects atomic.Int64
}

// link is the connection to one address, or the connect that is under way. conn or err is set, under the client's lock,
// before ready is closed.
type link struct {
	ready chan struct{}
	conn  *Conn
	err   error
}

// NewClient returns a client without connections. An error names the options that are wrong.
func NewClient(o *ClientOptions) (*Client, error) {
	opts, conn, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("client options: %w", err)
	}
	c := &Client{
		opts: opts, conn: conn, links: map[string]*link{},
		async: make(chan struct{}, opts.MaxAsync), oneway: make(chan struct{}, opts.MaxOneway),
	}
	c.limits.maxRequests, c.limits.maxBytes = 16_384, 512<<20
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Conn returns the connection to addr, making it if there is none or if it has ended. Many callers share one connect. An
// error matches [ErrConnect], [ErrClosed] or the context's.
func (c *Client) Conn(ctx context.Context, addr string) (*Conn, error) {
	l, err := c.link(addr)
	if err != nil {
		return nil, err
	}
	select {
	case <-l.ready:
		return l.conn, l.err
	default:
	}
	timeout := time.NewTimer(c.opts.ConnectTimeout)
	defer timeout.Stop()
	select {
	case <-l.ready:
		return l.conn, l.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %s: %w", ErrConnect, addr, ctx.Err())
	case <-timeout.C:
		return nil, fmt.Errorf("%w: %s: not within %v", ErrConnect, addr, c.opts.ConnectTimeout)
	}
}

// link finds the link to addr or starts a connect.
func (c *Client) link(addr string) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, fmt.Errorf("client: %w", ErrClosed)
	}
	l := c.links[addr]
	if l == nil || l.ended() {
		l = &link{ready: make(chan struct{})}
		c.links[addr] = l
		c.work.Go(func() { c.connect(addr, l) })
	}
	return l, nil
}

// ended says whether the link's connection is there and has ended.
func (l *link) ended() bool {
	select {
	case <-l.ready:
		return l.err != nil || l.conn.Err() != nil
	default:
		return false
	}
}

// connect fills l and then runs its connection to the end.
func (c *Client) connect(addr string, l *link) {
	c.connects.Add(1)
	ctx, cancel := context.WithTimeout(c.ctx, c.opts.ConnectTimeout)
	nc, err := c.dial(ctx, addr)
	cancel()
	var conn *Conn
	if err == nil {
		conn = newConn(c.ctx, nc, &c.conn, &c.limits)
		conn.dialed = addr
	}
	c.settle(addr, l, conn, err)
	if conn == nil {
		return
	}
	conn.run()
	c.drop(addr, l)
	c.opts.Logger.Debug("connection closed", "peer", addr, "err", conn.Err())
	if c.opts.OnClose != nil {
		c.opts.OnClose(addr, conn)
	}
}

// settle tells those who wait for l how its connect ended.
func (c *Client) settle(addr string, l *link, conn *Conn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		l.err = fmt.Errorf("%w: %s: %w", ErrConnect, addr, err)
		if c.links[addr] == l {
			delete(c.links, addr)
		}
	case c.links[addr] != l: // disconnected meanwhile
		l.err = fmt.Errorf("%w: %s: %w", ErrConnect, addr, ErrClosed)
		conn.Close()
	default:
		l.conn = conn
	}
	close(l.ready)
}

func (c *Client) dial(ctx context.Context, addr string) (net.Conn, error) {
	nc, err := c.opts.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	setBuffers(nc, c.opts.SocketBuffer)
	if c.opts.TLS == nil {
		return nc, nil
	}
	cfg := c.opts.TLS
	if cfg.ServerName == "" && !cfg.InsecureSkipVerify {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, errors.Join(err, nc.Close())
		}
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	secured := tls.Client(nc, cfg)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = nc.Close() // the reason is what counts
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return secured, nil
}

func (c *Client) drop(addr string, l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.links[addr] == l {
		delete(c.links, addr)
	}
}

// Disconnect closes the connection to addr, if there is one; its requests fail.
func (c *Client) Disconnect(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.links[addr]; l != nil {
		delete(c.links, addr)
		if l.conn != nil {
			l.conn.Close()
		}
	}
}

// Call sends a request and waits for the answer, whatever its code is. The errors are those of [Client.Conn] and
// [Conn.Call].
func (c *Client) Call(ctx context.Context, addr string, req *Command) (*Command, error) {
	conn, err := c.Conn(ctx, addr)
	if err != nil {
		return nil, err
	}
	return conn.Call(ctx, c.sign(req))
}

// sign returns req, or a signed copy of it.
func (c *Client) sign(req *Command) *Command {
	if c.opts.Credentials == nil {
		return req
	}
	r := *req
	r.Fields = append(make(Fields, 0, len(req.Fields)+3), req.Fields...)
	c.opts.Credentials.Sign(&r)
	return &r
}

// Begin sends a request whose outcome w is told, at the latest at the context's deadline; without one the answer is awaited as long as the
// connection lives. Begin waits for no answer, but it may for a connection, and for room where the peer is slow. It returns before or
// after the outcome; from then on the context's end does not count, but [Pending.Abort] does. When it returns an error, one of those of
// [Client.Call], w is told nothing. Requests to one address leave in the order of the calls.
func (c *Client) Begin(ctx context.Context, addr string, req *Command, p *Pending, w Waiter) error {
	conn, err := c.Conn(ctx, addr)
	if err != nil {
		return err
	}
	until, _ := ctx.Deadline()
	return conn.begin(ctx, c.sign(req), p, w, until)
}

// Async is Begin for requests that are not to be too many: with no permit to be had before the context's end, the error matches
// [ErrTooManyRequests]. It waits for room only when 32 times as much waits to be written as others may leave there (WriteBuffer), so that
// who has to go on is not kept by a peer that is slow, and the order is that of the calls.
func (c *Client) Async(ctx context.Context, addr string, req *Command, p *Pending, w Waiter) error {
	if err := acquire(ctx, c.async); err != nil {
		return err
	}
	p.permits = c.async
	err := c.Begin(ctx, addr, req, p, w)
	if err != nil {
		p.permits = nil
		<-c.async
	}
	return err
}

// Abort is [Pending.Abort] for all requests of an owner that wait for an answer.
func (c *Client) Abort(owner any, cause error) {
	var conns []*Conn
	c.mu.Lock()
	for _, l := range c.links {
		if l.conn != nil {
			conns = append(conns, l.conn)
		}
	}
	c.mu.Unlock()
	for _, conn := range conns {
		conn.abort(owner, cause)
	}
}

// acquire takes a permit, waiting until the context ends. If that had ended before, it does not wait.
func acquire(ctx context.Context, permits chan struct{}) error {
	select {
	case permits <- struct{}{}:
		return nil
	default:
	}
	select {
	case permits <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: limit %d: %w", ErrTooManyRequests, cap(permits), ctx.Err())
	}
}

// Oneway sends a request that is not answered. It returns when the request is in the connection's buffer.
func (c *Client) Oneway(ctx context.Context, addr string, req *Command) error {
	if err := acquire(ctx, c.oneway); err != nil {
		return err
	}
	defer func() { <-c.oneway }()
	conn, err := c.Conn(ctx, addr)
	if err != nil {
		return err
	}
	return conn.Oneway(ctx, c.sign(req))
}

// Connected says whether there is a connection to addr.
func (c *Client) Connected(addr string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.links[addr]
	return l != nil && l.conn != nil && !l.ended()
}

// Connects is how many connects were begun ever.
func (c *Client) Connects() int64 { return c.connects.Load() }

// Close closes the connections, fails what is waiting for an answer, and returns when no goroutine is left. A second call does
// nothing. It must not be called by a [Waiter].
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.work.Wait()
}
