package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// chain compares an entry's link with the entry that was the newest of its chain before. Hash is what the entry's should be.
func (c *checkIndex) chain(i *indexItem, hash int32) {
	f := i.file
	if f.newest == nil {
		return
	}
	slot := i.slot
	if hash != i.KeyHash {
		slot = index.Slot(hash, f.shape.Slots)
	}
	if i.Previous != f.newest[slot] {
		c.report(Finding{
			Kind: BadIndex, Severity: Error, File: f.name, Offset: f.pos(i.number) + 16,
			Expected: fmt.Sprintf("entry %d", f.newest[slot]), Found: fmt.Sprintf("entry %d", i.Previous),
			Text: fmt.Sprintf("entry %d does not go on with the one before it in the chain of slot %d", i.number, slot),
		})
	}
	if f.newest[slot] == 0 {
		f.used++
	}
	f.newest[slot] = i.number
}

// odd looks at an entry that no record took, and at the end of a file.
func (c *checkIndex) odd(i indexItem) error {
	if i.number == 0 {
		return c.fileEnd(i.file)
	}
	if i.Entry == (index.Entry{}) {
		if more, err := c.countsZeros(&i); more || err != nil {
			return err
		}
	}
	c.chain(&i, i.KeyHash)
	i.file.lastOff = -1
	return c.stray(i)
}

// countsZeros says whether an entry of zeros is one of those at the end that the header counts though nothing was put there.
// The first of them is reported for all.
func (c *checkIndex) countsZeros(i *indexItem) (bool, error) {
	x := i.file
	if x.zeros > 0 {
		return true, nil
	}
	f, err := c.dir.open(x.name)
	if err != nil {
		return false, err
	}
	defer f.close()
	end := min(f.size, x.pos(x.header.Keys()+1))
	at, err := nextByte(f, x.pos(i.number), end)
	if err != nil || at < end {
		return false, err
	}
	x.zeros = i.number
	c.report(Finding{
		Kind: WrongHeader, Severity: Error, File: x.name, Offset: 36, Expected: fmt.Sprintf("index count %d", i.number),
		Found: fmt.Sprintf("index count %d", x.header.IndexCount), Text: fmt.Sprintf("from entry %d on there are zeros, the header counts %d entries", i.number, x.header.Keys()),
	})
	return true, nil
}

// stray says what is wrong with an entry that no record took.
func (c *checkIndex) stray(i indexItem) error {
	at := i.PhysicalOffset
	if c.postpone(at, func() error { return c.stray(i) }) {
		return nil
	}
	f := Finding{
		Kind: WrongEntry, Severity: Error, File: i.file.name, Offset: i.file.pos(i.number),
		Found: fmt.Sprintf("record at %d, %s", at, hashText(i.KeyHash)),
	}
	rec, err := c.recordAt(at)
	switch {
	case err != nil, at >= 0 && at < c.s.LogStart:
		return err
	case rec != nil && c.hasKeyHash(&LogRecord{Record: *rec}, i.KeyHash):
		return nil
	case rec != nil:
		f.Text = fmt.Sprintf("entry %d points to the record at %d, which has no such key", i.number, at)
	case c.inDamage(at):
		f.Severity, f.Text = Info, fmt.Sprintf("entry %d points to %d, where the log is damaged", i.number, at)
	case at >= c.s.LogEnd:
		f.Kind, f.Severity, f.Text = EntryBeyond, Warning, fmt.Sprintf("entry %d points to %d, the log ends at %d", i.number, at, c.s.LogEnd)
	default:
		f.Text = fmt.Sprintf("entry %d points to %d, where no record starts", i.number, at)
	}
	c.report(f)
	return nil
}

// fileEnd compares the slots and the header of a file with its entries.
func (c *checkIndex) fileEnd(x *indexFileCheck) error {
	if x.header == (index.Header{}) {
		return c.zeroHeader(x.name)
	}
	if x.shape.Slots == 0 {
		return nil
	}
	f, err := c.dir.open(x.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	defer f.close()
	if err := c.slots(x, f); err != nil {
		return err
	}
	return c.header(x, f)
}

// slots compares the slots with the newest entry of each chain.
func (c *checkIndex) slots(x *indexFileCheck, f *file) error {
	if x.newest == nil {
		return nil
	}
	dump, err := index.ScanFile(x.name, f, f.size, x.shape.Slots)
	if err != nil {
		return err
	}
	wrong := func(slot, have int32) {
		c.report(Finding{
			Kind: BadIndex, Severity: Error, File: x.name, Offset: index.HeaderSize + int64(slot)*index.SlotSize,
			Expected: fmt.Sprintf("entry %d", x.newest[slot]), Found: fmt.Sprintf("entry %d", have),
			Text: fmt.Sprintf("slot %d does not begin with the newest entry of its chain", slot),
		})
	}
	next := int32(0)
	for v, err := range dump.Slots() {
		if _, bad := corruption(err, BadIndex); err != nil && !bad {
			return err
		}
		for ; next < v.Slot; next++ {
			if x.newest[next] != 0 {
				wrong(next, 0)
			}
		}
		switch {
		case v.Newest > x.entries:
			// Put meanwhile, or the count is wrong: then there is such an entry.
			there, err := c.entryThere(x, f, v.Newest)
			if err != nil {
				return err
			}
			if !there {
				wrong(v.Slot, v.Newest)
			}
		case v.Newest != x.newest[v.Slot]:
			wrong(v.Slot, v.Newest)
		}
		next = v.Slot + 1
	}
	for ; next < x.shape.Slots; next++ {
		if x.newest[next] != 0 {
			wrong(next, 0)
		}
	}
	return nil
}

// entryThere says whether something was put in the place of an entry.
func (c *checkIndex) entryThere(x *indexFileCheck, f *file, number int32) (bool, error) {
	if number >= x.shape.Entries {
		return false, nil
	}
	var b [index.EntrySize]byte
	if _, err := f.ReadAt(b[:], x.pos(number)); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return !mappedfile.AllZero(b[:]), nil
}

// zeroHeader reports a file whose header is zero though something was put into it.
func (c *checkIndex) zeroHeader(name string) error {
	f, err := c.dir.open(name)
	if err != nil {
		return err
	}
	defer f.close()
	at, err := nextByte(f, index.HeaderSize, f.size)
	if err == nil && at < f.size {
		c.report(Finding{
			Kind: WrongHeader, Severity: c.late, File: name, Expected: "a header that counts the entries", Found: "zeros",
			Text: fmt.Sprintf("the header is zero, and there are bytes at %d", at),
		})
	}
	return err
}

// header compares the header with the entries and their records.
func (c *checkIndex) header(x *indexFileCheck, f *file) error {
	h := x.header
	wrong := func(offset int64, what string, want, have int64) {
		c.report(Finding{
			Kind: WrongHeader, Severity: Error, File: x.name, Offset: offset, Expected: decimal(want), Found: decimal(have),
			Text: "the header's " + what + " does not match the entries",
		})
	}
	near := func(a, b int64) bool { return a == b || c.rules.HasStateTable && -slack <= a-b && a-b <= slack }
	if x.firstOff >= 0 {
		if !near(h.BeginTimestamp, x.firstTime) {
			wrong(0, "begin time", x.firstTime, h.BeginTimestamp)
		}
		if h.BeginOffset != x.firstOff {
			wrong(16, "begin offset", x.firstOff, h.BeginOffset)
		}
	}
	if x.lastOff >= 0 && x.entries == h.Keys() {
		if !near(h.EndTimestamp, x.lastTime) {
			wrong(8, "end time", x.lastTime, h.EndTimestamp)
		}
		if h.EndOffset != x.lastOff {
			wrong(24, "end offset", x.lastOff, h.EndOffset)
		}
	}
	if x.newest != nil && (h.SlotCount < x.used || h.SlotCount > x.entries+1) {
		wrong(32, "slot count", int64(x.used), int64(h.SlotCount))
	}
	return c.behindCount(x, f)
}

// behindCount looks for an entry behind those that the header counts.
func (c *checkIndex) behindCount(x *indexFileCheck, f *file) error {
	next := x.header.Keys() + 1
	if next <= 0 || next >= x.shape.Entries {
		return nil
	}
	var b [index.EntrySize]byte
	if _, err := f.ReadAt(b[:], x.pos(next)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if e, err := index.DecodeEntry(b[:]); err != nil || e == (index.Entry{}) || !c.s.Clean {
		return err
	}
	c.report(Finding{
		Kind: WrongHeader, Severity: Error, File: x.name, Offset: 36, Found: fmt.Sprintf("index count %d", x.header.IndexCount),
		Text: fmt.Sprintf("entry %d is there, the header does not count it", next),
	})
	return nil
}
