package namesrv

import (
	"maps"
	"slices"

	"github.com/rocketstore/rocketstore/internal/route"
)

// What is returned here shares nothing with the tables.

// route returns where a topic is, nil when no known broker has it.
func (t *tables) route(topic string) *route.Topic {
	t.mu.RLock()
	defer t.mu.RUnlock()
	queues := t.topics[topic]
	if len(queues) == 0 {
		return nil
	}
	r := &route.Topic{FilterServers: map[string][]string{}}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		r.Queues = append(r.Queues, queues[name])
		d := t.brokers[name]
		r.Brokers = append(r.Brokers, d.Clone())
		for _, addr := range d.Addrs {
			if servers := t.filters[addr]; len(servers) > 0 {
				r.FilterServers[addr] = slices.Clone(servers)
			}
		}
	}
	return r
}

// cluster returns all brokers and clusters.
func (t *tables) cluster() *route.Cluster {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c := &route.Cluster{Brokers: map[string]route.BrokerData{}, Clusters: map[string][]string{}}
	for name, d := range t.brokers {
		c.Brokers[name] = d.Clone()
	}
	for name, members := range t.clusters {
		c.Clusters[name] = slices.Sorted(maps.Keys(members))
	}
	return c
}

// broker returns the addresses of a broker name, nil when it is not known in that cluster.
func (t *tables) broker(cluster, name string) *route.BrokerData {
	t.mu.RLock()
	defer t.mu.RUnlock()
	d := t.brokers[name]
	if d == nil || d.Cluster != cluster {
		return nil
	}
	c := d.Clone()
	return &c
}

// topicsWhere returns the sorted names of the topics that have a broker for which match holds.
func (t *tables) topicsWhere(match func(q route.QueueData) bool) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	names := []string{}
	for topic, queues := range t.topics {
		for _, q := range queues {
			if match(q) {
				names = append(names, topic)
				break
			}
		}
	}
	slices.Sort(names)
	return names
}

// topicsOf returns the topics of a cluster's brokers.
func (t *tables) topicsOf(cluster string) []string {
	t.mu.RLock()
	members := maps.Clone(t.clusters[cluster])
	t.mu.RUnlock()
	return t.topicsWhere(func(q route.QueueData) bool {
		_, ok := members[q.BrokerName]
		return ok
	})
}

// systemTopics returns the names of clusters and brokers, each of which is a topic too, and the address of a broker.
func (t *tables) systemTopics() route.TopicList {
	t.mu.RLock()
	defer t.mu.RUnlock()
	l := route.TopicList{Topics: slices.Sorted(maps.Keys(t.clusters))}
	for _, name := range slices.Sorted(maps.Keys(t.brokers)) {
		l.Topics = append(l.Topics, name)
		if l.BrokerAddr == "" {
			l.BrokerAddr = t.brokers[name].SelectAddr()
		}
	}
	return l
}

// sizes are the lengths of the tables.
func (t *tables) sizes() (topics, brokers, clusters, live int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.topics), len(t.brokers), len(t.clusters), len(t.live)
}
