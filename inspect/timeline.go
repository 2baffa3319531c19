package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/trace"
)

// Event is something that happened to a message.
type Event struct {
	Time int64  `json:"time"` // ms since 1970
	What string `json:"what"` // "born", "stored", "sent", "consumed", …
	Text string `json:"text"`
	// File and Offset are the record that shows it.
	File   string `json:"file"`
	Offset int64  `json:"offset"`
}

// TraceOptions steer [Dir.Trace].
type TraceOptions struct {
	// Topic is that of the trace messages. Default: RMQ_SYS_TRACE_TOPIC.
	Topic string
	// MaxScan is as in [FindOptions]; it holds for the message and for its trace messages apart.
	MaxScan int64
}

// Trace gives what the store knows of a message, by its id or unique key, in the order of time: its records in all topics that
// it passed, the end of its transaction, and what producers and consumers noted in the trace topic if they did. No events
// mean that the store knows nothing of it. Damage on the way is reported.
func (d *Dir) Trace(ctx context.Context, id string, o TraceOptions, report func(Finding)) ([]Event, error) {
	if o.Topic == "" {
		o.Topic = trace.Topic
	}
	w := &whyer{dir: d, q: WhyRequest{ID: id, MaxScan: o.MaxScan}, why: &Why{Break: -1}, report: report}
	if err := w.locate(ctx); err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	// The records that end the transaction are no copies of the message.
	if err := w.prepared(ctx); err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	t := &timeline{dir: d}
	ids := []string{id}
	for i := range w.copies {
		r := &w.copies[i]
		t.record(r)
		if unique := string(message.Lookup(r.Properties, message.PropertyUniqueKey)); unique != "" && !slices.Contains(ids, unique) {
			ids = append(ids, unique)
		}
		if string(r.Topic) != halfTopic {
			continue
		}
		h, _ := foldHalf(&r.Record)
		op, err := w.opOf(ctx, r, h)
		if err != nil {
			return nil, err
		}
		if op != nil {
			t.add(op.StoreTimestamp, "transaction ended", op, "the op message %s ends %s", describeRecord(&op.Record), describeRecord(&r.Record))
		}
	}
	for _, id := range ids {
		if err := t.noted(ctx, id, o, report); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err // what was not looked at is not known to be not there
	}
	slices.SortStableFunc(t.events, func(a, b Event) int { return cmp.Compare(a.Time, b.Time) })
	return slices.Compact(t.events), nil
}

// timeline puts events together.
type timeline struct {
	dir    *Dir
	events []Event
	born   bool
}

func (t *timeline) add(ms int64, what string, r *LogRecord, format string, args ...any) {
	file, offset := r.place()
	t.events = append(t.events, Event{ms, what, fmt.Sprintf(format, args...), file, offset})
}

// record adds the events of one record of the message.
func (t *timeline) record(r *LogRecord) {
	if !t.born && r.BornTimestamp > 0 {
		t.born = true
		t.add(r.BornTimestamp, "born", r, "at %s", r.BornHost)
	}
	what, more := "stored", ""
	topic := string(r.Topic)
	switch {
	case topic == halfTopic:
		what = "half message stored"
	case topic == recovery.ScheduleTopic:
		what, more = "delayed", ", level "+string(message.Lookup(r.Properties, message.PropertyDelay))+" for "+string(message.Lookup(r.Properties, message.PropertyRealTopic))
	case topic == timerTopic:
		what = "given to the timer"
	case strings.HasPrefix(topic, retryPrefix):
		what, more = "sent back", fmt.Sprintf(", time %d", r.ReconsumeTimes)
	case strings.HasPrefix(topic, deadPrefix):
		what, more = "given up", fmt.Sprintf(", after %d times", r.ReconsumeTimes)
	case r.SysFlag.Transaction() == message.FlagPrepared:
		what = "prepared"
	case r.SysFlag.Transaction() == message.FlagCommit:
		what = "committed"
	case r.SysFlag.Transaction() == message.FlagRollback:
		what = "rolled back"
	}
	if r.Damaged != "" {
		more += "; its bytes do not match its CRC"
	}
	t.add(r.StoreTimestamp, what, r, "%s%s, on %s", describeRecord(&r.Record), more, r.StoreHost)
}

// noted adds what the trace topic says.
func (t *timeline) noted(ctx context.Context, id string, o TraceOptions, report func(Finding)) error {
	for r, err := range t.dir.Find(ctx, Filter{Topic: o.Topic, Key: id}, FindOptions{MaxScan: o.MaxScan}, report) {
		if err != nil {
			return err
		}
		body, err := PlainBody(&r.Record)
		if err != nil {
			file, offset := r.place()
			report(Finding{Kind: BadFile, Severity: Warning, File: file, Offset: offset, Text: "trace message: " + err.Error()})
			continue
		}
		for c, err := range trace.Decode(body) {
			if err != nil {
				file, offset := r.place()
				report(Finding{Kind: BadFile, Severity: Warning, File: file, Offset: offset, Text: err.Error()})
				continue
			}
			if len(c.Beans) > 0 && slices.Contains(strings.Split(c.Beans[0].MessageID, ","), id) {
				t.note(&r, &c)
			}
		}
	}
	return nil
}

// note adds one note of the trace topic.
func (t *timeline) note(r *LogRecord, c *trace.Context) {
	b := &c.Beans[0]
	how := "failure"
	if c.Success {
		how = "success"
	}
	switch c.Kind {
	case trace.Pub:
		t.add(c.Time, "sent", r, "by group %s to %s on %s, %d bytes, %d ms, %s", c.Group, b.Topic, b.StoreHost, b.BodyLength, c.Cost, how)
	case trace.SubBefore:
		t.add(c.Time, "consuming", r, "group %s, attempt %d, request %s", c.Group, b.RetryTimes+1, c.RequestID)
	case trace.SubAfter:
		ms := c.Time
		if ms == 0 {
			ms = r.BornTimestamp // older clients do not say when
		}
		t.add(ms, "consumed", r, "%s, %d ms, request %s", how, c.Cost, c.RequestID)
	case trace.EndTransaction:
		t.add(c.Time, "transaction", r, "group %s says %s, asked: %v", c.Group, b.State, b.FromCheck)
	case trace.Recall:
		t.add(c.Time, "recalled", r, "by group %s, %s", c.Group, how)
	}
}
