package broker

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// uniqueIDs makes the values of UNIQ_KEY for messages that came without one (protocol.md 4.4):
//
//	size    content
//	4 / 16  address
//	2       process id
//	4       in Java the hash of a class loader; here the start time in seconds
//	4       milliseconds since the first instant of the month
//	2       counter
type uniqueIDs struct {
	prefix  []byte
	counter atomic.Uint32
}

func newUniqueIDs(ip netip.Addr) *uniqueIDs {
	p := ip.AsSlice()
	p = binary.BigEndian.AppendUint16(p, uint16(os.Getpid()))
	return &uniqueIDs{prefix: binary.BigEndian.AppendUint32(p, uint32(time.Now().Unix()))}
}

func (u *uniqueIDs) next() string {
	now := time.Now()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	b := append(make([]byte, 0, 32), u.prefix...)
	b = binary.BigEndian.AppendUint32(b, uint32(now.Sub(month).Milliseconds()))
	b = binary.BigEndian.AppendUint16(b, uint16(u.counter.Add(1)))
	return strings.ToUpper(hex.EncodeToString(b))
}
