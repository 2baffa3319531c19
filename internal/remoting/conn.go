package remoting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Handler answers a request. It may be called from many goroutines, and ctx ends when the connection closes. What it returns is sent to
// the peer unless the request is oneway; nil means no answer, or one that comes later through [Conn.Respond]. The
// request is the handler's to keep. A panic is logged and answered with SystemError.
type Handler func(ctx context.Context, c *Conn, req *Command) *Command

// Conn is one connection. Its methods may be called from many goroutines.
type Conn struct {
	nc     net.Conn
	opts   *connOptions
	limits *limits
	dialed string // the address that a client gave; "" at a server
	src    *source
	frames *FrameReader
	out    *outbox

	ctx        context.Context // ends when the connection closes
	cancel     context.CancelFunc
	writerDone chan struct{} // closed when the writing goroutine ended
	finished   chan struct{} // closed when both ended, the handlers returned and onClose was called
	handlers   sync.WaitGroup
	slots      chan struct{} // one token per request being handled

	once sync.Once // guards the end
	err  error     // why it was closed; readable after ctx ended

	mu      sync.Mutex
	pending map[int32]*Pending // by opaque
	opaque  int32              // the last one given
}

// connOptions are shared by the connections of one server or client.
type connOptions struct {
	handler      Handler
	sequential   bool // requests are handled one by one, in order
	inline       func(code int32) bool
	maxFrame     int
	maxInFlight  int // per connection
	writeBuffer  int
	idle         time.Duration
	frameTimeout time.Duration
	writeTimeout time.Duration
	onClose      func(*Conn)
	workers      *workers // nil: each request has a goroutine of its own
	log          *slog.Logger
}

// limits count what the connections of one server or client hold together.
type limits struct {
	maxRequests, maxBytes int64
	maxWaiting            int64        // 0: no limit
	requests, bytes       atomic.Int64 // being handled; held by large frames
	waiting               atomic.Int64 // bytes that wait to be written
	handled, frameErrors  atomic.Int64 // ever
}

// add raises v by n unless that exceeds limit.
func add(v *atomic.Int64, n, limit int64) bool {
	if v.Add(n) <= limit {
		return true
	}
	v.Add(-n)
	return false
}

func newConn(ctx context.Context, nc net.Conn, o *connOptions, l *limits) *Conn {
	c := &Conn{
		nc: nc, opts: o, limits: l, out: newOutbox(o.writeBuffer, &l.waiting, cmp.Or(l.maxWaiting, math.MaxInt64)),
		writerDone: make(chan struct{}), finished: make(chan struct{}),
		slots: make(chan struct{}, o.maxInFlight), pending: map[int32]*Pending{},
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.src = &source{nc: nc, opts: o, born: time.Now()}
	c.src.touch()
	c.frames = NewFrameReader(c.src, o.maxFrame)
	c.frames.take = func(bytes int) bool { return add(&l.bytes, int64(bytes), l.maxBytes) }
	return c
}

// run works the connection until it ends.
func (c *Conn) run() {
	go c.writeLoop()
	stop := context.AfterFunc(c.ctx, func() { c.shut(ErrClosed) }) // the owner's context ended
	defer stop()
	err := c.readLoop()
	if !errors.Is(err, errDraining) {
		c.shut(err)
	}
	c.handlers.Wait()
	c.out.finish()
	<-c.writerDone
	c.shut(err)
	c.out.forget()
	if c.opts.onClose != nil {
		c.opts.onClose(c)
	}
	close(c.finished)
}

// shut ends the connection; what is buffered is dropped.
func (c *Conn) shut(err error) {
	c.once.Do(func() {
		c.err = err
		c.out.close(fmt.Errorf("%w: %w", ErrClosed, err))
		c.cancel()
		_ = c.nc.Close() // nothing is left to be said to the peer
	})
}

// drain ends the connection after the requests that were read are answered.
func (c *Conn) drain() { c.src.stop() }

// Close ends the connection at once and returns without waiting. A second call does nothing.
func (c *Conn) Close() { c.shut(ErrClosed) }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.ctx.Done() }

// Err says why the connection ended, nil while it has not.
func (c *Conn) Err() error {
	if c.ctx.Err() == nil {
		return nil
	}
	c.shut(ErrClosed) // at the latest now; waits for one that is under way
	return c.err
}

// Waiting is how many bytes wait to be taken by the network.
func (c *Conn) Waiting() int64 { return c.out.waiting() }

// RemoteAddr is the peer's address as host:port.
func (c *Conn) RemoteAddr() string { return c.nc.RemoteAddr().String() }

// Dialed is the address that the client asked for when it made the connection, "" at a server. A request to it takes the same
// connection, while [Conn.RemoteAddr] may be another text for the same peer.
func (c *Conn) Dialed() string { return c.dialed }

// RemoteAddrPort is the peer's address, invalid if it has none of that kind.
func (c *Conn) RemoteAddrPort() netip.AddrPort {
	if a, ok := c.nc.RemoteAddr().(*net.TCPAddr); ok {
		port := a.AddrPort()
		return netip.AddrPortFrom(port.Addr().Unmap(), port.Port())
	}
	return netip.AddrPort{}
}

// Respond sends a late answer to req: one for which the handler returned nil. It returns when the answer is in the
// connection's buffer.
func (c *Conn) Respond(ctx context.Context, req, resp *Command) error {
	if req.IsOneway() {
		return nil
	}
	r := *resp
	r.Opaque, r.Codec, r.Flag = req.Opaque, req.Codec, r.Flag|FlagResponse
	_, err := c.out.put(ctx, &r)
	return err
}

// readLoop reads frames until the connection ends and says why it did.
func (c *Conn) readLoop() error {
	for {
		c.src.await()
		if err := c.frames.wait(); err != nil {
			return err
		}
		c.src.expect()
		before := c.frames.taken
		frame, err := c.frames.next()
		held := c.frames.taken - before
		var cmd *Command
		if err == nil {
			cmd, err = DecodeFrame(frame)
		}
		if err != nil {
			c.limits.bytes.Add(-held)
			if errors.Is(err, ErrFrame) {
				c.limits.frameErrors.Add(1)
			}
			return err
		}
		if cmd.IsResponse() {
			c.settle(cmd)
			c.limits.bytes.Add(-held)
		} else if !c.dispatch(cmd, held) {
			return c.ctx.Err()
		}
	}
}

// dispatch hands a request to the handler; held bytes are given back after it. It reports false when the connection ended.
func (c *Conn) dispatch(req *Command, held int64) bool {
	if c.opts.sequential || c.opts.inline != nil && c.opts.inline(req.Code) {
		c.serve(req)
		c.limits.bytes.Add(-held)
		return true
	}
	select {
	case c.slots <- struct{}{}: // beyond its limit a peer is not read any more
	case <-c.ctx.Done():
		c.limits.bytes.Add(-held)
		return false
	}
	if !add(&c.limits.requests, 1, c.limits.maxRequests) {
		<-c.slots
		c.limits.bytes.Add(-held)
		c.answer(req, req.Refuse(SystemBusy, "[OVERLOAD]more than %d requests at once", c.limits.maxRequests))
		return true
	}
	c.handlers.Add(1)
	c.opts.workers.do(job{c, req, held})
	return true
}

// serve lets the handler answer one request.
func (c *Conn) serve(req *Command) {
	c.limits.handled.Add(1)
	if c.opts.handler == nil {
		c.answer(req, NotSupported(req))
		return
	}
	c.answer(req, c.handle(req))
}

// NotSupported is the answer to a request code that nobody serves.
func NotSupported(req *Command) *Command {
	return req.Refuse(RequestCodeNotSupported, " request type %d not supported", req.Code)
}

func (c *Conn) handle(req *Command) (resp *Command) {
	defer func() {
		if v := recover(); v != nil {
			c.opts.log.Error("handler panic", "code", req.Code, "peer", c.RemoteAddr(), "panic", v, "stack", string(debug.Stack()))
			resp = req.Refuse(SystemError, "internal error")
		}
	}()
	return c.opts.handler(c.ctx, c, req)
}

// answer sends resp, or says in its place that it cannot be encoded.
func (c *Conn) answer(req, resp *Command) {
	if resp == nil || req.IsOneway() {
		return
	}
	err := c.Respond(c.ctx, req, resp)
	if errors.Is(err, ErrFrame) {
		err = c.Respond(c.ctx, req, req.Refuse(SystemError, "%v", err))
	}
	if err != nil && c.ctx.Err() == nil && !errors.Is(err, ErrClosed) {
		c.opts.log.Warn("answer dropped", "code", req.Code, "peer", c.RemoteAddr(), "err", err)
	}
}

// writeStep is how much has to leave within one write timeout.
const writeStep = 256 << 10

func (c *Conn) writeLoop() {
	defer close(c.writerDone)
	for {
		b, done := c.out.take()
		if done {
			return
		}
		if len(b) == 0 {
			select {
			case <-c.out.wake:
				// Those who are about to answer as well do so first: one write then takes what would have been many.
				runtime.Gosched()
			case <-c.ctx.Done():
				return
			}
			continue
		}
		if err := c.write(b); err != nil {
			c.unwritable(err)
			return
		}
		c.out.give(b)
	}
}

// lingering is how long a connection that cannot be written any more is read at most.
const lingering = 5 * time.Second

// unwritable ends a connection after a write that failed. One that was closed by its peer is read to its end first: what the
// peer sent before is still there, and it does not know that an answer to the first of it was in its way.
func (c *Conn) unwritable(err error) {
	if errors.Is(err, ErrSlow) {
		c.shut(err)
		return
	}
	c.out.close(fmt.Errorf("%w: %w", ErrClosed, err))
	c.src.hurry()
}

func (c *Conn) write(b []byte) error {
	for len(b) > 0 {
		if err := c.nc.SetWriteDeadline(time.Now().Add(c.opts.writeTimeout)); err != nil {
			return err
		}
		n, err := c.nc.Write(b[:min(len(b), writeStep)])
		c.out.took(n)
		c.src.touch()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("%w: %d bytes waited for %v", ErrSlow, len(b), c.opts.writeTimeout)
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// source reads from the network under the deadlines of a connection: between frames the idle time since something
// went either way, within a frame a fixed time from its start.
type source struct {
	nc       net.Conn
	opts     *connOptions
	born     time.Time // with its monotonic reading, so that a change of the clock closes nothing
	frame    bool      // a frame has begun
	deadline time.Time // of that frame; zero until more of it has to be read
	stopping atomic.Bool
	last     atomic.Int64 // when something was read or written, nanoseconds since born
	end      atomic.Int64 // when reading ends whatever comes, nanoseconds since born; 0: not
}

func (s *source) touch()  { s.last.Store(int64(time.Since(s.born))) }
func (s *source) await()  { s.frame = false }
func (s *source) expect() { s.frame, s.deadline = true, time.Time{} }

// stop ends the reading, now and for ever.
func (s *source) stop() {
	s.stopping.Store(true)
	_ = s.nc.SetReadDeadline(time.Unix(1, 0)) // fails only when it is closed already
}

// hurry ends the reading after a while, or when nothing more is there.
func (s *source) hurry() {
	s.end.Store(int64(time.Since(s.born) + lingering))
	_ = s.nc.SetReadDeadline(s.born.Add(time.Duration(s.end.Load()))) // fails only when it is closed already
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	for {
		end := s.end.Load()
		until := s.until()
		if end != 0 {
			until = s.born.Add(time.Duration(end))
		}
		if err := s.nc.SetReadDeadline(until); err != nil {
			return 0, err
		}
		if s.stopping.Load() {
			return 0, errDraining
		}
		if s.end.Load() != end {
			continue // its deadline was just overwritten
		}
		n, err := s.nc.Read(p)
		if n > 0 {
			s.touch()
			return n, nil
		}
		switch {
		case s.stopping.Load():
			return 0, errDraining
		case s.end.Load() != end:
		case end != 0 && errors.Is(err, os.ErrDeadlineExceeded):
			return 0, fmt.Errorf("%w: nothing can be written", ErrClosed)
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return 0, noProgress(err)
		case s.frame:
			return 0, fmt.Errorf("%w: a frame did not end within %v", ErrSlow, s.opts.frameTimeout)
		case !s.until().After(until):
			return 0, fmt.Errorf("%w: %v", ErrIdle, s.opts.idle)
		}
	}
}

func noProgress(err error) error {
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// until is the deadline of the next read.
func (s *source) until() time.Time {
	if !s.frame {
		return s.born.Add(time.Duration(s.last.Load()) + s.opts.idle)
	}
	if s.deadline.IsZero() {
		s.deadline = time.Now().Add(s.opts.frameTimeout)
	}
	return s.deadline
}
