package message_test

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/message"
)

func host(t testing.TB, s string) message.Host {
	t.Helper()
	h, err := message.ParseHost(s)
	require.NoError(t, err)
	return h
}

// R-E-021, R-D-017.
func TestHostsHaveAStoredFormOf8Or20Bytes(t *testing.T) {
	for text, stored := range map[string]string{
		"192.168.1.2:40000":     "c0a8010200009c40",
		"0.0.0.0:0":             "0000000000000000",
		"255.255.255.255:65535": "ffffffff0000ffff",
		"[2001:db8::1]:1":       "20010db800000000000000000000000100000001",
		"[::]:0":                "0000000000000000000000000000000000000000",
		"[::ffff:1.2.3.4]:5":    "00000000000000000000ffff0102030400000005",
	} {
		h := host(t, text)
		require.Equal(t, text, h.String())
		require.Equal(t, stored, hex.EncodeToString(h.AppendTo(nil)))
		require.Equal(t, len(stored)/2, h.Size())
		require.Equal(t, h.Size() == 20, h.Is6())
		again, err := message.DecodeHost(h.AppendTo(nil), h.Is6())
		require.NoError(t, err)
		require.Equal(t, h, again)
		require.False(t, h.IsZero())
	}
}

func TestHostKeepsAPortThatIsNoPort(t *testing.T) {
	b := []byte{10, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFE}
	h, err := message.DecodeHost(b, false)
	require.NoError(t, err)
	require.Equal(t, int32(-2), h.Port)
	require.Equal(t, "10.0.0.1:-2", h.String())
	require.Equal(t, b, h.AppendTo(nil))
}

func TestZeroHostIsReplacedAndStoredAsZeros(t *testing.T) {
	var zero message.Host
	require.True(t, zero.IsZero())
	require.Equal(t, "invalid host", zero.String())
	require.Equal(t, make([]byte, 8), zero.AppendTo(nil))
	other := host(t, "10.0.0.1:10911")
	require.Equal(t, other, zero.Or(other))
	require.Equal(t, other, other.Or(host(t, "10.0.0.2:1")))
}

func TestHostFromDropsTheZone(t *testing.T) {
	a := netip.MustParseAddrPort("[fe80::1%eth0]:7")
	require.Equal(t, "[fe80::1]:7", message.HostFrom(a).String())
}

func TestHostRejects(t *testing.T) {
	_, err := message.ParseHost("localhost:10911")
	require.Error(t, err)
	for _, tt := range []struct {
		n    int
		ipv6 bool
	}{{0, false}, {7, false}, {8, true}, {19, true}} {
		_, err := message.DecodeHost(make([]byte, tt.n), tt.ipv6)
		require.ErrorContains(t, err, "cut short")
	}
}

// R-D-022: the offset id is that of the broker.
func TestOffsetIDIsStoreHostAndPhysicalOffset(t *testing.T) {
	for _, tt := range []struct {
		host   string
		offset int64
		id     string
	}{
		{"10.0.0.1:10911", 0, "0A00000100002A9F0000000000000000"},
		{"10.20.30.40:10911", 56787, "0A141E2800002A9F000000000000DDD3"},
		{"[2001:db8::2]:2", 0x413, "20010DB8000000000000000000000002000000020000000000000413"},
	} {
		require.Equal(t, tt.id, message.OffsetID(host(t, tt.host), tt.offset))
		h, offset, err := message.ParseOffsetID(tt.id)
		require.NoError(t, err)
		require.Equal(t, tt.host, h.String())
		require.Equal(t, tt.offset, offset)
	}
}

func TestParseOffsetIDRejects(t *testing.T) {
	for _, id := range []string{"", "0A", "0A00000100002A9F000000000000000", "0A00000100002A9F000000000000000G"} {
		_, _, err := message.ParseOffsetID(id)
		require.ErrorIs(t, err, message.ErrNoOffsetID, id)
	}
}

func FuzzParseOffsetID(f *testing.F) {
	f.Add("0A00000100002A9F0000000000000000")
	f.Add("20010db8000000000000000000000002000000020000000000000413")
	f.Fuzz(func(t *testing.T, id string) {
		h, offset, err := message.ParseOffsetID(id)
		if err != nil {
			return
		}
		again, offsetAgain, err := message.ParseOffsetID(message.OffsetID(h, offset))
		require.NoError(t, err)
		require.Equal(t, h, again)
		require.Equal(t, offset, offsetAgain)
	})
}
