package index

import (
	"fmt"
	"math"
)

// Shape is how an index file is laid out. It stands nowhere in the file; all files of one directory share it.
type Shape struct {
	// Slots is the number of chains, Entries one more than the keys that a file holds. Java: maxHashSlotNum, maxIndexNum.
	Slots, Entries int32
}

// The shape that every line of RocketMQ has by default: files of 420,000,040 bytes.
const (
	DefaultSlots   = 5_000_000
	DefaultEntries = 20_000_000
)

// Size is the length in bytes of a file of that shape.
func (s Shape) Size() int64 { return s.entryPos(0) + int64(s.Entries)*EntrySize }

// slotPos is the byte position of a slot.
func (s Shape) slotPos(slot int32) int64 { return HeaderSize + int64(slot)*SlotSize }

// entryPos is the byte position of an entry.
func (s Shape) entryPos(number int32) int64 {
	return HeaderSize + int64(s.Slots)*SlotSize + int64(number)*EntrySize
}

// check says why there can be no file of that shape. Java maps a file in one piece, so it ends below 2 GiB.
func (s Shape) check() error {
	if s.Slots < 1 || s.Entries < 2 || s.Size() > math.MaxInt32 {
		return fmt.Errorf("index shape of %d slots and %d entries: want at least 1 and 2, and a file below 2 GiB", s.Slots, s.Entries)
	}
	return nil
}

// shapeOf is the shape of that many slots in a file of that size, if there is one.
func shapeOf(slots, size int64) (Shape, bool) {
	if size < 0 || size > math.MaxInt32 || slots < 1 || slots > size {
		return Shape{}, false
	}
	left := size - HeaderSize - slots*SlotSize
	if left < 2*EntrySize || left%EntrySize != 0 {
		return Shape{}, false
	}
	return Shape{int32(slots), int32(left / EntrySize)}, true
}
