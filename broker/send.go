package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// refusal is an answer other than success, as an error.
type refusal struct {
	code int32
	text string
}

func (r *refusal) Error() string { return r.text }

func refused(code int32, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// send serves 10, 310 and 320.
func (b *Broker) send(ctx context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	began := time.Now()
	if busy := b.beginSend(began.UnixNano()); busy != "" {
		b.figures.busy.Add(1)
		return req.Refuse(remoting.SystemBusy, "%s", busy), nil
	}
	defer b.endSend()
	if b.workers != nil {
		select {
		case b.workers <- struct{}{}:
			defer func() { <-b.workers }()
		case <-b.ctx.Done():
			return req.Refuse(remoting.ServiceNotAvailable, "service not available now: the broker is shutting down"), nil
		}
	}
	s, err := readSend(req)
	if err != nil {
		return nil, err
	}
	// What was read is stored, also when the connection ends meanwhile: a client that sends without an answer may close at once.
	resp, err := b.sendChecked(context.WithoutCancel(ctx), c, req, s)
	if err == nil {
		b.figures.puts.Add(time.Since(began))
		return resp, nil
	}
	b.figures.sendsRefused.Add(1)
	if no := (*refusal)(nil); errors.As(err, &no) {
		return req.Refuse(no.code, "%s", no.text), nil
	}
	return nil, err
}

// beginSend counts a send, or says why there must not be one more: too many are under way, or none of them ends.
func (b *Broker) beginSend(now int64) (busy string) {
	o := b.live()
	if b.sends.Load() == 0 {
		b.ended.Store(now) // before it is counted, so that no other finds it counted and the time an old one
	}
	switch n := b.sends.Add(1); {
	case n == 1:
	case n > o.MaxSends:
		b.sends.Add(-1)
		return fmt.Sprintf("[OVERLOAD]more than %d sends at once", o.MaxSends)
	case time.Duration(now-b.ended.Load()) > o.Stalled:
		b.sends.Add(-1)
		return fmt.Sprintf("[PCBUSY_CLEAN_QUEUE]no send has ended for %v", o.Stalled)
	}
	return ""
}

func (b *Broker) endSend() {
	b.ended.Store(time.Now().UnixNano())
	b.sends.Add(-1)
}

func (b *Broker) sendChecked(ctx context.Context, c *remoting.Conn, req *remoting.Command, s *sendRequest) (*remoting.Command, error) {
	t, err := b.topicForSend(s)
	if err != nil {
		return nil, err
	}
	if s.queueID >= max(t.writeQueues, t.readQueues) {
		return nil, refused(remoting.SystemError, "request queueId[%d] is illegal, topic %s has %d write and %d read queues", s.queueID, s.topic, t.writeQueues, t.readQueues)
	}
	if s.queueID < 0 {
		if t.writeQueues <= 0 {
			return nil, refused(remoting.SystemError, "topic %s has no queue to write to", s.topic)
		}
		s.queueID = rand.Int32N(t.writeQueues)
	}
	if t.sysFlag&int32(message.FlagMultiTags) != 0 {
		s.sysFlag |= message.FlagMultiTags
	}
	userQueue := s.queueID
	if strings.HasPrefix(s.topic, retryPrefix) {
		if err := b.resend(req, s); err != nil {
			return nil, err
		}
	}
	if err := b.checkProperties(s); err != nil {
		return nil, err
	}
	born := message.Host{}
	if a := c.RemoteAddrPort(); a.IsValid() {
		born = message.HostFrom(a)
	}
	m := message.Message{
		Topic: s.topic, QueueID: s.queueID, Flag: s.flag, SysFlag: s.sysFlag, BornTimestamp: s.born, BornHost: born,
		StoreHost: *b.host.Load(), ReconsumeTimes: s.reconsumeTimes, Body: req.Body, Properties: s.properties,
	}
	if s.batch {
		return b.sendBatch(ctx, req, s, m)
	}
	return b.sendOne(ctx, req, userQueue, &m)
}

// topicForSend finds the topic, or makes it, and refuses those that clients must not send to (protocol.md 4.2).
func (b *Broker) topicForSend(s *sendRequest) (topic, error) {
	t, known := b.topics.get(s.topic)
	switch {
	case b.live().Permission&permWrite == 0 && known && t.order:
		return t, refused(remoting.NoPermission, "the broker[%s] sending message is forbidden", b.opts.AdvertisedIP)
	case strings.TrimSpace(s.topic) == "":
		return t, refused(remoting.SystemError, "The specified topic is blank.")
	case !message.ValidTopic(s.topic):
		return t, refused(remoting.SystemError, "The specified topic contains illegal characters, allowing only ^[%%|a-zA-Z0-9_-]+$")
	case len(s.topic) > maxTopicLength:
		return t, refused(remoting.SystemError, "The specified topic is longer than topic max length.")
	case !sendable(s.topic):
		return t, refused(remoting.NoPermission, "Sending message to topic[%s] is forbidden.", s.topic)
	case known:
		return t, nil
	}
	var made bool
	var err error
	if strings.HasPrefix(s.topic, retryPrefix) {
		t, made, err = b.topics.ensure(s.topic, 1, permRead|permWrite)
	} else if s.defaultQueues <= 0 {
		return t, refused(remoting.SystemError, "topic[%s] not exist, and would have %d queues", s.topic, s.defaultQueues)
	} else if !b.live().NoAutoTopics || s.defaultTopic != defaultTopic {
		t, made, err = b.topics.inherit(s.topic, s.defaultTopic, s.defaultQueues)
	}
	switch {
	case err != nil:
		return t, err
	case t == topic{}:
		return t, refused(remoting.TopicNotExist, "topic[%s] not exist, apply first please!", s.topic)
	case made:
		b.opts.Logger.Info("topic made", "topic", s.topic, "queues", t.writeQueues)
		b.names.changed()
	}
	return t, nil
}

// resend treats what a consumer sends back by itself to its retry topic: one that was tried too often goes to the dead letters.
func (b *Broker) resend(req *remoting.Command, s *sendRequest) error {
	name := strings.TrimPrefix(s.topic, retryPrefix)
	g, known, err := b.groups.find(name, false)
	if err != nil {
		return err
	}
	if !known {
		return refused(remoting.SubscriptionGroupNotExist, "subscription group not exist, %s", name)
	}
	// It may be a committed message, which still carries the marks of its transaction (protocol.md E4).
	s.sysFlag = s.sysFlag.WithTransaction(0)
	limit := g.retryMax
	if req.Version >= remoting.Version349 && s.maxReconsumeTimes >= 0 {
		limit = s.maxReconsumeTimes
	}
	// The count of this try is in it already (protocol.md E9), but for a group that consumes in order: that tries locally, and
	// sends back only what has had all its tries.
	if s.reconsumeTimes <= limit && !b.locks.inUse(name, time.Now()) {
		return nil
	}
	s.topic, s.queueID = deadPrefix+name, 0
	s.properties = s.properties.Delete(message.PropertyDelay)
	_, err = b.ensureTopic(s.topic, 1)
	return err
}

// checkProperties refuses what the store would take but the broker must not, and adds what the broker says itself (protocol.md
// 16): the client's order stays, additions go to the end.
func (b *Broker) checkProperties(s *sendRequest) error {
	delay, delayed := s.properties.Get(message.PropertyDelay)
	if _, err := strconv.ParseInt(delay, 10, 32); delayed && err != nil { // else it would be delivered at once
		return refused(remoting.SystemError, "property %s: %.80q is no level", message.PropertyDelay, delay)
	}
	delayed = delayed && delay != "0" && !strings.HasPrefix(delay, "-")
	if !delayed && strings.Contains(string(s.properties), "TIMER_") {
		for _, name := range []string{"TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"} {
			if _, ok := s.properties.Get(name); ok {
				return refused(remoting.MessageIllegal, "property %s: delivery at an arbitrary time is not supported, use DELAY", name)
			}
		}
	}
	marked, _ := s.properties.Get(message.PropertyTransactionPrepared)
	prepared := s.sysFlag.Transaction() == message.FlagPrepared || marked == "true"
	switch {
	case prepared && b.live().RejectTransactions && !strings.HasPrefix(s.topic, retryPrefix):
		return refused(remoting.NoPermission, "the broker[%s] sending transaction message is forbidden", b.opts.AdvertisedIP)
	case s.sysFlag.Transaction() == message.FlagCommit, s.sysFlag.Transaction() == message.FlagRollback:
		return refused(remoting.MessageIllegal, "a transaction is ended by END_TRANSACTION")
	}
	return nil
}

// stored are the properties as this line of RocketMQ stores them.
func (b *Broker) stored(p message.Properties) (message.Properties, error) {
	return b.storedWithout(p, "")
}

// storedWithout are those without what has the name drop, if that is not "".
func (b *Broker) storedWithout(p message.Properties, drop string) (message.Properties, error) {
	switch {
	case !b.rules.NamesCluster:
		return p.Rewrite(drop, ""), nil
	case b.rules.NamesRegion && !p.Mentions(message.PropertyUniqueKey):
	case p.Mentions(message.PropertyCluster), p.Mentions(propertyRegion), p.Mentions(propertyTrace):
	default:
		if more := b.additions(!b.live().NoTrace); more != "" {
			return p.Rewrite(drop, more), nil // nothing that is added is there: one copy in place of four
		}
	}
	return b.storedSlowly(p.Rewrite(drop, ""))
}

// storedSlowly adds one after the other, or replaces it where it stands.
func (b *Broker) storedSlowly(p message.Properties) (message.Properties, error) {
	p, err := p.Set(message.PropertyCluster, b.opts.Cluster)
	if err != nil || !b.rules.NamesRegion {
		return p, err
	}
	if _, ok := p.Get(message.PropertyUniqueKey); !ok {
		if p, err = p.Set(message.PropertyUniqueKey, b.unique.next()); err != nil {
			return p, err
		}
	}
	if p, err = p.Set(propertyRegion, b.opts.Region); err != nil {
		return p, err
	}
	return p.Set(propertyTrace, boolText(!b.live().NoTrace))
}

// additions are what a message with a unique key gets from the broker, "" if that cannot be stored.
func (b *Broker) additions(trace bool) message.Properties {
	if trace {
		return b.added[1]
	}
	return b.added[0]
}

// prepareAdditions makes them once.
func (b *Broker) prepareAdditions() {
	for i, trace := range []bool{false, true} {
		pairs := []string{message.PropertyCluster, b.opts.Cluster}
		if b.rules.NamesRegion {
			pairs = append(pairs, propertyRegion, b.opts.Region, propertyTrace, boolText(trace))
		}
		if p, err := message.NewProperties(pairs...); err == nil {
			b.added[i] = p
		}
	}
}

// Properties that the broker adds, and fields of the answer.
const (
	propertyRegion = "MSG_REGION"
	propertyTrace  = "TRACE_ON"
)

func boolText(v bool) string {
	if v {
		return "true"
	}
	return "false"
}

func (b *Broker) sendOne(ctx context.Context, req *remoting.Command, userQueue int32, m *message.Message) (*remoting.Command, error) {
	put, drop := b.store.Put, ""
	lacking := b.lacksSlave(m)
	if wait, ok := m.Properties.Get(message.PropertyWait); ok && b.rules.DropsWait && plain(m) {
		if drop = message.PropertyWait; wait != "true" {
			put = b.store.PutLoose
		}
	}
	var err error
	if m.Properties, err = b.storedWithout(m.Properties, drop); err != nil {
		return nil, refused(remoting.MessageIllegal, "%v", err)
	}
	res, err := put(ctx, m)
	code, err := putCode(err, lacking)
	if err != nil {
		return nil, err
	}
	b.countSent(m.Topic, 1, len(m.Body), int64(res.Size))
	resp := b.sendReply(req, code, res.MessageID(), userQueue, res.QueueOffset)
	if b.rules.NamesRegion {
		if id, ok := m.Properties.Get(message.PropertyUniqueKey); ok {
			resp.Fields = append(resp.Fields, remoting.String("transactionId", id))
		}
	}
	return resp, nil
}

// countSent counts messages that were stored for a producer: their bodies, and the records that they became.
func (b *Broker) countSent(topic string, n int64, bodies int, records int64) {
	b.figures.sent.Add(n)
	b.figures.sentBytes.Add(int64(bodies))
	b.flows.of(flowKey{topic: topic}).add(n, records)
	b.flows.whole.add(n, records)
}

// plain says whether a message is neither delayed nor prepared: the others' property strings are written anew by the store,
// WAIT included.
func plain(m *message.Message) bool {
	marked, _ := m.Properties.Get(message.PropertyTransactionPrepared)
	_, delayed := m.Properties.Get(message.PropertyDelay)
	return !delayed && marked != "true" && m.SysFlag.Transaction() == 0
}

// lacksSlave says whether a message's producer is to be told that no slave has it: it wants to wait for one.
func (b *Broker) lacksSlave(m *message.Message) bool {
	if !b.opts.SyncMaster {
		return false // without a look at the properties of each message
	}
	wait, ok := m.Properties.Get(message.PropertyWait)
	return !ok || wait == "true"
}

// putCode is the response code of a put that stored its message; else the error says why it did not. That no slave has it counts for more
// than that the disk was late, as in the original.
func putCode(err error, lacksSlave bool) (int32, error) {
	switch {
	case lacksSlave && (err == nil || errors.Is(err, rocketstore.ErrSyncTimeout)):
		return remoting.SlaveNotAvailable, nil
	case err == nil:
		return remoting.Success, nil
	case errors.Is(err, rocketstore.ErrSyncTimeout):
		return remoting.FlushDiskTimeout, nil
	case errors.Is(err, rocketstore.ErrMessageIllegal):
		return 0, refused(remoting.MessageIllegal, "the message is illegal: %v", err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, rocketstore.ErrDiskFull):
		return 0, refused(remoting.ServiceNotAvailable, "service not available now: the disk is full")
	case errors.Is(err, rocketstore.ErrClosed):
		return 0, refused(remoting.ServiceNotAvailable, "service not available now: the broker is shutting down")
	}
	return 0, err
}

func (b *Broker) sendReply(req *remoting.Command, code int32, id string, queueID int32, queueOffset int64) *remoting.Command {
	fields := make(remoting.Fields, 0, 6)
	fields = append(fields, remoting.String("msgId", id), remoting.Int("queueId", int64(queueID)), remoting.Int("queueOffset", queueOffset))
	resp := req.Reply(code, fields...)
	if b.rules.NamesCluster { // 3.1 has these three fields only
		resp.Fields = append(resp.Fields, remoting.String(propertyRegion, b.opts.Region), remoting.Bool(propertyTrace, !b.live().NoTrace))
	}
	return resp
}
