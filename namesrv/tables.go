package namesrv

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
)

// tables are what the name server knows. Times are given by the caller.
type tables struct {
	mu       sync.RWMutex
	topics   map[string]map[string]route.QueueData // by topic, then broker name
	brokers  map[string]*route.BrokerData          // by broker name
	clusters map[string]map[string]struct{}        // broker names by cluster
	live     map[string]*liveBroker                // by address
	filters  map[string][]string                   // by broker address
}

// liveBroker is a broker that reports.
type liveBroker struct {
	identity
	haAddr  string
	updated time.Time
	timeout time.Duration // 0: the server's
	version route.DataVersion
	conn    *remoting.Conn // of its latest report
	// partial says that all that it reported so far was one topic, which may be an increment to what only an earlier
	// name server process knew.
	partial bool
}

// identity is how a broker calls itself.
type identity struct {
	cluster, name, addr string
	id                  int64
}

// report is one registration.
type report struct {
	identity
	haAddr  string
	timeout time.Duration
	acting  *bool
	zone    string
	conn    *remoting.Conn
	body    *route.Registration
}

func newTables() *tables {
	return &tables{
		topics: map[string]map[string]route.QueueData{}, brokers: map[string]*route.BrokerData{},
		clusters: map[string]map[string]struct{}{}, live: map[string]*liveBroker{}, filters: map[string][]string{},
	}
}

// registered is what a registration brought about.
type registered struct {
	masterAddr, haAddr string // of the master, for a slave
	first              bool   // the broker was not known before
	ignored            bool   // somebody newer has this name and id
}

// register enters a report.
func (t *tables) register(now time.Time, r *report) registered {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.live[r.addr]
	if holder := t.holder(r.name, r.id); holder != nil && holder != before && r.body.DataVersion.StateVersion < holder.version.StateVersion {
		return registered{ignored: true} // a deposed 5.x master that does not know it yet
	}
	switch {
	case before == nil:
	case before.name != r.name:
		t.drop(before)
		before = nil
	case before.id != r.id: // it changed its role
		t.forget(before)
		before = nil
	}
	d := t.enter(r)
	if r.id == route.MasterID {
		t.updateTopics(r, before)
	}
	t.live[d.Addrs[r.id]] = &liveBroker{
		identity: r.identity, haAddr: r.haAddr, updated: now, timeout: r.timeout, version: r.body.DataVersion, conn: r.conn,
		partial: len(r.body.Topics) == 1 && (before == nil || before.partial),
	}
	if len(r.body.FilterServers) > 0 {
		t.filters[r.addr] = r.body.FilterServers
	} else {
		delete(t.filters, r.addr)
	}
	result := registered{first: before == nil}
	if master := t.holder(r.name, route.MasterID); master != nil && r.id != route.MasterID {
		result.masterAddr, result.haAddr = master.addr, master.haAddr
	}
	return result
}

// holder is the live broker that has a name and id, nil if there is none.
func (t *tables) holder(name string, id int64) *liveBroker {
	d := t.brokers[name]
	if d == nil {
		return nil
	}
	return t.live[d.Addrs[id]]
}

// enter puts a broker's address into the broker table, and its name into its cluster.
func (t *tables) enter(r *report) *route.BrokerData {
	if old := t.holder(r.name, r.id); old != nil && old.addr != r.addr {
		t.forget(old) // it moved
	}
	d := t.brokers[r.name]
	if d == nil {
		d = &route.BrokerData{BrokerName: r.name, Addrs: map[int64]string{}}
		t.brokers[r.name] = d
	}
	if d.Cluster != r.cluster {
		t.leaveCluster(d)
		d.Cluster = r.cluster
	}
	if t.clusters[r.cluster] == nil {
		t.clusters[r.cluster] = map[string]struct{}{}
	}
	t.clusters[r.cluster][r.name] = struct{}{}
	d.Addrs[r.id] = r.addr
	if r.acting != nil {
		d.ActingMaster = r.acting
	}
	if r.zone != "" {
		d.Zone = r.zone
	}
	return d
}

// updateTopics takes the topics of a master's report. With the data version of before only those are taken that the
// broker is not listed for: the report that brought this version may have had one topic alone.
func (t *tables) updateTopics(r *report, before *liveBroker) {
	changed := before == nil || before.version != r.body.DataVersion
	for i := range r.body.Topics {
		c := &r.body.Topics[i]
		queues := t.topics[c.Name]
		if queues == nil {
			queues = map[string]route.QueueData{}
			t.topics[c.Name] = queues
		}
		if _, listed := queues[r.name]; listed && !changed {
			continue
		}
		queues[r.name] = route.QueueData{
			BrokerName: r.name, ReadQueueNums: c.ReadQueueNums, WriteQueueNums: c.WriteQueueNums, Perm: c.Perm, SysFlag: c.SysFlag,
		}
	}
}

// unregister removes a broker that says goodbye. One that reports from another address by now is left alone.
func (t *tables) unregister(who identity) (removed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.live[who.addr]
	if b == nil || b.name != who.name || b.id != who.id {
		return false
	}
	t.drop(b)
	return true
}

// lost removes the brokers whose latest report came through conn.
func (t *tables) lost(conn *remoting.Conn) []identity {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropIf(func(b *liveBroker) bool { return b.conn == conn })
}

// expired removes the brokers whose last report is older than their time-out and returns the connections that are
// then of no use.
func (t *tables) expired(now time.Time, timeout time.Duration) (gone []identity, conns []*remoting.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone = t.dropIf(func(b *liveBroker) bool {
		limit := timeout
		if b.timeout > 0 {
			limit = b.timeout
		}
		over := now.Sub(b.updated) > limit
		if over && b.conn != nil {
			conns = append(conns, b.conn)
		}
		return over
	})
	return gone, conns
}

// dropIf removes brokers, in the order of their addresses. The caller holds mu.
func (t *tables) dropIf(condition func(*liveBroker) bool) (gone []identity) {
	for _, addr := range slices.Sorted(maps.Keys(t.live)) {
		if b := t.live[addr]; condition(b) {
			t.drop(b)
			gone = append(gone, b.identity)
		}
	}
	return gone
}

// forget removes what is known of one address, but not its name.
func (t *tables) forget(b *liveBroker) {
	delete(t.live, b.addr)
	delete(t.filters, b.addr)
	delete(t.brokers[b.name].Addrs, b.id)
}

// drop removes a broker, and its name everywhere if that was its last address.
func (t *tables) drop(b *liveBroker) {
	t.forget(b)
	d := t.brokers[b.name]
	if len(d.Addrs) > 0 {
		return
	}
	delete(t.brokers, b.name)
	t.leaveCluster(d)
	for topic := range t.topics {
		t.unlist(topic, b.name)
	}
}

func (t *tables) leaveCluster(d *route.BrokerData) {
	delete(t.clusters[d.Cluster], d.BrokerName)
	if len(t.clusters[d.Cluster]) == 0 {
		delete(t.clusters, d.Cluster)
	}
}

// unlist removes a broker name from a topic, and the topic if nobody has it any more.
func (t *tables) unlist(topic, name string) {
	delete(t.topics[topic], name)
	if len(t.topics[topic]) == 0 {
		delete(t.topics, topic)
	}
}

// refresh counts as a report of a broker that is known. It says whether it is.
func (t *tables) refresh(now time.Time, addr string, conn *remoting.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.live[addr]
	if b == nil {
		return false
	}
	b.updated, b.conn = now, conn
	return true
}

// compare says whether a broker should register because its data version is not the stored one, which it returns. If
// it need not, this counts as a report.
func (t *tables) compare(now time.Time, addr string, v route.DataVersion, conn *remoting.Conn) (stored *route.DataVersion, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.live[addr]
	if b == nil {
		return nil, true
	}
	if changed = b.version != v || b.partial; !changed {
		b.updated, b.conn = now, conn
	}
	return new(b.version), changed
}

// setPerm changes the permission of all topics of a broker name and says of how many.
func (t *tables) setPerm(name string, change func(perm int32) int32) (topics int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, queues := range t.topics {
		if q, ok := queues[name]; ok {
			q.Perm = change(q.Perm)
			queues[name] = q
			topics++
		}
	}
	return topics
}

// deleteTopic forgets a topic, in one cluster or, if that is empty, everywhere.
func (t *tables) deleteTopic(topic, cluster string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cluster == "" {
		delete(t.topics, topic)
		return
	}
	for name := range t.clusters[cluster] {
		t.unlist(topic, name)
	}
}

// addTopic lists a topic for brokers that are known; the others are passed over.
func (t *tables) addTopic(topic string, queues []route.QueueData) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range queues {
		if t.brokers[q.BrokerName] == nil {
			continue
		}
		if t.topics[topic] == nil {
			t.topics[strings.Clone(topic)] = map[string]route.QueueData{}
		}
		t.topics[topic][q.BrokerName] = q
	}
}
