package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// ErrClosed is returned by Serve after Shutdown.
var ErrClosed = errors.New("broker closed")

// fallbackMemory is what a machine has whose memory is not known, bytes.
const fallbackMemory = 8 << 30

// Broker is a broker. Its methods may be called from many goroutines.
type Broker struct {
	opts    Options // set by New; what may change since then is read through live
	rules   *dialect.Dialect
	store   *rocketstore.Store
	net     *remoting.Server
	topics  *topics
	groups  *groups
	clients *clients
	locks   *locks
	held    *held
	names   *names
	unique  *uniqueIDs
	flows   *flows
	added   [2]message.Properties // what messages get from the broker, without and with trace; set by prepare

	current atomic.Pointer[Options]      // as they are now; set by New and by updateConfig
	host    atomic.Pointer[message.Host] // where others reach it; set by New, and by Serve for any port
	workers chan struct{}                // one token for each send that is worked on; nil: no limit
	// quickSends: nothing that a send has to wait for is configured. Set by New.
	quickSends bool
	sends      atomic.Int64 // under way
	pullBytes  atomic.Int64 // of large answers that are being made
	stuckBytes atomic.Int64 // of those that are made and wait for room in their connection's buffer
	bodies     sync.Pool    // *[]byte for the answers to pulls, which are some ten KiB each
	figures    figures
	ready      atomic.Bool // all of the fields above are set
	noChecks   atomic.Bool // producers are not asked for their transactions
	meter      meter
	began      time.Time
	configMu   sync.Mutex   // held by updateConfig
	ended      atomic.Int64 // when the last send ended, or the first of those under way began; ns since 1970
	acl        *acl         // nil: everybody may do everything

	start  sync.Once // starts the timers
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup // timers, held pulls, notices
	own    sync.WaitGroup // Serve called by Start
	addr   net.Addr       // set by Start

	serving remoting.Serving
	closing sync.Once
	closed  error
}

// New opens the store, with recovery, and returns a broker that listens nowhere yet. Nothing is left behind by an error,
// which names the options or the file that is wrong.
func New(ctx context.Context, o *Options) (*Broker, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err // also where there is nothing to recover, which would take no time
	}
	b := &Broker{opts: opts, topics: newTopics(), groups: newGroups(), clients: newClients(), locks: newLocks(opts.LockTimeout), held: newHeld(opts.MaxHeld), flows: newFlows()}
	if opts.SendWorkers > 0 {
		b.workers = make(chan struct{}, opts.SendWorkers)
	}
	b.quickSends = opts.Store.Sync != rocketstore.SyncGroup && b.workers == nil && opts.Hooks.Before == nil && opts.Hooks.After == nil
	b.bodies.New = func() any { return new([]byte) }
	b.began = time.Now()
	b.current.Store(&b.opts)
	if opts.ACL {
		if b.acl, err = openACL(opts.ACLFile); err != nil {
			return nil, fmt.Errorf("%w: access rules: %w", ErrOptions, err)
		}
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.setHost(max(opts.Port, 0))
	store := opts.Store
	store.Queued = b.held.queued
	if told := opts.Hooks.Queued; told != nil {
		store.Queued = func(u rocketstore.QueuedUnit) {
			b.held.queued(u)
			told(u)
		}
	}
	store.Tables = append(store.Tables, &b.topics.table, &b.groups.table)
	store.StoreHost = *b.host.Load()
	b.checksOf(&store)
	if b.store, err = rocketstore.OpenContext(ctx, opts.Dir, &store); err != nil {
		return nil, err
	}
	if err := b.prepare(); err != nil {
		return nil, errors.Join(err, b.store.Close(ctx))
	}
	return b, nil
}

// prepare makes everything on the opened store that can fail.
func (b *Broker) prepare() error {
	b.rules = b.store.Dialect()
	b.topics.keptBy(b.store)
	b.groups.keptBy(b.store)
	if err := errors.Join(b.topics.begin(&b.opts, b.rules), b.groups.begin(b.rules)); err != nil {
		return err
	}
	b.prepareAdditions()
	b.unique = newUniqueIDs(b.host.Load().Addr)
	encryption, err := b.opts.TLS.Server(b.opts.Logger)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	// The limit of requests at once is our own: the network layer would answer any of them with an error, which code 14 must not have.
	b.net, err = remoting.NewServer(&remoting.ServerOptions{
		Handler: b.handle, Place: b.placeOf, OnClose: b.connectionLost, TLS: encryption, MaxFrame: b.opts.MaxFrame, MaxConns: b.opts.MaxConns,
		Idle: b.opts.Idle, MaxInFlight: 1 << 30, MaxInFlightPerConn: 256, Logger: b.opts.Logger,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if b.names, err = newNames(b); err == nil {
		b.ready.Store(true)
	}
	return err
}

// live are the options as they are now.
func (b *Broker) live() *Options { return b.current.Load() }

func (b *Broker) setHost(port int) {
	ip := netip.MustParseAddr(b.opts.AdvertisedIP) // checked with the options
	b.host.Store(&message.Host{Addr: ip, Port: int32(port)})
}

// Start listens where the options say, opens the store and serves, until [Broker.Shutdown]. When it returns, clients find the broker at
// the name servers that answered within three seconds; it goes on trying the others.
func Start(ctx context.Context, o *Options) (*Broker, error) {
	listeners, err := listen(ctx, o)
	if err != nil {
		return nil, err
	}
	opts := *o
	if tcp, ok := listeners[0].Addr().(*net.TCPAddr); ok {
		opts.Port = tcp.Port
	}
	b, err := New(ctx, &opts)
	if err != nil {
		return nil, errors.Join(err, closeAll(listeners))
	}
	b.addr = listeners[0].Addr()
	for _, l := range listeners {
		b.serving.Enter()
		b.own.Go(func() {
			defer b.serving.Leave()
			if err := b.serve(context.WithoutCancel(ctx), l); err != nil {
				b.opts.Logger.Error("broker does not listen any more", "addr", l.Addr().String(), "err", err)
			}
		})
	}
	b.start.Do(b.startTimers)
	b.names.await(ctx)
	return b, nil
}

// vipDistance is how far below the port the one is that clients of 4.0 to 4.4 send to.
const vipDistance = 2

// listen opens the port, and the one below it if that is wanted.
func listen(ctx context.Context, o *Options) (listeners []net.Listener, err error) {
	d, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	ports := []int{max(d.Port, 0)}
	if d.VIP && d.Port > vipDistance {
		ports = append(ports, d.Port-vipDistance)
	}
	for _, port := range ports {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", joinHostPort(d.BindAddress, port))
		if err != nil {
			return nil, errors.Join(err, closeAll(listeners))
		}
		listeners = append(listeners, l)
	}
	return listeners, nil
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Addr is where a broker listens that [Start] made, host:port.
func (b *Broker) Addr() string {
	if b.addr == nil {
		return ""
	}
	return b.addr.String()
}

// Store is the broker's store. It is closed by Shutdown.
func (b *Broker) Store() *rocketstore.Store { return b.store }

// Serve answers on l until [Broker.Shutdown], and then returns nil, or until ctx ends, which shuts the broker down in little
// time. It closes l. The registration and the timers start with the first call. It may be called for several listeners.
func (b *Broker) Serve(ctx context.Context, l net.Listener) error {
	if !b.serving.Enter() {
		return errors.Join(ErrClosed, l.Close())
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && b.opts.Port < 0 {
		b.setHost(tcp.Port)
	}
	b.start.Do(b.startTimers)
	err := b.serve(ctx, l)
	b.serving.Leave()
	if ctx.Err() != nil {
		err = errors.Join(err, b.Shutdown(ctx))
	}
	return err
}

func (b *Broker) serve(ctx context.Context, l net.Listener) error {
	b.opts.Logger.Info("broker listens", "addr", l.Addr().String(), "advertised", b.host.Load().String())
	return b.net.Serve(ctx, l)
}

func joinHostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// Ready says whether the broker answers requests now.
func (b *Broker) Ready() bool {
	return b.serving.Ready()
}

// Shutdown unregisters, answers the requests that were read, ends the timers, saves the consumers' progress and closes the store. When
// ctx ends first, what is left is cut off and the context's error is returned, but the store has a few seconds more to be
// closed cleanly. No goroutine is left after it. A second call waits for the same.
func (b *Broker) Shutdown(ctx context.Context) error {
	b.closing.Do(func() { b.closed = b.shutdown(ctx) })
	return b.closed
}

// storeGrace is what the store gets to close when the time for the shutdown is over.
const storeGrace = 10 * time.Second

func (b *Broker) shutdown(ctx context.Context) error {
	b.opts.Logger.Info("broker stops")
	b.serving.End()
	b.start.Do(func() {}) // no timer starts after this
	b.names.unregister(ctx)
	over := context.AfterFunc(ctx, b.cancel) // sends that wait for a worker are let go
	err := b.net.Shutdown(ctx)
	over()
	b.cancel()
	b.tasks.Wait()
	b.names.close()
	b.own.Wait()
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), storeGrace)
		defer cancel()
	}
	return errors.Join(err, b.topics.save(), b.groups.save(), b.store.SaveConsumerOffsets(), b.store.Close(ctx))
}

// startTimers begins the registration and what is done now and then.
func (b *Broker) startTimers() {
	b.names.begin()
	b.every(b.opts.ScanEvery, b.opts.ScanEvery, b.scan)
	b.every(10*time.Second, b.opts.SaveOffsetsEvery, b.saveOffsets)
	b.every(time.Second, time.Second, func() { b.meter.look(time.Now(), b.figures.sent.Load(), b.figures.pulled.Load()) })
	b.every(flowLook, flowLook, func() { b.flows.look(time.Now()) })
}

// every runs f after first and then each period until the broker stops.
func (b *Broker) every(first, period time.Duration, f func()) {
	b.tasks.Go(func() { remoting.Every(b.ctx, first, period, nil, f) })
}

func (b *Broker) saveOffsets() {
	if err := b.store.SaveConsumerOffsets(); err != nil {
		b.opts.Logger.Error("consumers' progress not written", "err", err)
	}
}

// scan closes the connections of clients that were silent for too long; that takes them out of the tables.
func (b *Broker) scan() {
	for _, c := range b.clients.silent(time.Now().Add(-b.opts.ClientTimeout)) {
		b.opts.Logger.Warn("client is silent", "peer", c.RemoteAddr())
		c.Close()
	}
}
