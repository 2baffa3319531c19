package broker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// heldPull is a pull that waits for a message.
type heldPull struct {
	offset int64
	filter filter
	weight int64         // how many pulls it counts as
	wake   chan struct{} // one is waiting: a message has come
}

// tagsPerPull is how many tags a pull may name that counts as one.
const tagsPerPull = 64

// held are the pulls that wait, by queue. The store's dispatch wakes those of the queue that it has put a message into.
type held struct {
	limit int64
	count atomic.Int64
	mu    sync.Mutex
	pulls map[string]map[int32]map[*heldPull]struct{}
}

func newHeld(limit int64) *held {
	return &held{limit: limit, pulls: map[string]map[int32]map[*heldPull]struct{}{}}
}

// add parks a pull; nil when there are too many.
func (h *held) add(p *pullRequest) *heldPull {
	x := &heldPull{offset: p.offset, filter: p.filter, weight: 1 + int64(len(p.filter.codes)/tagsPerPull), wake: make(chan struct{}, 1)}
	if h.count.Add(x.weight) > h.limit {
		h.count.Add(-x.weight)
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	queues := h.pulls[p.topic]
	if queues == nil {
		queues = map[int32]map[*heldPull]struct{}{}
		h.pulls[p.topic] = queues
	}
	if queues[p.queueID] == nil {
		queues[p.queueID] = map[*heldPull]struct{}{}
	}
	queues[p.queueID][x] = struct{}{}
	return x
}

func (h *held) remove(p *pullRequest, x *heldPull) {
	h.count.Add(-x.weight)
	h.mu.Lock()
	defer h.mu.Unlock()
	queues := h.pulls[p.topic]
	delete(queues[p.queueID], x)
	if len(queues[p.queueID]) == 0 {
		delete(queues, p.queueID)
	}
	if len(queues) == 0 {
		delete(h.pulls, p.topic)
	}
}

// queued is called by the store for each message that can be read now. It never blocks.
func (h *held) queued(u rocketstore.QueuedUnit) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for x := range h.pulls[string(u.Topic)][u.QueueID] {
		if u.QueueOffset < x.offset || !x.filter.takes(u.TagsCode) {
			continue
		}
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// hold parks a pull that found nothing. It is answered with its own opaque when a message that it wants comes, or when its
// time is over; not at all when its connection ends or the broker stops.
func (b *Broker) hold(ctx context.Context, c *remoting.Conn, req *remoting.Command, p *pullRequest) (*remoting.Command, error) {
	p.group, p.topic = strings.Clone(p.group), strings.Clone(p.topic)
	x := b.held.add(p)
	if x == nil {
		b.figures.busy.Add(1)
		return req.Refuse(remoting.SystemBusy, "[OVERLOAD]more than %d pulls wait", b.opts.MaxHeld), nil
	}
	// What came between the read and the parking has woken nobody.
	resp, err := b.answerPull(ctx, c, req, p)
	if err != nil || resp == nil || resp.Code != remoting.PullNotFound {
		b.held.remove(p, x)
		return resp, err
	}
	// Of the request only this is kept: its header may be large.
	req = &remoting.Command{Code: req.Code, Version: req.Version, Opaque: req.Opaque, Flag: req.Flag, Codec: req.Codec}
	b.tasks.Go(func() {
		if b.await(c, x, p.wait) {
			b.held.remove(p, x)
			b.answerHeld(c, req, p)
			return
		}
		b.held.remove(p, x)
	})
	return nil, nil
}

// await reports whether the pull is to be answered.
func (b *Broker) await(c *remoting.Conn, x *heldPull, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-x.wake:
	case <-timer.C:
	case <-c.Done():
		return false
	case <-b.ctx.Done():
		return false
	}
	return true
}

func (b *Broker) answerHeld(c *remoting.Conn, req *remoting.Command, p *pullRequest) {
	resp, err := b.answerPull(b.ctx, c, req, p)
	switch {
	case errors.Is(err, context.Canceled), err == nil && resp == nil:
		return
	case err != nil:
		resp = b.refuse(c, req, err)
	}
	if err := c.Respond(b.ctx, req, resp); err != nil && b.ctx.Err() == nil {
		b.opts.Logger.Debug("answer to a held pull dropped", "peer", c.RemoteAddr(), "err", err)
	}
}
