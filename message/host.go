package message

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
)

// Host is an address and port as a record stores them: 4 or 16 bytes and then the port as 32-bit integer.
// The zero value is not a host; [Host.Or] replaces it.
type Host struct {
	Addr netip.Addr
	Port int32
}

// HostFrom makes a Host of an address and port.
func HostFrom(a netip.AddrPort) Host { return Host{Addr: a.Addr().WithZone(""), Port: int32(a.Port())} }

// ParseHost reads "ip:port" or "[ip6]:port".
func ParseHost(s string) (Host, error) {
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return Host{}, err
	}
	return HostFrom(a), nil
}

// IsZero says whether h is the zero value.
func (h Host) IsZero() bool { return !h.Addr.IsValid() && h.Port == 0 }

// Or is h, or other when h is the zero value.
func (h Host) Or(other Host) Host {
	if h.IsZero() {
		return other
	}
	return h
}

// Is6 says whether the stored form is the long one.
func (h Host) Is6() bool { return h.Addr.Is6() }

// Size is the length of the stored form, 8 or 20 bytes.
func (h Host) Size() int {
	if h.Is6() {
		return 20
	}
	return 8
}

// String is the form that net/netip prints.
func (h Host) String() string {
	if h.Is6() {
		return "[" + h.Addr.String() + "]:" + strconv.FormatInt(int64(h.Port), 10)
	}
	if !h.Addr.IsValid() {
		return "invalid host"
	}
	return h.Addr.String() + ":" + strconv.FormatInt(int64(h.Port), 10)
}

// AppendTo appends the stored form; the zero host is stored as 0.0.0.0:0.
func (h Host) AppendTo(b []byte) []byte {
	switch {
	case h.Is6():
		a := h.Addr.As16()
		b = append(b, a[:]...)
	case h.Addr.IsValid():
		a := h.Addr.As4()
		b = append(b, a[:]...)
	default:
		b = append(b, 0, 0, 0, 0)
	}
	return binary.BigEndian.AppendUint32(b, uint32(h.Port))
}

var errShortHost = errors.New("host is cut short")

// DecodeHost reads a stored host of 8 bytes, or of 20 when ipv6 is set.
func DecodeHost(b []byte, ipv6 bool) (Host, error) {
	if ipv6 {
		if len(b) < 20 {
			return Host{}, errShortHost
		}
		return Host{netip.AddrFrom16([16]byte(b)), int32(binary.BigEndian.Uint32(b[16:]))}, nil
	}
	if len(b) < 8 {
		return Host{}, errShortHost
	}
	return Host{netip.AddrFrom4([4]byte(b)), int32(binary.BigEndian.Uint32(b[4:]))}, nil
}
