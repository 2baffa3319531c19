package message

import (
	"bytes"
	"errors"
	"iter"
	"maps"
	"strings"
)

// Names of properties that the store and the clients use themselves (formats.md 4.4).
const (
	PropertyKeys                  = "KEYS"
	PropertyTags                  = "TAGS"
	PropertyWait                  = "WAIT"
	PropertyDelay                 = "DELAY"
	PropertyRetryTopic            = "RETRY_TOPIC"
	PropertyRealTopic             = "REAL_TOPIC"
	PropertyRealQueueID           = "REAL_QID"
	PropertyTransactionPrepared   = "TRAN_MSG"
	PropertyProducerGroup         = "PGROUP"
	PropertyUniqueKey             = "UNIQ_KEY"
	PropertyCluster               = "CLUSTER"
	PropertyInnerNum              = "INNER_NUM"
	PropertyInnerBase             = "INNER_BASE"
	PropertyMultiDispatch         = "INNER_MULTI_DISPATCH"
	PropertyMultiQueueOffset      = "INNER_MULTI_QUEUE_OFFSET"
	PropertyTransactionCheckTimes = "TRANSACTION_CHECK_TIMES"
	PropertyPreparedQueueOffset   = "TRAN_PREPARED_QUEUE_OFFSET"
	PropertyCheckImmunityTime     = "CHECK_IMMUNITY_TIME_IN_SECONDS"
	PropertyTransactionID         = "__transactionId__"
	PropertyCRC32                 = "__CRC32#"
)

const (
	nameEnd  = '\x01'
	valueEnd = '\x02'
)

// Properties is an ordered list of name and value pairs in its stored text form, name 0x01 value 0x02 and so on. The
// text is kept as it was given or read, so that a record can be written again byte for byte: the order, duplicates and
// the presence of a last 0x02 all differ between the versions that wrote it (formats.md 4.4).
//
// The zero value is the empty list. Values are immutable; Set and Delete return a new list.
type Properties string

// ErrProperty says that a name or value cannot be stored: it is empty or holds 0x01 or 0x02, for which there is no escape.
var ErrProperty = errors.New("a property's name and value must not be empty or hold the bytes 0x01 or 0x02")

// NewProperties makes a list of names and values in turn: NewProperties("TAGS", "a", "KEYS", "k1 k2").
func NewProperties(namesAndValues ...string) (Properties, error) {
	var b strings.Builder
	if len(namesAndValues)%2 != 0 {
		return "", ErrProperty
	}
	for i := 0; i < len(namesAndValues); i += 2 {
		name, value := namesAndValues[i], namesAndValues[i+1]
		if !storable(name) || !storable(value) {
			return "", ErrProperty
		}
		b.WriteString(name)
		b.WriteByte(nameEnd)
		b.WriteString(value)
		b.WriteByte(valueEnd)
	}
	return Properties(b.String()), nil
}

func storable(s string) bool { return s != "" && !strings.ContainsAny(s, "\x01\x02") }

// All yields the pairs in stored order, duplicates included, by the rule of 4.9.1 and later: the first 0x01 of an item
// ends the name, and a pair counts if both parts have a character.
func (p Properties) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		rest := string(p)
		for rest != "" {
			var name, value string
			var ok bool
			if name, value, rest, ok = cutItem(rest); ok && !yield(name, value) {
				return
			}
		}
	}
}

// Old yields the pairs by the rule of 3.1 to 4.9.0, which splits an item at every 0x01 and wants two parts. As Java's
// split forgets empty parts at the end, a value may be followed by more of 0x01; a name may be empty.
func (p Properties) Old() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for item := range strings.SplitSeq(string(p), "\x02") {
			name, value, ok := strings.Cut(strings.TrimRight(item, "\x01"), "\x01")
			if ok && strings.IndexByte(value, nameEnd) < 0 && !yield(name, value) {
				return
			}
		}
	}
}

// cutItem takes the first item off s; ok says whether it is a pair.
func cutItem(s string) (name, value, rest string, ok bool) {
	item, rest, _ := strings.Cut(s, "\x02")
	i := strings.IndexByte(item, nameEnd)
	if i <= 0 || i == len(item)-1 {
		return "", "", rest, false
	}
	return item[:i], item[i+1:], rest, true
}

// Get is the value of name; of several the last one counts, as Java's map has it.
func (p Properties) Get(name string) (string, bool) {
	found, ok := "", false
	rest := string(p)
	if !strings.Contains(rest, name) { // most are not there, and this is fast
		return "", false
	}
	for rest != "" {
		var n, v string
		var pair bool
		if n, v, rest, pair = cutItem(rest); pair && n == name {
			found, ok = v, true
		}
	}
	return found, ok
}

// Set replaces the value of name where it stands, or adds the pair at the end. It returns ErrProperty for what cannot be stored.
func (p Properties) Set(name, value string) (Properties, error) {
	if !storable(name) || !storable(value) {
		return p, ErrProperty
	}
	if !strings.Contains(string(p), name) {
		end := ""
		if p != "" && p[len(p)-1] != valueEnd {
			end = "\x02"
		}
		return Properties(string(p) + end + name + "\x01" + value + "\x02"), nil
	}
	var b strings.Builder
	b.Grow(len(p) + len(name) + len(value) + 3)
	done := false
	for rest := string(p); rest != ""; {
		item := rest
		var n string
		var pair bool
		n, _, rest, pair = cutItem(rest)
		item = item[:len(item)-len(rest)]
		if pair && n == name {
			if done {
				continue
			}
			done = true
			last := strings.HasSuffix(item, "\x02")
			b.WriteString(name + "\x01" + value)
			if last {
				b.WriteByte(valueEnd)
			}
			continue
		}
		b.WriteString(item)
	}
	if !done {
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\x02") {
			b.WriteByte(valueEnd)
		}
		b.WriteString(name + "\x01" + value + "\x02")
	}
	return Properties(b.String()), nil
}

// Delete takes every pair of that name out.
func (p Properties) Delete(name string) Properties { return p.Rewrite(name, "") }

// Mentions says whether a name could be in the list: a quick look, which also takes part of another name or value for it.
func (p Properties) Mentions(name string) bool { return strings.Contains(string(p), name) }

// Rewrite gives the list without the pairs of the name drop, "" for none, and with more behind it, in one copy.
func (p Properties) Rewrite(drop string, more Properties) Properties {
	drops := drop != "" && p.Mentions(drop)
	if !drops && more == "" {
		return p
	}
	var b strings.Builder
	b.Grow(len(p) + 1 + len(more))
	if drops {
		for rest := string(p); rest != ""; {
			item := rest
			var n string
			n, _, rest, _ = cutItem(rest) // no name is ""
			if n != drop {
				b.WriteString(item[:len(item)-len(rest)])
			}
		}
	} else {
		b.WriteString(string(p))
	}
	if kept := b.String(); kept != "" && more != "" && kept[len(kept)-1] != valueEnd {
		b.WriteByte(valueEnd)
	}
	b.WriteString(string(more))
	return Properties(b.String())
}

// Map is the list as Java's map: the last of several values counts.
func (p Properties) Map() map[string]string {
	return maps.Collect(p.All())
}

// Keys yields the words of a KEYS value: parted by single spaces, empty ones skipped.
func Keys(value string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range strings.SplitSeq(value, " ") {
			if k != "" && !yield(k) {
				return
			}
		}
	}
}

// Lookup is Get on the stored bytes, without a copy; nil when the name is not there.
func Lookup(b []byte, name string) []byte {
	var found []byte
	for len(b) > 0 {
		item := b
		if i := bytes.IndexByte(b, valueEnd); i >= 0 {
			item, b = b[:i], b[i+1:]
		} else {
			b = nil
		}
		i := bytes.IndexByte(item, nameEnd)
		if i > 0 && i < len(item)-1 && string(item[:i]) == name {
			found = item[i+1:]
		}
	}
	return found
}
