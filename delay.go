package rocketstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// The rhythm of the delay service.
const (
	delayIdle   = 500 * time.Millisecond // longest sleep between two looks at the levels
	delayFailed = 10 * time.Second       // pause of a level after a failure (R-D-100)
	delaySave   = 10 * time.Second       // how often its progress is written (R-D-104)
)

// delayLevel is the level that a message asks for, lowered to the highest there is; 0: it is not delayed. Prepared
// messages never are (R-D-101).
func (s *Store) delayLevel(m *message.Message) int {
	text, _ := m.Properties.Get(message.PropertyDelay)
	return s.levelOf(m.Topic, text)
}

// levelOf is the level of the property's text, "" for none.
func (s *Store) levelOf(topic, text string) int {
	if text == "" || topic == recovery.ScheduleTopic {
		return 0
	}
	level, err := strconv.Atoi(text)
	if err != nil || level <= 0 {
		return 0
	}
	return min(level, len(s.derive.Levels))
}

// putDelayed stores a message where it waits: under the schedule topic, with its own topic and queue as properties
// (R-D-099).
func (s *Store) putDelayed(ctx context.Context, m *message.Message, level int) (PutResult, error) {
	waiting := *s.ordinary(m)
	var err error
	waiting.Properties, err = s.withProperties(m.Properties, message.PropertyDelay, strconv.Itoa(level),
		message.PropertyRealTopic, m.Topic, message.PropertyRealQueueID, strconv.Itoa(int(m.QueueID)))
	if err != nil {
		return PutResult{}, err
	}
	waiting.Topic, waiting.QueueID = recovery.ScheduleTopic, int32(level-1)
	queue, err := s.queue(waiting.Topic, waiting.QueueID)
	if err != nil {
		return PutResult{}, err
	}
	return s.append(ctx, &waiting, queue, waits(m))
}

// withProperties is p with names and values set in turn, and ended as the dialect's broker ends a list that it makes.
func (s *Store) withProperties(p message.Properties, namesAndValues ...string) (message.Properties, error) {
	for i := 0; i < len(namesAndValues); i += 2 {
		var err error
		if p, err = p.Set(namesAndValues[i], namesAndValues[i+1]); err != nil {
			return "", err
		}
	}
	if !s.dialect.EndsProperties {
		p = message.Properties(strings.TrimSuffix(string(p), "\x02"))
	}
	return p, nil
}

// PutNow is Put without a delay, whatever the property DELAY says: for a message that was delivered or committed and
// keeps the property (protocol.md E2).
func (s *Store) PutNow(ctx context.Context, m *message.Message) (PutResult, error) {
	if err := s.admit(m); err != nil {
		return PutResult{}, err
	}
	return s.putNow(ctx, m)
}

// PutLoose is Put that does not wait for the device, for a message whose WAIT is false but is not stored, as 4.9 has it.
func (s *Store) PutLoose(ctx context.Context, m *message.Message) (PutResult, error) {
	if err := s.admit(m); err != nil {
		return PutResult{}, err
	}
	if isPrepared(m) || s.delayLevel(m) > 0 {
		return s.Put(ctx, m) // their WAIT is stored
	}
	return s.putTo(ctx, m, false)
}

func (s *Store) putNow(ctx context.Context, m *message.Message) (PutResult, error) {
	return s.putTo(ctx, m, waits(m))
}

// putTo appends a message to its queue.
func (s *Store) putTo(ctx context.Context, m *message.Message, wait bool) (PutResult, error) {
	queue, err := s.queue(m.Topic, m.QueueID)
	if err != nil {
		return PutResult{}, err
	}
	return s.append(ctx, s.ordinary(m), queue, wait)
}

// deliver moves due messages to their own topics until ctx ends.
func (s *Store) deliver(ctx context.Context) {
	pause := make(map[int]int64) // level -> not before, ms
	saved := time.Now()
	timer := time.NewTimer(delayIdle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		next := delayIdle
		for level := range s.derive.Levels {
			rest, err := s.deliverLevel(ctx, level+1, pause)
			if err != nil && ctx.Err() == nil {
				s.opts.Logger.Error("delayed messages not delivered", "level", level+1, "err", err)
				pause[level+1] = s.now() + delayFailed.Milliseconds()
			}
			next = min(next, rest)
		}
		if now := time.Now(); now.Sub(saved) >= delaySave {
			saved = now
			if err := s.saveConfig(); err != nil {
				s.opts.Logger.Error("delay progress not written", "err", err)
			}
		}
		timer.Reset(max(next, time.Millisecond))
	}
}

// deliverLevel delivers what is due of one level, and gives the time until the next one is.
func (s *Store) deliverLevel(ctx context.Context, level int, pause map[int]int64) (time.Duration, error) {
	if s.now() < pause[level] {
		return delayIdle, nil
	}
	q := s.queues.Lookup(recovery.ScheduleTopic, int32(level-1))
	if q == nil {
		return delayIdle, nil
	}
	first, end := q.Bounds()
	at := min(max(s.delayProgress(level), first), end)
	for ; at < end && ctx.Err() == nil; at++ {
		u, err := q.Get(at)
		if err != nil {
			return delayIdle, err
		}
		if u.IsFiller() {
			continue
		}
		rest := u.TagsCode - s.now()
		if longest := s.derive.Levels[level-1].Milliseconds(); rest > longest {
			rest = 0 // the clock was set back, or the code is no time (R-D-105)
		}
		if rest > 0 {
			return min(delayIdle, time.Duration(rest)*time.Millisecond), nil
		}
		if err := s.deliverOne(ctx, q, at, u); err != nil {
			return delayIdle, err
		}
		s.setDelayProgress(level, at+1)
	}
	return delayIdle, nil
}

// deliverOne appends the message of a waiting record to its own topic. One that cannot be read, or names no queue, is
// passed over with a word in the log: it would hold up all behind it.
func (s *Store) deliverOne(ctx context.Context, q *consumequeue.Queue, at int64, u consumequeue.Unit) error {
	offset := u.PhysicalOffset
	r, v, err := s.recordOf(q, at, &u)
	if errors.Is(err, mappedfile.ErrOutOfRange) || errors.Is(err, mappedfile.ErrCorrupt) {
		s.opts.Logger.Warn("delayed message lost", "offset", offset, "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	m := r.Message()
	v.Release()
	topic, _ := m.Properties.Get(message.PropertyRealTopic)
	id, _ := m.Properties.Get(message.PropertyRealQueueID)
	n, err := strconv.ParseInt(id, 10, 32)
	if err != nil || n < 0 || !message.ValidTopic(topic) {
		s.opts.Logger.Warn("delayed message without a queue of its own", "offset", offset, "topic", topic, "queue", id)
		return nil
	}
	m.Topic, m.QueueID = topic, int32(n)
	if err := s.admit(m); err != nil {
		if errors.Is(err, commitlog.ErrMessageIllegal) {
			s.opts.Logger.Warn("delayed message that cannot be stored", "offset", offset, "err", err)
			return nil
		}
		return err
	}
	queue, err := s.queue(m.Topic, m.QueueID)
	if err != nil {
		return err
	}
	// Nobody waits for it: its progress is noted only behind a sync of the log.
	_, err = s.append(ctx, s.ordinary(m), queue, false)
	return err
}

// lowerDelayProgress sets progress that lies behind the end of its level's queue back to it. What it names was lost by the log
// but not by the file, or is of another store: kept, it would pass over the messages to come until the queue reaches it.
func (s *Store) lowerDelayProgress() {
	for level := 1; level <= len(s.derive.Levels); level++ {
		_, end := bounds(s.queues.Lookup(recovery.ScheduleTopic, int32(level-1)))
		if at := s.delayProgress(level); at > end {
			s.opts.Logger.Warn("delay progress lay behind the end of its queue", "level", level, "offset", at, "end", end)
			s.setDelayProgress(level, end)
		}
	}
}

func (s *Store) delayProgress(level int) int64 {
	s.configMu.Lock()
	defer s.configMu.Unlock()
	at, _ := s.delayed.Table.Get(int32(level))
	return at
}

func (s *Store) setDelayProgress(level int, offset int64) {
	s.configMu.Lock()
	defer s.configMu.Unlock()
	s.delayed.Table.Set(int32(level), offset)
}
