package remoting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	ended      chan error    // what the reading goroutine says that ended in place of the first
	here       here          // the reading goroutine's handler
	held       atomic.Int64  // by Hold
	detached   atomic.Int32  // handlers whose goroutine does not read any more
	scratch    *scratch      // the reading goroutine's own
	unsent     bool          // answerHere has left something in the buffer; the reading goroutine's own
	handlers   sync.WaitGroup
	slots      chan struct{} // one token per request being handled

	once sync.Once // guards the end
	err  error     // why it was closed; readable after ctx ended

	helpers sync.WaitGroup // the writer and the keeper of deadlines

	mu      sync.Mutex
	pending map[int32]*Pending // by opaque
	opaque  int32              // the last one given
	due     deadlines
	failed  bool // what was pending was told that the connection has ended
}

// connOptions are shared by the connections of one server or client.
type connOptions struct {
	handler      Handler
	sequential   bool                     // requests are handled one by one, in order
	place        func(req *Command) Place // nil: each apart
	maxFrame     int
	maxInFlight  int // per connection
	writeBuffer  int
	idle         time.Duration
	frameTimeout time.Duration
	writeTimeout time.Duration
	onClose      func(*Conn)
	workers      *workers // nil: each request has a goroutine of its own
	relief       *relief  // nil without place
	log          *slog.Logger
}

// limits count what the connections of one server or client hold together.
type limits struct {
	maxRequests, maxBytes int64
	maxWaiting            int64        // 0: no limit
	requests, bytes       atomic.Int64 // being handled; held by large frames
	reads                 atomic.Int64 // bytes of large buffers to read into
	waiting               atomic.Int64 // bytes that wait to be written
	handled, frameErrors  atomic.Int64 // ever
}

// maxLargeReads is what the large buffers of one server or client hold together, bytes. Who comes when they are given away reads
// into a small one.
const maxLargeReads = 64 << 20

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
		writerDone: make(chan struct{}), finished: make(chan struct{}), ended: make(chan error, 1), scratch: &scratch{},
		slots: make(chan struct{}, o.maxInFlight), pending: map[int32]*Pending{},
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.src = &source{nc: nc, opts: o, born: time.Now()}
	c.src.touch()
	c.frames = NewFrameReader(c.src, o.maxFrame)
	c.src.flush = c.flush
	c.frames.take = func(bytes int) bool { return add(&l.bytes, int64(bytes), l.maxBytes) }
	c.frames.room = func(bytes int) bool { return add(&l.reads, int64(bytes), maxLargeReads) }
	return c
}

// run works the connection until it ends.
func (c *Conn) run() {
	c.helpers.Go(func() {
		c.writeLoop()
		<-c.ctx.Done()
		c.failAll()
	})
	stop := context.AfterFunc(c.ctx, func() { c.shut(ErrClosed) }) // the owner's context ended
	defer stop()
	err := c.readLoop()
	if errors.Is(err, errRelieved) {
		err = <-c.ended
	}
	c.flush() // the answers to what came before a frame that is none
	if !errors.Is(err, errDraining) {
		c.shut(err)
	}
	c.handlers.Wait()
	c.out.finish()
	<-c.writerDone
	c.shut(err)
	c.out.forget()
	c.frames.close()
	c.helpers.Wait()
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

// Hold adds to what the owner of the connection says that answers hold which are being made for it, bytes, and gives the sum.
func (c *Conn) Hold(bytes int64) int64 { return c.held.Add(bytes) }

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
	return c.respond(ctx, req, resp, true)
}

func (c *Conn) respond(ctx context.Context, req, resp *Command, wake bool) error {
	if req.IsOneway() {
		return nil
	}
	r := *resp
	r.Opaque, r.Codec, r.Flag = req.Opaque, req.Codec, r.Flag|FlagResponse
	_, err := c.out.put(ctx, &r, wake, false)
	return err
}

// readLoop reads frames until the connection ends and says why it did.
func (c *Conn) readLoop() error {
	for {
		c.src.await()
		if err := c.frames.wait(); err != nil {
			return err
		}
		if c.src.rested {
			c.frames.shrink()
		}
		c.src.expect()
		before := c.frames.taken
		frame, lent, err := c.frames.next()
		held := c.frames.taken - before
		var cmd *Command
		if err == nil {
			cmd, err = c.scratch.decode(frame)
		}
		if err != nil {
			c.limits.bytes.Add(-held)
			if errors.Is(err, ErrFrame) {
				c.limits.frameErrors.Add(1)
			}
			return err
		}
		if err := c.take(cmd, lent, held); err != nil {
			return err
		}
		c.scratch.clear()
	}
}

// take brings a command that was read, and is in the scratch, to where it belongs; its body is lent if it lies in the buffer. Held bytes are given back after it.
func (c *Conn) take(cmd *Command, lent bool, held int64) error {
	place := c.placeOf(cmd)
	if place == Apart {
		cmd = c.scratch.taken(lent)
	}
	switch {
	case cmd.IsResponse():
		c.settle(cmd)
		c.limits.bytes.Add(-held)
	case place == InOrder:
		c.limits.handled.Add(1)
		c.answerHere(cmd, c.handle(cmd))
		c.limits.bytes.Add(-held)
	case place == Quick:
		relieved := c.serveQuick(cmd)
		c.limits.bytes.Add(-held)
		c.handlers.Done() // the connection may end now
		if relieved {
			return errRelieved
		}
	case !c.dispatch(cmd, held):
		return c.ctx.Err()
	}
	return nil
}

func (c *Conn) placeOf(cmd *Command) Place {
	if c.opts.place == nil || cmd.IsResponse() {
		return Apart
	}
	place := c.opts.place(cmd)
	if place == Quick && c.detached.Load() > 0 {
		return Apart
	}
	return place
}

// answerHere leaves an answer in the buffer. It waits with those of the requests that have been read already, and leaves with them
// before more is read: one write for what came in one read.
func (c *Conn) answerHere(req, resp *Command) {
	c.answer(req, resp, false)
	c.unsent = true
}

// serveQuick lets the handler answer a request on the reading goroutine. It reports whether another goroutine has read on meanwhile. The
// caller takes it off the handlers.
func (c *Conn) serveQuick(req *Command) (relieved bool) {
	c.limits.handled.Add(1)
	c.handlers.Add(1)
	turn := c.here.turn.Add(1)
	c.opts.relief.noted()
	resp := c.handle(req)
	if !c.here.turn.CompareAndSwap(turn, turn+1) {
		c.answer(req, resp, true)
		c.detached.Add(-1)
		return true
	}
	c.answerHere(req, resp)
	return false
}

// flush writes what answerHere has left in the buffer, before the reading goroutine waits for more.
func (c *Conn) flush() {
	if !c.unsent {
		return
	}
	c.unsent = false
	b := c.out.grab()
	if b == nil {
		return
	}
	err := c.write(b)
	c.out.release(b)
	if err != nil {
		c.unwritable(err)
	}
}

// dispatch hands a request to the handler; held bytes are given back after it. It reports false when the connection ended.
func (c *Conn) dispatch(req *Command, held int64) bool {
	if c.opts.sequential {
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
		c.answer(req, req.Refuse(SystemBusy, "[OVERLOAD]more than %d requests at once", c.limits.maxRequests), true)
		return true
	}
	c.handlers.Add(1)
	c.opts.workers.do(job{c, req, held})
	return true
}

// serve lets the handler answer one request.
func (c *Conn) serve(req *Command) {
	c.limits.handled.Add(1)
	c.answer(req, c.handle(req), true)
}

// NotSupported is the answer to a request code that nobody serves.
func NotSupported(req *Command) *Command {
	return req.Refuse(RequestCodeNotSupported, " request type %d not supported", req.Code)
}

func (c *Conn) handle(req *Command) (resp *Command) {
	if c.opts.handler == nil {
		return NotSupported(req)
	}
	defer func() {
		if v := recover(); v != nil {
			c.opts.log.Error("handler panic", "code", req.Code, "peer", c.RemoteAddr(), "panic", v, "stack", string(debug.Stack()))
			resp = req.Refuse(SystemError, "internal error")
		}
	}()
	return c.opts.handler(c.ctx, c, req)
}

// answer sends resp, or says in its place that it cannot be encoded. With wake the writer is told to write it.
func (c *Conn) answer(req, resp *Command, wake bool) {
	if resp == nil || req.IsOneway() {
		return
	}
	err := c.respond(c.ctx, req, resp, wake)
	if errors.Is(err, ErrFrame) {
		err = c.respond(c.ctx, req, req.Refuse(SystemError, "%v", err), wake)
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
