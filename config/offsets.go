package config

import (
	"fmt"
	"strings"
)

// ConsumerOffsets is config/consumerOffset.json: how far each consumer group has read each queue. The groupTopicMap that
// 5.x adds is made of the table by the broker itself; it is kept as it was read.
type ConsumerOffsets struct {
	Header
	Table Map[string, *Offsets] // by "topic@group"
}

// At is the next offset that a group reads of a queue; false when none is stored.
func (c *ConsumerOffsets) At(topic, group string, queueID int32) (int64, bool) {
	offsets, ok := c.Table.Get(topic + "@" + group)
	if !ok {
		return 0, false
	}
	return offsets.Get(queueID)
}

// Set stores the next offset that a group reads of a queue.
func (c *ConsumerOffsets) Set(topic, group string, queueID int32, offset int64) {
	key := topic + "@" + group
	offsets, ok := c.Table.Get(key)
	if !ok {
		offsets = new(Offsets)
		c.Table.Set(key, offsets)
	}
	offsets.Set(queueID, offset)
}

// SplitKey parts a key of the table; a topic holds no @. Without an @ there is no group.
func SplitKey(key string) (topic, group string) {
	topic, group, _ = strings.Cut(key, "@")
	return topic, group
}

// File is "config/consumerOffset.json".
func (c *ConsumerOffsets) File() string { return "config/consumerOffset.json" }

func (c *ConsumerOffsets) reset() { *c = ConsumerOffsets{Header: Header{Line: c.Line}} }

func (c *ConsumerOffsets) fresh() Table { return new(ConsumerOffsets) }

func (c *ConsumerOffsets) decode(v *value) error {
	table, err := c.Header.decode(v, "offsetTable")
	if err != nil || table == nil {
		return err
	}
	for i := range table.members {
		m := &table.members[i]
		offsets := new(Offsets)
		if err := decodeOffsets(&m.value, offsets); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		c.Table.Set(m.name, offsets)
	}
	return nil
}

func (c *ConsumerOffsets) encode() value {
	table := value{kind: object}
	for key, offsets := range c.Table.All() {
		table.members = append(table.members, member{name: key, value: encodeOffsets(offsets)})
	}
	return c.Header.encode("offsetTable", table)
}
