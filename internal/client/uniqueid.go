package client

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

// IDs makes unique message ids in the form of the Java client. It may be used from many goroutines.
//
//	bytes   content
//	4 / 16  IP address
//	2       process id, its low 16 bits
//	4       a number of this maker's own; it grows by 1 each month
//	4       ms since the month began, local time
//	2       counter
//
// as upper-case hex. Where more than 65 536 are made in a millisecond, or the clock steps back, the time in the ids runs ahead
// instead of repeating. As it begins anew each month, the number before it changes then.
type IDs struct {
	prefix []byte // address and process id
	number uint32
	// last is the time of the last id in ms since 1970, and behind it 16 bits of counter. It only grows.
	last  atomic.Uint64
	month atomic.Pointer[month]
}

// month is the one that contains times from begin until before end, ms since 1970.
type month struct {
	begin, end int64
	index      uint32 // months since year 0
}

func monthOf(ms int64) *month {
	t := time.UnixMilli(ms)
	begin := time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.Local)
	return &month{begin.UnixMilli(), begin.AddDate(0, 1, 0).UnixMilli(), uint32(t.Year()*12 + int(t.Month()))}
}

// NewIDs returns a maker of ids.
func NewIDs(ip netip.Addr) *IDs {
	g := &IDs{prefix: ip.Unmap().AsSlice(), number: rand.Uint32()}
	g.prefix = binary.BigEndian.AppendUint16(g.prefix, uint16(os.Getpid()))
	return g
}

const maxIDBytes = 16 + 2 + 4 + 4 + 2

// Next returns an id that this maker has not returned before: 32 characters, 56 for an IPv6 address.
func (g *IDs) Next() string {
	now := uint64(time.Now().UnixMilli()) << 16
	var id uint64
	for {
		last := g.last.Load()
		id = max(now, last+1)
		if g.last.CompareAndSwap(last, id) {
			break
		}
	}
	ms := int64(id >> 16)
	m := g.month.Load()
	if m == nil || ms < m.begin || ms >= m.end {
		m = monthOf(ms)
		g.month.Store(m)
	}
	raw := append(make([]byte, 0, maxIDBytes), g.prefix...)
	raw = binary.BigEndian.AppendUint32(raw, g.number+m.index)
	raw = binary.BigEndian.AppendUint32(raw, uint32(ms-m.begin))
	raw = binary.BigEndian.AppendUint16(raw, uint16(id))
	text := make([]byte, 0, 2*maxIDBytes)
	const digits = "0123456789ABCDEF"
	for _, b := range raw {
		text = append(text, digits[b>>4], digits[b&15])
	}
	return string(text)
}
