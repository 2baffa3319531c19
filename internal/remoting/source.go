package remoting

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// source reads from the network under the deadlines of a connection: between frames the idle time since something
// went either way, within a frame a fixed time from its start.
type source struct {
	nc       net.Conn
	opts     *connOptions
	born     time.Time // with its monotonic reading, so that a change of the clock closes nothing
	flush    func()    // called before each read of the network, which may wait
	frame    bool      // a frame has begun
	deadline time.Time // of that frame; zero until more of it has to be read
	armed    time.Time // the deadline that the connection has; zero: none
	rested   bool      // nothing had been read or written for a while when the last read ended
	stopping atomic.Bool
	last     atomic.Int64 // when something was read or written, nanoseconds since born
	end      atomic.Int64 // when reading ends whatever comes, nanoseconds since born; 0: not
}

func (s *source) touch()  { s.last.Store(int64(time.Since(s.born))) }
func (s *source) await()  { s.frame = false }
func (s *source) expect() { s.frame, s.deadline = true, time.Time{} }

// stop ends the reading, now and for ever.
func (s *source) stop() {
	s.stopping.Store(true)
	_ = s.nc.SetReadDeadline(time.Unix(1, 0)) // fails only when it is closed already
}

// hurry ends the reading after a while, or when nothing more is there.
func (s *source) hurry() {
	s.end.Store(int64(time.Since(s.born) + lingering))
	_ = s.nc.SetReadDeadline(s.born.Add(time.Duration(s.end.Load()))) // fails only when it is closed already
}

// rest is how long nothing goes over a connection that is done with what it had to say for now.
const rest = time.Second

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	s.flush()
	for {
		end := s.end.Load()
		until := s.until()
		if end != 0 {
			until = s.born.Add(time.Duration(end))
		}
		// One that comes too early only asks again, so that not each read has to set one.
		if end != 0 || s.armed.IsZero() || s.armed.After(until) {
			if err := s.nc.SetReadDeadline(until); err != nil {
				return 0, err
			}
			s.armed = until
		}
		if s.stopping.Load() {
			return 0, errDraining
		}
		if s.end.Load() != end {
			continue // its deadline was just overwritten
		}
		n, err := s.nc.Read(p)
		if n > 0 {
			before := s.last.Load()
			s.touch()
			s.rested = s.last.Load()-before > int64(rest)
			return n, nil
		}
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if late {
			s.armed = time.Time{}
		}
		switch {
		case s.stopping.Load():
			return 0, errDraining
		case s.end.Load() != end:
		case end != 0 && late:
			return 0, fmt.Errorf("%w: nothing can be written", ErrClosed)
		case !late:
			return 0, noProgress(err)
		case s.until().After(time.Now()): // something went the other way, or the deadline was an older one
		case s.frame:
			return 0, fmt.Errorf("%w: a frame did not end within %v", ErrSlow, s.opts.frameTimeout)
		default:
			return 0, fmt.Errorf("%w: %v", ErrIdle, s.opts.idle)
		}
	}
}

func noProgress(err error) error {
	if err == nil {
		return io.ErrNoProgress
	}
	return err
}

// until is the deadline of the next read.
func (s *source) until() time.Time {
	if !s.frame {
		return s.born.Add(time.Duration(s.last.Load()) + s.opts.idle)
	}
	if s.deadline.IsZero() {
		s.deadline = time.Now().Add(s.opts.frameTimeout)
	}
	return s.deadline
}
