package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/message"
)

// Timeline is what the records of one message tell, in the order of their times.
type Timeline struct {
	// ID is the message's unique id.
	ID string
	// Sends are its Pub records: more than one when it was sent again.
	Sends []Context
	// Ends are the decisions on its transaction.
	Ends []Context
	// Consumes are the calls of listeners.
	Consumes []Consume
	// Recalls are requests to take a timed message back.
	Recalls []Context
}

// Consume is one call of a listener with the message.
type Consume struct {
	// Before and After are its two records; one may be missing, since trace messages may be lost or not written yet.
	Before, After *Context
}

// Group is the consumer group, "" if no record says it.
func (c *Consume) Group() string {
	if c.Before != nil && c.Before.Group != "" {
		return c.Before.Group
	}
	if c.After != nil {
		return c.After.Group
	}
	return ""
}

// began is when the listener was called, as far as known.
func (c *Consume) began() int64 {
	if c.Before != nil {
		return c.Before.Time
	}
	return c.After.Time
}

// NewTimeline picks the records of one message out of many. A record that is there twice, as after a resend of the trace message,
// counts once.
func NewTimeline(id string, records []Context) *Timeline {
	t := &Timeline{ID: id}
	pairs := map[string]*Consume{}
	var order []string
	seen := map[string]bool{}
	for i := range records {
		c := &records[i]
		text := string(c.AppendTo(nil))
		if !c.tellsOf(id) || seen[text] {
			continue
		}
		seen[text] = true
		switch c.Kind {
		case Pub:
			t.Sends = append(t.Sends, *c)
		case EndTransaction:
			t.Ends = append(t.Ends, *c)
		case Recall:
			t.Recalls = append(t.Recalls, *c)
		case SubBefore, SubAfter:
			p := pairs[c.RequestID]
			if p == nil {
				p = &Consume{}
				pairs[c.RequestID] = p
				order = append(order, c.RequestID)
			}
			if c.Kind == SubBefore {
				p.Before = c
			} else {
				p.After = c
			}
		}
	}
	for _, request := range order {
		t.Consumes = append(t.Consumes, *pairs[request])
	}
	byTime := func(a, b Context) int { return cmp.Compare(a.Time, b.Time) }
	slices.SortStableFunc(t.Sends, byTime)
	slices.SortStableFunc(t.Ends, byTime)
	slices.SortStableFunc(t.Recalls, byTime)
	slices.SortStableFunc(t.Consumes, func(a, b Consume) int { return cmp.Compare(a.began(), b.began()) })
	return t
}

func (c *Context) tellsOf(id string) bool {
	return len(c.Beans) > 0 && slices.Contains(strings.Split(c.Beans[0].MessageID, ","), id)
}

// Empty says that no record tells of the message.
func (t *Timeline) Empty() bool {
	return len(t.Sends)+len(t.Ends)+len(t.Consumes)+len(t.Recalls) == 0
}

// WriteText prints the timeline, one event a line.
func (t *Timeline) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "message %s\n", t.ID)
	for i := range t.Sends {
		s, bean := &t.Sends[i], &t.Sends[i].Beans[0]
		fmt.Fprintf(&b, "%s  sent         group %s to topic %s on %s, %d bytes, %d ms, %s, %s, offset id %s\n", clock(s.Time),
			s.Group, bean.Topic, bean.StoreHost, bean.BodyLength, s.Cost, bean.Type, outcome(s.Success), bean.OffsetID)
	}
	for i := range t.Ends {
		e, bean := &t.Ends[i], &t.Ends[i].Beans[0]
		by := "by the producer"
		if bean.FromCheck {
			by = "after a check"
		}
		fmt.Fprintf(&b, "%s  transaction  group %s, %s %s\n", clock(e.Time), e.Group, bean.State, by)
	}
	for i := range t.Recalls {
		fmt.Fprintf(&b, "%s  recalled     group %s, %s\n", clock(t.Recalls[i].Time), t.Recalls[i].Group, outcome(t.Recalls[i].Success))
	}
	for i := range t.Consumes {
		b.WriteString(t.Consumes[i].line())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Consume) line() string {
	retry, end := 0, "no end known"
	if c.Before != nil {
		retry = c.Before.Beans[0].RetryTimes
	}
	if c.After != nil {
		end = fmt.Sprintf("%d ms, %s", c.After.Cost, outcome(c.After.Success))
	}
	return fmt.Sprintf("%s  consumed     group %s, attempt %d, %s\n", clock(c.began()), c.Group(), retry+1, end)
}

func outcome(success bool) string {
	if success {
		return "success"
	}
	return "failure"
}

func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000") }

// String names the type.
func (t MessageType) String() string {
	switch t {
	case Normal:
		return "normal"
	case Half:
		return "half"
	case Commit:
		return "commit"
	case Delay:
		return "delay"
	}
	return fmt.Sprintf("type %d", int(t))
}

// View is one message's trace in the form that some consoles show.
type View struct {
	MessageID      string `json:"msgId"`
	Topic          string `json:"topic"`
	BornHost       string `json:"bornHost"`
	StoreHost      string `json:"storeHost"`
	BornTimestamp  int64  `json:"bornTimestamp"`
	StoreTimestamp int64  `json:"storeTimestamp"`
	CostTime       int64  `json:"costTime"`
}

// JSON is the [View] of a stored message and its timeline, which gives the cost of its last send.
func (t *Timeline) JSON(m *message.Received) ([]byte, error) {
	v := View{
		MessageID: m.ID(), Topic: m.Topic, BornHost: m.BornHost.String(), StoreHost: m.StoreHost.String(),
		BornTimestamp: m.BornTimestamp, StoreTimestamp: m.StoreTimestamp,
	}
	if n := len(t.Sends); n > 0 {
		v.CostTime = t.Sends[n-1].Cost
	}
	return json.Marshal(v)
}
