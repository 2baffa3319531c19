package recovery

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/message"
)

// ScheduleTopic is where delayed messages wait; its units hold the delivery time in place of a tags code.
const ScheduleTopic = "SCHEDULE_TOPIC_XXXX"

// LightQueuePrefix begins the names of light queues, which have queue id 0 only.
const LightQueuePrefix = "%LMQ%"

// DelayLevels is the waiting time of each delay level; level n is at n-1.
type DelayLevels []time.Duration

// ParseDelayLevels reads messageDelayLevel: numbers with unit s, m, h or d, parted by spaces.
func ParseDelayLevels(s string) (DelayLevels, error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	var levels DelayLevels
	for word := range strings.FieldsSeq(s) {
		unit, ok := units[word[len(word)-1]]
		n, err := strconv.ParseInt(word[:len(word)-1], 10, 32)
		if !ok || err != nil || n < 0 {
			return nil, fmt.Errorf("delay level %q: want a number and one of s, m, h, d", word)
		}
		levels = append(levels, time.Duration(n)*unit)
	}
	return levels, nil
}

// DeliverAt is when a message of a level that was stored at storeTime (ms) is due, in ms: a level beyond the last counts
// as the last one, and no level at all as one second (formats.md 5.1).
func (d DelayLevels) DeliverAt(level int, storeTime int64) int64 {
	if level > len(d) {
		level = len(d)
	}
	if level < 1 {
		return storeTime + 1000
	}
	return storeTime + d[level-1].Milliseconds()
}

// Placement is a consume queue unit and where it belongs.
type Placement struct {
	Topic       []byte
	QueueID     int32
	QueueOffset int64
	Unit        consumequeue.Unit
}

// slot is where n places, a power of two, remember the queue.
func (p *Placement) slot(n int) int { return consumequeue.Slot(p.Topic, p.QueueID, n) }

// Deriver knows what a record means for the structures that are made from the log.
type Deriver struct {
	Dialect *dialect.Dialect
	Levels  DelayLevels
}

// NewDeriver makes one; levels is messageDelayLevel, "" for the dialect's default.
func NewDeriver(d *dialect.Dialect, levels string) (*Deriver, error) {
	if levels == "" {
		levels = d.DelayLevels
	}
	parsed, err := ParseDelayLevels(levels)
	if err != nil {
		return nil, err
	}
	return &Deriver{Dialect: d, Levels: parsed}, nil
}

// attributes are the properties of a record that the store itself looks at.
type attributes struct {
	tags, keys, unique, delay, multiQueues, multiOffsets []byte
}

// parse looks for the end of each property; its name is read only when it begins like one of these, since most
// records have others too.
func (a *attributes) parse(b []byte) {
	*a = attributes{}
	for len(b) > 0 {
		item := b
		if i := bytes.IndexByte(b, 2); i >= 0 {
			item, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		if len(item) == 0 {
			continue
		}
		switch item[0] {
		case message.PropertyTags[0]:
			valueOf(item, message.PropertyTags, &a.tags)
		case message.PropertyKeys[0]:
			valueOf(item, message.PropertyKeys, &a.keys)
		case message.PropertyUniqueKey[0]:
			valueOf(item, message.PropertyUniqueKey, &a.unique)
		case message.PropertyDelay[0]:
			valueOf(item, message.PropertyDelay, &a.delay)
		case message.PropertyMultiDispatch[0]: // and message.PropertyMultiQueueOffset's
			valueOf(item, message.PropertyMultiDispatch, &a.multiQueues)
			valueOf(item, message.PropertyMultiQueueOffset, &a.multiOffsets)
		}
	}
}

// valueOf sets value when the property has that name and is not empty.
func valueOf(item []byte, name string, value *[]byte) {
	if n := len(name); len(item) > n+1 && item[n] == 1 && string(item[:n]) == name {
		*value = item[n+1:]
	}
}

// Units calls place for each unit that the record has in a consume queue, its own first, then those of light queues. The
// placement's topic aliases the record.
func (d *Deriver) Units(r *commitlog.Record, place func(Placement) error) error {
	var x Derived
	d.Derive(r, &x)
	return x.Units(r, place)
}

// unit is the record's unit in its own queue.
func (d *Deriver) unit(r *commitlog.Record, a *attributes) consumequeue.Unit {
	u := consumequeue.Unit{PhysicalOffset: r.PhysicalOffset, Size: r.Size, TagsCode: int64(message.HashMore(0, a.tags))}
	if a.delay != nil && string(r.Topic) == ScheduleTopic {
		u.TagsCode = d.Levels.DeliverAt(parseDecimal(a.delay), r.StoreTimestamp)
	}
	return u
}

// placeMulti places the record in each queue that INNER_MULTI_DISPATCH names, at the offset that stands at the same place
// in INNER_MULTI_QUEUE_OFFSET; an empty offset is none.
func (x *Derived) placeMulti(p Placement, place func(Placement) error) error {
	own := p.QueueID
	names, offsets := x.multiQueues, x.multiOffsets
	for len(names) > 0 && len(offsets) > 0 {
		var name, offset []byte
		name, names, _ = bytes.Cut(names, []byte{','})
		offset, offsets, _ = bytes.Cut(offsets, []byte{','})
		n, err := strconv.ParseInt(string(offset), 10, 64)
		if err != nil || n < 0 || len(name) == 0 {
			continue
		}
		p.Topic, p.QueueID, p.QueueOffset = name, own, n
		if bytes.HasPrefix(name, []byte(LightQueuePrefix)) {
			p.QueueID = 0
		}
		if err := place(p); err != nil {
			return err
		}
	}
	return nil
}

// parseDecimal reads a delay level; what is none counts as 0, and a huge one as huge.
func parseDecimal(b []byte) int {
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0
		}
		if n = n*10 + int(c-'0'); n > 1<<20 {
			return 1 << 20
		}
	}
	return n
}

// Keys gives the UNIQ_KEY and KEYS values that go into the key index for a record, empty for none.
func (d *Deriver) Keys(r *commitlog.Record) (unique, keys []byte) {
	if !index.Indexed(d.Dialect, r.SysFlag) {
		return nil, nil
	}
	var a attributes
	a.parse(r.Properties)
	return d.keys(&a)
}

func (d *Deriver) keys(a *attributes) (unique, keys []byte) {
	if d.Dialect.IndexesUniqueKey {
		unique = a.unique
	}
	return unique, a.keys
}

// Derived is what a record means for the structures that are made from it, read in one pass over its properties. It is for
// those who go through millions of records: nothing is called for a record that has one unit, as most have.
type Derived struct {
	// Queued says whether the record has units at all, Unit is then that of its own queue.
	Queued bool
	Unit   consumequeue.Unit
	// Unique and Keys are as [Deriver.Keys] gives them.
	Unique, Keys []byte

	multiQueues, multiOffsets []byte // of the attributes
}

// Derive puts what the record means into x, whose slices alias the record.
func (d *Deriver) Derive(r *commitlog.Record, x *Derived) {
	var a attributes
	a.parse(r.Properties)
	x.Unique, x.Keys = nil, nil
	if index.Indexed(d.Dialect, r.SysFlag) {
		x.Unique, x.Keys = d.keys(&a)
	}
	x.multiQueues, x.multiOffsets = a.multiQueues, a.multiOffsets
	if x.Queued = r.SysFlag.Queued() && !r.SysFlag.Has(message.FlagInnerBatch); x.Queued {
		x.Unit = d.unit(r, &a)
	}
}

// Own is where Unit belongs.
func (x *Derived) Own(r *commitlog.Record) Placement {
	return Placement{Topic: r.Topic, QueueID: r.QueueID, QueueOffset: r.QueueOffset, Unit: x.Unit}
}

// Units is [Deriver.Units] for a record that was derived.
func (x *Derived) Units(r *commitlog.Record, place func(Placement) error) error {
	if !x.Queued {
		return nil
	}
	if err := place(x.Own(r)); err != nil {
		return err
	}
	return x.Light(r, place)
}

// Light calls place for each unit that the record has in a light queue.
func (x *Derived) Light(r *commitlog.Record, place func(Placement) error) error {
	if !x.Queued || x.multiOffsets == nil {
		return nil
	}
	return x.placeMulti(x.Own(r), place)
}
