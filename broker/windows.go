package broker

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// flowKey says whose messages are counted: those sent to a topic, those of a topic that a group pulled, or, with back, sent back.
type flowKey struct {
	topic, group string // group "": of producers
	back         bool
}

// flow counts messages, and remembers the counts of the last minute, hour and day.
type flow struct {
	messages, bytes, calls atomic.Int64

	// The counts at regular times, oldest first; guarded by the table's lock.
	minute, hour, day []flowSample
}

type flowSample struct {
	at                     time.Time
	messages, bytes, calls int64
}

func newFlow(now time.Time) *flow {
	f, zero := &flow{}, flowSample{at: now}
	f.minute, f.hour, f.day = append(f.minute, zero), append(f.hour, zero), append(f.day, zero)
	return f
}

func (f *flow) add(messages, bytes int64) {
	f.messages.Add(messages)
	f.bytes.Add(bytes)
	f.calls.Add(1)
}

func (f *flow) now(at time.Time) flowSample {
	return flowSample{at, f.messages.Load(), f.bytes.Load(), f.calls.Load()}
}

// Looks at the counts, as the original takes them: each ten seconds for the minute, each ten minutes for the hour, each hour for
// the day. A window has one sample more than it has steps.
const (
	flowLook      = 10 * time.Second
	minuteSamples = 7
	hourEvery     = 60 // looks
	hourSamples   = 7
	dayEvery      = 360
	daySamples    = 25
)

// flows are all flows that had a message since the start.
type flows struct {
	mu     sync.RWMutex
	byKey  map[flowKey]*flow
	looks  int
	whole  *flow // of all producers
	pulled *flow // of all consumers
}

func newFlows() *flows {
	now := time.Now()
	return &flows{byKey: map[flowKey]*flow{}, whole: newFlow(now), pulled: newFlow(now)}
}

// of gives a flow, which is made with its first message.
func (s *flows) of(key flowKey) *flow {
	s.mu.RLock()
	f := s.byKey[key]
	s.mu.RUnlock()
	if f != nil {
		return f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f = s.byKey[key]; f == nil {
		f = newFlow(time.Now())
		key.topic, key.group = strings.Clone(key.topic), strings.Clone(key.group) // they may be parts of a request
		s.byKey[key] = f
	}
	return f
}

// forget drops the flows of a topic or a group that is no more.
func (s *flows) forget(of func(key flowKey) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.byKey {
		if of(key) {
			delete(s.byKey, key)
		}
	}
}

// look notes the counts of now.
func (s *flows) look(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	note := func(f *flow) {
		sample := f.now(now)
		f.minute = slide(f.minute, sample, minuteSamples)
		if s.looks%hourEvery == 0 {
			f.hour = slide(f.hour, sample, hourSamples)
		}
		if s.looks%dayEvery == 0 {
			f.day = slide(f.day, sample, daySamples)
		}
	}
	note(s.whole)
	note(s.pulled)
	for _, f := range s.byKey {
		note(f)
	}
}

func slide(list []flowSample, next flowSample, most int) []flowSample {
	if len(list) == most {
		list = append(list[:0], list[1:]...)
	}
	return append(list, next)
}

// windows are the first samples of the three windows of a flow, and its counts of now.
func (s *flows) windows(f *flow, now time.Time) (minute, hour, day, last flowSample) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return f.minute[0], f.hour[0], f.day[0], f.now(now)
}

// perSecond is how many messages a group pulled of a topic a second in the last minute.
func (s *flows) perSecond(topic, group string) float64 {
	s.mu.RLock()
	f := s.byKey[flowKey{topic: topic, group: group}]
	s.mu.RUnlock()
	if f == nil {
		return 0
	}
	first, _, _, last := s.windows(f, time.Now())
	return rate(last.messages-first.messages, first.at, last.at)
}

// rate is a count a second; 0 for no time.
func rate(n int64, from, to time.Time) float64 {
	if took := to.Sub(from).Seconds(); took > 0 {
		return float64(n) / took
	}
	return 0
}
