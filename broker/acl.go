package broker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// right is what an account may do with a topic or group.
type right byte

const (
	rightPub right = 1 << iota
	rightSub
)

func (r right) String() string {
	return [...]string{"DENY", "PUB", "SUB", "PUB|SUB"}[r]
}

// account is one of plain_acl.yml.
type account struct {
	accessKey, secretKey       string
	white                      addresses
	admin                      bool
	defaultTopic, defaultGroup right
	topics, groups             map[string]right
}

// rules are a whole plain_acl.yml. They never change, but are replaced.
type rules struct {
	white    addresses
	accounts map[string]*account
}

// acl guards a broker by a file, which it reads anew when it has changed.
type acl struct {
	file string

	mu      sync.Mutex
	current *rules
	looked  time.Time // when the file was last looked at
	changed time.Time // its time of change then
	size    int64
}

// aclLook is the time between two looks at the file.
const aclLook = time.Second

// openACL reads the rules. An error names the file and the line.
func openACL(file string) (*acl, error) {
	a := &acl{file: file}
	return a, a.read()
}

func (a *acl) read() error {
	info, err := os.Stat(a.file)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(a.file)
	if err != nil {
		return err
	}
	r, err := parseRules(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", a.file, err)
	}
	a.current, a.changed, a.size = r, info.ModTime(), info.Size()
	return nil
}

// rules gives those of the file as it is now; if that cannot be read, those of before, and why.
func (a *acl) rules(now time.Time) (*rules, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.looked) < aclLook {
		return a.current, nil
	}
	a.looked = now
	info, err := os.Stat(a.file)
	if err != nil || info.ModTime().Equal(a.changed) && info.Size() == a.size {
		return a.current, err
	}
	err = a.read()
	return a.current, err
}

// errDenied says that an account must not do what it asked.
var errDenied = errors.New("not permitted")

// permit checks a request against the rules: who signed it, and whether that one may. Errors match remoting.ErrSignature or
// errDenied, and never hold a key.
func (b *Broker) permit(c *remoting.Conn, req *remoting.Command) error {
	r, err := b.acl.rules(time.Now())
	if err != nil {
		b.opts.Logger.Error("access rules not read", "file", b.acl.file, "err", err)
	}
	peer := peerAddr(c)
	if r.white.has(peer) {
		return nil
	}
	a := r.accounts[req.Fields.Get(remoting.FieldAccessKey)]
	if a != nil && a.white.has(peer) {
		return nil
	}
	err = remoting.Verify(req, func(string) (string, bool) {
		if a == nil {
			return "", false
		}
		return a.secretKey, true
	})
	if err != nil {
		return err
	}
	n := b.needs(req)
	return a.allows(&n)
}

func peerAddr(c *remoting.Conn) netip.Addr {
	if a, err := netip.ParseAddrPort(c.RemoteAddr()); err == nil {
		return a.Addr().Unmap()
	}
	return netip.Addr{}
}

// need is one right that a request takes.
type need struct {
	name  string
	group bool
	right right
}

// needs are all of them.
type needs struct {
	admin bool
	list  []need
}

func (n *needs) topic(name string, r right) {
	if group, ok := strings.CutPrefix(name, retryPrefix); ok {
		n.group(group) // a retry topic belongs to its group
		return
	}
	n.list = append(n.list, need{name, false, r})
}

func (n *needs) group(name string) { n.list = append(n.list, need{name, true, rightSub}) }

// needs says what a request takes (protocol.md 16). Those that 4.9.7 forgets are among them: 320, 324, 325, 37, 222.
func (b *Broker) needs(req *remoting.Command) (n needs) {
	f := req.Fields
	switch req.Code {
	case remoting.CreateTopic, remoting.DeleteTopicInBroker, remoting.UpdateBrokerConfig, remoting.CreateSubscriptionGroup,
		remoting.DeleteSubscriptionGroup, remoting.CloneGroupOffset, remoting.CleanExpiredQueues, remoting.CleanUnusedTopic, remoting.DeleteExpiredLog:
		n.admin = true
	case remoting.SendMessage, remoting.SendReplyMessage, remoting.SendMessageV2, remoting.SendBatchMessage, remoting.SendReplyMessageV2:
		if topic := f.Get(sendTopic.nameIn(req.Code)); topic != b.opts.TraceTopicName { // which is free for all that signed
			n.topic(topic, rightPub)
		}
	case remoting.EndTransaction:
		n.topic(b.topicOfTransaction(f), rightPub)
	case remoting.PullMessage, remoting.LitePullMessage, remoting.UpdateConsumerOffset, remoting.QueryConsumerOffset:
		n.topic(f.Get("topic"), rightSub)
		n.group(f.Get("consumerGroup"))
	case remoting.InvokeResetOffset, remoting.InvokeConsumerStatus:
		n.topic(f.Get("topic"), rightSub)
		n.group(f.Get("group"))
	case remoting.QueryMessage:
		n.topic(f.Get("topic"), rightSub)
	case remoting.ConsumerSendMessageBack:
		n.group(f.Get("group"))
	case remoting.GetConsumerListByGroup, remoting.GetConsumerRunningInfo, remoting.ConsumeMessageDirectly:
		n.group(f.Get("consumerGroup"))
	case remoting.UnregisterClient:
		if group := f.Get("consumerGroup"); group != "" {
			n.group(group)
		}
	case remoting.LockBatchQueues, remoting.UnlockBatchQueues:
		if l, err := readLocks(req.Body); err == nil { // the others are refused for what they are
			n.group(l.group)
		}
	case remoting.Heartbeat:
		h, err := readHeartbeat(req.Body)
		if err != nil {
			break
		}
		for _, c := range h.consumers {
			n.group(c.group)
			for topic := range c.subscriptions {
				n.topic(topic, rightSub)
			}
		}
	}
	return n
}

// topicOfTransaction is the topic of the prepared message that an end names.
func (b *Broker) topicOfTransaction(f remoting.Fields) string {
	r := f.Reader()
	m, err := b.store.MessageAt(r.Int64("commitLogOffset"))
	if err != nil || r.Err() != nil {
		return "" // there is none, and nobody has a right to that
	}
	if topic, ok := m.Properties.Get(message.PropertyRealTopic); ok {
		return topic
	}
	return m.Topic
}

func (a *account) allows(n *needs) error {
	if a.admin {
		return nil
	}
	if n.admin {
		return fmt.Errorf("%w: access key %q is not that of an administrator", errDenied, a.accessKey)
	}
	for _, x := range n.list {
		has, kind := a.of(x.name, x.group), "topic"
		if x.group {
			kind = "group"
		}
		if has&x.right == 0 {
			return fmt.Errorf("%w: access key %q has %v, but not %v, on %s %q", errDenied, a.accessKey, has, x.right, kind, x.name)
		}
	}
	return nil
}

func (a *account) of(name string, group bool) right {
	table, has := a.topics, a.defaultTopic
	if group {
		table, has = a.groups, a.defaultGroup
	}
	if r, ok := table[name]; ok {
		return r
	}
	return has
}

// guarded lets op serve a request that the rules permit.
func (b *Broker) guarded(ctx context.Context, c *remoting.Conn, req *remoting.Command, op operation) (*remoting.Command, error) {
	if b.acl != nil {
		if err := b.permit(c, req); err != nil {
			b.figures.denied.Add(1)
			return nil, err
		}
	}
	if b.opts.Hooks.Before != nil || b.opts.Hooks.After != nil {
		return b.serveHooked(ctx, c, req, op)
	}
	return op(b, ctx, c, req)
}
