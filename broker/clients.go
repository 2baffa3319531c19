package broker

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// member is one client of a group, on one connection.
type member struct {
	id       string
	language remoting.Language
	version  int32
	seen     time.Time
}

// subscription is what a consumer group wants of a topic.
type subscription struct {
	version    int64 // ms in Java, ns in the Go client
	expression string
	filter     filter
	sql        bool
}

// consumerGroup is the connected part of a consumer group.
type consumerGroup struct {
	kind, model, from string
	members           map[*remoting.Conn]*member
	subscriptions     map[string]*subscription // by topic; never changed, but replaced
	size              int64                    // about what the subscriptions hold, bytes
}

// clients are the connected clients, by group.
type clients struct {
	mu        sync.RWMutex
	producers map[string]map[*remoting.Conn]*member
	counted   map[*remoting.Conn]int // groups of a connection
	size      int64                  // about what the subscriptions of all groups hold, bytes
	turns     map[string]int         // whose turn it is to be asked, by producer group
	consumers map[string]*consumerGroup
}

func newClients() *clients {
	return &clients{producers: map[string]map[*remoting.Conn]*member{}, counted: map[*remoting.Conn]int{}, turns: map[string]int{}, consumers: map[string]*consumerGroup{}}
}

// beatProducer notes that a client of a producer group lives. A connection may be in as many groups as one heartbeat may name.
func (k *clients) beatProducer(group string, c *remoting.Conn, m member) {
	k.mu.Lock()
	defer k.mu.Unlock()
	members := k.producers[group]
	if _, there := members[c]; !there && (len(group) > maxProducerGroup || !k.count(c)) {
		return
	}
	if members == nil {
		members = map[*remoting.Conn]*member{}
		k.producers[strings.Clone(group)] = members
	}
	members[c] = &m
}

// maxProducerGroup is the longest name of a producer group, bytes; clients allow 255 characters.
const maxProducerGroup = 1 << 10

// count adds a group to those of a connection, unless it has as many as one may have.
func (k *clients) count(c *remoting.Conn) bool {
	if k.counted[c] >= maxHeartbeatGroups {
		return false
	}
	k.counted[c]++
	return true
}

// uncount takes a group from those of a connection.
func (k *clients) uncount(c *remoting.Conn) {
	if k.counted[c]--; k.counted[c] == 0 {
		delete(k.counted, c)
	}
}

// maxSubscribed bounds what the subscriptions of all groups hold, bytes.
const maxSubscribed = 64 << 20

var errTooManySubscriptions = errors.New("too many groups or subscriptions")

// beatConsumer notes that a client of a consumer group lives and what the group wants. It reports whether the group has
// changed for its members: one has come, or a topic has come or gone (protocol.md E8). An error says that it would be too much;
// nothing has changed then.
func (k *clients) beatConsumer(h *consumerData, c *remoting.Conn, m member) (changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	g, size := k.consumers[h.group], h.size()
	if g == nil {
		g = &consumerGroup{members: map[*remoting.Conn]*member{}}
	}
	if h.unchanged {
		size = g.size
	}
	_, there := g.members[c]
	if size > g.size && k.size+size-g.size > maxSubscribed || !there && !k.count(c) {
		return false, fmt.Errorf("group %s: %w", h.group, errTooManySubscriptions)
	}
	k.consumers[h.group] = g
	k.size, g.size = k.size+size-g.size, size
	g.kind, g.model, g.from = h.kind, h.model, h.from
	changed = !there
	g.members[c] = &m
	if h.unchanged {
		return changed, nil
	}
	next := make(map[string]*subscription, len(h.subscriptions))
	for topic, s := range h.subscriptions {
		before := g.subscriptions[topic]
		if before == nil {
			changed = true
		} else if before.version > s.version {
			s = before
		}
		next[topic] = s
	}
	for topic := range g.subscriptions {
		if next[topic] == nil {
			changed = true
		}
	}
	g.subscriptions = next
	return changed, nil
}

// subscription is what a group wants of a topic; known says whether the group is connected, broadcast its model.
func (k *clients) subscription(group, topic string) (s *subscription, broadcast, known bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	g := k.consumers[group]
	if g == nil {
		return nil, false, false
	}
	return g.subscriptions[topic], g.model == "BROADCASTING", true
}

// memberIDs are the ids of a consumer group's clients, sorted.
func (k *clients) memberIDs(group string) []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	g := k.consumers[group]
	if g == nil {
		return nil
	}
	ids := make([]string, 0, len(g.members))
	for _, m := range g.members {
		ids = append(ids, m.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// connected is a client of a consumer group and its connection.
type connected struct {
	member
	conn *remoting.Conn
}

// members are the clients of a consumer group, by id.
func (k *clients) members(group string) (list []connected) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if g := k.consumers[group]; g != nil {
		for c, m := range g.members {
			list = append(list, connected{*m, c})
		}
	}
	slices.SortFunc(list, func(a, b connected) int { return cmp.Compare(a.id, b.id) })
	return list
}

// conns are the connections of a consumer group.
func (k *clients) conns(group string) []*remoting.Conn {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if g := k.consumers[group]; g != nil {
		return slices.Collect(maps.Keys(g.members))
	}
	return nil
}

// leaveProducer takes a client out of a producer group, leaveConsumer out of a consumer group; that reports whether it was in it.
func (k *clients) leaveProducer(group string, c *remoting.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if members := k.producers[group]; members != nil {
		k.dropProducer(group, members, c)
	}
}

func (k *clients) dropProducer(group string, members map[*remoting.Conn]*member, c *remoting.Conn) {
	if _, there := members[c]; there {
		k.uncount(c)
	}
	if delete(members, c); len(members) == 0 {
		delete(k.producers, group)
		delete(k.turns, group)
	}
}

// producersOf are connections of a producer group, most at the most, each time beginning with another one.
func (k *clients) producersOf(group string, most int) []*remoting.Conn {
	k.mu.Lock()
	defer k.mu.Unlock()
	members := k.producers[group]
	all := slices.SortedFunc(maps.Keys(members), func(a, b *remoting.Conn) int {
		return cmp.Or(cmp.Compare(members[a].id, members[b].id), cmp.Compare(a.RemoteAddr(), b.RemoteAddr()))
	})
	if len(all) == 0 {
		return nil
	}
	first := k.turns[group] % len(all)
	k.turns[group] = first + 1
	all = slices.Concat(all[first:], all[:first])
	return all[:min(len(all), most)]
}

func (k *clients) leaveConsumer(group string, c *remoting.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dropConsumer(group, c)
}

func (k *clients) dropConsumer(group string, c *remoting.Conn) bool {
	g := k.consumers[group]
	if g == nil || g.members[c] == nil {
		return false
	}
	k.uncount(c)
	if delete(g.members, c); len(g.members) == 0 {
		k.size -= g.size
		delete(k.consumers, group)
	}
	return true
}

// lost takes a connection out of all groups, and names the consumer groups that it was in.
func (k *clients) lost(c *remoting.Conn) (groups []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for group, members := range k.producers {
		k.dropProducer(group, members, c)
	}
	for group := range k.consumers {
		if k.dropConsumer(group, c) {
			groups = append(groups, group)
		}
	}
	slices.Sort(groups)
	return groups
}

// silent are the connections that did not send a heartbeat since then.
func (k *clients) silent(since time.Time) []*remoting.Conn {
	last := map[*remoting.Conn]time.Time{}
	note := func(members map[*remoting.Conn]*member) {
		for c, m := range members {
			if m.seen.After(last[c]) {
				last[c] = m.seen
			}
		}
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	for _, members := range k.producers {
		note(members)
	}
	for _, g := range k.consumers {
		note(g.members)
	}
	var silent []*remoting.Conn
	for c, seen := range last {
		if seen.Before(since) {
			silent = append(silent, c)
		}
	}
	slices.SortFunc(silent, func(a, b *remoting.Conn) int { return cmp.Compare(a.RemoteAddr(), b.RemoteAddr()) })
	return silent
}

// counts are how many groups there are.
func (k *clients) counts() (producers, consumers int) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.producers), len(k.consumers)
}
