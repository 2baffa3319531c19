package producer

import (
	"context"
	"sync"
)

// pool runs functions on goroutines that live while there is work. As in Java's pools, up to core of them take what comes, then
// the queue fills, and only when it is full are there up to limit.
type pool struct {
	core, limit, queue int
	around             func(work func()) // runs a goroutine's work; nil: as it is

	mu      sync.Mutex
	waiting []func()
	running int
	closed  bool
	all     sync.WaitGroup
}

// submit hands f over; false says that there is no room, or that the pool is closed.
func (p *pool) submit(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return false
	case p.running < p.core:
		p.spawn(f)
	case len(p.waiting) < p.queue:
		p.waiting = append(p.waiting, f)
	case p.running < p.limit:
		p.spawn(f)
	default:
		return false
	}
	return true
}

// spawn starts a goroutine that begins with f. The caller holds mu.
func (p *pool) spawn(f func()) {
	p.running++
	p.all.Go(func() {
		work := func() {
			for f := f; f != nil; f = p.next() {
				f()
			}
		}
		if p.around != nil {
			p.around(work)
		} else {
			work()
		}
	})
}

// next gives a goroutine its next work, or nil, with which it ends.
func (p *pool) next() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.waiting = nil
		p.running--
		return nil
	}
	f := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	return f
}

// flood gives all that waits a goroutine each: nothing waits behind a function that does not return.
func (p *pool) flood() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.waiting {
		p.spawn(f)
	}
	p.waiting = nil
}

// idle says whether nothing runs.
func (p *pool) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running == 0
}

// close refuses further work.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// waitFor returns when the work of a closed pool is done, or with the context's error.
func (p *pool) waitFor(ctx context.Context) error {
	if p.idle() {
		return nil // also when the context has ended
	}
	done := make(chan struct{})
	go func() {
		p.all.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
