package config

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
)

// Table is one of the files: a [*Topics], [*SubscriptionGroups], [*ConsumerOffsets] or [*DelayOffsets].
type Table interface {
	// File is its name inside the store directory, with a forward slash.
	File() string
	// decode fills the table, which is empty, from what was read.
	decode(v *value) error
	// encode makes what is to be written.
	encode() value
	// reset empties the table.
	reset()
	// fresh makes another one of its kind.
	fresh() Table
}

// Header is what the four tables share.
type Header struct {
	// Line says which members new entries get: "3.1", "4.9" or "5.3", the names of the dialects; "" is "4.9". What was
	// read keeps the members that it had.
	Line string
	// Version is nil when the file has none: offsets have one since 5.x only.
	Version *DataVersion
	read    value
}

func (h *Header) line() string { return cmp.Or(h.Line, line49) }

// decode reads the version and gives the table, nil when there is none.
func (h *Header) decode(v *value, table string) (*value, error) {
	if v.kind != object {
		return nil, errNoObject
	}
	h.read = *v
	if d := v.get("dataVersion"); d != nil {
		h.Version = new(DataVersion)
		if err := h.Version.decode(d); err != nil {
			return nil, fmt.Errorf("dataVersion: %w", err)
		}
	}
	t := v.get(table)
	if t != nil && t.kind != object {
		return nil, fmt.Errorf("%s: %w", table, errNoObject)
	}
	return t, nil
}

func (h *Header) encode(table string, entries value) value {
	o := h.read.clone()
	o.kind = object
	if h.Version != nil {
		o.set("dataVersion", h.Version.encode(h.line()))
	}
	o.set(table, entries)
	o.sort()
	return o
}

// Topics is config/topics.json.
type Topics struct {
	Header
	Table Map[string, *Topic] // by name
}

// Permissions of a topic.
const (
	PermInherit = 1
	PermWrite   = 2
	PermRead    = 4
)

// Topic is one entry of [Topics]. Make new ones with [NewTopic].
type Topic struct {
	Name        string
	ReadQueues  int32
	WriteQueues int32
	Perm        int32  // PermInherit, PermWrite, PermRead or-ed
	FilterType  string // "SINGLE_TAG" or "MULTI_TAG"
	SysFlag     int32
	Order       bool
	Attributes  Map[string, string] // 5.x; "queue.type" is one
	read        value
}

// NewTopic is a topic with the broker's defaults: readable and writable, 16 queues.
func NewTopic(name string) *Topic {
	return &Topic{Name: name, ReadQueues: 16, WriteQueues: 16, Perm: PermRead | PermWrite, FilterType: "SINGLE_TAG"}
}

func (t *Topic) fields() []field {
	return []field{
		{"attributes", line53, &t.Attributes},
		{"order", line49, &t.Order},
		{"perm", line31, &t.Perm},
		{"readQueueNums", line31, &t.ReadQueues},
		{"topicFilterType", line31, &t.FilterType},
		{"topicName", line31, &t.Name},
		{"topicSysFlag", line49, &t.SysFlag},
		{"writeQueueNums", line31, &t.WriteQueues},
	}
}

// File is "config/topics.json".
func (t *Topics) File() string { return "config/topics.json" }

func (t *Topics) reset() { *t = Topics{Header: Header{Line: t.Line}} }

func (t *Topics) fresh() Table { return new(Topics) }

func (t *Topics) decode(v *value) error {
	table, err := t.Header.decode(v, "topicConfigTable")
	if err != nil || table == nil {
		return err
	}
	for i := range table.members {
		m := &table.members[i]
		topic := NewTopic(m.name)
		if topic.read = m.value; topic.read.kind != object {
			return fmt.Errorf("topic %s: %w", m.name, errNoObject)
		}
		if err := decodeFields(&m.value, topic.fields()); err != nil {
			return fmt.Errorf("topic %s: %w", m.name, err)
		}
		t.Table.Set(m.name, topic)
	}
	return nil
}

func (t *Topics) encode() value {
	table := value{kind: object}
	for name, topic := range t.Table.All() {
		o := encodeFields(topic.read, t.line(), topic.fields(), NewTopic(name).fields())
		table.members = append(table.members, member{name: name, value: o})
	}
	return t.Header.encode("topicConfigTable", table)
}

// SubscriptionGroups is config/subscriptionGroup.json.
type SubscriptionGroups struct {
	Header
	Table Map[string, *Group] // by name
}

// Group is one entry of [SubscriptionGroups]. Make new ones with [NewGroup].
type Group struct {
	Name                         string
	ConsumeEnable                bool
	ConsumeFromMinEnable         bool
	ConsumeBroadcastEnable       bool
	RetryQueues                  int32
	RetryMaxTimes                int32
	BrokerID                     int64
	WhichBrokerWhenConsumeSlowly int64
	NotifyConsumerIDsChanged     bool  // 4.x
	ConsumeMessageOrderly        bool  // 5.x
	ConsumeTimeoutMinutes        int32 // 5.x
	SysFlag                      int32 // 5.x
	Attributes                   Map[string, string]
	read                         value
}

// NewGroup is a group with the broker's defaults.
func NewGroup(name string) *Group {
	return &Group{
		Name: name, ConsumeEnable: true, ConsumeFromMinEnable: true, ConsumeBroadcastEnable: true, RetryQueues: 1,
		RetryMaxTimes: 16, WhichBrokerWhenConsumeSlowly: 1, NotifyConsumerIDsChanged: true, ConsumeTimeoutMinutes: 15,
	}
}

func (g *Group) fields() []field {
	policy := value{kind: object}
	policy.set("type", value{kind: text, text: "CUSTOMIZED"})
	return []field{
		{"attributes", line53, &g.Attributes},
		{"brokerId", line31, &g.BrokerID},
		{"consumeBroadcastEnable", line31, &g.ConsumeBroadcastEnable},
		{"consumeEnable", line31, &g.ConsumeEnable},
		{"consumeFromMinEnable", line31, &g.ConsumeFromMinEnable},
		{"consumeMessageOrderly", line53, &g.ConsumeMessageOrderly},
		{"consumeTimeoutMinute", line53, &g.ConsumeTimeoutMinutes},
		{"groupName", line31, &g.Name},
		{"groupRetryPolicy", line53, policy},
		{"groupSysFlag", line53, &g.SysFlag},
		{"notifyConsumerIdsChangedEnable", line49, &g.NotifyConsumerIDsChanged},
		{"retryMaxTimes", line31, &g.RetryMaxTimes},
		{"retryQueueNums", line31, &g.RetryQueues},
		{"whichBrokerWhenConsumeSlowly", line31, &g.WhichBrokerWhenConsumeSlowly},
	}
}

// File is "config/subscriptionGroup.json".
func (g *SubscriptionGroups) File() string { return "config/subscriptionGroup.json" }

func (g *SubscriptionGroups) reset() { *g = SubscriptionGroups{Header: Header{Line: g.Line}} }

func (g *SubscriptionGroups) fresh() Table { return new(SubscriptionGroups) }

func (g *SubscriptionGroups) decode(v *value) error {
	table, err := g.Header.decode(v, "subscriptionGroupTable")
	if err != nil || table == nil {
		return err
	}
	for i := range table.members {
		m := &table.members[i]
		group := NewGroup(m.name)
		if group.read = m.value; group.read.kind != object {
			return fmt.Errorf("group %s: %w", m.name, errNoObject)
		}
		if err := decodeFields(&m.value, group.fields()); err != nil {
			return fmt.Errorf("group %s: %w", m.name, err)
		}
		g.Table.Set(m.name, group)
	}
	return nil
}

func (g *SubscriptionGroups) encode() value {
	table := value{kind: object}
	for name, group := range g.Table.All() {
		o := encodeFields(group.read, g.line(), group.fields(), NewGroup(name).fields())
		table.members = append(table.members, member{name: name, value: o})
	}
	return g.Header.encode("subscriptionGroupTable", table)
}

// Offsets are the queue offsets of one table entry: by queue id, or by delay level.
type Offsets = Map[int32, int64]

// DelayOffsets is config/delayOffset.json: how far each delay level was delivered.
type DelayOffsets struct {
	Header
	Table Offsets // by level, from 1
}

// File is "config/delayOffset.json".
func (d *DelayOffsets) File() string { return "config/delayOffset.json" }

func (d *DelayOffsets) reset() { *d = DelayOffsets{Header: Header{Line: d.Line}} }

func (d *DelayOffsets) fresh() Table { return new(DelayOffsets) }

func (d *DelayOffsets) decode(v *value) error {
	table, err := d.Header.decode(v, "offsetTable")
	if err != nil || table == nil {
		return err
	}
	return decodeOffsets(table, &d.Table)
}

func (d *DelayOffsets) encode() value { return d.Header.encode("offsetTable", encodeOffsets(&d.Table)) }

var errNoKey = errors.New("not a queue id or level")

func decodeOffsets(v *value, into *Offsets) error {
	if v.kind != object {
		return errNoObject
	}
	for i := range v.members {
		m := &v.members[i]
		key, err := strconv.ParseInt(m.name, 10, 32)
		if err != nil {
			return fmt.Errorf("%q: %w", m.name, errNoKey)
		}
		offset, err := m.value.integer(64)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		into.Set(int32(key), offset)
	}
	return nil
}

func encodeOffsets(offsets *Offsets) value {
	o := value{kind: object}
	for key, offset := range offsets.All() {
		o.members = append(o.members, member{name: strconv.Itoa(int(key)), bare: true, value: integer(offset)})
	}
	return o
}
