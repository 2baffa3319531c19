package producer

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rocketstore/rocketstore/message"
)

// Selector chooses the queue of a message. The queues are those that may be written, by broker name and queue id; the list is the
// selector's own. An error, or a queue that is not in the list, fails the send.
type Selector func(queues []Queue, m *message.Message, arg any) (Queue, error)

// ByKey sends all messages of one arg to one queue: an integer counts by its value, all else by its text.
func ByKey(queues []Queue, _ *message.Message, arg any) (Queue, error) {
	var n uint64
	switch id := arg.(type) {
	case int:
		n = uint64(abs(int64(id)))
	case int32:
		n = uint64(abs(int64(id)))
	case int64:
		n = uint64(abs(id))
	default:
		h := fnv.New64a()
		_, _ = fmt.Fprint(h, arg) // a hash takes all
		n = h.Sum64()
	}
	return queues[n%uint64(len(queues))], nil
}

// abs is the absolute value; that of the smallest number, which has none, is 0.
func abs(n int64) int64 {
	if n < 0 {
		n = -n
	}
	return max(n, 0)
}

// ByRandom spreads messages without regard to their order.
func ByRandom(queues []Queue, _ *message.Message, _ any) (Queue, error) {
	return queues[rand.IntN(len(queues))], nil
}

// rounds are the round-robin positions by topic.
type rounds struct{ table sync.Map } // *atomic.Uint64

// of is a topic's position; it begins anywhere, so that many producers do not begin with the same queue.
func (r *rounds) of(topic string) *atomic.Uint64 {
	if n, ok := r.table.Load(topic); ok {
		return n.(*atomic.Uint64)
	}
	start := new(atomic.Uint64)
	start.Store(uint64(rand.Uint32()))
	n, _ := r.table.LoadOrStore(topic, start)
	return n.(*atomic.Uint64)
}

// next is the next queue in turn, of another broker than the last one if there is one, and with a latency table of one that is not
// passed over.
func (r *rounds) next(topic string, queues []Queue, last string, l *latencies) Queue {
	position := r.of(topic)
	step := func() Queue { return queues[position.Add(1)%uint64(len(queues))] }
	if last == "" && l == nil {
		return step()
	}
	for range queues {
		if q := step(); q.BrokerName != last && (l == nil || l.available(q.BrokerName)) {
			return q
		}
	}
	if l == nil {
		return step()
	}
	best := l.best(queues, last)
	for range queues {
		if q := step(); q.BrokerName == best {
			return q
		}
	}
	return step()
}

// selected asks a selector.
func selected(sel Selector, queues []Queue, m *message.Message, arg any) (q Queue, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: panic: %v", ErrSelector, v)
		}
	}()
	q, err = sel(slices.Clone(queues), m, arg)
	if err != nil {
		return q, fmt.Errorf("%w: %w", ErrSelector, err)
	}
	if !slices.Contains(queues, q) {
		return q, fmt.Errorf("%w: %v is not a queue of the topic", ErrSelector, q)
	}
	return q, nil
}
