package commitlog

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// group is group commit: whoever finds no sync under way does one, for all that was written by then; who comes meanwhile
// waits for it or for the next. Nothing is allocated once the pool of waiters is warm.
type group struct {
	// sync makes everything written so far durable and says up to where.
	sync func() (int64, error)

	durable atomic.Int64 // first offset not known to be on the device; stored by the leader, never goes back
	mu      sync.Mutex
	busy    bool      // guarded by mu: a leader is at work or appointed
	crowd   int       // guarded by mu: how many the last sync found, those behind it too
	waiting []*waiter // guarded by mu
	pool    sync.Pool
}

// waiter is one goroutine that waits for its bytes to be durable.
type waiter struct {
	upTo  int64
	wake  chan verdict // one place, so that the leader never blocks
	timer *time.Timer
}

// verdict is what a leader tells a waiter.
type verdict struct {
	lead bool // do the next sync yourself
	err  error
}

func newGroup(sync func() (int64, error)) *group {
	g := &group{sync: sync}
	g.pool.New = func() any {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return &waiter{wake: make(chan verdict, 1), timer: t}
	}
	return g
}

// Wait returns when all before upTo is durable. It gives ErrSyncTimeout after the timeout and the context's error when
// that ends first; the bytes stay written in both cases.
func (g *group) Wait(ctx context.Context, upTo int64, timeout time.Duration) error {
	if g.durable.Load() >= upTo {
		return nil
	}
	g.mu.Lock()
	if !g.busy {
		g.busy = true
		g.mu.Unlock()
		return g.lead(upTo)
	}
	w := g.pool.Get().(*waiter)
	w.upTo = upTo
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()

	w.timer.Reset(timeout)
	defer w.timer.Stop()
	select {
	case v := <-w.wake:
		g.pool.Put(w)
		if v.lead {
			return g.lead(upTo)
		}
		return v.err
	case <-w.timer.C:
		return g.leave(w, ErrSyncTimeout)
	case <-ctx.Done():
		return g.leave(w, ctx.Err())
	}
}

// leave takes a waiter that gave up off the list. If a leader spoke to it in the meantime, that counts.
func (g *group) leave(w *waiter, why error) error {
	g.mu.Lock()
	if i := slices.Index(g.waiting, w); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		g.mu.Unlock()
		g.pool.Put(w)
		return why
	}
	g.mu.Unlock()
	v := <-w.wake
	upTo := w.upTo
	g.pool.Put(w)
	if v.lead {
		return g.lead(upTo)
	}
	return v.err
}

// maxYields bounds how often a leader lets others run first: some ten microseconds when there is nobody.
const maxYields = 128

// gather waits until as many are there as at the last sync. Those whom it answered are about to write again; a leader that
// begins without them serves the few who came too late for the last sync, and every put takes two syncs.
func (g *group) gather() {
	for range maxYields {
		g.mu.Lock()
		all := 1+len(g.waiting) >= g.crowd
		g.mu.Unlock()
		if all {
			return
		}
		runtime.Gosched()
	}
}

// lead does one sync, answers all whom it served and appoints the next leader.
func (g *group) lead(upTo int64) error {
	g.gather()
	durable, err := g.sync()
	if durable > g.durable.Load() {
		g.durable.Store(durable)
	}
	g.mu.Lock()
	g.crowd = 1 + len(g.waiting)
	kept := g.waiting[:0]
	for _, w := range g.waiting {
		if err != nil || w.upTo <= durable {
			w.wake <- verdict{err: err}
			continue
		}
		kept = append(kept, w)
	}
	clear(g.waiting[len(kept):])
	g.waiting = kept
	if len(kept) > 0 {
		next := kept[0]
		g.waiting = slices.Delete(g.waiting, 0, 1)
		next.wake <- verdict{lead: true}
	} else {
		g.busy = false
	}
	g.mu.Unlock()
	if err == nil && upTo > durable {
		return g.Wait(context.Background(), upTo, time.Hour)
	}
	return err
}
