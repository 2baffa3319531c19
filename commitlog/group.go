package commitlog

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// group is group commit: whoever finds no sync under way has a goroutine of the group do one, for all that was written by then;
// who comes meanwhile is served by it or by the next. All only wait, so that a device that hangs holds up nobody for longer than
// its time. Nothing is allocated once there are as many waiters as ever wait at once.
type group struct {
	// sync makes everything written so far durable and says up to where.
	sync func() (int64, error)
	// work is g.run as a value, made once: a go statement with it allocates nothing.
	work func()

	durable atomic.Int64 // first offset not known to be on the device; stored by the goroutine, never goes back
	mu      sync.Mutex
	idle    *sync.Cond // on mu: busy has become false
	busy    bool       // guarded by mu: the goroutine is at work; it ends when nobody waits
	crowd   int        // guarded by mu: how many the last sync found, those behind it too
	waiting []*waiter  // guarded by mu
	free    []*waiter  // guarded by mu: of those who have gone
}

// waiter is one goroutine that waits for its bytes to be durable.
type waiter struct {
	upTo  int64
	wake  chan error // one place, so that nobody who has gone is waited for
	timer *time.Timer
}

func newGroup(device func() (int64, error)) *group {
	g := &group{sync: device}
	g.work, g.idle = g.run, sync.NewCond(&g.mu)
	return g
}

// enter puts a waiter on the list.
func (g *group) enter(upTo int64, timeout time.Duration) (w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.free); n > 0 {
		w, g.free = g.free[n-1], g.free[:n-1]
		w.timer.Reset(timeout)
	} else {
		w = &waiter{wake: make(chan error, 1), timer: time.NewTimer(timeout)}
	}
	w.upTo = upTo
	g.waiting = append(g.waiting, w)
	if !g.busy {
		g.busy = true
		go g.work()
	}
	return w
}

// done gives back a waiter that is on no list any more and whose answer, if it had one, was taken.
func (g *group) done(w *waiter) {
	w.timer.Stop()
	g.mu.Lock()
	g.free = append(g.free, w)
	g.mu.Unlock()
}

// Wait returns when all before upTo is durable. It gives ErrSyncTimeout after the timeout and the context's error when
// that ends first; the bytes stay written in both cases.
func (g *group) Wait(ctx context.Context, upTo int64, timeout time.Duration) error {
	if g.durable.Load() >= upTo {
		return nil
	}
	w := g.enter(upTo, timeout)
	defer g.done(w)
	select {
	case err := <-w.wake:
		return err
	case <-w.timer.C:
		return g.leave(w, ErrSyncTimeout)
	case <-ctx.Done():
		return g.leave(w, ctx.Err())
	}
}

// leave takes a waiter that gave up off the list. If it was answered in the meantime, that counts.
func (g *group) leave(w *waiter, why error) error {
	g.mu.Lock()
	if i := slices.Index(g.waiting, w); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		g.mu.Unlock()
		return why
	}
	g.mu.Unlock()
	return <-w.wake
}

// Settle returns when no sync is under way.
func (g *group) Settle() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.busy {
		g.idle.Wait()
	}
}

// maxYields bounds how often a sync lets others run first: some ten microseconds when there is nobody.
const maxYields = 128

// gather waits until as many are there as at the last sync. Those whom it answered are about to write again; a sync that
// begins without them serves the few who came too late for the last one, and every put takes two syncs.
func (g *group) gather() {
	for range maxYields {
		g.mu.Lock()
		all := len(g.waiting) >= g.crowd
		g.mu.Unlock()
		if all {
			return
		}
		runtime.Gosched()
	}
}

// run syncs until nobody waits, and answers all whom a sync served.
func (g *group) run() {
	for {
		g.gather()
		durable, err := g.sync()
		if durable > g.durable.Load() {
			g.durable.Store(durable)
		}
		g.mu.Lock()
		g.crowd = len(g.waiting)
		kept := g.waiting[:0]
		for _, w := range g.waiting {
			if err != nil || w.upTo <= durable {
				w.wake <- err
				continue
			}
			kept = append(kept, w)
		}
		clear(g.waiting[len(kept):])
		g.waiting = kept
		if len(kept) == 0 {
			g.busy = false
			g.idle.Broadcast()
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
	}
}
