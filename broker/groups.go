package broker

import (
	"strings"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/message"
)

// group is what a request needs to know of a consumer group's configuration.
type group struct {
	enabled, broadcast, notify bool
	retryQueues, retryMax      int32
	slowBroker                 int64
}

// groups is config/subscriptionGroup.json in memory.
type groups struct {
	store  *rocketstore.Store
	saveMu sync.Mutex // held while the file is written; before mu
	mu     sync.RWMutex
	table  config.SubscriptionGroups // guarded by mu
}

func newGroups() *groups { return &groups{} }

func (g *groups) keptBy(s *rocketstore.Store) { g.store = s }

// maxGroupLength is the longest name of a group, bytes, that leaves room for its retry topic.
const maxGroupLength = maxTopicLength - len(retryPrefix)

// validGroup says whether a name may be a group: it is part of topic names and file keys.
func validGroup(name string) bool { return message.ValidTopic(name) && len(name) <= maxGroupLength }

// systemGroups are there from the start (protocol.md 8.5).
func systemGroups() []string {
	return []string{
		"TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PULL", "CID_ONSAPI_PERMISSION",
		"CID_ONSAPI_OWNER",
	}
}

func (g *groups) begin(rules *dialect.Dialect) error {
	g.mu.Lock()
	g.table.Line = rules.Name
	if g.table.Version == nil {
		g.table.Version = &config.DataVersion{Timestamp: time.Now().UnixMilli()}
	}
	changed := false
	for _, name := range systemGroups() {
		if _, there := g.table.Table.Get(name); !there {
			g.table.Table.Set(name, config.NewGroup(name))
			changed = true
		}
	}
	if changed {
		g.table.Version.Advance(time.Now().UnixMilli())
	}
	g.mu.Unlock()
	return g.save()
}

func (g *groups) save() error {
	g.saveMu.Lock()
	defer g.saveMu.Unlock()
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.store.SaveTable(&g.table)
}

func (g *groups) get(name string) (group, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	c, ok := g.table.Table.Get(name)
	if !ok {
		return group{}, false
	}
	return group{
		enabled: c.ConsumeEnable, broadcast: c.ConsumeBroadcastEnable, notify: c.NotifyConsumerIDsChanged,
		retryQueues: c.RetryQueues, retryMax: c.RetryMaxTimes, slowBroker: c.WhichBrokerWhenConsumeSlowly,
	}, true
}

// find gives a group; it makes one that is not there, if it may.
func (g *groups) find(name string, create bool) (group, bool, error) {
	if found, ok := g.get(name); ok || !create || !validGroup(name) {
		return found, ok, nil
	}
	err := g.make([]string{name})
	found, ok := g.get(name)
	return found, ok, err
}

// make makes those groups that are not there and whose names may be one.
func (g *groups) make(names []string) error {
	changed := false
	g.mu.Lock()
	for _, name := range names {
		if _, there := g.table.Table.Get(name); there || !validGroup(name) {
			continue
		}
		name = strings.Clone(name) // of a header that may be large
		g.table.Table.Set(name, config.NewGroup(name))
		g.table.Version.Advance(time.Now().UnixMilli())
		changed = true
	}
	g.mu.Unlock()
	if !changed {
		return nil
	}
	return g.save()
}

func (g *groups) count() int {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.table.Table.Len()
}
