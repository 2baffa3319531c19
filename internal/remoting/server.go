package remoting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// ServerOptions configure a [Server]. The zero value, and nil, mean the defaults below.
type ServerOptions struct {
	// Handler answers the requests; without one every code is refused.
	Handler Handler
	// Sequential makes each connection's requests be handled one by one, in the order in which they came. Else each has a
	// goroutine of its own.
	Sequential bool
	// Place says where a request is handled. Nil: each apart.
	Place func(req *Command) Place
	// OnOpen and OnClose are told of connections, those of several at once. OnClose comes once for each OnOpen, after the
	// last handler of that connection has returned.
	OnOpen, OnClose func(*Conn)
	// TLS says how encrypted connections are treated. The zero value closes them.
	TLS ServerTLS
	// MaxFrame is the largest L accepted, bytes. Default [MaxFrame].
	MaxFrame int
	// MaxConns limits the connections; further ones are closed as they come. Default 10 000.
	MaxConns int
	// MaxInFlight limits the requests being handled; further ones are answered with SystemBusy. Default 16 384.
	MaxInFlight int
	// MaxInFlightPerConn limits those of one connection, which is not read while it has that many. Default 512.
	MaxInFlightPerConn int
	// MaxFrameBytes limits what all frames above 64 KiB hold while they are read and handled. A connection that
	// would exceed it is closed. Default 512 MiB.
	MaxFrameBytes int64
	// WriteBuffer is what may wait to be written to one connection, bytes; beyond it senders wait. Default 1 MiB.
	WriteBuffer int
	// MaxWaiting is what may wait to be written to all connections together, bytes; beyond it each of them may have 64 KiB only.
	// Default 256 MiB.
	MaxWaiting int64
	// Idle closes a connection on which nothing was read or written for so long. Default 120 s.
	Idle time.Duration
	// FrameTimeout closes a connection whose frame does not end in time after it began. Default 30 s.
	FrameTimeout time.Duration
	// WriteTimeout closes a connection that takes less than 256 KiB, or all there is, in that time. Default 30 s.
	WriteTimeout time.Duration
	// HandshakeTimeout limits the time to the first byte's kind and the end of a TLS handshake. Default 10 s for the
	// handshake; the first byte may take the idle time.
	HandshakeTimeout time.Duration
	// SocketBuffer is the size of each connection's send and receive buffer in the kernel, bytes. Default 0: the system's
	// choice (Java: 65535 until 4.8). There is no switch for epoll: Go's runtime uses it.
	SocketBuffer int
	// Logger receives what goes wrong with connections. Default: discard.
	Logger *slog.Logger
}

// Place is where a request is handled.
type Place int

const (
	// Apart is a goroutine of the request's own.
	Apart Place = iota
	// InOrder is before the next request of its connection is read: for what must not be overtaken. The handler must not wait. As
	// with Quick it keeps nothing of the request but its strings.
	InOrder
	// Quick is the same for what takes less time than another goroutine would need to begin. While one takes long all the same, the
	// connection's other quick ones are handled apart.
	Quick
)

func (o *ServerOptions) withDefaults() (ServerOptions, error) {
	var d ServerOptions
	if o != nil {
		d = *o
	}
	var errs []error
	for _, v := range []struct {
		name  string
		value int64
	}{
		{"MaxFrame", int64(d.MaxFrame)},
		{"MaxConns", int64(d.MaxConns)},
		{"MaxInFlight", int64(d.MaxInFlight)},
		{"MaxInFlightPerConn", int64(d.MaxInFlightPerConn)},
		{"MaxFrameBytes", d.MaxFrameBytes},
		{"WriteBuffer", int64(d.WriteBuffer)},
		{"MaxWaiting", d.MaxWaiting},
		{"Idle", int64(d.Idle)},
		{"FrameTimeout", int64(d.FrameTimeout)},
		{"WriteTimeout", int64(d.WriteTimeout)},
		{"HandshakeTimeout", int64(d.HandshakeTimeout)},
	} {
		if v.value < 0 {
			errs = append(errs, fmt.Errorf("%s %d is negative", v.name, v.value))
		}
	}
	d.MaxFrame = cmp.Or(d.MaxFrame, MaxFrame)
	d.MaxConns = cmp.Or(d.MaxConns, 10_000)
	d.MaxInFlight = cmp.Or(d.MaxInFlight, 16_384)
	d.MaxInFlightPerConn = cmp.Or(d.MaxInFlightPerConn, 512)
	d.MaxFrameBytes = cmp.Or(d.MaxFrameBytes, 512<<20)
	d.WriteBuffer = cmp.Or(d.WriteBuffer, 1<<20)
	d.MaxWaiting = cmp.Or(d.MaxWaiting, 256<<20)
	d.Idle = cmp.Or(d.Idle, 120*time.Second)
	d.FrameTimeout = cmp.Or(d.FrameTimeout, 30*time.Second)
	d.WriteTimeout = cmp.Or(d.WriteTimeout, 30*time.Second)
	d.HandshakeTimeout = cmp.Or(d.HandshakeTimeout, 10*time.Second)
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	if err := d.TLS.check(); err != nil {
		errs = append(errs, err)
	}
	return d, errors.Join(errs...)
}

// Server accepts connections and lets a handler answer their requests.
type Server struct {
	opts   ServerOptions
	conn   connOptions
	limits limits

	ctx    context.Context // ends when everything is to stop at once
	cancel context.CancelFunc
	serves sync.WaitGroup // one per connection

	mu        sync.Mutex
	stopping  bool
	listeners map[net.Listener]struct{}
	conns     map[*Conn]struct{}
	opening   map[net.Conn]struct{} // from being accepted until the end of the handshake

	accepted, refused atomic.Int64
}

// NewServer returns a server that listens nowhere yet. An error names the options that are wrong.
func NewServer(o *ServerOptions) (*Server, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("server options: %w", err)
	}
	s := &Server{opts: opts, listeners: map[net.Listener]struct{}{}, conns: map[*Conn]struct{}{}, opening: map[net.Conn]struct{}{}}
	s.limits.maxRequests, s.limits.maxBytes, s.limits.maxWaiting = int64(opts.MaxInFlight), opts.MaxFrameBytes, opts.MaxWaiting
	s.conn = connOptions{
		handler: opts.Handler, sequential: opts.Sequential, place: opts.Place, maxFrame: opts.MaxFrame,
		maxInFlight: opts.MaxInFlightPerConn, writeBuffer: opts.WriteBuffer, idle: opts.Idle, frameTimeout: opts.FrameTimeout,
		writeTimeout: opts.WriteTimeout, onClose: s.closed, log: opts.Logger, workers: newWorkers(),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if opts.Place != nil {
		s.conn.relief = &relief{ctx: s.ctx, conns: s.each}
	}
	return s, nil
}

// Serve accepts connections from l until [Server.Shutdown], or until ctx ends, which closes everything at once. It
// closes l and returns nil, or the error that ended accepting. It may be called for several listeners.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !s.addListener(l) {
		return errors.Join(fmt.Errorf("server: %w", ErrClosed), l.Close())
	}
	defer s.removeListener(l)
	stop := context.AfterFunc(ctx, func() { _ = s.Shutdown(ctx) }) // ctx has ended, so it does not wait
	defer stop()
	var wait time.Duration
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			wait = 0
			s.accept(nc)
		case s.isStopping():
			s.serves.Wait()
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept: %w", err)
		default: // out of descriptors, or a connection that was gone before it was accepted
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			s.opts.Logger.Warn("accept", "err", err, "retry", wait)
			select {
			case <-time.After(wait):
			case <-s.ctx.Done():
			}
		}
	}
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopping {
		s.listeners[l] = struct{}{}
	}
	return !s.stopping
}

func (s *Server) removeListener(l net.Listener) {
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
	_ = l.Close() // closed already after a Shutdown
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// accept starts a goroutine for a connection, or closes it when there are too many.
func (s *Server) accept(nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || len(s.opening)+len(s.conns) >= s.opts.MaxConns {
		s.refused.Add(1)
		_ = nc.Close() // nothing was said yet
		return
	}
	s.accepted.Add(1)
	s.opening[nc] = struct{}{}
	s.serves.Go(func() { s.work(nc) })
}

// work secures one connection and runs it to its end.
func (s *Server) work(nc net.Conn) {
	setBuffers(nc, s.opts.SocketBuffer)
	secured, err := s.opts.TLS.secure(s.ctx, nc, s.opts.Idle, s.opts.HandshakeTimeout)
	var c *Conn
	s.mu.Lock()
	delete(s.opening, nc)
	if err == nil && s.stopping {
		err = errDraining
	}
	if err == nil {
		c = newConn(s.ctx, secured, &s.conn, &s.limits)
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if err != nil {
		s.opts.Logger.Debug("connection refused", "peer", nc.RemoteAddr().String(), "err", err)
		_ = nc.Close() // the reason is what counts
		return
	}
	if s.opts.OnOpen != nil {
		s.opts.OnOpen(c)
	}
	c.run()
}

// each calls f for the open connections.
func (s *Server) each(f func(c *Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		f(c)
	}
}

// setBuffers sets the kernel's buffers of a socket. The kernel may refuse a size; the connection works with what it has.
func setBuffers(nc net.Conn, size int) {
	type socket interface {
		SetReadBuffer(bytes int) error
		SetWriteBuffer(bytes int) error
	}
	if s, ok := nc.(socket); ok && size > 0 {
		_ = s.SetReadBuffer(size)
		_ = s.SetWriteBuffer(size)
	}
}

func (s *Server) closed(c *Conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.opts.Logger.Debug("connection closed", "peer", c.RemoteAddr(), "err", c.Err())
	if s.opts.OnClose != nil {
		s.opts.OnClose(c)
	}
}

// Shutdown stops accepting and reading, lets the requests that were read be answered, and closes the connections. When
// ctx ends first, what is left is closed at once and the context's error is returned; requests' contexts end then. It returns when no
// goroutine is left. A second call waits for the same.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	for l := range s.listeners {
		_ = l.Close() // Serve closes it again and says what matters
	}
	for nc := range s.opening {
		_ = nc.Close() // nothing was asked yet
	}
	for c := range s.conns {
		c.drain()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.serves.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.cancel()
	<-done
	s.conn.workers.close()
	if s.conn.relief != nil {
		s.conn.relief.all.Wait()
	}
	return err
}

// Close ends everything at once and waits for the goroutines.
func (s *Server) Close() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Shutdown(ctx) // that the context ended is the point
}

// Waiting is how many bytes wait to be written on all connections.
func (s *Server) Waiting() int64 { return s.limits.waiting.Load() }

// Stats are a server's figures.
type Stats struct {
	Connections  int   // open now
	InFlight     int64 // requests being handled now; not counted when they are handled in sequence
	Accepted     int64 // connections ever
	Refused      int64 // connections closed because there were too many
	Requests     int64 // requests handled ever
	FrameErrors  int64 // connections closed because of what they sent
	LargeFrames  int64 // bytes that frames above 64 KiB hold now
	BytesWaiting int64 // bytes that wait to be written now
}

// Stats returns the figures of now.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{
		Connections: len(s.opening) + len(s.conns), InFlight: s.limits.requests.Load(), Accepted: s.accepted.Load(), Refused: s.refused.Load(),
		Requests: s.limits.handled.Load(), FrameErrors: s.limits.frameErrors.Load(), LargeFrames: s.limits.bytes.Load(), BytesWaiting: s.Waiting(),
	}
}
