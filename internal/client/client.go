package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// Producer is a producer group's member in a client.
type Producer interface {
	// CheckTransaction is asked for the outcome of a prepared message (request 39), which is m; req has the fields that the
	// answer repeats, addr is where it goes. It must not wait.
	CheckTransaction(addr string, req *remoting.Command, m *message.Received)
	// TakeReply gets an answer to a request message (326) and says whether it waited for it.
	TakeReply(m *message.Received) bool
}

// Consumer is a consumer group's member in a client.
type Consumer interface {
	// Heartbeat is what brokers are told of it now.
	Heartbeat() ConsumerData
	// MembersChanged is the notice that the group's members or topics have changed (40). It must not wait.
	MembersChanged()
	// Serve answers the other requests to a consumer group (220, 221, 307, 309), as a [remoting.Handler] does.
	Serve(ctx context.Context, c *remoting.Conn, req *remoting.Command) *remoting.Command
}

// Client is one client instance. Its methods may be called from many goroutines.
type Client struct {
	opts  Options // set by New, read-only after it
	id    string
	rpc   *remoting.Client
	names *names
	ids   *IDs

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
	beat   chan struct{} // holds one token: send heartbeats now
	begin  sync.Once     // starts the loops

	routes routes

	mu        sync.RWMutex
	producers map[string]Producer
	consumers map[string]Consumer
	versions  map[string]int32         // by broker address, as its answers to heartbeats say; 0: it does not say
	meetings  map[string]chan struct{} // by broker address, closed when the first heartbeat to it ended
}

// New returns a client that has connected to nobody yet. An error matches [ErrOptions].
func New(o *Options) (*Client, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Client{
		opts: opts, id: opts.id(), ids: NewIDs(opts.IP), beat: make(chan struct{}, 1),
		producers: map[string]Producer{}, consumers: map[string]Consumer{}, versions: map[string]int32{},
		meetings: map[string]chan struct{}{},
	}
	c.routes.init()
	c.rpc, err = remoting.NewClient(&remoting.ClientOptions{
		Dial: opts.Dial, TLS: opts.TLS, Handler: c.handle, Credentials: opts.Credentials, OnClose: c.connectionLost,
		ConnectTimeout: opts.ConnectTimeout, MaxAsync: opts.MaxAsync, MaxOneway: opts.MaxOneway, Idle: opts.Idle,
		SocketBuffer: opts.SocketBuffer, Logger: opts.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	c.names = newNames(c, opts.NameServers)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// start runs the client's loops; the first producer or consumer does it.
func (c *Client) start() {
	c.begin.Do(func() {
		c.work.Go(c.refreshLoop)
		c.work.Go(c.heartbeatLoop)
		if c.opts.AddressServer != "" {
			c.work.Go(func() { c.names.followAddressServer(c.ctx, http.DefaultClient) })
		}
	})
}

// ID is the client id, ip@instance[@unit].
func (c *Client) ID() string { return c.id }

// Namespace is put before the names that users give.
func (c *Client) Namespace() Namespace { return Namespace(c.opts.Namespace) }

// Options are the effective ones.
func (c *Client) Options() Options { return c.opts }

// UniqueID returns a new unique id.
func (c *Client) UniqueID() string { return c.ids.Next() }

// RegisterProducer adds a producer under its group, namespace included. Errors match [ErrDuplicateGroup] or [ErrClosed].
func (c *Client) RegisterProducer(group string, p Producer) error {
	return register(c, c.producers, group, p)
}

// RegisterConsumer adds a consumer under its group, namespace included. Errors match [ErrDuplicateGroup] or [ErrClosed].
func (c *Client) RegisterConsumer(group string, k Consumer) error {
	return register(c, c.consumers, group, k)
}

func register[T any](c *Client, members map[string]T, group string, member T) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	if _, there := members[group]; there {
		return fmt.Errorf("%w: %s", ErrDuplicateGroup, group)
	}
	members[group] = member
	c.start()
	c.kickHeartbeat()
	return nil
}

// UnregisterProducer takes a group's producer out and tells all brokers (35). What a broker says to it is not an error.
func (c *Client) UnregisterProducer(ctx context.Context, group string) {
	c.mu.Lock()
	_, there := c.producers[group]
	delete(c.producers, group)
	c.mu.Unlock()
	if there {
		c.sayGoodbye(ctx, "producerGroup", group)
	}
}

// UnregisterConsumer takes a group's consumer out and tells all brokers (35), which then tell the other members.
func (c *Client) UnregisterConsumer(ctx context.Context, group string) {
	c.mu.Lock()
	_, there := c.consumers[group]
	delete(c.consumers, group)
	c.mu.Unlock()
	if there {
		c.sayGoodbye(ctx, "consumerGroup", group)
	}
}

// sayGoodbye unregisters a group from all brokers that are connected; the others know nothing of it.
func (c *Client) sayGoodbye(ctx context.Context, field, group string) {
	var all sync.WaitGroup
	for _, addr := range c.routes.addrs() {
		if !c.rpc.Connected(addr) {
			continue
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, c.opts.CallTimeout)
			defer cancel()
			req := remoting.NewRequest(remoting.UnregisterClient, remoting.String("clientID", c.id), remoting.String(field, group))
			if _, err := c.Do(ctx, addr, req); err != nil {
				c.opts.Logger.Debug("not unregistered", "group", group, "broker", addr, "err", err)
			}
		})
	}
	all.Wait()
}

// Close ends the loops and the connections; requests that wait for an answer fail. It returns when no goroutine of the client is left.
// Producers and consumers must have been unregistered before, else brokers notice by the lost connections. It must not be called from
// a callback or a [Consumer]'s method. A second call does nothing.
func (c *Client) Close() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.rpc.Close()
	c.work.Wait()
}

// handle serves the requests of brokers.
func (c *Client) handle(ctx context.Context, conn *remoting.Conn, req *remoting.Command) *remoting.Command {
	switch req.Code {
	case remoting.CheckTransactionState:
		c.check(conn, req)
		return nil
	case remoting.NotifyConsumerIDsChanged:
		if k := c.consumer(req.Fields.Get("consumerGroup")); k != nil {
			k.MembersChanged()
		}
		return nil
	case remoting.PushReplyMessage:
		return c.reply(req)
	case remoting.ResetConsumerOffset, remoting.GetConsumerStatus, remoting.GetConsumerRunningInfo, remoting.ConsumeMessageDirectly:
		group := req.Fields.Get("group")
		if group == "" {
			group = req.Fields.Get("consumerGroup")
		}
		if k := c.consumer(group); k != nil {
			return k.Serve(ctx, conn, req)
		}
		return req.Refuse(remoting.SystemError, "the consumer group [%s] is not in client %s", group, c.id)
	}
	return remoting.NotSupported(req)
}

func (c *Client) consumer(group string) Consumer {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.consumers[group]
}

func (c *Client) producer(group string) Producer {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.producers[group]
}

// check hands a check of a transaction to the producer of the group that the message names.
func (c *Client) check(conn *remoting.Conn, req *remoting.Command) {
	for m, err := range DecodeRecords(req.Body, c.opts.MaxBody) {
		if err != nil { // nobody decides by a body that is not the one that was sent; the broker asks again
			c.opts.Logger.Warn("check of a transaction without its message", "broker", conn.RemoteAddr(), "err", err)
			return
		}
		group, _ := m.Properties.Get(message.PropertyProducerGroup)
		if p := c.producer(group); p != nil {
			p.CheckTransaction(conn.Dialed(), req, m)
		} else {
			c.opts.Logger.Warn("check of a transaction of a group that is not here", "group", group, "broker", conn.RemoteAddr())
		}
		return
	}
}

// reply hands the answer to a request message to whoever waits for it.
func (c *Client) reply(req *remoting.Command) *remoting.Command {
	m, err := readReply(req, c.opts.MaxBody)
	if err != nil {
		return req.Refuse(remoting.SystemError, "%v", err)
	}
	c.mu.RLock()
	producers := make([]Producer, 0, len(c.producers))
	for _, p := range c.producers {
		producers = append(producers, p)
	}
	c.mu.RUnlock()
	if !slices.ContainsFunc(producers, func(p Producer) bool { return p.TakeReply(m) }) {
		c.opts.Logger.Warn("reply that nobody waits for", "topic", m.Topic)
	}
	return req.Reply(remoting.Success) // also for a late one: nothing is gained when the broker tries again
}

// readReply makes a message of request 326, whose fields are those of a send.
func readReply(req *remoting.Command, maxBody int) (*message.Received, error) {
	f := req.Fields.Reader()
	m := &message.Received{StoreTimestamp: f.OptInt64("storeTimestamp", 0)}
	m.Topic = f.Text("topic")
	m.QueueID, m.Flag = f.OptInt32("queueId", 0), f.OptInt32("flag", 0)
	m.SysFlag = message.SysFlag(f.OptInt32("sysFlag", 0))
	m.BornTimestamp = f.OptInt64("bornTimestamp", 0)
	m.ReconsumeTimes = f.OptInt32("reconsumeTimes", 0)
	m.Properties = message.Properties(req.Fields.Get("properties"))
	m.BornHost, _ = message.ParseHost(req.Fields.Get("bornHost")) // names only, and not in old brokers
	m.StoreHost, _ = message.ParseHost(req.Fields.Get("storeHost"))
	m.BodyCRC = message.CRC(req.Body)
	body, err := Decompress(req.Body, m.SysFlag, maxBody)
	m.Body = body
	return m, errors.Join(f.Err(), err)
}
