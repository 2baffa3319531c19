package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore/message"
)

// entry is a message that was pulled and is not settled.
type entry struct {
	m       *message.Received
	settled bool
	begun   time.Time // when its listener was called; zero before
}

// process is one queue as long as this consumer has it (ProcessQueue): the messages between the pulls and the listener. Its
// methods may be called from many goroutines.
type process struct {
	queue Queue
	sub   atomic.Pointer[Subscription]

	ctx    context.Context // ends when the queue is lost or the consumer stops
	cancel context.CancelFunc
	work   sync.WaitGroup // the pull loop, and the loop of an orderly listener

	// at is the next offset to be committed, -1 as long as there is none. It goes back by reset only.
	at atomic.Int64
	// minOffset and maxOffset are the queue's ends as the last answer gave them.
	minOffset, maxOffset atomic.Int64
	// from is the broker id to pull from; answers suggest it.
	from atomic.Int64
	// lockedAt is when the broker last confirmed the lock of an orderly listener, Unix nanoseconds; 0: not locked.
	lockedAt atomic.Int64

	mu      sync.Mutex
	next    int64              // the offset of the next pull
	epoch   int64              // of the offsets: a reset begins another
	abort   context.CancelFunc // ends the pull that is under way; nil if none is
	paused  bool               // no pulls
	entries []entry            // by queue offset, ascending; those before head are settled and gone
	head    int
	base    int64 // number of entries[0], counted since the queue was taken
	count   int   // not settled
	bytes   int64 // of their bodies
	last    int64 // the highest queue offset ever put, -1
	// room is closed when a message is settled or pulls may go on, and come when one is put; nil if nobody waits.
	room, come chan struct{}
}

func newProcess(ctx context.Context, q Queue, s *Subscription, offset int64) *process {
	p := &process{queue: q, next: offset, last: offset - 1}
	p.sub.Store(s)
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.at.Store(offset)
	return p
}

// dropped says whether the queue is lost.
func (p *process) dropped() bool { return p.ctx.Err() != nil }

// beginPull gives the offset of the next pull, and the epoch that it belongs to. The context ends with a reset as well.
func (p *process) beginPull(timeout time.Duration) (ctx context.Context, end context.CancelFunc, offset, epoch int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, p.abort = context.WithTimeout(p.ctx, timeout)
	return ctx, p.abort, p.next, p.epoch
}

// took stores what a pull of an epoch gave: messages in ascending order and where to go on. Messages at or below one that
// was put before are left out. It gives the number of the first one added and what was added; false when the epoch is over, and
// then nothing was.
func (p *process) took(epoch, next int64, list []*message.Received) (number int64, added []*message.Received, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if epoch != p.epoch || p.paused || p.dropped() {
		return 0, nil, false
	}
	p.next = next
	for len(list) > 0 && list[0].QueueOffset <= p.last {
		list = list[1:]
	}
	number = p.base + int64(len(p.entries))
	for _, m := range list {
		p.entries = append(p.entries, entry{m: m})
		p.count++
		p.bytes += int64(len(m.Body))
		p.last = m.QueueOffset
	}
	if len(list) > 0 {
		wake(&p.come)
	}
	if p.count == 0 {
		p.commit(next) // what was passed over was not wanted
	}
	return number, list, true
}

// reset forgets what is cached and goes on at an offset, which may lie before. A listener that still runs settles nothing any more.
func (p *process) reset(offset int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resetLocked(offset)
}

// resetIn is reset unless there was one since that epoch began.
func (p *process) resetIn(epoch, offset int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if epoch == p.epoch {
		p.resetLocked(offset)
		return true
	}
	return false
}

func (p *process) resetLocked(offset int64) {
	p.epoch++
	p.base += int64(len(p.entries))
	clear(p.entries)
	p.entries, p.head, p.count, p.bytes = p.entries[:0], 0, 0, 0
	p.next, p.last = offset, offset-1
	p.at.Store(offset)
	if p.abort != nil {
		p.abort()
	}
	wake(&p.room)
}

// empty says whether nothing is cached or the epoch is over, and gives a channel that is closed when that may have changed.
func (p *process) empty(epoch int64) (<-chan struct{}, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count == 0 || epoch != p.epoch {
		return nil, true
	}
	return wait(&p.room), false
}

// pause stops the pulls or lets them go on.
func (p *process) pause(paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = paused
	if paused && p.abort != nil {
		p.abort()
	}
	wake(&p.room)
}

// wake closes a channel that somebody may wait on. The caller holds mu.
func wake(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}

// wait is a channel that the next wake closes. The caller holds mu.
func wait(c *chan struct{}) <-chan struct{} {
	if *c == nil {
		*c = make(chan struct{})
	}
	return *c
}

// begin notes that n messages from a number on are in the hands of the listener; false when they are settled or forgotten, so
// that it must not have them.
func (p *process) begin(number int64, n int, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range n {
		e := p.entry(number + int64(i))
		if e == nil || e.settled {
			return false
		}
		e.begun = now
	}
	return true
}

// entry is that of a number, nil if it is gone. The caller holds mu.
func (p *process) entry(number int64) *entry {
	i := number - p.base
	if i < int64(p.head) || i >= int64(len(p.entries)) {
		return nil
	}
	return &p.entries[i]
}

// settle takes n messages from a number on out, and advances the offset to be committed to the lowest that is left, else
// to the one behind the last. It says how many had not been settled before.
func (p *process) settle(number int64, n int) (settled int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range n {
		if e := p.entry(number + int64(i)); e != nil && !e.settled {
			e.settled = true
			settled++
			p.count--
			p.bytes -= int64(len(e.m.Body))
		}
	}
	if settled == 0 {
		return 0
	}
	for p.head < len(p.entries) && p.entries[p.head].settled {
		p.entries[p.head] = entry{}
		p.head++
	}
	p.advance()
	wake(&p.room)
	return settled
}

// advance raises the offset to be committed and gives room back. The caller holds mu.
func (p *process) advance() {
	offset := p.last + 1
	if p.head < len(p.entries) {
		offset = p.entries[p.head].m.QueueOffset
	}
	p.commit(offset)
	if p.head > len(p.entries)/2 {
		n := copy(p.entries, p.entries[p.head:])
		clear(p.entries[n:])
		p.entries = p.entries[:n]
		p.base += int64(p.head)
		p.head = 0
	}
}

// commit raises the offset to be committed, if it is higher.
func (p *process) commit(offset int64) {
	for {
		at := p.at.Load()
		if offset <= at || p.at.CompareAndSwap(at, offset) {
			return
		}
	}
}

// limits bound what may be cached of one queue.
type limits struct {
	count int
	bytes int64
	span  int64 // of queue offsets; 0: none
}

// full says whether the pulls have to wait, and gives a channel that is closed when that may have changed.
func (p *process) full(l limits) (<-chan struct{}, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused || p.count > l.count || p.bytes > l.bytes || l.span > 0 && p.span() > l.span {
		return wait(&p.room), true
	}
	return nil, false
}

// span is how far the cached messages reach. The caller holds mu.
func (p *process) span() int64 {
	if p.count == 0 {
		return 0
	}
	return p.last - p.entries[p.head].m.QueueOffset
}

// position is the offset of the next pull.
func (p *process) position() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// cached is how many messages are not settled, and the bytes of their bodies.
func (p *process) cached() (count int, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count, p.bytes
}

// peek gives up to n of the first messages for an orderly listener, and the number of the first; without any, a channel that is
// closed when one comes.
func (p *process) peek(n int) (number int64, list []*message.Received, come <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := p.head; i < len(p.entries) && len(list) < n; i++ {
		list = append(list, p.entries[i].m)
	}
	if len(list) == 0 {
		return 0, nil, wait(&p.come)
	}
	return p.base + int64(p.head), list, nil
}

// overdue gives the first message and its number if its listener has run since before that time.
func (p *process) overdue(before time.Time) (number int64, m *message.Received) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.head == len(p.entries) {
		return 0, nil
	}
	if e := &p.entries[p.head]; !e.begun.IsZero() && e.begun.Before(before) {
		return p.base + int64(p.head), e.m
	}
	return 0, nil
}

// isSettled says whether a message is settled already.
func (p *process) isSettled(number int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.entry(number)
	return e == nil || e.settled
}
