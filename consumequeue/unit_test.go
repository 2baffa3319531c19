package consumequeue_test

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
)

// fromHex is the bytes that hex digits with spaces between them stand for.
func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// R-E-040, R-E-041, R-E-042; the bytes are those of formats.md 16.
func TestUnitHasTheBytesThatJavaWrote(t *testing.T) {
	for _, tt := range []struct {
		name, bytes string
		unit        consumequeue.Unit
	}{
		{"a tag", "0000000000000000 000000A9 000000000027A807", consumequeue.Unit{Size: 0xA9, TagsCode: 0x27A807}},
		{"a delivery time", "000000000000010F 0000009E 000001A228F67E0E", consumequeue.Unit{PhysicalOffset: 0x10F, Size: 0x9E, TagsCode: 0x1A228F67E0E}},
		{"an address", "0000000000000171 0000023D 8000000000000000", consumequeue.Unit{PhysicalOffset: 0x171, Size: 0x23D, TagsCode: math.MinInt64}},
		{"a negative hash", "0000000000000001 00000001 FFFFFFFFEF5070BE", consumequeue.Unit{PhysicalOffset: 1, Size: 1, TagsCode: -279940930}},
		{"a filler", "0000000000000000 7FFFFFFF 0000000000000000", consumequeue.Filler()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := fromHex(t, tt.bytes)
			require.Equal(t, want, tt.unit.AppendTo(nil))
			got, err := consumequeue.Decode(want)
			require.NoError(t, err)
			require.Equal(t, tt.unit, got)
			require.True(t, got.Valid())
			require.Equal(t, tt.name == "a filler", got.IsFiller())
		})
	}
}

func TestDecodeRefusesFewerBytesThanAUnit(t *testing.T) {
	_, err := consumequeue.Decode(make([]byte, 19))
	require.ErrorContains(t, err, "a queue unit has 20, there are 19")
	_, err = consumequeue.DecodeBatch(make([]byte, 45))
	require.ErrorContains(t, err, "a batch unit has 46, there are 45")
	_, err = consumequeue.DecodeExt(make([]byte, 19))
	require.ErrorContains(t, err, "an extension unit has at least 20, there are 19")
}

func TestValidFollowsJavasRule(t *testing.T) {
	require.False(t, consumequeue.Unit{}.Valid())
	require.False(t, consumequeue.Unit{PhysicalOffset: -1, Size: 1}.Valid())
	require.False(t, consumequeue.Unit{Size: -1}.Valid())
	require.True(t, consumequeue.Unit{Size: 1}.Valid())
	require.Equal(t, int64(1<<33+5), consumequeue.Unit{PhysicalOffset: 1 << 33, Size: 5}.End())
	require.Equal(t, int64(math.MaxInt32), consumequeue.Filler().End())
}

// R-E-048; the bytes are those of formats.md 16 and of the README of the 5.3.3 fixtures.
func TestExtUnitHasTheBytesThatJavaWrote(t *testing.T) {
	for _, tt := range []struct {
		name, bytes string
		unit        consumequeue.ExtUnit
	}{
		{"64 bits", "001C 000000000027A807 0000018BCFE56800 0008 8000000000000001", consumequeue.ExtUnit{
			Size: 28, TagsCode: 0x27A807, StoreTime: 1700000000000, Bitmap: []byte{0x80, 0, 0, 0, 0, 0, 0, 1},
		}},
		{"112 bits", "0022 000000000027a808 000001a22906ac56 000e 0000080000000000040200000000", consumequeue.ExtUnit{
			Size: 34, TagsCode: 0x27A808, StoreTime: 0x1a22906ac56, Bitmap: []byte{0, 0, 8, 0, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0},
		}},
		{"no bitmap", "0014 FFFFFFFFFFFFFFFF 0000000000000001 0000", consumequeue.ExtUnit{Size: 20, TagsCode: -1, StoreTime: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := fromHex(t, tt.bytes)
			require.Equal(t, want, tt.unit.AppendTo(nil))
			got, err := consumequeue.DecodeExt(append(want, 0xEE))
			require.NoError(t, err)
			require.Equal(t, tt.unit, got)
		})
	}
}

func TestDecodeExtRejects(t *testing.T) {
	for _, tt := range []struct{ name, bytes, want string }{
		{"lengths that contradict", "001D 0000000000000000 0000000000000000 0008 8000000000000001 00", "size 29, bitmap length 8"},
		{"a negative bitmap", "0013 0000000000000000 0000000000000000 FFFF", "size 19, bitmap length -1"},
		{"more than there is", "7FFF 0000000000000000 0000000000000000 7FEB 00", "size 32767, 21 bytes left"},
		{"the end mark", "FFFF 0000000000000000 0000000000000000 0000", "size -1, bitmap length 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := consumequeue.DecodeExt(fromHex(t, tt.bytes))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestExtAddressIsNoHash(t *testing.T) {
	require.True(t, consumequeue.IsExtAddress(math.MinInt64))
	require.True(t, consumequeue.IsExtAddress(-2147483649))
	require.False(t, consumequeue.IsExtAddress(math.MinInt32))
	require.False(t, consumequeue.IsExtAddress(0))
	var second uint64 = 0x800000000000001C
	require.Equal(t, int64(28), consumequeue.ExtOffset(int64(second)))
	require.Equal(t, int64(second), consumequeue.ExtAddress(28))
}

// R-E-048; the bytes are those of formats.md 16.
func TestBatchUnitHasTheBytesThatJavaWrote(t *testing.T) {
	for _, tt := range []struct {
		bytes string
		unit  consumequeue.BatchUnit
	}{
		{
			"0000000000000338 0000009C 000000000027A808 000001A228F86D7B 0000000000000000 0003 FFFFFFFF 00000000",
			consumequeue.BatchUnit{PhysicalOffset: 0x338, Size: 0x9C, TagsCode: 0x27A808, StoreTime: 0x1A228F86D7B, BatchSize: 3, CompactedOffset: -1},
		},
		{
			"00000000000003D4 0000009C 000000000027A808 000001A228F86D84 0000000000000003 0002 FFFFFFFF 00000000",
			consumequeue.BatchUnit{PhysicalOffset: 0x3D4, Size: 0x9C, TagsCode: 0x27A808, StoreTime: 0x1A228F86D84, BaseOffset: 3, BatchSize: 2, CompactedOffset: -1},
		},
	} {
		want := fromHex(t, tt.bytes)
		require.Equal(t, want, tt.unit.AppendTo(nil))
		got, err := consumequeue.DecodeBatch(want)
		require.NoError(t, err)
		require.Equal(t, tt.unit, got)
		require.True(t, got.Valid())
	}
	require.False(t, consumequeue.BatchUnit{}.Valid())
}
