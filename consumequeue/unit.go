package consumequeue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// UnitSize is the length in bytes of one unit of a queue.
const UnitSize = 20

// Unit is what a queue says of one message. Unit k of a queue lies at byte k × 20 of it (formats.md 5.1).
//
//	offset  size  field           value
//	0       8     PhysicalOffset  byte position of the record in the commit log
//	8       4     Size            bytes of that record
//	12      8     TagsCode        Java String.hashCode of the tag, sign-extended; 0 without a tag; in the topic of
//	                              delayed messages the delivery time in milliseconds; or an address, see [IsExtAddress]
//
// All fields are big-endian and signed. There is no checksum.
type Unit struct {
	PhysicalOffset int64
	Size           int32
	TagsCode       int64
}

// errShort says that bytes are fewer than what is to be decoded from them.
var errShort = errors.New("too few bytes")

// Decode reads the unit in the first [UnitSize] bytes of b. It fails only when b is shorter; whether the unit can be
// believed is for [Unit.Valid] to say. The result does not alias b.
func Decode(b []byte) (Unit, error) {
	if len(b) < UnitSize {
		return Unit{}, fmt.Errorf("%w: a queue unit has %d, there are %d", errShort, UnitSize, len(b))
	}
	return decode(b), nil
}

// decode is Decode for callers that know the length.
func decode(b []byte) Unit {
	_ = b[UnitSize-1]
	return Unit{
		PhysicalOffset: int64(binary.BigEndian.Uint64(b)),
		Size:           int32(binary.BigEndian.Uint32(b[8:])),
		TagsCode:       int64(binary.BigEndian.Uint64(b[12:])),
	}
}

// AppendTo appends the unit's 20 bytes to b.
func (u Unit) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(u.PhysicalOffset))
	b = binary.BigEndian.AppendUint32(b, uint32(u.Size))
	return binary.BigEndian.AppendUint64(b, uint64(u.TagsCode))
}

// put writes the unit's bytes to the start of b.
func (u Unit) put(b []byte) {
	_ = b[UnitSize-1]
	binary.BigEndian.PutUint64(b, uint64(u.PhysicalOffset))
	binary.BigEndian.PutUint32(b[8:], uint32(u.Size))
	binary.BigEndian.PutUint64(b[12:], uint64(u.TagsCode))
}

// Filler is the unit that stands for no message: it fills the file of a queue whose first unit does not lie at the
// file's start (formats.md 5.3), and holes. Java: fillPreBlank.
func Filler() Unit { return Unit{Size: math.MaxInt32} }

// IsFiller says whether u is the unit that stands for no message.
func (u Unit) IsFiller() bool { return u == Filler() }

// Valid says whether u can be a unit at all: offset not negative, size positive. A filler is valid, as in Java.
func (u Unit) Valid() bool { return u.PhysicalOffset >= 0 && u.Size > 0 }

// End is the byte position in the commit log behind the record that u points at.
func (u Unit) End() int64 { return u.PhysicalOffset + int64(u.Size) }

// real says whether u points at a record.
func (u Unit) real() bool { return u.Valid() && !u.IsFiller() }
