package namesrv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// ErrClosed is returned by Serve after Shutdown.
var ErrClosed = errors.New("name server closed")

// ErrInvalidArgument is returned by the methods of a nil server.
var ErrInvalidArgument = errors.New("invalid argument: no name server")

// Server is a name server. Its methods may be called from many goroutines.
type Server struct {
	opts   Options // set by New; opts.live is what may change
	tables *tables
	kv     *kvStore
	net    *remoting.Server

	// decoding bounds the registrations that are decoded at one time, each of which may take MaxInflated.
	decoding chan struct{}
	figures  figures

	start  sync.Once // starts the timers
	began  atomic.Int64
	stop   context.CancelFunc
	ctx    context.Context // of the timers
	timers sync.WaitGroup

	serving remoting.Serving

	mu   sync.Mutex
	live Options // what request 318 may change, and what 319 prints
}

// New loads the key-value configuration and returns a server that listens nowhere yet. Nothing is left behind by an error,
// which names the options or the file that is wrong.
func New(o *Options) (*Server, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("name server options: %w", err)
	}
	s := &Server{opts: opts, live: opts, tables: newTables(), decoding: make(chan struct{}, 4)}
	if s.kv, err = openKV(opts.KVConfigPath, opts.Logger); err != nil {
		return nil, err
	}
	encryption, err := opts.TLS.Server(opts.Logger)
	if err != nil {
		return nil, fmt.Errorf("name server options: %w", err)
	}
	s.net, err = remoting.NewServer(&remoting.ServerOptions{
		Handler: s.handle, Sequential: true, OnClose: s.connectionLost, TLS: encryption, MaxFrame: opts.MaxFrame,
		MaxConns: opts.MaxConns, Idle: opts.Idle, Logger: opts.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("name server options: %w", err)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Serve answers on l until [Server.Shutdown], and then returns nil, or until ctx ends, which closes everything at once.
// It closes l. The timers start with the first call. It may be called for several listeners.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if s == nil {
		return ErrInvalidArgument
	}
	if !s.serving.Enter() {
		return errors.Join(ErrClosed, l.Close())
	}
	defer s.serving.Leave()
	s.start.Do(s.startTimers)
	s.opts.Logger.Info("name server listens", "addr", l.Addr().String())
	err := s.net.Serve(ctx, l)
	if ctx.Err() != nil {
		_ = s.Shutdown(ctx) // for the timers; the network is closed
	}
	return err
}

// Ready says whether the server answers requests now.
func (s *Server) Ready() bool {
	return s.serving.Ready()
}

// Shutdown stops the network, after the requests that were read are answered, and then the timers. When ctx ends first,
// what is left is closed at once and the context's error is returned. No goroutine is left after it. A second call waits for the same.
func (s *Server) Shutdown(ctx context.Context) error {
	if s == nil {
		return ErrInvalidArgument
	}
	if s.serving.End() {
		s.opts.Logger.Info("name server stops")
	}
	err := s.net.Shutdown(ctx)
	s.stop()
	s.start.Do(func() {}) // no timer starts after this
	s.timers.Wait()
	return err
}

// startTimers begins the scan and the periodic print.
func (s *Server) startTimers() {
	s.began.Store(s.opts.Now().UnixNano())
	s.every(s.opts.ScanFirst, s.opts.ScanEvery, s.scan)
	s.every(s.opts.PrintEvery, s.opts.PrintEvery, s.print)
}

// every runs f after first and then each period until the server stops.
func (s *Server) every(first, period time.Duration, f func()) {
	s.timers.Go(func() { remoting.Every(s.ctx, first, period, nil, f) })
}

// scan removes the brokers that have not reported for too long, and closes their connections.
func (s *Server) scan() {
	gone, conns := s.tables.expired(s.opts.Now(), s.opts.BrokerTimeout)
	for _, who := range gone {
		s.tell(BrokerExpired, who)
	}
	for _, c := range conns {
		c.Close()
	}
}

// connectionLost removes the brokers whose latest report came through c.
func (s *Server) connectionLost(c *remoting.Conn) {
	for _, who := range s.tables.lost(c) {
		s.tell(BrokerLost, who)
	}
}

// print writes the tables to the log.
func (s *Server) print() {
	log := s.opts.Logger
	if !log.Enabled(s.ctx, levelDebug) {
		return
	}
	s.tables.print(log)
	s.kv.print(log)
}

// settled says whether the tables had time to fill, if that is asked for.
func (s *Server) settled() bool {
	s.mu.Lock()
	wait := s.live.WaitForService
	s.mu.Unlock()
	return !wait || s.opts.Now().Sub(time.Unix(0, s.began.Load())) >= s.opts.WaitTime
}
