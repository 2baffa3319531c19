package rocketstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// wanted is a record that an operation is to bring into the log.
type wanted struct {
	topic    string
	queue    int32
	body     string
	props    map[string]string
	tx       message.SysFlag
	prepared int64 // PreparedTransactionOffset
	loose    bool  // of a record that the store makes up, only the topic counts
}

// fits says what is wrong with a record, if it is not the one wanted.
func (w *wanted) fits(r *commitlog.Record) error {
	switch {
	case string(r.Topic) != w.topic:
		return fmt.Errorf("topic %s, want %s", r.Topic, w.topic)
	case w.loose:
		return nil
	case r.QueueID != w.queue:
		return fmt.Errorf("queue %d, want %d", r.QueueID, w.queue)
	case string(r.Body) != w.body:
		return fmt.Errorf("body %.40q, want %.40q", r.Body, w.body)
	case r.SysFlag.Transaction() != w.tx:
		return fmt.Errorf("flags %x, want transaction %x", r.SysFlag, w.tx)
	case r.PreparedTransactionOffset != w.prepared:
		return fmt.Errorf("prepared offset %d, want %d", r.PreparedTransactionOffset, w.prepared)
	case !maps.Equal(message.Properties(r.Properties).Map(), w.props):
		return fmt.Errorf("properties %q, want %v", r.Properties, w.props)
	}
	return nil
}

// model is what the log must hold: it is built from what was asked of the store and what the store answered.
type model struct {
	dialect *dialect.Dialect
	table   bool // the engine is the state table
	noIndex bool
	records []commitlog.Record
	doing   []wanted // what was put but not seen in the log yet, in order; the last of them may not have arrived
	durable int      // how many of records and doing were acknowledged as durable
	time    bool     // time is passing: behind them delayed messages may be delivered
}

// keep copies a record out of the log.
func keep(r *commitlog.Record) commitlog.Record {
	c := *r
	c.Body, c.Topic, c.Properties = bytes.Clone(r.Body), bytes.Clone(r.Topic), bytes.Clone(r.Properties)
	return c
}

// end is where the records end, blanks not counted.
func (m *model) end() int64 {
	if len(m.records) == 0 {
		return 0
	}
	last := m.records[len(m.records)-1]
	return last.PhysicalOffset + int64(last.Size)
}

// all is how many records the log has if all that was asked for has arrived.
func (m *model) all() int { return len(m.records) + len(m.doing) }

// grow takes up records that the running store has added to its log.
func (m *model) grow(more []commitlog.Record) error {
	log := append(slices.Clip(m.records), more...)
	seen, err := m.added(log)
	m.records, m.doing = log, m.doing[seen:]
	return err
}

// adopt compares a recovered log with the model: it must begin with everything acknowledged, hold nothing but what was
// put, whole and in order, and then becomes the model.
func (m *model) adopt(log []commitlog.Record) error {
	for i := range min(len(log), len(m.records)) {
		if !reflect.DeepEqual(log[i], m.records[i]) {
			return fmt.Errorf("record %d of the log is %+v, was put as %+v", i, log[i], m.records[i])
		}
	}
	if _, err := m.added(log); err != nil {
		return err
	}
	if len(log) < m.durable {
		return fmt.Errorf("acknowledged records lost: %d kept, %d were durable", len(log), m.durable)
	}
	m.records, m.doing, m.durable, m.time = log, nil, len(log), false
	return nil
}

// added judges the records behind those that the model knows, and says how many of those that were being put it found.
func (m *model) added(log []commitlog.Record) (seen int, err error) {
	for i := len(m.records); i < len(log); i++ {
		err := errors.New("nobody put it")
		if seen < len(m.doing) {
			err = m.doing[seen].fits(&log[i])
		}
		switch {
		case err == nil:
			seen++
		case m.time && delivered(log, &log[i]) == nil:
		default:
			return seen, fmt.Errorf("record %d of the log, %s at %d: %w", i, log[i].Topic, log[i].PhysicalOffset, err)
		}
	}
	return seen, nil
}

// delivered says whether r is the delivery of a message that waits in the log.
func delivered(log []commitlog.Record, r *commitlog.Record) error {
	for i := range log {
		if waits, ok := deliveryOf(&log[i]); ok && waits.fits(r) == nil {
			return nil
		}
	}
	return fmt.Errorf("it is no delivery of a delayed message: %s %.40q", r.Topic, r.Body)
}

// deliveryOf is what a waiting message becomes.
func deliveryOf(r *commitlog.Record) (wanted, bool) {
	if string(r.Topic) != recovery.ScheduleTopic {
		return wanted{}, false
	}
	p := message.Properties(r.Properties).Map()
	id, _ := strconv.Atoi(p[message.PropertyRealQueueID])
	return wanted{topic: p[message.PropertyRealTopic], queue: int32(id), body: string(r.Body), props: p}, true
}

// queueKey names a queue.
type queueKey struct {
	topic string
	id    int32
}

// queues gives the records of each queue in order.
func (m *model) queues() map[queueKey][]*commitlog.Record {
	queues := make(map[queueKey][]*commitlog.Record)
	for i := range m.records {
		if r := &m.records[i]; r.SysFlag.Queued() {
			k := queueKey{string(r.Topic), r.QueueID}
			queues[k] = append(queues[k], r)
		}
	}
	return queues
}

// keys gives the physical offsets of the records that have a key, newest first, by topic and key.
func (m *model) keys() map[[2]string][]int64 {
	keys := make(map[[2]string][]int64)
	for i := range slices.Backward(m.records) {
		r := &m.records[i]
		if f := r.SysFlag.Transaction(); f == message.FlagRollback || f == message.FlagCommit && !m.dialect.IndexesCommits {
			continue
		}
		p := message.Properties(r.Properties)
		words := map[string]bool{}
		if v, ok := p.Get(message.PropertyKeys); ok {
			for w := range message.Keys(v) {
				words[w] = true
			}
		}
		if v, ok := p.Get(message.PropertyUniqueKey); ok && m.dialect.IndexesUniqueKey {
			words[v] = true
		}
		for w := range words {
			k := [2]string{string(r.Topic), w}
			keys[k] = append(keys[k], r.PhysicalOffset)
		}
	}
	return keys
}

// transaction is one that is open: its number and the physical offset of its prepared or half message.
type transaction struct {
	Number, PhysicalOffset int64
}

// open gives what the log says is open, in the order in which it was prepared, and what the next number is.
func (m *model) open() (open []transaction, next int64) {
	ended := map[int64]bool{} // by physical offset in the state table, by number in the half topic
	for i := range m.records {
		r := &m.records[i]
		tx := r.SysFlag.Transaction()
		switch {
		case m.table && (tx == message.FlagCommit || tx == message.FlagRollback):
			ended[r.PreparedTransactionOffset] = true
		case !m.table && string(r.Topic) == rocketstore.OpTopicName:
			for word := range bytes.SplitSeq(r.Body, []byte{','}) {
				if n, err := strconv.ParseInt(string(word), 10, 64); err == nil {
					ended[n] = true
				}
			}
		}
	}
	for i := range m.records {
		r := &m.records[i]
		id := r.QueueOffset
		if m.table {
			id = r.PhysicalOffset
		}
		if !m.begins(r) {
			continue
		}
		next = max(next, r.QueueOffset+1)
		if !ended[id] {
			open = append(open, transaction{r.QueueOffset, r.PhysicalOffset})
		}
	}
	return open, next
}

// begins says whether a record is a prepared or half message.
func (m *model) begins(r *commitlog.Record) bool {
	if m.table {
		return r.SysFlag.Transaction() == message.FlagPrepared
	}
	return string(r.Topic) == rocketstore.HalfTopicName
}
