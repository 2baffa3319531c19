package namesrv

import (
	"log/slog"
	"maps"
	"slices"
)

const levelDebug = slog.LevelDebug

// print writes each table's rows to the log at debug level, sorted.
func (t *tables) print(log *slog.Logger) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, topic := range slices.Sorted(maps.Keys(t.topics)) {
		for _, name := range slices.Sorted(maps.Keys(t.topics[topic])) {
			q := t.topics[topic][name]
			log.Debug("topic table", "topic", topic, "broker", name, "read", q.ReadQueueNums, "write", q.WriteQueueNums, "perm", q.Perm)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.brokers)) {
		log.Debug("broker table", "broker", name, "cluster", t.brokers[name].Cluster, "addrs", t.brokers[name].Addrs)
	}
	for _, name := range slices.Sorted(maps.Keys(t.clusters)) {
		log.Debug("cluster table", "cluster", name, "brokers", slices.Sorted(maps.Keys(t.clusters[name])))
	}
	for _, addr := range slices.Sorted(maps.Keys(t.live)) {
		b := t.live[addr]
		log.Debug("live table", "addr", addr, "broker", b.name, "id", b.id, "updated", b.updated, "counter", b.version.Counter)
	}
	for _, addr := range slices.Sorted(maps.Keys(t.filters)) {
		log.Debug("filter table", "addr", addr, "servers", t.filters[addr])
	}
}

// print writes the keys to the log at debug level; values may be secret.
func (kv *kvStore) print(log *slog.Logger) {
	kv.mu.RLock()
	defer kv.mu.RUnlock()
	for _, namespace := range slices.Sorted(maps.Keys(kv.table)) {
		log.Debug("key-value table", "namespace", namespace, "keys", slices.Sorted(maps.Keys(kv.table[namespace])))
	}
}
