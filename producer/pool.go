package producer

import (
	"context"
	"sync"
)

// task is what a pool runs.
type task interface{ run() }

// job is a task that is a function.
type job func()

func (j job) run() { j() }

// pool runs tasks on goroutines that live while there is work. As in Java's pools, up to core of them take what comes, then
// the queue fills, and only when it is full are there up to limit.
type pool struct {
	core, limit, queue int
	around             func(work func()) // runs a goroutine's work; nil: as it is

	mu      sync.Mutex
	waiting []task
	running int
	closed  bool
	all     sync.WaitGroup
}

// submit hands t over; false says that there is no room, or that the pool is closed.
func (p *pool) submit(t task) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return false
	case p.running < p.core:
		p.spawn(t)
	case len(p.waiting) < p.queue:
		p.waiting = append(p.waiting, t)
	case p.running < p.limit:
		p.spawn(t)
	default:
		return false
	}
	return true
}

// spawn starts a goroutine that begins with t. The caller holds mu.
func (p *pool) spawn(t task) {
	p.running++
	p.all.Add(1)
	go p.work(t)
}

// work does t and then what waits, until nothing does.
func (p *pool) work(t task) {
	defer p.all.Done()
	if p.around != nil {
		p.around(func() { p.drain(t) })
		return
	}
	p.drain(t)
}

func (p *pool) drain(t task) {
	for ; t != nil; t = p.next() {
		t.run()
	}
}

// next gives a goroutine its next work, or nil, with which it ends.
func (p *pool) next() task {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.waiting = nil
		p.running--
		return nil
	}
	t := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	return t
}

// flood gives all that waits a goroutine each: nothing waits behind a task that does not return.
func (p *pool) flood() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.waiting {
		p.spawn(t)
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
