package remoting

import "sync"

// Serving counts the calls that serve, until the end. The zero value has none.
type Serving struct {
	mu    sync.Mutex
	calls int
	ended bool
}

// Enter counts a call, unless the end has come.
func (s *Serving) Enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.calls++
	}
	return !s.ended
}

// Leave takes back an Enter that was true.
func (s *Serving) Leave() {
	s.mu.Lock()
	s.calls--
	s.mu.Unlock()
}

// End lets nobody enter any more; first says that it did not come before.
func (s *Serving) End() (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, s.ended = !s.ended, true
	return first
}

// Ended says whether the end has come.
func (s *Serving) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Ready says whether a call is under way and the end has not come.
func (s *Serving) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls > 0 && !s.ended
}
