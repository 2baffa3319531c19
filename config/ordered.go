package config

import (
	"iter"
	"slices"
)

// Map is a map that keeps the order in which its keys came: that of the file, and new ones at the end. The zero value is
// empty.
type Map[K comparable, V any] struct {
	keys   []K
	values map[K]V
}

// Len is the number of keys.
func (m *Map[K, V]) Len() int { return len(m.keys) }

// Get is the value of a key.
func (m *Map[K, V]) Get(key K) (V, bool) {
	v, ok := m.values[key]
	return v, ok
}

// Set replaces the value of a key, or adds the key at the end.
func (m *Map[K, V]) Set(key K, v V) {
	if _, ok := m.values[key]; !ok {
		m.keys = append(m.keys, key)
	}
	if m.values == nil {
		m.values = make(map[K]V)
	}
	m.values[key] = v
}

// Delete takes a key out; one that is not there is fine.
func (m *Map[K, V]) Delete(key K) {
	if _, ok := m.values[key]; ok {
		delete(m.values, key)
		m.keys = slices.DeleteFunc(m.keys, func(k K) bool { return k == key })
	}
}

// All yields the entries in order. The map must not change meanwhile.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, key := range m.keys {
			if !yield(key, m.values[key]) {
				return
			}
		}
	}
}
