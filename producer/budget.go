package producer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// budget is the context of one send: it ends with the caller's, with the time budget, and with the producer. What it takes to wait for that
// end is made when somebody waits, which most sends never do.
type budget struct {
	parent   context.Context // the caller's
	owner    context.Context // the producer's
	deadline time.Time
	made     atomic.Pointer[waitable]
}

// waitable is a context made for a budget.
type waitable struct {
	ctx  context.Context
	stop func()
}

// begin starts the time, now.
func (b *budget) begin(parent, owner context.Context, now time.Time, limit time.Duration) {
	b.parent, b.owner, b.deadline = parent, owner, now.Add(limit)
	if d, ok := parent.Deadline(); ok && d.Before(b.deadline) {
		b.deadline = d
	}
}

// end frees what was made. Nobody waits any more.
func (b *budget) end() {
	if w := b.made.Load(); w != nil {
		w.stop()
	}
}

// Deadline implements context.Context.
func (b *budget) Deadline() (time.Time, bool) { return b.deadline, true }

// Value implements context.Context.
func (b *budget) Value(key any) any { return b.parent.Value(key) }

// Err implements context.Context.
func (b *budget) Err() error {
	if w := b.made.Load(); w != nil {
		return w.ctx.Err()
	}
	switch {
	case b.owner.Err() != nil:
		return context.Canceled
	case b.parent.Err() != nil:
		return b.parent.Err()
	case !time.Now().Before(b.deadline):
		return context.DeadlineExceeded
	}
	return nil
}

// Done implements context.Context.
func (b *budget) Done() <-chan struct{} {
	w := b.made.Load()
	if w == nil {
		w = b.waitable()
		if !b.made.CompareAndSwap(nil, w) {
			w.stop()
			w = b.made.Load()
		}
	}
	return w.ctx.Done()
}

func (b *budget) waitable() *waitable {
	own, cancel := context.WithDeadline(b.owner, b.deadline)
	if b.parent.Done() == nil {
		return &waitable{own, cancel}
	}
	if b.parent.Err() != nil {
		cancel()
	}
	stop := context.AfterFunc(b.parent, func() {
		if _, ok := b.parent.Deadline(); !ok || !errors.Is(b.parent.Err(), context.DeadlineExceeded) { // else own has that deadline too
			cancel()
		}
	})
	return &waitable{own, func() {
		stop()
		cancel()
	}}
}
