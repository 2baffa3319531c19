package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// Bits of a pull's system flag.
const (
	pullCommits   = 1
	pullMayWait   = 2
	pullSubscribe = 4
)

// pullRequest is the typed header of 11 and 361, checked.
type pullRequest struct {
	group, topic string
	queueID      int32
	offset       int64
	count        int
	filter       filter
	wait         time.Duration // 0: do not wait
	slowBroker   int64
}

// maxPullWait bounds the wait that a client may ask for.
const maxPullWait = 5 * time.Minute

// pull serves 11 and 361.
func (b *Broker) pull(ctx context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	p, err := b.readPull(req)
	if no := (*refusal)(nil); errors.As(err, &no) {
		return req.Refuse(no.code, "%s", no.text), nil
	}
	if err != nil {
		return nil, err
	}
	resp, err := b.answerPull(ctx, c, req, p)
	if err != nil || resp == nil || resp.Code != remoting.PullNotFound || p.wait == 0 {
		return resp, err
	}
	return b.hold(ctx, c, req, p)
}

// readPull reads and checks a pull in the order of protocol.md 5.5, and stores the offset that comes with it.
func (b *Broker) readPull(req *remoting.Command) (*pullRequest, error) {
	f := req.Fields.Reader()
	p := &pullRequest{
		group: f.Text("consumerGroup"), topic: f.Text("topic"), queueID: f.Int32("queueId"), offset: f.Int64("queueOffset"),
		count: int(f.Int32("maxMsgNums")),
	}
	flags, commit, wait := f.Int32("sysFlag"), f.OptInt64("commitOffset", -1), f.OptInt64("suspendTimeoutMillis", 0)
	version := f.OptInt64("subVersion", 0)
	if err := f.Err(); err != nil {
		return nil, err
	}
	if b.live().Permission&permRead == 0 {
		return nil, refused(remoting.NoPermission, "the broker[%s] pulling message is forbidden", b.opts.AdvertisedIP)
	}
	g, known, err := b.groups.find(p.group, !b.live().NoAutoGroups)
	if err != nil {
		return nil, err
	}
	p.slowBroker = g.slowBroker
	t, exists := b.topics.get(p.topic)
	switch {
	case !known:
		return nil, refused(remoting.SubscriptionGroupNotExist, "subscription group [%s] does not exist", p.group)
	case !g.enabled:
		return nil, refused(remoting.NoPermission, "subscription group no permission, %s", p.group)
	case !exists:
		return nil, refused(remoting.TopicNotExist, "topic[%s] not exist, apply first please!", p.topic)
	case t.perm&permRead == 0:
		return nil, refused(remoting.NoPermission, "the topic[%s] pulling message is forbidden", p.topic)
	case p.queueID < 0 || p.queueID >= t.readQueues:
		return nil, refused(remoting.SystemError, "queueId[%d] is illegal, topic:[%s] topicConfig.readQueueNums:[%d]", p.queueID, p.topic, t.readQueues)
	}
	if p.filter, err = b.pullFilter(p, &g, req, flags, version); err != nil {
		return nil, err
	}
	if flags&pullMayWait != 0 {
		p.wait = min(max(time.Duration(min(wait, maxPullWait.Milliseconds()))*time.Millisecond, 0), maxPullWait)
		if b.live().NoLongPolling {
			p.wait = min(p.wait, b.live().ShortPolling)
		}
	}
	if flags&pullCommits != 0 && commit >= 0 {
		b.store.SetConsumerOffset(p.topic, p.group, p.queueID, commit)
	}
	return p, nil
}

// pullFilter is what the pull itself names, or what its group subscribed to.
func (b *Broker) pullFilter(p *pullRequest, g *group, req *remoting.Command, flags int32, version int64) (filter, error) {
	if flags&pullSubscribe != 0 {
		if kind := req.Fields.Get("expressionType"); kind != "" && kind != "TAG" {
			return filter{}, refused(remoting.SystemError, "%s", noSQL)
		}
		expression := req.Fields.Get("subscription")
		if expression != "" && strings.ReplaceAll(expression, "||", "") == "" {
			return filter{}, refused(remoting.SubscriptionParseFailed, "parse the consumer's subscription failed: %s", expression)
		}
		return parseTags(expression), nil
	}
	s, broadcast, connected := b.clients.subscription(p.group, p.topic)
	switch {
	case !connected:
		return filter{}, refused(remoting.SubscriptionNotExist, "the consumer's group info not exist, %s", p.group)
	case broadcast && !g.broadcast:
		return filter{}, refused(remoting.NoPermission, "the consumer group[%s] can not consume by broadcast way", p.group)
	case s == nil:
		return filter{}, refused(remoting.SubscriptionNotExist, "the consumer's subscription not exist, group %s topic %s", p.group, p.topic)
	case s.version < version:
		return filter{}, refused(remoting.SubscriptionNotLatest, "the consumer's subscription not latest, group %s topic %s", p.group, p.topic)
	case s.sql:
		return filter{}, refused(remoting.SystemError, "%s", noSQL)
	}
	return s.filter, nil
}

// maxSkips bounds how many damaged records one pull passes over.
const maxSkips = 800

// answerPull reads the queue and makes the answer to a pull. One with messages is handed to the network here, so that what
// slow readers keep waiting is bounded, and nil is returned.
func (b *Broker) answerPull(ctx context.Context, c *remoting.Conn, req *remoting.Command, p *pullRequest) (*remoting.Command, error) {
	o := b.live()
	reserved := int64(o.BytesInMemory)
	if !b.reserve(c, reserved, 0) {
		return req.Refuse(remoting.SystemBusy, "%s", tooMuchWaits), nil
	}
	defer func() { b.unreserve(c, reserved) }()
	get := rocketstore.GetRequest{
		Topic: p.topic, QueueID: p.queueID, Offset: p.offset, Max: min(max(p.count, 1), o.CountInMemory), MaxBytes: o.BytesInMemory,
	}
	if p.filter.codes != nil {
		get.Filter = p.filter.takes
	}
	res, err := b.store.Get(ctx, get)
	if errors.Is(err, rocketstore.ErrCorrupt) {
		return b.overDamage(ctx, req, get, res, err)
	}
	if err != nil {
		return nil, err
	}
	body := b.bodies.Get().(*[]byte)
	defer b.keepBody(body) // what is sent is a copy in the connection's buffer by then
	resp := b.pullReply(req, p, &res, (*body)[:0])
	if resp.Body != nil {
		*body = resp.Body
	}
	res.Release()
	if resp.Code != remoting.Success {
		return resp, nil
	}
	if more := int64(len(resp.Body)) - reserved; more > 0 { // the first message is given however large it is
		if !b.reserve(c, more, reserved) {
			return req.Refuse(remoting.SystemBusy, "%s", tooMuchWaits), nil
		}
		reserved += more
	}
	made := reserved
	reserved = 0 // the answer takes it along
	if err := b.respond(ctx, c, req, resp, made); err != nil && ctx.Err() == nil && !errors.Is(err, remoting.ErrClosed) {
		b.opts.Logger.Warn("messages not sent", "topic", p.topic, "queue", p.queueID, "peer", c.RemoteAddr(), "err", err)
	}
	return nil, nil
}

// maxKeptBody is the largest buffer for the answer to a pull that is kept for others, bytes.
const maxKeptBody = 512 << 10

func (b *Broker) keepBody(body *[]byte) {
	if cap(*body) <= maxKeptBody {
		b.bodies.Put(body)
	}
}

// overDamage answers where the records at the wanted offset cannot be read: go on behind them (protocol.md E10).
func (b *Broker) overDamage(ctx context.Context, req *remoting.Command, get rocketstore.GetRequest, res rocketstore.GetResult, err error) (*remoting.Command, error) {
	b.opts.Logger.Error("messages cannot be read", "topic", get.Topic, "queue", get.QueueID, "from", get.Offset, "err", err)
	for range maxSkips {
		get.Offset = res.Next
		res.Release()
		if res, err = b.store.Get(ctx, get); !errors.Is(err, rocketstore.ErrCorrupt) {
			break
		}
	}
	if err != nil && !errors.Is(err, rocketstore.ErrCorrupt) {
		return nil, err
	}
	res.Release()
	return pullFields(req.Refuse(remoting.PullRetryImmediately, "messages cannot be read"), 0, get.Offset, res.Min, res.Max), nil
}

func pullFields(resp *remoting.Command, suggest, next, first, end int64) *remoting.Command {
	resp.Fields = remoting.Fields{
		remoting.Int("suggestWhichBrokerId", suggest), remoting.Int("nextBeginOffset", next), remoting.Int("minOffset", first), remoting.Int("maxOffset", end),
	}
	return resp
}

// pullReply makes the answer from what was read, its body in a buffer that is empty.
func (b *Broker) pullReply(req *remoting.Command, p *pullRequest, res *rocketstore.GetResult, body []byte) *remoting.Command {
	code, suggest, next := pullCode(res.Status, p.offset), int64(0), res.Next
	resp := req.Reply(code)
	resp.Remark = res.Status.String()
	if code == remoting.Success {
		n, slow := b.fitting(res)
		if n < len(res.Records) {
			next = res.Offsets[n-1] + 1
		}
		if slow {
			suggest = p.slowBroker
		}
		size := 0
		for i := range n {
			size += len(res.Raw(i))
		}
		resp.Body = slices.Grow(body, size)
		for i := range n {
			resp.Body = append(resp.Body, res.Raw(i)...)
		}
		b.figures.pulled.Add(int64(n))
		b.figures.pulledBytes.Add(int64(size))
		b.flows.of(flowKey{topic: p.topic, group: p.group}).add(int64(n), int64(size))
		b.flows.pulled.add(int64(n), int64(size))
		if b.opts.Hooks.Pulled != nil {
			b.opts.Hooks.Pulled(p.group, p.topic, p.queueID, n)
		}
	}
	return pullFields(resp, suggest, next, res.Min, res.Max)
}

// fitting says how many of the records go into one answer: fewer when they are deemed to be on disk. Slow says that the
// reader is so far behind that a slave should serve it, if there were one.
func (b *Broker) fitting(res *rocketstore.GetResult) (n int, slow bool) {
	o := b.live()
	_, end := b.store.Bounds()
	near := o.Memory / 100 * int64(o.MemoryRatio)
	size := 0
	for n < len(res.Records) {
		size += len(res.Raw(n))
		onDisk := end-res.Records[n].PhysicalOffset > near
		if n++; onDisk && (n >= o.CountOnDisk || size >= o.BytesOnDisk) {
			break
		}
	}
	return n, n > 0 && b.opts.ID == 0 && end-res.Records[n-1].PhysicalOffset > near
}

// pullCode maps the store's outcomes to response codes (protocol.md 5.5).
func pullCode(s rocketstore.GetStatus, offset int64) int32 {
	switch s {
	case rocketstore.Found:
		return remoting.Success
	case rocketstore.NoMatchedMessage, rocketstore.MessageWasRemoving:
		return remoting.PullRetryImmediately
	case rocketstore.NoMatchedLogicQueue, rocketstore.NoMessageInQueue:
		if offset == 0 {
			return remoting.PullNotFound
		}
		return remoting.PullOffsetMoved
	case rocketstore.OffsetOverflowOne:
		return remoting.PullNotFound
	case rocketstore.OffsetTooSmall, rocketstore.OffsetOverflowBadly:
		return remoting.PullOffsetMoved
	}
	panic(fmt.Sprintf("broker: no code for store status %d", s))
}
