package inspect

import (
	"maps"
	"strings"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/message"
)

// Filter chooses records of the commit log. The zero value takes all.
type Filter struct {
	Topic string // "": any
	Queue *int32 // nil: any
	Key   string // a word of KEYS, or the unique key; "": any
	Tag   string // "": any
	// UniqueKey is the value of UNIQ_KEY, the message id that 4.x and later clients make; "": any.
	UniqueKey string
	// ID is an offset message id or a unique key; "": any.
	ID string
	// FromQueueOffset and ToQueueOffset bound the queue offset, the second not included; 0: no bound.
	FromQueueOffset, ToQueueOffset int64
	// Properties are properties that the record must have, with that value, or with any where it is "".
	Properties map[string]string
	// Since and Until bound the store time, milliseconds, both included; 0: no bound.
	Since, Until int64
	// Transaction is what the record is to a transaction, 0 for none; nil: any.
	Transaction *message.SysFlag
}

// Match says whether f takes r, a record of d. Of a damaged record it looks at what the fields say.
func (d *Dir) Match(f *Filter, r *LogRecord) bool {
	switch {
	case f.Topic != "" && f.Topic != string(r.Topic),
		f.Queue != nil && *f.Queue != r.QueueID,
		f.FromQueueOffset > 0 && r.QueueOffset < f.FromQueueOffset,
		f.ToQueueOffset > 0 && r.QueueOffset >= f.ToQueueOffset,
		f.Since > 0 && r.StoreTimestamp < f.Since,
		f.Until > 0 && r.StoreTimestamp > f.Until,
		f.Transaction != nil && *f.Transaction != r.SysFlag.Transaction():
		return false
	case f.Key == "" && f.Tag == "" && f.UniqueKey == "" && f.ID == "" && len(f.Properties) == 0:
		return true
	}
	p := d.Properties(r.Properties)
	for name, want := range f.Properties {
		if value, ok := p[name]; !ok || want != "" && want != value {
			return false
		}
	}
	return (f.Tag == "" || p[message.PropertyTags] == f.Tag) && (f.Key == "" || hasKey(p, f.Key)) &&
		(f.UniqueKey == "" || p[message.PropertyUniqueKey] == f.UniqueKey) &&
		(f.ID == "" || p[message.PropertyUniqueKey] == f.ID || strings.EqualFold(r.ID(), f.ID))
}

// hasKey says whether the index would lead from key to a record with these properties.
func hasKey(p map[string]string, key string) bool {
	if p[message.PropertyUniqueKey] == key {
		return true
	}
	for k := range message.Keys(p[message.PropertyKeys]) {
		if k == key {
			return true
		}
	}
	return false
}

// Properties reads a record's property text by the rule of the line that wrote the store: 3.1 drops a pair whose value
// holds the byte 0x01. Of several values of a name the last counts.
func (d *Dir) Properties(text []byte) map[string]string {
	p := message.Properties(text)
	if id, err := d.lineOf(); err == nil && id.Line == dialect.V31().Name {
		return maps.Collect(p.Old())
	}
	return p.Map()
}
