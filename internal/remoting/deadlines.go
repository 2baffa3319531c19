package remoting

import (
	"context"
	"time"
)

// deadlines are those of a connection's requests, the next one first, with one timer for all. A request that is answered leaves its
// entry behind, which holds no memory of the request: they are passed over when their time comes, or cleared away when they are
// many. The connection's lock guards all of it.
type deadlines struct {
	heap  []deadline
	timer *time.Timer // nil until it is needed
	armed int64       // for when it is set; 0: for nothing
}

// deadline is when a request ends, in nanoseconds since the connection was made.
type deadline struct {
	at     int64
	opaque int32
}

// fewDeadlines is how many entries are not worth being cleared away.
const fewDeadlines = 1024

// add notes a deadline.
func (d *deadlines) add(c *Conn, at int64, opaque int32) {
	if len(d.heap) > 2*len(c.pending)+fewDeadlines {
		d.clear(c)
	}
	d.push(deadline{at, opaque})
	if d.armed == 0 || at < d.armed {
		d.arm(c, at)
	}
}

// arm sets the timer.
func (d *deadlines) arm(c *Conn, at int64) {
	d.armed = at
	wait := time.Until(c.src.born.Add(time.Duration(at)))
	if d.timer != nil {
		d.timer.Reset(wait)
		return
	}
	d.timer = time.NewTimer(wait)
	c.helpers.Go(c.keepDeadlines)
}

// clear keeps the entries of requests that are pending.
func (d *deadlines) clear(c *Conn) {
	before := d.heap
	d.heap = d.heap[:0]
	for _, e := range before {
		if c.waits(e) {
			d.push(e) // at or before the place that was read
		}
	}
}

// waits says whether the request of an entry is pending.
func (c *Conn) waits(e deadline) bool {
	p := c.pending[e.opaque]
	return p != nil && p.ready && p.until == e.at
}

func (d *deadlines) push(e deadline) {
	h := append(d.heap, e)
	i := len(h) - 1
	for i > 0 && e.at < h[(i-1)/2].at {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = e
	d.heap = h
}

// pop takes the first entry out.
func (d *deadlines) pop() {
	n := len(d.heap) - 1
	h, e, i := d.heap[:n], d.heap[n], 0
	for {
		next := 2*i + 1
		if next+1 < n && h[next+1].at < h[next].at {
			next++
		}
		if next >= n || e.at <= h[next].at {
			break
		}
		h[i] = h[next]
		i = next
	}
	if n > 0 {
		h[i] = e
	}
	d.heap = h
}

// keepDeadlines ends requests at their deadlines until the connection ends.
func (c *Conn) keepDeadlines() {
	defer c.due.timer.Stop()
	for {
		select {
		case <-c.due.timer.C:
		case <-c.ctx.Done():
			return
		}
		for _, p := range c.late() {
			p.tell(nil, c.givenUp(p, context.DeadlineExceeded))
		}
	}
}

// late takes the requests whose time is over.
func (c *Conn) late() (taken []*Pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &c.due
	d.armed = 0
	now := int64(time.Since(c.src.born))
	for len(d.heap) > 0 {
		e := d.heap[0]
		waits := c.waits(e)
		if waits && e.at > now {
			d.arm(c, e.at)
			break
		}
		d.pop()
		if waits {
			taken = append(taken, c.pending[e.opaque])
			delete(c.pending, e.opaque)
		}
	}
	return taken
}
