package rocketstore

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// halfRounds are the rounds over the half topic (protocol.md 16). A transaction that is asked about is stored again, with
// its count raised, and the question carries the places of the copy; so each round leaves all that it passed behind the
// progress.
type halfRounds struct {
	*checkService
	engine *halfEngine
	at     time.Time // of the next round
	run    CheckRun  // the newest; guarded by checkService.mu
}

func (e *halfEngine) rounds(c *checkService) rounds {
	c.opts.Every = cmp.Or(c.opts.Every, e.store.checkInterval())
	c.opts.MinAge = cmp.Or(c.opts.MinAge, defaultHalfAge)
	c.opts.Max = cmp.Or(c.opts.Max, defaultHalfChecks)
	c.opts.MaxAge = cmp.Or(c.opts.MaxAge, defaultHalfMaxAge)
	return &halfRounds{checkService: c, engine: e, run: CheckRun{File: HalfTopicName}}
}

func (r *halfRounds) wake() <-chan struct{} { return nil }

func (r *halfRounds) last() []CheckRun { return []CheckRun{r.run} }

func (r *halfRounds) due(ctx context.Context, now time.Time) time.Time {
	switch {
	case r.at.IsZero():
		r.at = now.Add(r.opts.Every)
	case !r.at.After(now):
		if !r.silent() {
			r.round(ctx)
		}
		r.at = r.after(r.at)
	}
	return r.at
}

// round walks the open half messages that were there when it began.
func (r *halfRounds) round(ctx context.Context) {
	set := r.engine.set
	run := CheckRun{File: HalfTopicName, Began: r.store.now()}
	began := time.Now()
	if run.Err = errors.Join(r.store.readable(ctx), r.engine.refresh()); run.Err == nil {
		start, end := set.progress().half, set.end()
		run.Total, run.Walked = end-start, end-start
		for h, ok := set.from(start); ok && h.Number < end && ctx.Err() == nil; h, ok = set.from(h.Number + 1) {
			run.Open++
			what := r.judge(&h, run.Began)
			run.Young = what == halfYoung
			run.Limited = !run.Young && (run.asked() >= r.opts.InFlight || time.Since(began) >= checkRoundAtMost)
			if !run.Young && !run.Limited {
				run.Err = r.one(ctx, &run, &h, what)
			}
			if run.Young || run.Limited || run.Err != nil {
				run.Walked = h.Number - start
				break
			}
		}
	}
	if ctx.Err() != nil {
		return // the store is being closed
	}
	if run.Err == nil {
		run.Err = r.store.saveConfig()
	}
	r.count(&run)
	r.mu.Lock()
	r.run = run
	r.mu.Unlock()
}

// verdict is what a round does with an open half message.
type verdict int

const (
	halfCheck  verdict = iota
	halfYoung          // ends the round
	halfDefer          // its producer does not want to be asked yet
	halfGiveUp         // asked about too often, or too old
)

// judge decides about a half message.
func (r *halfRounds) judge(h *half, now int64) verdict {
	age := h.age(now)
	switch {
	case r.opts.Max > 0 && h.Checks >= r.opts.Max, age > r.opts.MaxAge.Milliseconds():
		return halfGiveUp
	case h.StoreTimestamp >= now:
		return halfYoung
	case h.immunity >= 0 && age < h.immunity:
		return halfDefer
	case h.immunity < 0 && age < r.opts.MinAge.Milliseconds():
		return halfYoung
	}
	return halfCheck
}

// one does what was decided about one half message. An error means that nothing can be stored.
func (r *halfRounds) one(ctx context.Context, run *CheckRun, h *half, what verdict) error {
	copied, res, err := r.again(ctx, run, h, what)
	if err != nil || copied == nil || what != halfCheck {
		return err
	}
	topic, id, ok := realQueue(copied.Properties)
	if !ok {
		topic, id = copied.Topic, copied.QueueID
	}
	group, _ := copied.Properties.Get(message.PropertyProducerGroup)
	rec := commitlog.Record{
		Magic: commitlog.MagicV1, BodyCRC: message.CRC(copied.Body), QueueID: id, Flag: copied.Flag, QueueOffset: res.QueueOffset,
		PhysicalOffset: res.PhysicalOffset, SysFlag: copied.SysFlag, BornTimestamp: copied.BornTimestamp, BornHost: copied.BornHost,
		StoreTimestamp: res.StoreTimestamp, StoreHost: copied.StoreHost, ReconsumeTimes: copied.ReconsumeTimes,
		Body: copied.Body, Topic: []byte(topic), Properties: []byte(copied.Properties),
	}
	if len(topic) > 127 {
		rec.Magic = commitlog.MagicV2
	}
	rec.Size = int32(rec.EncodedSize())
	r.ask(ctx, run, CheckRequest{
		Group: group, GroupHash: h.GroupHash, Number: res.QueueOffset, PhysicalOffset: res.PhysicalOffset, Size: int32(res.Size), Record: &rec,
	})
	return nil
}

// again stores a half message once more, or in the topic of those given up, unless it was ended meanwhile. It gives the
// copy.
func (r *halfRounds) again(ctx context.Context, run *CheckRun, h *half, what verdict) (*message.Message, PutResult, error) {
	e := r.engine
	stripe := e.stripe(h.key)
	stripe.Lock()
	defer stripe.Unlock()
	if now, ok := e.set.find(*h); !ok || now.Number != h.Number {
		return nil, PutResult{}, nil
	}
	ctx = context.WithoutCancel(ctx)
	if _, committed := e.set.committed(h.Number); committed { // its op message could not be written
		return nil, PutResult{}, e.op(ctx, h.Number)
	}
	m, err := r.store.MessageAt(h.PhysicalOffset)
	if errors.Is(err, ErrNotFound) || errors.Is(err, mappedfile.ErrCorrupt) {
		run.Orphans++
		r.store.opts.Logger.Warn("open transaction without its message", "number", h.Number, "offset", h.PhysicalOffset, "err", err)
		if errors.Is(err, ErrNotFound) { // it will not come back
			return nil, PutResult{}, e.op(ctx, h.Number)
		}
		return nil, PutResult{}, nil
	}
	if err != nil {
		return nil, PutResult{}, err
	}
	if what == halfGiveUp {
		return nil, PutResult{}, r.giveUp(ctx, run, h, m)
	}
	if m.Properties, err = r.copied(m.Properties, h, what); err != nil {
		return nil, PutResult{}, err
	}
	if what == halfDefer {
		run.Deferred++
	}
	res, err := e.append(ctx, m, false)
	return m, res, err
}

// copied is the property list of a copy. That of one without a UNIQ_KEY names the first one, by which its copies are known.
func (r *halfRounds) copied(p message.Properties, h *half, what verdict) (message.Properties, error) {
	var more []string
	if what == halfCheck {
		more = append(more, message.PropertyTransactionCheckTimes, strconv.Itoa(h.Checks+1))
	}
	if _, ok := p.Get(message.PropertyUniqueKey); h.first < 0 && (what == halfDefer || !ok) {
		more = append(more, message.PropertyPreparedQueueOffset, strconv.FormatInt(h.Number, 10))
	}
	return r.engine.store.withProperties(p, more...)
}

// giveUp moves a half message to where somebody may find it, and ends it.
func (r *halfRounds) giveUp(ctx context.Context, run *CheckRun, h *half, m *message.Message) error {
	moved := *m
	moved.Topic, moved.QueueID = GiveUpTopicName, 0
	queue, err := r.store.queue(moved.Topic, moved.QueueID)
	if err != nil {
		return err
	}
	if _, err := r.store.append(ctx, &moved, queue, false); err != nil {
		return err
	}
	run.GaveUp++
	r.store.opts.Logger.Warn("transaction given up", "topic", GiveUpTopicName, "number", h.Number, "offset", h.PhysicalOffset, "checks", h.Checks)
	return r.engine.op(ctx, h.Number)
}
