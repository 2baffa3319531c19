package message

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
)

// OffsetID is the offset message id: the store host and the physical offset in upper-case hex, 32 characters, or 56
// for an IPv6 store host (formats.md 4.6). In 3.1 it is the message id.
func OffsetID(storeHost Host, physicalOffset int64) string {
	var buf [28]byte
	b := storeHost.AppendTo(buf[:0])
	b = binary.BigEndian.AppendUint64(b, uint64(physicalOffset))
	const digits = "0123456789ABCDEF"
	var text [2 * len(buf)]byte
	for i, c := range b {
		text[2*i], text[2*i+1] = digits[c>>4], digits[c&15]
	}
	return string(text[:2*len(b)])
}

// ErrNoOffsetID says that a text is no offset message id.
var ErrNoOffsetID = errors.New("not an offset message id (32 or 56 hex digits)")

// ParseOffsetID takes an offset message id apart. Note that a unique id of 4.x clients has the same length.
func ParseOffsetID(id string) (storeHost Host, physicalOffset int64, err error) {
	if len(id) != 32 && len(id) != 56 {
		return Host{}, 0, ErrNoOffsetID
	}
	b, err := hex.DecodeString(id)
	if err != nil {
		return Host{}, 0, ErrNoOffsetID
	}
	h, err := DecodeHost(b, len(id) == 56)
	if err != nil {
		return Host{}, 0, err
	}
	return h, int64(binary.BigEndian.Uint64(b[len(b)-8:])), nil
}
