package producer

import (
	"slices"
	"sync"
	"time"
)

// LatencyStep says for how long a broker is passed over that took From or longer to answer.
type LatencyStep struct{ From, Avoid time.Duration }

// DefaultLatency is the table of 4.9: from 550 ms on for 30 s, up to 10 min from 15 s on. An error counts as 30 s.
func DefaultLatency() []LatencyStep {
	return []LatencyStep{
		{50 * time.Millisecond, 0},
		{100 * time.Millisecond, 0},
		{550 * time.Millisecond, 30 * time.Second},
		{time.Second, 60 * time.Second},
		{2 * time.Second, 120 * time.Second},
		{3 * time.Second, 180 * time.Second},
		{15 * time.Second, 600 * time.Second},
	}
}

// errorLatency is what a try counts as that had no answer.
const errorLatency = 30 * time.Second

// latencies are the brokers' last latencies and until when each is passed over.
type latencies struct {
	steps []LatencyStep

	mu      sync.Mutex
	brokers map[string]fault
}

type fault struct {
	latency time.Duration
	until   time.Time
}

// note keeps a broker's latency. A short penalty does not end a longer one.
func (l *latencies) note(broker string, latency time.Duration) {
	var avoid time.Duration
	for _, s := range slices.Backward(l.steps) {
		if latency >= s.From {
			avoid = s.Avoid
			break
		}
	}
	until := time.Now().Add(avoid)
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.brokers[broker]; before.until.After(until) {
		until = before.until
	}
	l.brokers[broker] = fault{latency, until}
}

// available says whether a broker is not passed over now.
func (l *latencies) available(broker string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.brokers[broker].until.After(time.Now())
}

// best is the one of the brokers, apart from last if there are others, that is free again first, the faster one of two.
func (l *latencies) best(queues []Queue, last string) (broker string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range queues {
		f, g := l.brokers[q.BrokerName], l.brokers[broker]
		if q.BrokerName == last {
			continue
		}
		if broker == "" || f.until.Before(g.until) || f.until.Equal(g.until) && f.latency < g.latency {
			broker = q.BrokerName
		}
	}
	return broker
}
