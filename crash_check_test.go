package rocketstore_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// check compares all that a store shows with the model of its log.
func (m *model) check(s *rocketstore.Store) error {
	for _, check := range []func(*rocketstore.Store) error{m.checkQueues, m.checkKeys, m.checkTransactions, m.checkIDs} {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

// checkQueues wants each queue to hold its records, once, in order and without a gap.
func (m *model) checkQueues(s *rocketstore.Store) error {
	want := m.queues()
	for q, err := range s.Queues(context.Background()) {
		if err != nil {
			return err
		}
		k := queueKey{q.Topic, q.QueueID}
		if n := int64(len(want[k])); q.Max != n || q.Min != 0 {
			return fmt.Errorf("queue %v holds %d to %d, want 0 to %d", k, q.Min, q.Max, n)
		}
		if err := sameQueue(s, k, want[k]); err != nil {
			return err
		}
		delete(want, k)
	}
	for k, records := range want {
		return fmt.Errorf("queue %v with %d records is missing", k, len(records))
	}
	return nil
}

func sameQueue(s *rocketstore.Store, k queueKey, want []*commitlog.Record) error {
	at := 0
	for r, err := range s.Messages(k.topic, k.id, 0) {
		if err != nil {
			return fmt.Errorf("queue %v at %d: %w", k, at, err)
		}
		if at >= len(want) || !reflect.DeepEqual(keep(&r), *want[at]) || r.QueueOffset != int64(at) {
			return fmt.Errorf("queue %v at %d: record at %d with queue offset %d is not the one that was put", k, at, r.PhysicalOffset, r.QueueOffset)
		}
		at++
	}
	if at != len(want) {
		return fmt.Errorf("queue %v: %d of %d records read", k, at, len(want))
	}
	return sameTags(s, k, want)
}

// sameTags wants the tags codes of the units to be those of the records.
func sameTags(s *rocketstore.Store, k queueKey, want []*commitlog.Record) error {
	if k.topic == recovery.ScheduleTopic || len(want) == 0 {
		return nil
	}
	at := 0
	res, err := s.Get(context.Background(), rocketstore.GetRequest{Topic: k.topic, QueueID: k.id, Max: len(want), MaxBytes: 1 << 30, Filter: func(code int64) bool {
		tag, _ := message.Properties(want[min(at, len(want)-1)].Properties).Get(message.PropertyTags)
		at++
		return code == message.TagsCode(tag)
	}})
	if err != nil {
		return err
	}
	defer res.Release()
	if len(res.Records) != len(want) {
		return fmt.Errorf("queue %v: %d of %d units have the right tags code", k, len(res.Records), len(want))
	}
	return nil
}

// checkKeys wants each record to be found by each of its keys, once, and nothing else.
func (m *model) checkKeys(s *rocketstore.Store) error {
	for k, want := range m.keys() {
		if m.noIndex {
			want = nil
		}
		var got []int64
		for r, err := range s.Query(context.Background(), rocketstore.QueryRequest{Topic: k[0], Key: k[1]}) {
			if err != nil {
				return fmt.Errorf("key %v: %w", k, err)
			}
			got = append(got, r.PhysicalOffset)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("key %v finds the records at %v, want %v", k, got, want)
		}
	}
	return nil
}

// checkTransactions wants what is open to be what the log says, under the original numbers (R-B-57).
func (m *model) checkTransactions(s *rocketstore.Store) error {
	want, next := m.open()
	var got []transaction
	for tx, err := range s.OpenTransactions(context.Background()) {
		if err != nil {
			return err
		}
		got = append(got, transaction{tx.Number, tx.PhysicalOffset})
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("open transactions %v, the log says %v", got, want)
	}
	info, ok := s.StateTableInfo()
	if !ok {
		return nil
	}
	events := int64(0)
	for i := range m.records {
		if m.records[i].SysFlag.Transaction() != 0 {
			events++
		}
	}
	if info.Next != next || info.RedoUnits != events {
		return fmt.Errorf("state table ends at %d, redo log has %d units; the log says %d and %d", info.Next, info.RedoUnits, next, events)
	}
	return nil
}

// checkIDs wants each record to be found by its offset message id.
func (m *model) checkIDs(s *rocketstore.Store) error {
	for i := range m.records {
		r := &m.records[i]
		found, at, err := s.Lookup(r.ID())
		if err != nil {
			return fmt.Errorf("id of the record at %d: %w", r.PhysicalOffset, err)
		}
		if at != r.PhysicalOffset || string(found.Body) != string(r.Body) {
			return fmt.Errorf("id of the record at %d finds the one at %d", r.PhysicalOffset, at)
		}
	}
	return nil
}
