package redolog

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// UnitSize is the length of one unit in bytes.
const UnitSize = 20

// Prepared is the TagsCode of a prepared message's unit.
const Prepared = -1

// Why a unit cannot be believed.
var (
	errShort  = errors.New("shorter than one unit")
	errOffset = errors.New("negative commit log offset")
	errSize   = errors.New("message size is not positive")
	errTags   = errors.New("tags code is neither -1 nor an offset")
)

// Unit is one event of a transaction (formats.md 8.2).
//
//	offset  size  field           value
//	0       8     PhysicalOffset  commit log offset of the message that caused the event
//	8       4     Size            bytes of that message in the commit log
//	12      8     TagsCode        -1: it was prepared; else the offset of the prepared message that this one ends
//
// All fields are big-endian. Commit and rollback look alike.
type Unit struct {
	PhysicalOffset int64
	Size           int32
	TagsCode       int64
}

// Prepares says whether the unit is a prepared message's.
func (u Unit) Prepares() bool { return u.TagsCode == Prepared }

// Resolves gives the offset of the prepared message that the unit's message commits or rolls back, and false for the unit
// of a prepared message.
func (u Unit) Resolves() (preparedOffset int64, ok bool) { return u.TagsCode, u.TagsCode != Prepared }

// Decode reads the unit that b begins with. The result does not alias b. It refuses a negative offset, a size that is not
// positive and a tags code below -1.
func Decode(b []byte) (Unit, error) {
	if len(b) < UnitSize {
		return Unit{}, fmt.Errorf("%w: %d bytes", errShort, len(b))
	}
	u := decode(b)
	return u, u.check()
}

// decode reads a unit whatever its fields hold.
func decode(b []byte) Unit {
	return Unit{
		PhysicalOffset: int64(binary.BigEndian.Uint64(b)),
		Size:           int32(binary.BigEndian.Uint32(b[8:])),
		TagsCode:       int64(binary.BigEndian.Uint64(b[12:])),
	}
}

// possible is check without the words.
func (u Unit) possible() bool { return u.PhysicalOffset >= 0 && u.Size > 0 && u.TagsCode >= Prepared }

// check says what is impossible in a unit.
func (u Unit) check() error {
	switch {
	case u.possible():
		return nil
	case u.PhysicalOffset < 0:
		return fmt.Errorf("%w: %d", errOffset, u.PhysicalOffset)
	case u.Size <= 0:
		return fmt.Errorf("%w: %d", errSize, u.Size)
	default:
		return fmt.Errorf("%w: %d", errTags, u.TagsCode)
	}
}

// AppendTo appends the unit's 20 bytes to b.
func (u Unit) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(u.PhysicalOffset))
	b = binary.BigEndian.AppendUint32(b, uint32(u.Size))
	return binary.BigEndian.AppendUint64(b, uint64(u.TagsCode))
}
