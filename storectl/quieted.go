package main

import (
	"sync"
	"time"
)

// quieted keeps what is said again and again from being said each time. Many goroutines may use it.
type quieted struct {
	mu   sync.Mutex
	said map[string]saying // by text
}

// saying is when a text may be said again, and how long it then rests.
type saying struct {
	next time.Time
	rest time.Duration
}

const (
	firstRest = 30 * time.Second
	longRest  = 30 * time.Minute
	// maxSaid bounds the texts that are known: they may hold ports and numbers that never come again.
	maxSaid = 64
)

// due says whether a text is to be said now: at first, and then at intervals that double from firstRest to longRest.
func (q *quieted) due(text string, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	s, known := q.said[text]
	if known && now.Before(s.next) {
		return false
	}
	if q.said == nil || !known && len(q.said) >= maxSaid {
		q.said = map[string]saying{}
	}
	s.rest = min(max(2*s.rest, firstRest), longRest)
	s.next = now.Add(s.rest)
	q.said[text] = s
	return true
}

// forget has everything said again: things went well meanwhile.
func (q *quieted) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.said)
}
