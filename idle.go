package rocketstore

import (
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// loadIdle reads the note of queues whose files deletion removed.
func (s *Store) loadIdle() error {
	idle, damaged, err := config.LoadIdleQueues[mappedfile.File](s.fsys)
	if err != nil {
		return err
	}
	if damaged != nil {
		s.notices = append(s.notices, recovery.Warning{
			Kind: recovery.KindIdleQueues, File: config.IdleQueuesFile, Text: damaged.Error() + "; queues without files begin at 0 again",
		})
	}
	s.noted = idle
	return nil
}

// resumeIdle lets the queues whose files deletion removed go on where they ended. One that has files again knows by itself.
func (s *Store) resumeIdle() error {
	for key, at := range s.noted {
		i := strings.LastIndexByte(key, '@')
		id, err := strconv.ParseInt(key[i+1:], 10, 32)
		if i < 0 || err != nil {
			continue
		}
		q, err := s.queues.Ensure(key[:i], int32(id))
		if err != nil || len(q.Segments()) > 0 {
			continue
		}
		if err := q.Resume(at); err != nil {
			return err
		}
		s.retainer.idle[key] = at
	}
	return nil
}

// forgetIdle takes queues that have files again, durably by now, out of the note.
func (s *Store) forgetIdle() error {
	s.retainer.mu.Lock()
	defer s.retainer.mu.Unlock()
	changed := false
	for q := range s.queues.All() {
		key := config.IdleKey(q.Topic(), q.ID())
		if _, ok := s.retainer.idle[key]; ok && len(q.Segments()) > 0 {
			delete(s.retainer.idle, key)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return config.SaveIdleQueues[mappedfile.File](s.fsys, s.retainer.idle)
}
