package index

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// HeaderSize is the length in bytes of a file's header.
const HeaderSize = 40

// Header is the start of an index file.
//
//	offset  size  field           value
//	0       8     BeginTimestamp  store time of the first message in the file, ms
//	8       8     EndTimestamp    store time of the last one, ms
//	16      8     BeginOffset     commit log offset of the first message
//	24      8     EndOffset       commit log offset of the last one
//	32      4     SlotCount       3.1: entries; 4.7.1 and later: slots in use
//	36      4     IndexCount      number of the next entry, so one more than there are; 0 until the first
//
// All fields are big-endian and signed. A file without entries that follows a full one holds that one's end values in all
// four of the first fields.
type Header struct {
	BeginTimestamp, EndTimestamp int64 // ms
	BeginOffset, EndOffset       int64 // physical
	SlotCount, IndexCount        int32
}

var (
	errShort  = errors.New("too few bytes")
	errHeader = errors.New("impossible index header")
)

// DecodeHeader reads the header in the first [HeaderSize] bytes of b. It fails only when b is shorter; whether the header can
// be believed is for [Header.Check] to say. The result does not alias b.
func DecodeHeader(b []byte) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, fmt.Errorf("%w: an index header has %d, there are %d", errShort, HeaderSize, len(b))
	}
	return decodeHeader(b), nil
}

// decodeHeader is DecodeHeader for callers that know the length.
func decodeHeader(b []byte) Header {
	_ = b[HeaderSize-1]
	return Header{
		BeginTimestamp: int64(binary.BigEndian.Uint64(b)),
		EndTimestamp:   int64(binary.BigEndian.Uint64(b[8:])),
		BeginOffset:    int64(binary.BigEndian.Uint64(b[16:])),
		EndOffset:      int64(binary.BigEndian.Uint64(b[24:])),
		SlotCount:      int32(binary.BigEndian.Uint32(b[posSlotCount:])),
		IndexCount:     int32(binary.BigEndian.Uint32(b[posIndexCount:])),
	}
}

const (
	posSlotCount  = 32
	posIndexCount = 36
)

// AppendTo appends the header's 40 bytes to b.
func (h Header) AppendTo(b []byte) []byte {
	var raw [HeaderSize]byte
	h.put(raw[:])
	return append(b, raw[:]...)
}

// put writes the header's bytes to the start of b.
func (h Header) put(b []byte) {
	_ = b[HeaderSize-1]
	binary.BigEndian.PutUint64(b, uint64(h.BeginTimestamp))
	binary.BigEndian.PutUint64(b[8:], uint64(h.EndTimestamp))
	binary.BigEndian.PutUint64(b[16:], uint64(h.BeginOffset))
	binary.BigEndian.PutUint64(b[24:], uint64(h.EndOffset))
	binary.BigEndian.PutUint32(b[posSlotCount:], uint32(h.SlotCount))
	binary.BigEndian.PutUint32(b[posIndexCount:], uint32(h.IndexCount))
}

// Check says what cannot be in the header of a file of that shape. Times are not checked: clocks go back.
func (h Header) Check(s Shape) error {
	switch {
	case h.IndexCount < 0 || h.IndexCount > s.Entries:
		return fmt.Errorf("%w: index count %d in a file for %d entries", errHeader, h.IndexCount, s.Entries)
	case h.SlotCount < 0 || h.SlotCount > max(h.IndexCount, 1):
		return fmt.Errorf("%w: slot count %d with index count %d", errHeader, h.SlotCount, h.IndexCount)
	case h.BeginOffset < 0 || h.EndOffset < h.BeginOffset:
		return fmt.Errorf("%w: begin offset %d, end offset %d", errHeader, h.BeginOffset, h.EndOffset)
	}
	return nil
}

// Keys is the number of entries that the header states, 0 when it states nonsense.
func (h Header) Keys() int32 { return max(h.IndexCount-1, 0) }

// next is the number of the entry to be written next; on disk it is 0 until the first was written.
func (h Header) next() int32 { return max(h.IndexCount, 1) }
