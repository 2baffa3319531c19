package commitlog

import (
	"hash/crc32"
	"math"
	"slices"

	"github.com/rocketstore/rocketstore/message"
)

// PropertyCRCSize is the length in bytes of the property that 5.2.0 and later may end a record with: its name, 0x01, ten
// digits, 0x02.
const PropertyCRCSize = len(message.PropertyCRC32) + 1 + propertyCRCDigits + 1

const propertyCRCDigits = 10

// PropertyCRC reads the __CRC32# property at the end of a whole record, and computes what it should be: the CRC-32 of all
// bytes before it without the top bit. The record is sound when the two are equal; ok is false for a record that does
// not end with that property. Its digits are stored least significant first; where they are no such number, stored is
// 0xFFFFFFFF, which is never computed.
func PropertyCRC(record []byte) (stored, computed uint32, ok bool) {
	at := len(record) - PropertyCRCSize
	if at < MinRecordSize || record[len(record)-1] != 0x02 {
		return 0, 0, false
	}
	property := record[at:]
	if string(property[:len(message.PropertyCRC32)]) != message.PropertyCRC32 || property[len(message.PropertyCRC32)] != 0x01 {
		return 0, 0, false
	}
	// The property may be there without being one of its own: the end of another value, or behind the record's properties.
	if !endsProperties(record, at) {
		return 0, 0, false
	}
	digits := property[len(message.PropertyCRC32)+1 : PropertyCRCSize-1]
	return parseReversed(digits), propertyCRC(record[:at]), true
}

// endsProperties says whether at is where an item of the record's properties starts.
func endsProperties(record []byte, at int) bool {
	r, err := Decode(record)
	if err != nil || int(r.Size) != len(record) {
		return false
	}
	start := len(record) - len(r.Properties)
	return at == start || at > start && record[at-1] == 0x02
}

func propertyCRC(b []byte) uint32 { return crc32.ChecksumIEEE(b) & math.MaxInt32 }

func parseReversed(digits []byte) uint32 {
	n := uint64(0)
	for _, c := range slices.Backward(digits) {
		if c < '0' || c > '9' {
			return math.MaxUint32
		}
		n = 10*n + uint64(c-'0')
	}
	return uint32(min(n, math.MaxUint32))
}

// AppendPropertyCRC ends a record with its __CRC32# property. The argument is the record up to there, with the queue
// offset, physical offset and store time filled in, its size and properties length counting the [PropertyCRCSize] bytes
// that come, and its other properties, if any, ended with 0x02.
func AppendPropertyCRC(record []byte) []byte {
	n := propertyCRC(record)
	record = append(record, message.PropertyCRC32+"\x01"...)
	for range propertyCRCDigits {
		record = append(record, '0'+byte(n%10))
		n /= 10
	}
	return append(record, 0x02)
}
