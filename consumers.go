package rocketstore

import (
	"maps"

	"github.com/rocketstore/rocketstore/config"
)

// ConsumerProgress is how far a group has read one queue.
type ConsumerProgress struct {
	Topic, Group string
	QueueID      int32
	Offset       int64 // the next queue offset that it reads
}

// ConsumerOffsets are a copy of all that is stored, in the order of config/consumerOffset.json. The progress of the store's own
// transaction service is among them.
func (s *Store) ConsumerOffsets() []ConsumerProgress {
	s.configMu.Lock()
	defer s.configMu.Unlock()
	var all []ConsumerProgress
	for key, offsets := range s.offsets.Table.All() {
		topic, group := config.SplitKey(key)
		for id, offset := range offsets.All() {
			all = append(all, ConsumerProgress{topic, group, id, offset})
		}
	}
	return all
}

// ForgetConsumerOffsets takes out what is stored for the topics and groups that forget chooses, never that of the transaction
// service. It reaches the file as SetConsumerOffset does.
func (s *Store) ForgetConsumerOffsets(forget func(topic, group string) bool) {
	s.configMu.Lock()
	defer s.configMu.Unlock()
	var keys []string
	for key := range s.offsets.Table.All() {
		if topic, group := config.SplitKey(key); group != TransactionGroup && forget(topic, group) {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		s.offsets.Table.Delete(key)
	}
}

// DelayOffsets are a copy of how far each delay level, from 1, was delivered: queue offsets of the schedule topic.
func (s *Store) DelayOffsets() map[int32]int64 {
	s.configMu.Lock()
	defer s.configMu.Unlock()
	return maps.Collect(s.delayed.Table.All())
}

// DiskUse is how much of the file system is in use, from 0 to 1. The error says that it is not known, as on other systems
// than Linux.
func (s *Store) DiskUse() (float64, error) {
	u, err := s.usage()
	return u.Ratio(), err
}
