package consumequeue

import (
	"encoding/binary"
	"fmt"
)

// BatchUnitSize is the length in bytes of one unit of a batch queue.
const BatchUnitSize = 46

// BatchUnit is one unit of a batch queue, which 5.0 and later keep under batchconsumequeue for topics whose attribute
// queue.type is BatchCQ (formats.md 5.6). It is read only here. Units lie in order, not at the place of their queue
// offset: finding one takes a search by BaseOffset.
//
//	offset  size  field            value
//	0       8     PhysicalOffset   byte position of the record in the commit log
//	8       4     Size             bytes of that record
//	12      8     TagsCode         as in [Unit]; 0 for a batch
//	20      8     StoreTime        milliseconds
//	28      8     BaseOffset       queue offset of the batch's first message
//	36      2     BatchSize        number of messages
//	38      4     CompactedOffset  -1
//	42      4     Reserved         0
//
// All fields are big-endian and signed. There is no checksum.
type BatchUnit struct {
	PhysicalOffset  int64
	Size            int32
	TagsCode        int64
	StoreTime       int64
	BaseOffset      int64
	BatchSize       int16
	CompactedOffset int32
	Reserved        int32
}

// DecodeBatch reads the batch unit in the first [BatchUnitSize] bytes of b. It fails only when b is shorter; whether the
// unit can be believed is for [BatchUnit.Valid] to say. The result does not alias b.
func DecodeBatch(b []byte) (BatchUnit, error) {
	if len(b) < BatchUnitSize {
		return BatchUnit{}, fmt.Errorf("%w: a batch unit has %d, there are %d", errShort, BatchUnitSize, len(b))
	}
	return BatchUnit{
		PhysicalOffset:  int64(binary.BigEndian.Uint64(b)),
		Size:            int32(binary.BigEndian.Uint32(b[8:])),
		TagsCode:        int64(binary.BigEndian.Uint64(b[12:])),
		StoreTime:       int64(binary.BigEndian.Uint64(b[20:])),
		BaseOffset:      int64(binary.BigEndian.Uint64(b[28:])),
		BatchSize:       int16(binary.BigEndian.Uint16(b[36:])),
		CompactedOffset: int32(binary.BigEndian.Uint32(b[38:])),
		Reserved:        int32(binary.BigEndian.Uint32(b[42:])),
	}, nil
}

// AppendTo appends the unit's 46 bytes to b.
func (u BatchUnit) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(u.PhysicalOffset))
	b = binary.BigEndian.AppendUint32(b, uint32(u.Size))
	b = binary.BigEndian.AppendUint64(b, uint64(u.TagsCode))
	b = binary.BigEndian.AppendUint64(b, uint64(u.StoreTime))
	b = binary.BigEndian.AppendUint64(b, uint64(u.BaseOffset))
	b = binary.BigEndian.AppendUint16(b, uint16(u.BatchSize))
	b = binary.BigEndian.AppendUint32(b, uint32(u.CompactedOffset))
	return binary.BigEndian.AppendUint32(b, uint32(u.Reserved))
}

// Valid says whether u can be a batch unit at all, by Java's rule.
func (u BatchUnit) Valid() bool {
	return u.PhysicalOffset >= 0 && u.Size > 0 && u.BaseOffset >= 0 && u.BatchSize > 0
}
