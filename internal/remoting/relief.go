package remoting

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// relief looks after handlers that work on a connection's reading goroutine. When one takes long, for which it is not made, but a disk
// may stand still, another goroutine reads on, and what it reads has goroutines of its own until the first is done.
type relief struct {
	ctx    context.Context // of the server
	conns  func(yield func(c *Conn))
	active atomic.Bool // a goroutine looks
	served atomic.Bool // a handler began since it looked last
	all    sync.WaitGroup
}

const (
	// reliefEvery is how often it looks, and about how long a handler may take.
	reliefEvery = 50 * time.Millisecond
	// reliefLooks is how many looks without a handler end the goroutine.
	reliefLooks = 20
)

// noted is called when a handler begins.
func (r *relief) noted() {
	if !r.served.Load() {
		r.served.Store(true)
	}
	if !r.active.Load() && r.active.CompareAndSwap(false, true) {
		r.all.Go(r.run)
	}
}

// run looks until no handler has begun for a while. One that begins at that moment is seen here or starts another.
func (r *relief) run() {
	for r.look() {
		r.active.Store(false)
		if !r.served.Load() || !r.active.CompareAndSwap(false, true) {
			return
		}
	}
}

// look reports false when the server has ended.
func (r *relief) look() bool {
	tick := time.NewTicker(reliefEvery)
	defer tick.Stop()
	var slow []*Conn
	for quiet := 0; quiet < reliefLooks; quiet++ {
		select {
		case <-tick.C:
		case <-r.ctx.Done():
			return false
		}
		if r.served.Swap(false) {
			quiet = 0
		}
		slow = slow[:0]
		r.conns(func(c *Conn) {
			if c.here.look() {
				slow = append(slow, c)
			}
		})
		for _, c := range slow {
			quiet = 0
			c.relieve()
		}
	}
	return true
}

// here says what the reading goroutine of a connection does: it counts the handlers that began there, odd while one is at work.
type here struct {
	turn atomic.Int64
	seen int64 // the turn at the last look; only relief uses it
}

// look reports whether the handler of the last look is still at work.
func (h *here) look() bool {
	turn := h.turn.Load()
	long := turn%2 != 0 && turn == h.seen
	h.seen = turn
	return long
}

// errRelieved ends a reading goroutine in whose place another reads.
var errRelieved = errors.New("another goroutine reads")

// relieve lets another goroutine read on, unless the handler has just ended.
func (c *Conn) relieve() {
	c.detached.Add(1)
	if !c.here.turn.CompareAndSwap(c.here.seen, c.here.seen+3) { // no turn of the one that is at work
		c.detached.Add(-1)
		return
	}
	c.frames.leave()
	c.scratch = &scratch{} // the other is with the handler
	c.opts.log.Debug("a request takes long; others of its connection go on", "peer", c.RemoteAddr())
	go func() {
		if err := c.readLoop(); !errors.Is(err, errRelieved) {
			c.ended <- err
		}
	}()
}
