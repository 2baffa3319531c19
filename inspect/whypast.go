package inspect

import (
	"context"
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/txstate"
)

// prepared follows a prepared message of 3.1 to the record that ends its transaction, or a committed one back to it.
func (w *whyer) prepared(ctx context.Context) error {
	for i := range w.copies {
		r := w.copies[i]
		switch r.SysFlag.Transaction() {
		case message.FlagPrepared:
			return w.prepared31(ctx, &r)
		case message.FlagCommit:
			if p, ok, err := w.dir.RecordAt(r.PreparedTransactionOffset, func(Finding) {}); err == nil && ok && p.SysFlag.Transaction() == message.FlagPrepared {
				if err := w.at(&p, "prepared message", StepOK, "%s, committed by the record at %d", describeRecord(&p.Record), r.PhysicalOffset); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// prepared31 follows a prepared message of 3.1.
func (w *whyer) prepared31(ctx context.Context, r *LogRecord) error {
	group := string(message.Lookup(r.Properties, message.PropertyProducerGroup))
	if err := w.at(r, "prepared message", StepOK, "%s, number %d in the state table, producer group %q", describeRecord(&r.Record), r.QueueOffset, group); err != nil {
		return err
	}
	for e, err := range w.dir.Log(ctx, LogRange{From: r.PhysicalOffset + int64(r.Size)}, w.report) {
		if err != nil {
			return err
		}
		kind := e.SysFlag.Transaction()
		if kind != message.FlagCommit && kind != message.FlagRollback || e.PreparedTransactionOffset != r.PhysicalOffset {
			continue
		}
		if kind == message.FlagRollback {
			return w.at(&e, "end of the transaction", StepBroken, "rolled back by the record at %d", e.PhysicalOffset)
		}
		w.keep(&e)
		return w.at(&e, "end of the transaction", StepOK, "committed by the record at %d", e.PhysicalOffset)
	}
	for s, err := range w.dir.StateTable(ctx, func(Finding) {}) {
		if err != nil {
			return err
		}
		if s.CommitOffset != r.PhysicalOffset {
			continue
		}
		if s.State != txstate.Prepared {
			return w.step("end of the transaction", StepBroken, s.File, s.Offset+20, "the state table says %s, and the log has no record that ends it", s.State)
		}
		return w.step("end of the transaction", StepWaiting, s.File, s.Offset+20, "open: the producer group %q has not answered", group)
	}
	return w.at(r, "end of the transaction", StepBroken, "the log has no record that ends it, and the state table has none for it: nobody asks the producer")
}

// half follows a half message of 4.x.
func (w *whyer) half(ctx context.Context) error {
	var h, committed *LogRecord
	for i := range w.copies {
		r := &w.copies[i]
		switch {
		case string(r.Topic) == halfTopic:
			h = r
		case h != nil && !inner(string(r.Topic)), r.SysFlag.Transaction() == message.FlagCommit:
			committed = r
		}
	}
	if h == nil {
		return nil
	}
	t, _ := foldHalf(&h.Record)
	checks := message.Lookup(h.Properties, message.PropertyTransactionCheckTimes)
	note := ""
	if len(checks) > 0 {
		note = ", the producer was asked " + string(checks) + " times"
	}
	if err := w.at(h, "half message", StepOK, "%s, for %s/%d, producer group %q%s", describeRecord(&h.Record), t.Topic, t.QueueID, t.Group, note); err != nil {
		return err
	}
	if committed != nil {
		return w.at(committed, "end of the transaction", StepOK, "committed: %s", describeRecord(&committed.Record))
	}
	if string(message.Lookup(h.Properties, message.PropertyRealTopic)) == "" {
		return w.at(h, "end of the transaction", StepBroken, "the half message does not say which topic it is for")
	}
	op, err := w.opOf(ctx, h, t)
	if err != nil {
		return err
	}
	if op != nil {
		return w.at(op, "end of the transaction", StepBroken, "rolled back, or given up: the op message %s ends it, and there is no record in the topic", describeRecord(&op.Record))
	}
	if progress, ok := w.offsets.At(halfTopic, transactionGroup, h.QueueID); ok && h.QueueOffset < progress {
		return w.step("end of the transaction", StepBroken, w.offsets.File(), 0, "ended: the half messages before %d are finished, and there is no record of it in the topic", progress)
	}
	return w.at(h, "end of the transaction", StepWaiting, "open since %s: the producer group %q has not answered", timeText(h.StoreTimestamp), t.Group)
}

// opOf finds the op message that ends a half message, by the units of its queue, or by the log where those are missing.
func (w *whyer) opOf(ctx context.Context, h *LogRecord, t *foldedHalf) (*LogRecord, error) {
	found := func(r *LogRecord) bool {
		if string(r.Topic) != opTopic || r.QueueID != h.QueueID || string(message.Lookup(r.Properties, message.PropertyTags)) != "d" {
			return false
		}
		for word := range strings.SplitSeq(string(r.Body), ",") {
			if n, err := strconv.ParseInt(word, 10, 64); err == nil && (n == h.QueueOffset || n == t.first) {
				return true
			}
		}
		return false
	}
	l := recordReader{dir: w.dir}
	defer l.close()
	queued := false
	for u, err := range w.dir.Queues(ctx, QueueFilter{Topic: opTopic}, func(Finding) {}) {
		if err != nil {
			return nil, err
		}
		queued = true
		r, err := l.at(u.PhysicalOffset)
		if err != nil {
			return nil, err
		}
		if r != nil {
			if op := (&LogRecord{File: l.open.seg.File, Record: *r}); found(op) {
				return op, nil
			}
		}
	}
	if queued {
		return nil, nil
	}
	for r, err := range w.dir.Log(ctx, LogRange{From: h.PhysicalOffset}, func(Finding) {}) {
		if err != nil {
			return nil, err
		}
		if found(&r) {
			return &r, nil
		}
	}
	return nil, nil
}

// delayed looks at a message that waits for its time, or waited.
func (w *whyer) delayed(context.Context) error {
	var waits, delivered *LogRecord
	target := w.target()
	for i := range w.copies {
		r := &w.copies[i]
		switch topic := string(r.Topic); {
		case topic == recovery.ScheduleTopic && target != nil && target.PhysicalOffset < r.PhysicalOffset && !w.asked(r):
			// It waits to be tried again, after it was delivered once.
		case topic == timerTopic:
			if err := w.at(r, "timer", StepNote, "%s, of the timer of 5.x: when it is due is not looked at", describeRecord(&r.Record)); err != nil {
				return err
			}
		case topic == recovery.ScheduleTopic && (waits == nil || w.asked(r) || !w.asked(waits)):
			waits, delivered = r, nil
		case waits != nil && string(message.Lookup(waits.Properties, message.PropertyRealTopic)) == topic:
			delivered = r
		}
	}
	if waits == nil {
		return nil
	}
	level, err := strconv.ParseInt(string(message.Lookup(waits.Properties, message.PropertyDelay)), 10, 32)
	if err != nil || level < 1 {
		level = int64(waits.QueueID) + 1
	}
	due := w.derive.Levels.DeliverAt(int(level), waits.StoreTimestamp)
	if u, ok, err := w.dir.UnitAt(recovery.ScheduleTopic, waits.QueueID, waits.QueueOffset); err == nil && ok && u.PhysicalOffset == waits.PhysicalOffset && u.TagsCode > 0 {
		due = u.TagsCode
	}
	if err := w.at(waits, "delay", StepOK, "%s, level %d, due %s", describeRecord(&waits.Record), level, timeText(due)); err != nil {
		return err
	}
	if delivered != nil {
		return w.at(delivered, "delivery after the delay", StepOK, "%s", describeRecord(&delivered.Record))
	}
	progress, ok := w.delays.Table.Get(waits.QueueID + 1)
	file := w.delays.File()
	switch {
	case ok && waits.QueueOffset < progress:
		return w.step("delivery after the delay", StepBroken, file, 0, "level %d is delivered up to %d, and there is no record of the message in its topic: it was removed, or lost", waits.QueueID+1, progress)
	case due > w.q.Now:
		return w.step("delivery after the delay", StepWaiting, file, 0, "it is not due yet")
	}
	return w.step("delivery after the delay", StepWaiting, file, 0, "overdue by %d ms: level %d is delivered up to %d, the message is %d; the delay service is behind, or does not run",
		w.q.Now-due, waits.QueueID+1, progress, waits.QueueOffset)
}
