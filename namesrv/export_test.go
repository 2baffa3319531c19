package namesrv

import (
	"fmt"
	"maps"
	"slices"
)

// Inconsistencies says what contradicts what in the tables of s.
func (s *Server) Inconsistencies() (wrong []string) {
	t := s.tables
	t.mu.RLock()
	defer t.mu.RUnlock()
	report := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for topic, queues := range t.topics {
		if len(queues) == 0 {
			report("topic %s has no broker", topic)
		}
		for name, q := range queues {
			if t.brokers[name] == nil || q.BrokerName != name {
				report("topic %s is listed for %s, which is unknown", topic, name)
			}
		}
	}
	for name, d := range t.brokers {
		if len(d.Addrs) == 0 || d.BrokerName != name {
			report("broker %s has no address", name)
		}
		if _, ok := t.clusters[d.Cluster][name]; !ok {
			report("broker %s is not in its cluster %s", name, d.Cluster)
		}
		for id, addr := range d.Addrs {
			if b := t.live[addr]; b == nil || b.name != name || b.id != id {
				report("broker %s id %d at %s has no live entry", name, id, addr)
			}
		}
	}
	for cluster, members := range t.clusters {
		if len(members) == 0 {
			report("cluster %s is empty", cluster)
		}
		for name := range members {
			if d := t.brokers[name]; d == nil || d.Cluster != cluster {
				report("cluster %s has %s, which is elsewhere", cluster, name)
			}
		}
	}
	for addr, b := range t.live {
		if d := t.brokers[b.name]; b.addr != addr || d == nil || d.Addrs[b.id] != addr {
			report("live entry of %s has no broker", addr)
		}
	}
	for addr := range t.filters {
		if t.live[addr] == nil {
			report("filter servers of %s, which is not live", addr)
		}
	}
	slices.Sort(wrong)
	return wrong
}

// LiveAddrs returns the addresses of the live table, sorted.
func (s *Server) LiveAddrs() []string {
	s.tables.mu.RLock()
	defer s.tables.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.tables.live))
}
