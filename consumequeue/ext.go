package consumequeue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ExtUnitMin is the length in bytes of an extension unit without a bitmap.
const ExtUnitMin = 20

// maxExtAddress is the greatest tags code that is an address: one below every 32-bit hash.
const maxExtAddress = math.MinInt32 - 1

// errExtUnit says that an extension unit's lengths contradict one another or the bytes.
var errExtUnit = errors.New("impossible extension unit")

// ExtUnit is one unit of a queue's extension file, which 4.1 and later write when bitmaps of SQL filters are on
// (formats.md 5.5). It is read only here. A file ends with the 16-bit value -1 where the next unit did not fit.
//
//	offset  size  field      value
//	0       2     Size       20 + length of the bitmap
//	2       8     TagsCode   the tags code that the queue's unit would have without the extension
//	10      8     StoreTime  of the message, milliseconds
//	18      2                length of the bitmap
//	20      n     Bitmap     filter bits, may be absent
//
// All fields are big-endian and signed. There is no checksum.
type ExtUnit struct {
	Size      int16
	TagsCode  int64
	StoreTime int64
	Bitmap    []byte // nil when absent
}

// DecodeExt reads the extension unit at the start of b. It fails when b is shorter than the unit says to be, or when the
// two lengths in the unit contradict each other. The bitmap aliases b.
func DecodeExt(b []byte) (ExtUnit, error) {
	if len(b) < ExtUnitMin {
		return ExtUnit{}, fmt.Errorf("%w: an extension unit has at least %d, there are %d", errShort, ExtUnitMin, len(b))
	}
	u := ExtUnit{
		Size:      int16(binary.BigEndian.Uint16(b)),
		TagsCode:  int64(binary.BigEndian.Uint64(b[2:])),
		StoreTime: int64(binary.BigEndian.Uint64(b[10:])),
	}
	bitmap := int(int16(binary.BigEndian.Uint16(b[18:])))
	switch {
	case bitmap < 0 || int(u.Size) != ExtUnitMin+bitmap:
		return ExtUnit{}, fmt.Errorf("%w: size %d, bitmap length %d", errExtUnit, u.Size, bitmap)
	case int(u.Size) > len(b):
		return ExtUnit{}, fmt.Errorf("%w: size %d, %d bytes left", errExtUnit, u.Size, len(b))
	case bitmap > 0:
		u.Bitmap = b[ExtUnitMin:u.Size:u.Size]
	}
	return u, nil
}

// ExtTagsCode reads the tags code of the extension unit at the start of b, of which only the first [ExtUnitMin] bytes are needed.
// Ok is false when b is shorter, or its two lengths contradict each other.
func ExtTagsCode(b []byte) (code int64, ok bool) {
	if len(b) < ExtUnitMin {
		return 0, false
	}
	bitmap := int(int16(binary.BigEndian.Uint16(b[18:])))
	if bitmap < 0 || int(int16(binary.BigEndian.Uint16(b))) != ExtUnitMin+bitmap {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(b[2:])), true
}

// AppendTo appends the unit's bytes to b. The lengths written are those of the bitmap, whatever Size says.
func (u ExtUnit) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(ExtUnitMin+len(u.Bitmap)))
	b = binary.BigEndian.AppendUint64(b, uint64(u.TagsCode))
	b = binary.BigEndian.AppendUint64(b, uint64(u.StoreTime))
	b = binary.BigEndian.AppendUint16(b, uint16(len(u.Bitmap)))
	return append(b, u.Bitmap...)
}

// IsExtAddress says whether the tags code of a queue's unit is the address of an extension unit instead of a hash.
// Java: ConsumeQueueExt.isExtAddr.
func IsExtAddress(tagsCode int64) bool { return tagsCode <= maxExtAddress }

// ExtOffset is the byte offset in the queue's extension files that an address stands for.
func ExtOffset(tagsCode int64) int64 { return tagsCode - math.MinInt64 }

// ExtAddress is the tags code that stands for a byte offset in the queue's extension files.
func ExtAddress(offset int64) int64 { return offset + math.MinInt64 }
