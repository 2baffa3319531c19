package mappedfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// R-E-001: 20 digits, zero-padded.
func TestSegmentNames(t *testing.T) {
	for _, tt := range []struct {
		name  string
		start int64
		ok    bool
	}{
		{"00000000000000000000", 0, true},
		{"00000000001073741824", 1 << 30, true},
		{"09223372036854775807", 1<<63 - 1, true},
		{"09223372036854775808", 0, false}, // beyond 64 bits
		{"99999999999999999999", 0, false},
		{"0000000000000000000", 0, false},
		{"000000000000000000000", 0, false},
		{"+0000000000000000001", 0, false},
		{"-0000000000000000001", 0, false},
		{"0000000000000000_001", 0, false},
		{"0000000000000000000a", 0, false},
		{"00000000000000000\xd9\xa0\x30", 0, false}, // an Arabic digit
		{"", 0, false},
	} {
		start, ok := mappedfile.ParseSegmentName(tt.name)
		require.Equal(t, tt.ok, ok, tt.name)
		if ok {
			require.Equal(t, tt.start, start)
			require.Equal(t, tt.name, mappedfile.SegmentName(tt.start))
		}
	}
}

// R-E-017.
func FuzzParseSegmentName(f *testing.F) {
	f.Add("00000000001073741824")
	f.Add("09223372036854775808")
	f.Add("lock")
	f.Fuzz(func(t *testing.T, name string) {
		if start, ok := mappedfile.ParseSegmentName(name); ok {
			require.GreaterOrEqual(t, start, int64(0))
			require.Equal(t, name, mappedfile.SegmentName(start))
		}
	})
}
