package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
)

// names registers the broker with all name servers, each on its own: one that does not answer holds up nobody.
type names struct {
	broker  *Broker
	client  *remoting.Client
	servers []*nameServer
}

// nameServer is one of them.
type nameServer struct {
	addr  string
	kick  chan struct{} // one is waiting: register at once
	tried chan struct{} // closed when the first registration has ended, one way or the other

	sending chan struct{} // holds a token while a registration is under way

	mu   sync.Mutex
	told *config.DataVersion // state of the topics that it took last; nil: it has not, or its connection was lost
}

func newNames(b *Broker) (*names, error) {
	n := &names{broker: b}
	var o remoting.ClientOptions
	if b.opts.Client != nil {
		o = *b.opts.Client
	}
	o.OnClose = n.lost
	o.Logger = b.opts.Logger
	var err error
	n.client, err = remoting.NewClient(&o)
	for _, addr := range b.opts.NameServers {
		n.servers = append(n.servers, &nameServer{addr: addr, kick: make(chan struct{}, 1), tried: make(chan struct{}), sending: make(chan struct{}, 1)})
	}
	return n, err
}

// begin starts to register, now and then again and again.
func (n *names) begin() {
	for _, s := range n.servers {
		n.broker.tasks.Go(func() { n.keep(s) })
	}
}

// startWait bounds what a start waits for the name servers.
const startWait = 3 * time.Second

// await returns when each name server has been told of the broker or cannot be, or after a few seconds.
func (n *names) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	for _, s := range n.servers {
		select {
		case <-s.tried:
		case <-ctx.Done():
			return
		}
	}
}

// retryFirst is the pause before a registration that failed is tried again; it doubles up to the usual period. It is also the
// least time between two of them.
const retryFirst = time.Second

// keep registers with one name server: at the start, in each period, when it is told to, and soon again after a failure. A name
// server that takes connections only to drop them is asked no more often than one that is not there.
func (n *names) keep(s *nameServer) {
	b, pause := n.broker, retryFirst
	for first := true; ; first = false {
		wait := b.opts.RegisterEvery
		least := min(retryFirst, wait)
		err := n.register(b.ctx, s, nil)
		if first {
			close(s.tried)
		}
		if err != nil && b.ctx.Err() == nil {
			b.opts.Logger.Warn("not registered", "namesrv", s.addr, "err", err)
			wait = min(pause, wait)
			least, pause = wait, 2*wait
		} else {
			pause = retryFirst
		}
		if !rest(b.ctx, least, nil) || !rest(b.ctx, wait-least, s.kick) {
			return
		}
	}
}

// rest waits for a time, or until there is a token in kick; false means that ctx has ended.
func rest(ctx context.Context, wait time.Duration, kick <-chan struct{}) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-kick:
	case <-ctx.Done():
		return false
	}
	return true
}

// lost has a name server whose connection ended told again soon: for it the broker is gone.
func (n *names) lost(addr string, _ *remoting.Conn) {
	for _, s := range n.servers {
		if s.addr != addr {
			continue
		}
		s.mu.Lock()
		s.told = nil
		s.mu.Unlock()
		if n.broker.ctx.Err() == nil {
			select {
			case s.kick <- struct{}{}:
			default:
			}
		}
	}
}

// changedWait bounds what a request waits for the name servers to learn of a topic that it made.
const changedWait = time.Second

// changed registers at once after a change of the topics, and returns when all name servers know, or after a second.
func (n *names) changed() {
	b := n.broker
	if !b.Ready() || len(n.servers) == 0 {
		return // the first registration has it
	}
	version := b.topics.version()
	ctx, cancel := context.WithTimeout(b.ctx, changedWait)
	defer cancel()
	var all sync.WaitGroup
	for _, s := range n.servers {
		all.Go(func() {
			if err := n.register(ctx, s, &version); err != nil && b.ctx.Err() == nil {
				b.opts.Logger.Warn("not registered", "namesrv", s.addr, "err", err)
				select {
				case s.kick <- struct{}{}:
				default:
				}
			}
		})
	}
	all.Wait()
}

// register sends the full set of topics, unless the name server has that state already; nil means in any case.
func (n *names) register(ctx context.Context, s *nameServer, needed *config.DataVersion) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	b := n.broker
	if b.serving.Ended() {
		return nil // it may have said goodbye already
	}
	if told := s.state(); needed != nil && told != nil && told.Counter >= needed.Counter {
		return nil
	}
	version := b.topics.version()
	req, err := b.registration()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, b.opts.RegisterTimeout)
	defer cancel()
	resp, err := n.client.Call(ctx, s.addr, req)
	if err != nil {
		return err
	}
	if resp.Code != remoting.Success {
		return fmt.Errorf("name server answers %d: %s", resp.Code, resp.Remark)
	}
	s.mu.Lock()
	first := s.told == nil
	s.told = &version
	s.mu.Unlock()
	if first {
		b.opts.Logger.Info("registered", "namesrv", s.addr, "as", b.host.Load().String())
	}
	return n.follow(resp.Body)
}

// follow takes over which topics are ordered.
func (n *names) follow(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	ordered, err := route.ParseTable(body)
	if err != nil {
		return err
	}
	if n.broker.topics.setOrder(ordered) {
		return n.broker.topics.save() // the next registration tells all
	}
	return nil
}

// begin waits until no other registration is under way, as long as ctx allows. Each is ended with end.
func (s *nameServer) begin(ctx context.Context) error {
	select {
	case s.sending <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *nameServer) end() { <-s.sending }

func (s *nameServer) state() *config.DataVersion {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told
}

// registered is how many name servers know the broker.
func (n *names) registered() (count int) {
	for _, s := range n.servers {
		if s.state() != nil {
			count++
		}
	}
	return count
}

// identity are the fields that name the broker.
func (b *Broker) identity() remoting.Fields {
	return remoting.Fields{
		remoting.String("brokerName", b.opts.Name), remoting.String("brokerAddr", b.host.Load().String()),
		remoting.String("clusterName", b.opts.Cluster), remoting.Int("brokerId", b.opts.ID),
	}
}

// registration makes request 103.
func (b *Broker) registration() (*remoting.Command, error) {
	form := route.RegistrationForm{Version: remoting.Version, Compressed: b.opts.CompressRegistration}
	body, err := b.topics.registration(b.live().Permission, b.rules).Append(nil, form)
	if err != nil {
		return nil, err
	}
	host := *b.host.Load()
	req := remoting.NewRequest(remoting.RegisterBroker, b.identity()...)
	haPort := b.opts.HAPort
	if haPort == 0 {
		haPort = int(host.Port) + 1
	}
	req.Fields = append(req.Fields, remoting.String("haServerAddr", joinHostPort(b.opts.AdvertisedHA, haPort)),
		remoting.Bool("compressed", form.Compressed), remoting.Int("bodyCrc32", int64(route.Checksum(body))))
	req.Body = body
	return req, nil
}

// unregisterTimeout bounds the goodbye.
const unregisterTimeout = 3 * time.Second

// unregister says goodbye to all name servers.
func (n *names) unregister(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, unregisterTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, s := range n.servers {
		if s.state() == nil {
			continue
		}
		all.Go(func() {
			err := s.begin(ctx)
			if err == nil {
				defer s.end()
				_, err = n.client.Call(ctx, s.addr, remoting.NewRequest(remoting.UnregisterBroker, n.broker.identity()...))
			}
			if err != nil {
				n.broker.opts.Logger.Warn("not unregistered", "namesrv", s.addr, "err", err)
			}
		})
	}
	all.Wait()
}

func (n *names) close() { n.client.Close() }
