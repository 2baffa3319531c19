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

	durable  atomic.Int64  // first offset not known to be on the device; stored by the goroutine, never goes back
	here     atomic.Int64  // len(waiting), stored under mu
	crowd    int64         // of the goroutine: how many waited at the end of the last sync, those behind it too
	served   []*waiter     // of the goroutine: whom the last sync answers
	took     time.Duration // of the goroutine: the last sync's time
	patience time.Duration // of the goroutine: how long it waits for the crowd

	mu      sync.Mutex
	idle    *sync.Cond  // on mu: busy has become false
	busy    bool        // guarded by mu: the goroutine is at work; it ends when nobody waits
	waiting []*waiter   // guarded by mu
	free    []*waiter   // guarded by mu: of those who have gone
	alarm   *time.Timer // guarded by mu: one for all, since setting one for each costs each put
	next    time.Time   // guarded by mu: when alarm goes off; zero: it is not set
}

// waiter is one goroutine that waits for its bytes to be durable.
type waiter struct {
	upTo     int64
	deadline time.Time
	wake     chan error // one place, so that nobody who has gone is waited for
}

func newGroup(device func() (int64, error)) *group {
	g := &group{sync: device}
	g.work, g.idle = g.run, sync.NewCond(&g.mu)
	return g
}

// enter puts a waiter on the list.
func (g *group) enter(upTo int64, timeout time.Duration) (w *waiter) {
	deadline := time.Now().Add(timeout)
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.free); n > 0 {
		w, g.free = g.free[n-1], g.free[:n-1]
	} else {
		w = &waiter{wake: make(chan error, 1)}
	}
	w.upTo, w.deadline = upTo, deadline
	g.setWaiting(append(g.waiting, w))
	if g.next.IsZero() || deadline.Before(g.next) {
		g.setAlarm(deadline, timeout)
	}
	if !g.busy {
		g.busy = true
		go g.work()
	}
	return w
}

// setWaiting stores the list. The caller holds mu.
func (g *group) setWaiting(list []*waiter) {
	g.waiting = list
	g.here.Store(int64(len(list)))
}

// setAlarm has expire called then. The caller holds mu.
func (g *group) setAlarm(then time.Time, in time.Duration) {
	g.next = then
	if g.alarm == nil {
		g.alarm = time.AfterFunc(in, g.expire)
	} else {
		g.alarm.Reset(in)
	}
}

// expire answers those whose time is over, and sets the alarm for the first of the others. While puts come it goes off once in
// their time.
func (g *group) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.next = time.Time{}
	g.setWaiting(slices.DeleteFunc(g.waiting, func(w *waiter) bool {
		if !w.deadline.After(now) {
			w.wake <- ErrSyncTimeout
			return true
		}
		if g.next.IsZero() || w.deadline.Before(g.next) {
			g.next = w.deadline
		}
		return false
	}))
	if !g.next.IsZero() {
		g.setAlarm(g.next, g.next.Sub(now))
	}
}

// done gives back a waiter that is on no list any more and whose answer, if it had one, was taken.
func (g *group) done(w *waiter) {
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
	case <-ctx.Done():
		return g.leave(w, ctx.Err())
	}
}

// leave takes a waiter that gave up off the list. If it was answered in the meantime, that counts.
func (g *group) leave(w *waiter, why error) error {
	g.mu.Lock()
	if i := slices.Index(g.waiting, w); i >= 0 {
		g.setWaiting(slices.Delete(g.waiting, i, i+1))
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
	if g.alarm != nil {
		g.alarm.Stop()
		g.next = time.Time{}
	}
}

// The bounds of how long a sync lets others run first. The yields count where time stands still, or nobody is there to run.
const (
	leastPatience = 20 * time.Microsecond
	mostPatience  = 500 * time.Microsecond
	maxYields     = 1 << 12
)

// gather waits until as many are there as at the last sync. Those whom it answered are about to write again; a sync that
// begins without them serves the few who came too late for the last one, and every put takes two syncs. It waits longer when
// that pays, up to half the time of a sync, and less when those it waits for do not come.
func (g *group) gather() {
	missing := g.crowd - g.here.Load()
	if missing <= 0 {
		return
	}
	began := time.Now()
	for i := range maxYields {
		runtime.Gosched()
		if g.here.Load() >= g.crowd {
			break
		}
		if i%8 == 7 && time.Since(began) >= g.patience {
			break
		}
	}
	if came := missing - (g.crowd - g.here.Load()); came*2 >= missing {
		g.patience = min(g.patience*2, g.took/2, mostPatience)
	} else {
		g.patience /= 2
	}
	g.patience = max(g.patience, leastPatience)
}

// run syncs until nobody waits, and answers all whom a sync served.
func (g *group) run() {
	for {
		g.gather()
		began := time.Now()
		durable, err := g.sync()
		g.took = time.Since(began)
		if durable > g.durable.Load() {
			g.durable.Store(durable)
		}
		g.split(durable, err != nil)
		for _, w := range g.served { // without the lock, which each of them takes next
			w.wake <- err
		}
		clear(g.served)
		g.mu.Lock()
		if len(g.waiting) == 0 {
			g.busy = false
			g.idle.Broadcast()
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
	}
}

// split moves those whom a sync answers from the list to served.
func (g *group) split(durable int64, all bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.crowd, g.served = int64(len(g.waiting)), g.served[:0]
	kept := g.waiting[:0]
	for _, w := range g.waiting {
		if all || w.upTo <= durable {
			g.served = append(g.served, w)
		} else {
			kept = append(kept, w)
		}
	}
	clear(g.waiting[len(kept):])
	g.setWaiting(kept)
}
