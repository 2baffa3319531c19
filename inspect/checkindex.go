package inspect

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"path"
	"slices"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/message"
)

// checkIndex compares the key index with the log. Entries lie in log order, so both are read once.
type checkIndex struct {
	*checker
	entries *follower[indexItem]
	files   int
	started bool // an entry was found
	unread  bool // a file could not be read, so that nothing is known of keys without an entry
	// missing, before and behind are stretches of records without entries: between others, before all, behind all.
	missing, before, behind *keysMissing
	want                    []int32 // key hashes of the present record that have no entry yet
	wanted                  []int32 // all of them
	present                 *LogRecord
	warmed                  int32 // keeps the reads of warm
	bases                   [256]topicBase
	each                    func(*indexItem) // compares an entry with the present record
}

// keysMissing is a stretch of records whose keys have no entries.
type keysMissing struct {
	from, to      int64 // physical offsets
	records, keys int64
	file          string // the index file where the first entry should be
	offset        int64
}

// indexItem is an entry, or, with number 0, the end of its file.
type indexItem struct {
	file   *indexFileCheck
	number int32
	slot   int32 // of the entry's key hash, when the chains are followed
	index.Entry
}

// indexFileCheck is what is kept of a file while its entries are compared.
type indexFileCheck struct {
	name    string
	rolled  bool // it is not the first
	header  index.Header
	shape   index.Shape
	newest  []int32 // by slot; nil when there are too many
	used    int32   // slots
	entries int32
	zeros   int32 // the first of the entries of zeros at the end that the header counts, 0: none
	begin   int64 // store time that the entries' times count from
	// firstOff and lastOff are of the entries that their records took, -1: the first or last was not.
	firstOff, lastOff   int64
	firstTime, lastTime int64
}

// maxSlots bounds the slots of a file whose chains are followed: 4 bytes each.
const maxSlots = 1 << 24

func newCheckIndex(c *checker) *checkIndex {
	x := &checkIndex{checker: c}
	x.each = func(i *indexItem) { x.compare(x.present, i) }
	x.headers()
	x.entries = followBatches(x.items, func(i *indexItem) int64 {
		if i.number == 0 {
			return math.MaxInt64
		}
		return i.PhysicalOffset
	}, x.odd)
	x.entries.mark = func(i *indexItem) bool { return i.number == 0 }
	x.entries.ahead = x.warm
	return x
}

// warm reads the slots of entries that are compared soon. The slots of a file are more than a processor's cache holds; read
// in a row, not one for each record, the waits for memory overlap: BenchmarkCheck gains a tenth.
func (c *checkIndex) warm(items []indexItem) {
	for i := range items {
		if it := &items[i]; it.number > 0 && it.file.newest != nil {
			it.slot = index.Slot(it.KeyHash, it.file.shape.Slots)
			c.warmed += it.file.newest[it.slot]
		}
	}
}

// headers notes how far the index knows the log.
func (c *checkIndex) headers() {
	names, err := c.dir.indexNames(func(Finding) {})
	if err != nil {
		return // the walk over the files says so
	}
	var last index.Header
	lastName, begin := "", int64(0)
	for _, n := range names {
		f, err := c.dir.open(path.Join(indexDir, n.name))
		if err != nil {
			continue
		}
		var b [index.HeaderSize]byte
		_, err = f.ReadAt(b[:], 0)
		f.close()
		if h, bad := index.DecodeHeader(b[:]); err == nil && bad == nil {
			c.vouched = max(c.vouched, h.EndOffset)
			f := Finding{Kind: WrongHeader, Severity: Warning, File: path.Join(indexDir, n.name), Offset: 16, Found: decimal(h.BeginOffset)}
			switch {
			case lastName != "" && h.BeginOffset < begin:
				f.Expected = fmt.Sprintf("at least %d", begin)
				f.Text = fmt.Sprintf("it begins at %d in the log, before %s, which has an older name: were they exchanged?", h.BeginOffset, lastName)
				c.report(f)
			case lastName != "" && h.Keys() > 0 && h.BeginOffset < last.EndOffset && h.EndOffset <= last.EndOffset:
				f.Expected = fmt.Sprintf("at least %d", last.EndOffset)
				f.Text = fmt.Sprintf("it begins and ends in the log before %s, which has an older name, ends: is it a copy?", lastName)
				c.report(f)
			}
			last, lastName, begin = h, n.name, max(begin, h.BeginOffset)
		}
	}
}

// items yields the entries of all files, each file with its end.
func (c *checkIndex) items(yield func([]indexItem, error) bool) {
	items := make([]indexItem, followWindow)
	for x, err := range c.dir.IndexFiles(context.Background(), c.report) {
		if err != nil {
			c.unread = true
			if !yield(nil, err) {
				return
			}
			continue
		}
		f := &indexFileCheck{name: x.File, rolled: c.files > 0, header: x.Header, shape: x.Shape, begin: x.BeginTimestamp, firstOff: -1, lastOff: -1}
		if x.Shape.Slots > 0 && x.Shape.Slots <= maxSlots {
			f.newest = make([]int32, x.Shape.Slots)
		}
		c.files++
		c.s.IndexFiles++
		if f.newest != nil {
			x.report = func(Finding) {} // the chains are followed here
		}
		for batch, err := range x.entryBatches(followWindow) {
			for i := range batch {
				items[i] = indexItem{file: f, number: batch[i].Number, Entry: batch[i].Entry}
			}
			if n := len(batch); n > 0 {
				c.s.Entries += int64(n)
				f.entries = batch[n-1].Number
			}
			if !yield(items[:len(batch)], err) {
				return
			}
		}
		if !yield([]indexItem{{file: f}}, nil) {
			return
		}
	}
}

// record compares the keys of a record.
func (c *checkIndex) record(r *LogRecord, unique, keys []byte) error {
	c.hashes(r.Topic, unique, keys)
	keyless := len(c.want) == 0
	c.present = r
	found, err := c.entries.take(r.PhysicalOffset, c.each)
	c.started = c.started || found
	switch {
	case err != nil, keyless:
		return err
	case len(c.want) > 0:
		return c.without(r)
	}
	if c.missing != nil {
		c.closeMissing()
	}
	return nil
}

// topicBase is the hash that those of a topic's keys go on from.
type topicBase struct {
	topic []byte
	base  int32
}

// base is the hash of a topic and "#". It is kept, since most records are of few topics: BenchmarkCheck.
func (c *checkIndex) base(topic []byte) int32 {
	if len(topic) == 0 {
		return message.HashString("#")
	}
	known := &c.bases[(len(topic)+31*int(topic[len(topic)-1]))%len(c.bases)]
	if !bytes.Equal(known.topic, topic) {
		known.topic, known.base = append(known.topic[:0], topic...), message.HashMore(message.HashMore(0, topic), "#")
	}
	return known.base
}

// hashes puts the hashes of a record's keys into c.want.
func (c *checkIndex) hashes(topic, unique, keys []byte) {
	c.want = c.wanted[:0]
	if len(unique)+len(keys) == 0 {
		return
	}
	base := c.base(topic)
	if len(unique) > 0 {
		c.want = append(c.want, message.HashMore(base, unique))
	}
	for len(keys) > 0 {
		k := keys
		if i := bytes.IndexByte(keys, ' '); i >= 0 {
			k, keys = keys[:i], keys[i+1:]
		} else {
			keys = nil
		}
		if len(k) > 0 {
			c.want = append(c.want, message.HashMore(base, k))
		}
	}
	c.wanted = c.want
}

// sameHash says whether a stored hash stands for a key's: 3.1 stores it as it is, 4.x without its sign.
func sameHash(stored, hash int32) bool { return stored == hash || stored == message.AbsHash(hash) }

// compare compares an entry with its record. What it finds of c.want it takes out.
func (c *checkIndex) compare(r *LogRecord, i *indexItem) {
	hash := i.KeyHash
	if len(c.want) > 0 && sameHash(i.KeyHash, c.want[0]) { // as nearly always
		c.want = c.want[1:]
	} else if k := slices.IndexFunc(c.want, func(h int32) bool { return sameHash(i.KeyHash, h) }); k >= 0 {
		c.want = slices.Delete(c.want, k, k+1)
	} else if !c.hasKeyHash(r, i.KeyHash) {
		f := Finding{
			Kind: WrongEntry, Severity: Error, File: i.file.name, Offset: i.file.pos(i.number), Expected: "no entry", Found: hashText(i.KeyHash),
			Text: fmt.Sprintf("entry %d points to the record at %d, which has no such key", i.number, r.PhysicalOffset),
		}
		// Its place among the wanted is that of the key that has none yet.
		if len(c.want) > 0 {
			f.Expected, hash = hashText(c.want[0]), c.want[0]
			c.want = slices.Delete(c.want, 0, 1)
		}
		c.report(f)
	}
	c.chain(i, hash)
	c.compareTime(r, i)
}

// hasKeyHash says whether a record has a key with that hash, be it indexed or not.
func (c *checkIndex) hasKeyHash(r *LogRecord, stored int32) bool {
	base := message.HashMore(message.HashMore(0, r.Topic), "#")
	if sameHash(stored, message.HashMore(base, message.Lookup(r.Properties, message.PropertyUniqueKey))) {
		return true
	}
	for k := range message.Keys(string(message.Lookup(r.Properties, message.PropertyKeys))) {
		if sameHash(stored, message.HashMore(base, k)) {
			return true
		}
	}
	return false
}

// compareTime compares the time of an entry, in seconds since the file's begin, with that of its record.
func (c *checkIndex) compareTime(r *LogRecord, i *indexItem) {
	f := i.file
	if i.number == 1 {
		f.firstOff, f.firstTime, f.begin = r.PhysicalOffset, r.StoreTimestamp, r.StoreTimestamp
	}
	f.lastOff, f.lastTime = r.PhysicalOffset, r.StoreTimestamp
	if i.number == 1 && f.rolled {
		return // it counts from the end of the file before
	}
	millis := max(0, r.StoreTimestamp-f.begin)
	first := min(millis, math.MaxInt32) / 1000 // 3.1 to 4.x
	last := min(millis/1000, math.MaxInt32)    // 5.x
	have := int64(i.TimeDiff)
	near := int64(0)
	if c.rules.HasStateTable {
		near = 1
	}
	if have >= first-near && have <= first+near || have == last {
		return
	}
	c.report(Finding{
		Kind: WrongEntry, Severity: Error, File: f.name, Offset: f.pos(i.number) + 12,
		Expected: fmt.Sprintf("%d s", last), Found: fmt.Sprintf("%d s", have),
		Text: fmt.Sprintf("entry %d has another time than its record at %d", i.number, r.PhysicalOffset),
	})
}

// without notes that a record's keys have no entries.
func (c *checkIndex) without(r *LogRecord) error {
	next, err := c.entries.front()
	if err != nil {
		return err
	}
	into := &c.missing
	switch {
	case next == nil:
		into = &c.behind
	case !c.started:
		into = &c.before
	}
	if *into == nil {
		*into = &keysMissing{from: r.PhysicalOffset}
		if next != nil {
			(*into).file, (*into).offset = next.file.name, next.file.pos(next.number)
		}
	}
	m := *into
	m.to = r.PhysicalOffset + int64(r.Size)
	m.records++
	m.keys += int64(len(c.want))
	return nil
}

// closeMissing reports a stretch of missing keys whose end is known.
func (c *checkIndex) closeMissing() {
	m := c.missing
	c.missing = nil
	if m == nil || c.unread {
		return
	}
	c.report(Finding{
		Kind: MissingKeys, Severity: Warning, File: m.file, Offset: m.offset, From: m.from, To: m.to,
		Text: fmt.Sprintf("%s of %s from %d on are not in the index", countText(m.keys, "key", "keys"), countText(m.records, "record", "records"), m.from),
	})
}

func (c *checkIndex) finish(ctx context.Context) error {
	if err := c.entries.rest(); err != nil {
		if err := c.trouble(ctx, err); err != nil {
			return err
		}
	}
	c.closeMissing()
	if c.unread {
		return nil
	}
	if m := c.before; m != nil {
		c.report(Finding{
			Kind: MissingKeys, Severity: Warning, File: m.file, From: m.from, To: m.to,
			Text: fmt.Sprintf("the index begins behind %s of the log that have keys; %s", countText(m.records, "record", "records"), countText(m.keys, "key is not found", "keys are not found")),
		})
	}
	if m := c.behind; m != nil {
		severity := c.late
		if c.files == 0 {
			severity = Info
		}
		c.report(Finding{
			Kind: IndexBehind, Severity: severity, File: indexDir, From: m.from, To: m.to,
			Text: fmt.Sprintf("%s of %s at the end of the log are not in the index", countText(m.keys, "key", "keys"), countText(m.records, "record", "records")),
		})
	}
	return nil
}

func (c *checkIndex) close() { c.entries.stop() }

func hashText(h int32) string { return fmt.Sprintf("key hash %d", h) }

// pos is where an entry starts in the file.
func (f *indexFileCheck) pos(number int32) int64 {
	return index.HeaderSize + int64(f.shape.Slots)*index.SlotSize + int64(number)*index.EntrySize
}
