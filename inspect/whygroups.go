package inspect

import (
	"slices"
	"strings"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/consumequeue"
)

// settings looks at what the broker says of the topic and the group.
func (w *whyer) settings(r *LogRecord) error {
	topic := string(r.Topic)
	if t, ok := w.topics.Table.Get(topic); ok {
		switch {
		case t.Perm&config.PermRead == 0:
			return w.step("topic", StepBroken, w.topics.File(), 0, "topic %s is not readable (perm %d)", topic, t.Perm)
		case r.QueueID >= t.ReadQueues:
			return w.step("topic", StepBroken, w.topics.File(), 0, "topic %s has %d queues for reading: no consumer reads queue %d", topic, t.ReadQueues, r.QueueID)
		}
		if err := w.step("topic", StepOK, w.topics.File(), 0, "readable, %d queues for reading", t.ReadQueues); err != nil {
			return err
		}
	} else if w.topics.Table.Len() > 0 {
		if err := w.step("topic", StepNote, w.topics.File(), 0, "topic %s is not in it: a broker makes it when somebody asks for it, or never", topic); err != nil {
			return err
		}
	}
	if g, ok := w.groups.Table.Get(w.q.Group); ok && !g.ConsumeEnable {
		return w.step("group", StepBroken, w.groups.File(), 0, "group %s may not consume (consumeEnable is false)", w.q.Group)
	}
	return nil
}

// consumers compares the stored offsets of the groups.
func (w *whyer) consumers(r *LogRecord) error {
	topic := string(r.Topic)
	groups := []string{w.q.Group}
	if w.q.Group == "" {
		groups = nil
		for key := range w.offsets.Table.All() {
			if t, group := config.SplitKey(key); t == topic {
				groups = append(groups, group)
			}
		}
		slices.Sort(groups)
	}
	read := false
	for _, group := range groups {
		next, ok := w.offsets.At(topic, group, r.QueueID)
		what := "group offset of " + group
		switch {
		case !ok && w.q.Group == "":
		case !ok:
			return w.step(what, StepBroken, w.offsets.File(), 0, "it has stored none for queue %d: it never finished a message of it, or does not read it", r.QueueID)
		case next <= r.QueueOffset:
			if err := w.step(what, StepWaiting, w.offsets.File(), 0, "%d: it has %d messages to finish before this one", next, r.QueueOffset-next); err != nil && w.q.Group != "" {
				return err
			}
		default:
			read = true
			if err := w.step(what, StepOK, w.offsets.File(), 0, "%d: it is past the message", next); err != nil {
				return err
			}
		}
	}
	if w.q.Group == "" && len(groups) == 0 {
		return w.step("group offset", StepWaiting, w.offsets.File(), 0, "no group has stored an offset for the topic")
	}
	if w.q.Group == "" && read && w.why.Break >= 0 {
		return nil // some have it, the first that has not is the break
	}
	return w.retried()
}

// retried looks for what became of the message after a consumer sent it back.
func (w *whyer) retried() error {
	for i := range w.copies {
		r := &w.copies[i]
		topic := string(r.Topic)
		group, back := strings.CutPrefix(topic, retryPrefix)
		if dead, ok := strings.CutPrefix(topic, deadPrefix); ok && (w.q.Group == "" || w.q.Group == dead) {
			return w.at(r, "retry", StepBroken, "group %s gave it up: %s, after %d times", dead, describeRecord(&r.Record), r.ReconsumeTimes)
		}
		if !back || w.q.Group != "" && w.q.Group != group {
			continue
		}
		next, ok := w.offsets.At(topic, group, r.QueueID)
		if !ok || next <= r.QueueOffset {
			if err := w.at(r, "retry", StepWaiting, "group %s sent it back (%d times): %s, and has not read it again", group, r.ReconsumeTimes, describeRecord(&r.Record)); err != nil {
				return err
			}
		}
		if err := w.at(r, "retry", StepOK, "group %s sent it back (%d times) and read it again: %s", group, r.ReconsumeTimes, describeRecord(&r.Record)); err != nil {
			return err
		}
	}
	return nil
}

// queueBounds gives the first offset of a consume queue that is a message's and the one behind the last; both are the same for
// a queue without one.
func (d *Dir) queueBounds(topic string, queueID int32) (first, end int64, err error) {
	queues, _, err := d.queueTree(queueDir, QueueFilter{Topic: topic, Queue: &queueID}, func(Finding) {})
	if err != nil {
		return 0, 0, err
	}
	for _, q := range queues {
		found := false
		for _, seg := range q.Segments {
			from, to, err := d.unitBounds(seg)
			if err != nil {
				return 0, 0, err
			}
			if from == to {
				continue
			}
			if !found {
				first, found = from, true
			}
			end = to
		}
	}
	return first, end, nil
}

// unitBounds gives the bounds of the units in a queue file, fillers at its begin left out.
func (d *Dir) unitBounds(seg Segment) (first, end int64, err error) {
	f, err := d.open(seg.File)
	if err != nil {
		return 0, 0, err
	}
	defer f.close()
	base := seg.Start / consumequeue.UnitSize
	found := false
	buf := make([]byte, unitWindow)
	for pos := int64(0); seg.Length-pos >= consumequeue.UnitSize; {
		b := buf[:min(unitWindow, (seg.Length-pos)/consumequeue.UnitSize*consumequeue.UnitSize)]
		if _, err := f.ReadAt(b, pos); err != nil {
			return 0, 0, err
		}
		for at := 0; at < len(b); at += consumequeue.UnitSize {
			u, err := consumequeue.Decode(b[at:])
			if err != nil {
				return 0, 0, err
			}
			if !u.Valid() || u.IsFiller() && !found {
				continue
			}
			n := base + (pos+int64(at))/consumequeue.UnitSize
			if !found {
				first, found = n, true
			}
			end = n + 1
		}
		pos += int64(len(b))
	}
	return first, end, nil
}

// tagsCode is the tags code of a unit, which may stand in the extension; where is the file that holds it, "" when there is
// none.
func (d *Dir) tagsCode(u QueueUnit) (code int64, where string, err error) {
	if !consumequeue.IsExtAddress(u.TagsCode) {
		return u.TagsCode, u.File, nil
	}
	queues, _, err := d.queueTree(extDir, QueueFilter{Topic: u.Topic, Queue: &u.QueueID}, func(Finding) {})
	if err != nil {
		return 0, "", err
	}
	address := consumequeue.ExtOffset(u.TagsCode)
	for _, q := range queues {
		n, ok := segmentOf(q.Segments, address)
		if !ok {
			continue
		}
		f, err := d.open(q.Segments[n].File)
		if err != nil {
			return 0, "", err
		}
		defer f.close()
		seg := q.Segments[n]
		for e, err := range consumequeue.ScanExt(seg.File, seg.Start, f, seg.Length) {
			if err != nil || e.Offset > address {
				break
			}
			if e.Offset == address && !e.End {
				return e.TagsCode, seg.File, nil
			}
		}
	}
	return 0, "", nil
}
