package inspect

import (
	"bytes"
	"context"
	"fmt"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/recovery"
)

// checkpoint compares the checkpoint with the log.
func (c *checker) checkpoint(ctx context.Context) error {
	if c.misplaced[recovery.CheckpointFile] {
		return nil
	}
	if !c.dir.exists(recovery.CheckpointFile) {
		if c.s.Records > 0 {
			c.report(Finding{Kind: NoCheckpoint, Severity: Info, File: recovery.CheckpointFile, Text: "the file is missing"})
		}
		return nil
	}
	p, damaged, err := recovery.ReadCheckpoint(c.dir.mapped())
	if err != nil {
		return c.trouble(ctx, err)
	}
	if find, ok := corruption(damaged, BadFile); ok {
		find.Expected = fmt.Sprintf("%d bytes", recovery.CheckpointSize)
		c.report(find)
		return nil
	}
	c.checkpointLength()
	if c.s.Records == 0 || c.unreadLog {
		return nil
	}
	for i, t := range []struct {
		name string
		time int64
	}{{"log", p.Physic}, {"queues", p.Logics}, {"index", p.Index}} {
		f := Finding{Kind: CheckpointBeyond, Severity: Warning, File: recovery.CheckpointFile, Offset: int64(i) * 8}
		switch {
		case t.time < 0:
			f.Severity, f.Expected, f.Found = Error, "a time", decimal(t.time)
			f.Text = "the time of the " + t.name + " is below 0"
		case t.time > c.s.LastStoreTime+c.slack():
			f.Expected, f.Found = "at most "+timeText(c.s.LastStoreTime), timeText(t.time)
			f.Text = "the time of the " + t.name + " is later than all that the log has"
		default:
			continue
		}
		c.report(f)
	}
	if p.ConfirmOffset > c.s.LogEnd && c.rules.KeepsConfirmOffset {
		c.report(Finding{
			Kind: CheckpointBeyond, Severity: Warning, File: recovery.CheckpointFile, Offset: 32, Expected: fmt.Sprintf("at most %d", c.s.LogEnd),
			Found: decimal(p.ConfirmOffset), Text: "the confirmed offset is behind the end of the log",
		})
	}
	return nil
}

func (c *checker) checkpointLength() {
	f, err := c.dir.open(recovery.CheckpointFile)
	if err != nil {
		return // reading it said so
	}
	defer f.close()
	if f.size != recovery.CheckpointSize {
		c.report(Finding{
			Kind: WrongSize, Severity: Warning, File: recovery.CheckpointFile, Offset: min(f.size, recovery.CheckpointSize),
			Expected: fmt.Sprintf("%d bytes", recovery.CheckpointSize), Found: fmt.Sprintf("%d bytes", f.size), Text: "the file has another length",
		})
	}
}

// isLeftover says whether what begins with a finding is what recovery leaves behind the place where it cuts the log: it clears
// nothing. That is so when a cleanly stopped store's queues know of nothing behind that place, and have all before it.
func (c *checker) isLeftover(f Finding) bool {
	switch f.Kind {
	case BadMagic, BadSize, BadPlace, BadCRC, Zeros:
		return c.s.Clean && c.queuedEnd > 0 && c.queuedEnd == c.queues.unitEnd && f.From >= c.goodEnd && c.vouched <= f.From
	}
	return false
}

// slack is by how much times may differ.
func (c *checker) slack() int64 {
	if c.rules.HasStateTable {
		return slack
	}
	return 0
}

// config reads the files under config and compares stored offsets with the queues.
func (c *checker) config(ctx context.Context) error {
	topics, groups := &config.Topics{}, &config.SubscriptionGroups{}
	consumers, delays := &config.ConsumerOffsets{}, &config.DelayOffsets{}
	for _, t := range []config.Table{topics, groups, consumers, delays} {
		if err := c.loadConfig(ctx, t); err != nil {
			return err
		}
	}
	c.topicFields(topics)
	if err := c.otherConfig(ctx); err != nil || c.queues.notRead {
		return err
	}
	var text []byte
	for key, offsets := range consumers.Table.All() {
		topic, group := config.SplitKey(key)
		for id, offset := range offsets.All() {
			if f, bad := c.storedOffset(topic, id, offset); bad {
				f.File, f.Text = consumers.File(), fmt.Sprintf("group %s has read %s/%d up to %d", group, topic, id, offset)
				f.Offset = c.whereIn(&text, f.File, `"`+key+`"`)
				c.report(f)
			}
		}
	}
	text = nil
	for level, offset := range delays.Table.All() {
		if f, bad := c.storedOffset(recovery.ScheduleTopic, level-1, offset); bad {
			f.File, f.Text = delays.File(), fmt.Sprintf("delay level %d is delivered up to %d", level, offset)
			f.Offset = c.whereIn(&text, f.File, fmt.Sprintf("%d:", level))
			c.report(f)
		}
	}
	return nil
}

// storedOffset compares an offset that somebody stored for a queue with the queue.
func (c *checker) storedOffset(topic string, id int32, offset int64) (Finding, bool) {
	q := c.queues.byTopic[topic][id]
	var end int64
	if q != nil {
		end = max(q.end, q.logEnd)
	}
	if a := c.queues.absent[topic][id]; a != nil {
		end = max(end, a.to)
	}
	switch {
	case offset < 0 && offset != -1:
		return Finding{Kind: OffsetBeyond, Severity: Warning, Expected: "an offset", Found: decimal(offset)}, true
	case q == nil && end == 0:
		return Finding{Kind: OffsetBeyond, Severity: Info, Expected: "a queue", Found: "none"}, offset > 0
	case offset > end:
		return Finding{Kind: OffsetBeyond, Severity: Warning, Expected: fmt.Sprintf("at most %d", end), Found: decimal(offset)}, true
	case q != nil && q.filled > 0 && offset > 0 && offset < q.filled:
		return Finding{Kind: OffsetBefore, Severity: Info, Expected: fmt.Sprintf("at least %d", q.filled), Found: decimal(offset)}, true
	}
	return Finding{}, false
}

// maxConfig bounds the file that whereIn reads.
const maxConfig = 64 << 20

// whereIn is where a word stands in a file, 0 when that cannot be said. Text keeps what was read.
func (c *checker) whereIn(text *[]byte, name, word string) int64 {
	if *text == nil {
		*text = []byte{}
		if f, err := c.dir.open(name); err == nil {
			defer f.close()
			b := make([]byte, min(f.size, maxConfig))
			n, _ := f.ReadAt(b, 0) // what could not be read does not have the word
			*text = b[:n]
		}
	}
	return int64(max(bytes.Index(*text, []byte(word)), 0))
}
