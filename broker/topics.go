package broker

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/route"
)

// Permissions of topics and of the broker.
const (
	permInherit int32 = config.PermInherit
	permWrite   int32 = config.PermWrite
	permRead    int32 = config.PermRead
)

// Names of topics that are special.
const (
	defaultTopic  = "TBW102"
	retryPrefix   = "%RETRY%"
	deadPrefix    = "%DLQ%"
	scheduleTopic = "SCHEDULE_TOPIC_XXXX"
)

// maxTopicLength is the longest topic that a client may name, bytes.
const maxTopicLength = 127

// topic is what a request needs to know of one.
type topic struct {
	readQueues, writeQueues, perm, sysFlag int32
	order                                  bool
}

// topics is config/topics.json in memory.
type topics struct {
	store  *rocketstore.Store
	saveMu sync.Mutex // held while the file is written; before mu
	mu     sync.RWMutex
	table  config.Topics // guarded by mu
}

func newTopics() *topics { return &topics{} }

func (t *topics) keptBy(s *rocketstore.Store) { t.store = s }

// systemTopics are those that a broker makes at its start (protocol.md 8.5).
func systemTopics(o *Options, rules *dialect.Dialect) []*config.Topic {
	of := func(name string, queues, perm int32) *config.Topic {
		t := config.NewTopic(name)
		t.ReadQueues, t.WriteQueues, t.Perm = queues, queues, perm
		return t
	}
	usable := func(no bool) int32 {
		if no {
			return permInherit
		}
		return permInherit | permRead | permWrite
	}
	const both = permRead | permWrite
	list := []*config.Topic{of("SELF_TEST_TOPIC", 1, both)}
	if !o.NoAutoTopics {
		list = append(list, of(defaultTopic, o.DefaultTopicQueues, permInherit|both))
	}
	list = append(list, of("BenchmarkTest", 1024, both), of(o.Cluster, 16, usable(o.NoClusterTopic)), of(o.Name, 1, usable(o.NoBrokerTopic)),
		of("OFFSET_MOVED_EVENT", 1, both))
	if rules.HasStateTable { // 3.1 knows neither of the rest
		return list
	}
	list = append(list, of(scheduleTopic, 18, both))
	if o.TraceTopic {
		list = append(list, of(o.TraceTopicName, 1, both))
	}
	return append(list, of(o.Cluster+"_REPLY_TOPIC", 1, both))
}

// begin adds the topics that every broker has, and takes TBW102 out where topics are not made by themselves.
func (t *topics) begin(o *Options, rules *dialect.Dialect) error {
	t.mu.Lock()
	t.table.Line = rules.Name
	if t.table.Version == nil {
		t.table.Version = &config.DataVersion{Timestamp: time.Now().UnixMilli()}
	}
	changed := false
	for _, s := range systemTopics(o, rules) {
		if _, there := t.table.Table.Get(s.Name); !there {
			t.table.Table.Set(s.Name, s)
			changed = true
		}
	}
	if _, there := t.table.Table.Get(defaultTopic); there && o.NoAutoTopics {
		t.table.Table.Delete(defaultTopic)
		changed = true
	}
	if changed {
		t.table.Version.Advance(time.Now().UnixMilli())
	}
	t.mu.Unlock()
	return t.save()
}

// save writes the file, if it changed.
func (t *topics) save() error {
	t.saveMu.Lock()
	defer t.saveMu.Unlock()
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.store.SaveTable(&t.table)
}

func (t *topics) get(name string) (topic, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c, ok := t.table.Table.Get(name)
	if !ok {
		return topic{}, false
	}
	return viewOf(c), true
}

func viewOf(c *config.Topic) topic {
	return topic{readQueues: c.ReadQueues, writeQueues: c.WriteQueues, perm: c.Perm, sysFlag: c.SysFlag, order: c.Order}
}

// ensure makes a topic if it is not there; made says that it did.
func (t *topics) ensure(name string, queues, perm int32) (found topic, made bool, err error) {
	if found, ok := t.get(name); ok {
		return found, false, nil
	}
	c := config.NewTopic(strings.Clone(name)) // of a header that may be large
	c.ReadQueues, c.WriteQueues, c.Perm = queues, queues, perm
	return t.add(c)
}

// plainTopic is one to be read and written.
func plainTopic(name string, queues int32) *config.Topic {
	c := config.NewTopic(name)
	c.ReadQueues, c.WriteQueues, c.Perm = queues, queues, permRead|permWrite
	return c
}

// makeAll makes those topics that are not there; made says that there were any.
func (t *topics) makeAll(list []*config.Topic) (made bool, err error) {
	t.mu.Lock()
	for _, c := range list {
		if _, there := t.table.Table.Get(c.Name); !there {
			t.table.Table.Set(c.Name, c)
			t.table.Version.Advance(time.Now().UnixMilli())
			made = true
		}
	}
	t.mu.Unlock()
	if !made {
		return false, nil
	}
	return true, t.save()
}

// inherit makes a topic as its default topic allows (protocol.md 8.4). It is the zero topic, and nothing is made, when that
// does not.
func (t *topics) inherit(name, from string, queues int32) (found topic, made bool, err error) {
	parent, ok := t.get(from)
	if !ok || parent.perm&permInherit == 0 || from == name {
		return topic{}, false, nil
	}
	c := config.NewTopic(strings.Clone(name))
	n := max(min(queues, parent.writeQueues), 0)
	c.ReadQueues, c.WriteQueues, c.Perm, c.SysFlag = n, n, parent.perm&^permInherit, parent.sysFlag
	return t.add(c)
}

func (t *topics) add(c *config.Topic) (found topic, made bool, err error) {
	t.mu.Lock()
	if there, ok := t.table.Table.Get(c.Name); ok {
		found = viewOf(there)
		t.mu.Unlock()
		return found, false, nil
	}
	t.table.Table.Set(c.Name, c)
	t.table.Version.Advance(time.Now().UnixMilli())
	found = viewOf(c)
	t.mu.Unlock()
	if err := t.save(); err != nil {
		return found, true, fmt.Errorf("topic %s: %w", c.Name, err)
	}
	return found, true, nil
}

// setOrder follows the name server's table of ordered topics: topics that it names are ordered, all others are not.
func (t *topics) setOrder(ordered map[string]string) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, c := range t.table.Table.All() {
		if _, want := ordered[name]; want != c.Order {
			c.Order, changed = want, true
		}
	}
	if changed {
		t.table.Version.Advance(time.Now().UnixMilli())
	}
	return changed
}

// version says which state the table is in.
func (t *topics) version() config.DataVersion {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return *t.table.Version
}

// registration is what name servers are told: always all topics, so that no change is lost (protocol.md 16).
func (t *topics) registration(permission int32, rules *dialect.Dialect) *route.Registration {
	t.mu.RLock()
	defer t.mu.RUnlock()
	v := t.table.Version
	g := &route.Registration{DataVersion: route.DataVersion{Counter: v.Counter, Timestamp: v.Timestamp, StateVersion: v.StateVersion}}
	for name, c := range t.table.Table.All() {
		perm := c.Perm
		if permission != permRead|permWrite {
			if perm = permission; rules.NamesRegion { // 5.3
				perm = c.Perm & permission
			}
		}
		g.Topics = append(g.Topics, route.TopicConfig{
			Name: name, ReadQueueNums: c.ReadQueues, WriteQueueNums: c.WriteQueues, Perm: perm, SysFlag: c.SysFlag,
			FilterType: c.FilterType, Order: c.Order,
		})
	}
	return g
}

func (t *topics) count() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.table.Table.Len()
}

// sendable says whether clients may send to a topic of that name (protocol.md 8.5).
func sendable(name string) bool {
	switch name {
	case scheduleTopic, rocketstore.HalfTopicName, rocketstore.OpTopicName, rocketstore.GiveUpTopicName, "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT":
		return false
	}
	return true
}
