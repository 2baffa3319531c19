package namesrv

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/properties"
)

// orderNamespace holds "broker:queues;…" by topic, for topics that are ordered over all brokers.
const orderNamespace = "ORDER_TOPIC_CONFIG"

// kvStore is the key-value configuration: namespaces of keys. Each change is on disk before it is seen.
type kvStore struct {
	path string // "": memory only

	writing sync.Mutex // held while a change is saved; taken before mu
	mu      sync.RWMutex
	table   map[string]map[string]string // by namespace; inner maps are replaced, not changed
}

// openKV loads the file, if there is one.
func openKV(path string, log *slog.Logger) (*kvStore, error) {
	kv := &kvStore{path: path, table: map[string]map[string]string{}}
	if path == "" {
		return kv, nil
	}
	damage, err := loadFile(path, kv.parse)
	if err != nil {
		return nil, fmt.Errorf("key-value configuration: %w", err)
	}
	if damage != nil {
		log.Warn("key-value configuration taken from its .bak", "file", path, "err", damage)
	}
	return kv, nil
}

// parse fills the table from {"configTable":{namespace:{key:value}}}.
func (kv *kvStore) parse(content []byte) error {
	table := map[string]map[string]string{}
	r := fastjson.NewReader(string(content))
	r.Object(func(key string) {
		if key != "configTable" {
			return
		}
		r.Object(func(namespace string) {
			m := map[string]string{}
			r.Object(func(k string) { m[strings.Clone(k)] = r.Clone() })
			table[strings.Clone(namespace)] = m
		})
	})
	if err := r.End(); err != nil {
		return err
	}
	kv.table = table
	return nil
}

// appendKV is the inverse of parse, compact as Java writes it.
func appendKV(b []byte, table map[string]map[string]string) []byte {
	b = append(b, `{"configTable":{`...)
	for i, namespace := range slices.Sorted(maps.Keys(table)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(fastjson.AppendKey(b, namespace), '{')
		for j, k := range slices.Sorted(maps.Keys(table[namespace])) {
			if j > 0 {
				b = append(b, ',')
			}
			b = fastjson.AppendString(fastjson.AppendKey(b, k), table[namespace][k])
		}
		b = append(b, '}')
	}
	return append(b, '}', '}')
}

func (kv *kvStore) get(namespace, key string) (value string, ok bool) {
	kv.mu.RLock()
	defer kv.mu.RUnlock()
	value, ok = kv.table[namespace][key]
	return value, ok
}

// list returns a namespace, nil if there is none. It must not be changed.
func (kv *kvStore) list(namespace string) map[string]string {
	kv.mu.RLock()
	defer kv.mu.RUnlock()
	return kv.table[namespace]
}

func (kv *kvStore) put(namespace, key, value string) error {
	return kv.change(namespace, func(m map[string]string) bool {
		old, ok := m[key]
		m[strings.Clone(key)] = strings.Clone(value)
		return !ok || old != value
	})
}

func (kv *kvStore) delete(namespace, key string) error {
	return kv.change(namespace, func(m map[string]string) bool {
		_, ok := m[key]
		delete(m, key)
		return ok
	})
}

// change edits a copy of one namespace, saves the whole if edit says that something changed, and then shows it.
func (kv *kvStore) change(namespace string, edit func(m map[string]string) bool) error {
	kv.writing.Lock()
	defer kv.writing.Unlock()
	m := maps.Clone(kv.list(namespace))
	if m == nil {
		m = map[string]string{}
	}
	if !edit(m) {
		return nil
	}
	next := maps.Clone(kv.table) // only this method changes it, under writing
	next[strings.Clone(namespace)] = m
	if kv.path != "" {
		if err := properties.SaveFile(kv.path, appendKV(nil, next)); err != nil {
			return fmt.Errorf("key-value configuration: %w", err)
		}
	}
	kv.mu.Lock()
	kv.table = next
	kv.mu.Unlock()
	return nil
}
