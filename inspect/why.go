package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// StepState says how a message fared at one step of its way.
type StepState string

// The states.
const (
	StepOK      StepState = "ok"      // it is past that step
	StepWaiting StepState = "waiting" // it has not come further yet, and may
	StepBroken  StepState = "broken"  // it comes no further
	StepNote    StepState = "note"    // something to know
)

// WhyStep is one step on the way of a message to its consumers.
type WhyStep struct {
	What  string    `json:"what"` // "record", "queue unit", "delay", …
	State StepState `json:"state"`
	// File and Offset are the place that shows it; "" when none does.
	File   string `json:"file,omitempty"`
	Offset int64  `json:"offset,omitempty"`
	Text   string `json:"text"`
}

// Why is the way of a message to its consumers, as far as the store knows it.
type Why struct {
	Steps []WhyStep `json:"steps"`
	// Break is the number of the first step that the message did not come past, -1 when it was delivered.
	Break int `json:"break"`
	// At is the moment of looking, ms; a broker may have gone on meanwhile.
	At int64 `json:"at"`
}

// WhyRequest names a message: by an id, or by the place in a queue.
type WhyRequest struct {
	ID          string // offset message id or unique key; "": by place
	Topic       string
	QueueID     int32
	QueueOffset int64
	// Group is the consumer group that waits for it; "": all that have a stored offset for its queue.
	Group string
	// MaxScan is as in [FindOptions].
	MaxScan int64
	// DelayLevels is messageDelayLevel. Default "": that of the line.
	DelayLevels string
	// Now is the time in ms by which delays are judged. 0: that of the machine.
	Now int64
}

// maxCopies bounds how many records of one message are kept.
const maxCopies = 256

// Why follows a message from its record to its consumers: prepared or half message and its end, delay, record, queue unit,
// tags code, the queue and group settings, group offset, retries. The first step that it did not come past is the Break. Damage
// on the way is reported. An error means that something could not be read, and nothing can be said.
func (d *Dir) Why(ctx context.Context, q WhyRequest, report func(Finding)) (*Why, error) {
	if q.Now == 0 {
		q.Now = time.Now().UnixMilli()
	}
	id, err := d.lineOf()
	if err != nil {
		return nil, err
	}
	rules, err := dialect.Parse(id.Line)
	if err != nil {
		return nil, err
	}
	w := &whyer{dir: d, q: q, why: &Why{Break: -1, At: q.Now}, report: report}
	if w.derive, err = recovery.NewDeriver(rules, q.DelayLevels); err != nil {
		return nil, err
	}
	if err := w.load(); err != nil {
		return nil, err
	}
	if err := w.follow(ctx); err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err // what was not looked at is not known to be not there
	}
	return w.why, nil
}

// whyer is one run of Why.
type whyer struct {
	dir    *Dir
	q      WhyRequest
	why    *Why
	report func(Finding)
	derive *recovery.Deriver
	copies []LogRecord // of the message, in log order

	offsets config.ConsumerOffsets
	delays  config.DelayOffsets
	topics  config.Topics
	groups  config.SubscriptionGroups
}

// load reads the files under config. One that is damaged is a finding, and as if it were not there.
func (w *whyer) load() error {
	for _, t := range []config.Table{&w.offsets, &w.delays, &w.topics, &w.groups} {
		notice, err := config.Load[mappedfile.File](w.dir.mapped(), t)
		if damage, ok := errors.AsType[*config.DamageError](err); ok {
			w.report(Finding{Kind: BadFile, Severity: Error, File: damage.File, Offset: damage.Offset, Text: damage.Err.Error()})
			err = nil
		}
		if err != nil {
			return err
		}
		if notice != nil {
			w.report(Finding{Kind: BackupInUse, Severity: Warning, File: notice.File, Text: notice.Text})
		}
	}
	return nil
}

// step notes a step; one that the message did not come past ends the way.
func (w *whyer) step(what string, state StepState, file string, offset int64, format string, args ...any) error {
	w.why.Steps = append(w.why.Steps, WhyStep{what, state, file, offset, fmt.Sprintf(format, args...)})
	if state != StepBroken && state != StepWaiting {
		return nil
	}
	if w.why.Break < 0 {
		w.why.Break = len(w.why.Steps) - 1
	}
	return errStop
}

// at notes a step that a record shows.
func (w *whyer) at(r *LogRecord, what string, state StepState, format string, args ...any) error {
	file, offset := r.place()
	return w.step(what, state, file, offset, format, args...)
}

// follow goes the way.
func (w *whyer) follow(ctx context.Context) error {
	if err := w.locate(ctx); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{w.prepared, w.half, w.delayed} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	r := w.target()
	if r == nil {
		return w.step("record", StepBroken, "", 0, "the message never came to its topic: there is no record of it there")
	}
	for _, part := range []func(*LogRecord) error{w.record, w.unit, w.settings, w.consumers} {
		if err := part(r); err != nil {
			return err
		}
	}
	return nil
}

// keep keeps a record for longer than a step of an iteration.
func (w *whyer) keep(r *LogRecord) {
	if len(w.copies) == maxCopies || slices.ContainsFunc(w.copies, func(c LogRecord) bool { return c.PhysicalOffset == r.PhysicalOffset }) {
		return
	}
	k := *r
	k.Body, k.Topic, k.Properties = bytes.Clone(r.Body), bytes.Clone(r.Topic), bytes.Clone(r.Properties)
	w.copies = append(w.copies, k)
	slices.SortFunc(w.copies, func(a, b LogRecord) int { return int(min(max(a.PhysicalOffset-b.PhysicalOffset, -1), 1)) })
}

// locate finds the records of the message.
func (w *whyer) locate(ctx context.Context) error {
	looked := &Looked{}
	o := FindOptions{MaxScan: w.q.MaxScan, Looked: looked}
	found := w.dir.ByPlace(ctx, w.q.Topic, w.q.QueueID, w.q.QueueOffset, o, w.report)
	if w.q.ID != "" {
		found = w.dir.Find(ctx, Filter{Topic: w.q.Topic, ID: w.q.ID}, o, w.report)
	}
	unique := ""
	for r, err := range found {
		if err != nil {
			return err
		}
		w.keep(&r)
		unique = string(message.Lookup(r.Properties, message.PropertyUniqueKey))
	}
	if len(w.copies) == 0 {
		return w.absent(looked)
	}
	if unique == "" || unique == w.q.ID {
		return nil
	}
	// The other records of the message, such as the half message of a committed one.
	for r, err := range w.dir.Find(ctx, Filter{UniqueKey: unique}, FindOptions{MaxScan: w.q.MaxScan}, w.report) {
		if err != nil {
			return err
		}
		w.keep(&r)
	}
	return nil
}

// absent says why there is no record.
func (w *whyer) absent(looked *Looked) error {
	segs, err := w.dir.segmentsIn(commitLogDir, func(Finding) {})
	if err != nil {
		return err
	}
	start := int64(0)
	if len(segs) > 0 {
		start = segs[0].Start
	}
	if _, off, err := message.ParseOffsetID(w.q.ID); err == nil && off >= 0 && off < start {
		return w.step("record", StepBroken, "", 0, "the log begins at %d: the record at %d was removed, or never was here", start, off)
	}
	if w.q.ID != "" {
		return w.step("record", StepBroken, "", 0, "no record has that id (%s): it was never stored here, or was removed", looked)
	}
	first, end, err := w.dir.queueBounds(w.q.Topic, w.q.QueueID)
	if err != nil {
		return err
	}
	u, ok, err := w.dir.UnitAt(w.q.Topic, w.q.QueueID, w.q.QueueOffset)
	switch {
	case err != nil:
		return err
	case ok && u.IsFiller():
		return w.step("queue unit", StepBroken, u.File, u.Offset, "a filler: the queue has no message at this offset")
	case ok && u.Valid() && u.PhysicalOffset < start:
		return w.step("record", StepBroken, u.File, u.Offset, "the unit points to %d, the log begins at %d: the record was removed", u.PhysicalOffset, start)
	case ok && u.Valid():
		return w.step("record", StepBroken, u.File, u.Offset, "the unit points to %d, and no record of this queue can be read there", u.PhysicalOffset)
	case first == end:
		return w.step("record", StepBroken, "", 0, "there is no queue %s/%d (%s)", w.q.Topic, w.q.QueueID, looked)
	case w.q.QueueOffset < first:
		return w.step("record", StepBroken, "", 0, "the queue begins at %d: the message was removed", first)
	case w.q.QueueOffset >= end:
		return w.step("record", StepBroken, "", 0, "the queue ends at %d, and the log has no later record of it (%s)", end, looked)
	}
	return w.step("record", StepBroken, u.File, u.Offset, "the queue has nothing at this offset, nor has the log (%s)", looked)
}

// roles of a record's topic.
const (
	retryPrefix = "%RETRY%"
	deadPrefix  = "%DLQ%"
	timerTopic  = "rmq_sys_wheel_timer"
)

// inner says whether a topic is one that messages only pass through.
func inner(topic string) bool {
	return topic == halfTopic || topic == recovery.ScheduleTopic || topic == timerTopic ||
		strings.HasPrefix(topic, retryPrefix) || strings.HasPrefix(topic, deadPrefix)
}

// target is the record that consumers of the topic get: the one that was asked for if it is one, else the last one.
func (w *whyer) target() *LogRecord {
	var last *LogRecord
	for i := range w.copies {
		r := &w.copies[i]
		if w.asked(r) && r.SysFlag.Transaction() != message.FlagPrepared && string(r.Topic) != halfTopic && string(r.Topic) != recovery.ScheduleTopic && string(r.Topic) != timerTopic {
			return r
		}
		if !inner(string(r.Topic)) && r.SysFlag.Transaction() != message.FlagPrepared && r.SysFlag.Transaction() != message.FlagRollback {
			last = r
		}
	}
	return last
}

// asked says whether a record is the very one that was asked for.
func (w *whyer) asked(r *LogRecord) bool {
	if w.q.ID != "" {
		return strings.EqualFold(r.ID(), w.q.ID)
	}
	return string(r.Topic) == w.q.Topic && r.QueueID == w.q.QueueID && r.QueueOffset == w.q.QueueOffset
}

// record looks at the record itself.
func (w *whyer) record(r *LogRecord) error {
	name := fmt.Sprintf("%s/%d/%d at %d, %d bytes, stored %s", r.Topic, r.QueueID, r.QueueOffset, r.PhysicalOffset, r.Size, timeText(r.StoreTimestamp))
	if r.Damaged != "" {
		return w.at(r, "record", StepBroken, "%s: its bytes do not match its CRC, consumers cannot read it", name)
	}
	if r.SysFlag.Transaction() == message.FlagRollback {
		return w.at(r, "record", StepBroken, "%s: it rolls a transaction back, and is never delivered", name)
	}
	return w.at(r, "record", StepOK, "%s", name)
}

// unit looks at the unit of the record's queue, and its tags code.
func (w *whyer) unit(r *LogRecord) error {
	if r.SysFlag.Has(message.FlagInnerBatch) {
		return w.at(r, "queue unit", StepNote, "a batch: its unit is in the batch queue")
	}
	u, ok, err := w.dir.UnitAt(string(r.Topic), r.QueueID, r.QueueOffset)
	if err != nil {
		return err
	}
	first, end, err := w.dir.queueBounds(string(r.Topic), r.QueueID)
	if err != nil {
		return err
	}
	switch {
	case first == end:
		return w.step("queue unit", StepBroken, "", 0, "queue %s/%d has no files: consumers find nothing", r.Topic, r.QueueID)
	case r.QueueOffset < first:
		return w.step("queue unit", StepBroken, "", 0, "the queue begins at %d: the unit was removed", first)
	case r.QueueOffset >= end:
		return w.step("queue unit", StepWaiting, "", 0, "the queue ends at %d: the record is not dispatched to it yet", end)
	case !ok || u.IsFiller() || !u.Valid():
		return w.step("queue unit", StepBroken, u.File, u.Offset, "there is none for the record: consumers pass over it")
	case u.PhysicalOffset != r.PhysicalOffset:
		return w.step("queue unit", StepBroken, u.File, u.Offset, "it points to %d, the record lies at %d", u.PhysicalOffset, r.PhysicalOffset)
	case u.Size != r.Size:
		return w.step("queue unit", StepBroken, u.File, u.Offset+8, "it says %d bytes, the record has %d", u.Size, r.Size)
	}
	if err := w.step("queue unit", StepOK, u.File, u.Offset, "points to the record"); err != nil {
		return err
	}
	return w.tags(r, u)
}

// tags compares the tags code of a unit.
func (w *whyer) tags(r *LogRecord, u QueueUnit) error {
	tag := w.dir.Properties(r.Properties)[message.PropertyTags]
	code, where, err := w.dir.tagsCode(u)
	if err != nil {
		return err
	}
	want := message.TagsCode(tag)
	_ = w.derive.Units(&r.Record, func(p recovery.Placement) error {
		if bytes.Equal(p.Topic, r.Topic) && p.QueueID == r.QueueID {
			want = p.Unit.TagsCode
		}
		return nil
	})
	switch {
	case where == "":
		return w.step("tags code", StepBroken, u.File, u.Offset+12, "the unit leads to an extension that is not there: filters by tag go wrong")
	case code != want:
		return w.step("tags code", StepBroken, u.File, u.Offset+12, "it is %d, tag %q has %d: consumers that subscribe to the tag do not get it", code, tag, want)
	case tag == "":
		return w.step("tags code", StepOK, u.File, u.Offset+12, "%d: no tag; only a subscription to * gets it", code)
	}
	return w.step("tags code", StepOK, u.File, u.Offset+12, "%d, of tag %q: subscriptions to it or to * get it", code, tag)
}

// describeRecord names a record in a text.
func describeRecord(r *commitlog.Record) string {
	return fmt.Sprintf("%s/%d/%d at %d", r.Topic, r.QueueID, r.QueueOffset, r.PhysicalOffset)
}
