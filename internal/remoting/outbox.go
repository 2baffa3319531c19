package remoting

import (
	"context"
	"sync"
	"sync/atomic"
)

// outbox holds the frames that a connection has yet to write. Senders encode into it and wait when it is full; one
// writer takes everything that is there, so that frames of many senders leave in one write.
type outbox struct {
	limit int           // bytes above which senders wait; one frame may exceed it
	wake  chan struct{} // holds one token when there is something for the writer to look at

	mu     sync.Mutex
	buf    []byte        // not yet taken by the writer
	spare  []byte        // for the next buf, after the writer gave it back
	large  sync.Pool     // *[]byte that are too large to be kept for long: the garbage collector takes them from an idle connection
	queued int64         // bytes ever put
	room   chan struct{} // closed when buf is taken; nil if nobody waits
	taken  bool          // the writer writes what it took; it looks again after that
	lent   bool          // the reading goroutine writes what it grabbed
	big    bool          // what was taken last was large, so the next may be
	ending bool          // no more puts; the writer ends when buf is empty
	err    error         // set by close: why nothing goes out any more

	// written counts the bytes that the network took. Only the writer adds to it.
	written atomic.Int64
	// total is what the connections of one server or client have waiting together, bytes; above most each has a smaller limit.
	total *atomic.Int64
	most  int64
}

// keepBuffer is the largest buffer that is kept for reuse.
const keepBuffer = 64 << 10

// eagerLimits is how many times the limit may wait to be written before an eager sender waits.
const eagerLimits = 32

// crowdedLimit is the limit of a connection when all together have too much waiting, bytes. Who reads does not come near it.
const crowdedLimit = 64 << 10

func newOutbox(limit int, total *atomic.Int64, most int64) *outbox {
	return &outbox{limit: limit, wake: make(chan struct{}, 1), total: total, most: most}
}

// put encodes c behind what is there and returns the position behind it, in bytes ever put. Without wake the writer is not told:
// the caller will call grab.
// An eager one waits only when there is much more than the limit.
func (o *outbox) put(ctx context.Context, c *Command, wake, eager bool) (end int64, err error) {
	for {
		room, end, err := o.tryPut(c, wake, eager)
		if room == nil {
			return end, err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// tryPut returns a channel to wait on if there is no room.
func (o *outbox) tryPut(c *Command, wake, eager bool) (room <-chan struct{}, end int64, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return nil, 0, o.err
	}
	if o.ending {
		return nil, 0, errDraining
	}
	limit := o.limit
	if eager {
		limit *= eagerLimits
	}
	if len(o.buf) >= limit || len(o.buf) >= crowdedLimit && o.total.Load() > o.most {
		if o.room == nil {
			o.room = make(chan struct{})
		}
		o.signal() // it may not have been told of what fills it
		return o.room, 0, nil
	}
	if o.buf == nil && o.big {
		if large, ok := o.large.Get().(*[]byte); ok {
			o.buf = (*large)[:0]
		}
	}
	before := len(o.buf)
	if o.buf, err = AppendFrame(o.buf, c); err != nil {
		return nil, 0, err
	}
	o.queued += int64(len(o.buf) - before)
	o.total.Add(int64(len(o.buf) - before))
	if wake {
		o.signal()
	}
	return nil, o.queued, nil
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take gives the writer what is there; done says that nothing will come any more.
func (o *outbox) take() (b []byte, done bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return nil, true
	}
	if len(o.buf) == 0 || o.lent { // it keeps its buffer
		return nil, o.ending && !o.lent
	}
	o.taken = true
	return o.cut(), false
}

// cut takes all that is there. The caller holds mu.
func (o *outbox) cut() []byte {
	b := o.buf
	o.buf, o.spare, o.big = o.spare[:0], nil, len(b) > keepBuffer
	o.freeWaiters()
	return b
}

// grab gives the reading goroutine what is there, to write it in the writer's place; nil when that is at it.
func (o *outbox) grab() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.taken || o.err != nil || len(o.buf) == 0 {
		return nil
	}
	o.lent = true
	return o.cut()
}

// release returns a buffer of grab.
func (o *outbox) release(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lent = false
	o.keep(b)
	if len(o.buf) > 0 || o.ending || o.err != nil {
		o.signal()
	}
}

// give returns a buffer of take.
func (o *outbox) give(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken = false
	o.keep(b)
}

// keep keeps a buffer for the next. The caller holds mu.
func (o *outbox) keep(b []byte) {
	if cap(b) <= keepBuffer {
		o.spare = b[:0]
		return
	}
	o.large.Put(&b)
}

// freeWaiters wakes the senders that wait for room. The caller holds mu.
func (o *outbox) freeWaiters() {
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// finish lets the writer end when it has written what is there.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ending = true
	o.freeWaiters()
	o.signal()
}

// close drops what is there; later puts return err.
func (o *outbox) close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
	o.buf, o.spare = nil, nil
	o.freeWaiters()
	o.signal()
}

// took counts bytes that the network has taken.
func (o *outbox) took(bytes int) {
	o.written.Add(int64(bytes))
	o.total.Add(-int64(bytes))
}

// forget takes what will never be written out of the total, after the writer has ended and close was called.
func (o *outbox) forget() { o.total.Add(-o.waiting()) }

// waiting is how many bytes were put and not yet taken by the network.
func (o *outbox) waiting() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queued - o.written.Load()
}
