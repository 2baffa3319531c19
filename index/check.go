package index

import (
	"encoding/binary"
	"fmt"
	"iter"
)

// checkSlots is how many slots a check looks at together; for more of them it reads the entries once more. It bounds the
// memory to 64 MiB whatever a file's size says.
const checkSlots = 1 << 24

// Check yields a [*mappedfile.CorruptError] for each place where the file contradicts itself: the header, entries that cannot
// be believed, chains that miss or add an entry, offsets that go back. It takes two passes and 4 bytes of memory a slot, more
// passes when there are very many. An error of reading ends it.
func (d *Dump) Check() iter.Seq[error] {
	return func(yield func(error) bool) {
		if err := d.Header.Check(d.Shape); err != nil && !yield(d.corrupt(0, err)) {
			return
		}
		newest := make([]int32, min(d.Shape.Slots, checkSlots))
		for from := int64(0); from < int64(d.Shape.Slots); from += checkSlots {
			clear(newest)
			c := checker{d: d, from: from, newest: newest[:min(int64(len(newest)), int64(d.Shape.Slots)-from)]}
			if !c.entries(yield) || !c.slots(yield) {
				return
			}
		}
	}
}

// checker makes the chains of some slots anew while the entries of a file pass by.
type checker struct {
	d      *Dump
	from   int64   // the first slot
	newest []int32 // the newest entry of each
	offset int64   // of the entry before
}

// entries yields what is wrong with the entries, and gives false when the caller has enough or reading failed.
func (c *checker) entries(yield func(error) bool) bool {
	for e, err := range c.d.Entries() {
		if e.Number == 0 {
			yield(err)
			return false
		}
		if err == nil {
			err = c.entry(e)
		} else if c.from > 0 {
			continue // the first round said so
		}
		if err != nil && !yield(err) {
			return false
		}
	}
	return true
}

// entry says what is wrong with the next entry, and takes it into its chain.
func (c *checker) entry(e Numbered) error {
	pos := c.d.Shape.entryPos(e.Number)
	if slot := int64(Slot(e.KeyHash, c.d.Shape.Slots)) - c.from; slot >= 0 && slot < int64(len(c.newest)) {
		want := c.newest[slot]
		c.newest[slot] = e.Number
		if e.Previous != want {
			return c.d.corrupt(pos, fmt.Errorf("%w: entry %d says that the one before it is %d, but it is %d", errChain, e.Number, e.Previous, want))
		}
	}
	before := c.offset
	c.offset = max(before, e.PhysicalOffset)
	switch {
	case c.from > 0:
	case e.PhysicalOffset < before:
		return c.d.corrupt(pos, fmt.Errorf("%w %d: offset %d after %d", errEntry, e.Number, e.PhysicalOffset, before))
	case e.PhysicalOffset > c.d.Header.EndOffset:
		return c.d.corrupt(pos, fmt.Errorf("%w %d: offset %d, the header ends at %d", errEntry, e.Number, e.PhysicalOffset, c.d.Header.EndOffset))
	}
	return nil
}

// slots yields the slots that do not hold the newest entry of their chain, and gives false when the caller has enough or
// reading failed.
func (c *checker) slots(yield func(error) bool) bool {
	more := true
	from, to := c.d.Shape.slotPos(int32(c.from)), c.d.Shape.slotPos(int32(c.from))+int64(len(c.newest))*SlotSize
	err := c.d.each(from, to, SlotSize, func(at int64, b []byte) bool {
		slot, have := (at-from)/SlotSize, int32(binary.BigEndian.Uint32(b))
		if want := c.newest[slot]; have != want {
			more = yield(c.d.corrupt(at, fmt.Errorf("%w: slot %d begins with entry %d, the newest is %d", errChain, c.from+slot, have, want)))
		}
		return more
	})
	if err != nil {
		yield(err)
		return false
	}
	return more
}
