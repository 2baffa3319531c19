package redolog_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/redolog"
)

// R-B-20, R-B-22: the example bytes that stand with the 3.1.4 stores.
func TestUnitsOfTheRealBroker(t *testing.T) {
	for _, tt := range []struct {
		hex  string
		want redolog.Unit
	}{
		{"00000000000001e1000000eaffffffffffffffff", redolog.Unit{PhysicalOffset: 481, Size: 234, TagsCode: redolog.Prepared}},
		{"000000000000216f000000e90000000000001ea8", redolog.Unit{PhysicalOffset: 8559, Size: 233, TagsCode: 7848}},
	} {
		b, err := hex.DecodeString(tt.hex)
		require.NoError(t, err)
		u, err := redolog.Decode(b)
		require.NoError(t, err)
		require.Equal(t, tt.want, u)
		require.Equal(t, b, u.AppendTo(nil))
		prepared, resolves := u.Resolves()
		require.Equal(t, !resolves, u.Prepares())
		if resolves {
			require.Equal(t, int64(7848), prepared)
		}
	}
}

func TestDecodeRejects(t *testing.T) {
	good := redolog.Unit{PhysicalOffset: 42, Size: 180, TagsCode: redolog.Prepared}.AppendTo(nil)
	for _, tt := range []struct {
		name, want string
		harm       func(b []byte) []byte
	}{
		{"nothing", "shorter than one unit: 0 bytes", func([]byte) []byte { return nil }},
		{"one byte short", "shorter than one unit: 19 bytes", func(b []byte) []byte { return b[:19] }},
		{"a negative offset", "negative commit log offset: -9223372036854775766", func(b []byte) []byte { b[0] = 0x80; return b }},
		{"no size", "message size is not positive: 0", func(b []byte) []byte { b[11] = 0; return b }},
		{"a tags code below -1", "tags code is neither -1 nor an offset: -2", func(b []byte) []byte { b[19] = 0xFE; return b }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := redolog.Decode(tt.harm(bytes.Clone(good)))
			require.ErrorContains(t, err, tt.want)
		})
	}
}
