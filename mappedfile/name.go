package mappedfile

import (
	"fmt"
	"strconv"
)

// NameLength is the number of digits in a segment's file name.
const NameLength = 20

// SegmentName is the file name of the segment that starts at offset: 20 decimal digits, zero-padded (formats.md 1).
func SegmentName(offset int64) string { return fmt.Sprintf("%020d", offset) }

// ParseSegmentName gives the start offset that a segment's file name states, and false for a name that is none.
func ParseSegmentName(name string) (int64, bool) {
	if len(name) != NameLength {
		return 0, false
	}
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return 0, false
		}
	}
	off, err := strconv.ParseInt(name, 10, 64)
	return off, err == nil
}
