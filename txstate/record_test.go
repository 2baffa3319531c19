package txstate_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/txstate"
)

// R-B-05, R-B-03: the example bytes that stand with the 3.1.4 stores.
func TestRecordOfTheRealBroker(t *testing.T) {
	b, err := hex.DecodeString("00000000000001e1000000ea6b0c8b608c99166000000004")
	require.NoError(t, err)
	r, err := txstate.Decode(b)
	require.NoError(t, err)
	require.Equal(t, txstate.Record{
		CommitOffset: 481, Size: 234, StoredAt: 1795984224, GroupHash: -1936124320, State: txstate.Prepared,
	}, r)
	require.Equal(t, b, r.AppendTo(nil))
}

// R-B-53: what 3.1 takes for the end of the table is refused.
func TestDecodeRejects(t *testing.T) {
	good := txstate.Record{CommitOffset: 42, Size: 180, StoredAt: 7, State: txstate.Prepared}.AppendTo(nil)
	for _, tt := range []struct {
		name, want string
		harm       func(b []byte) []byte
	}{
		{"nothing", "shorter than one record: 0 bytes", func([]byte) []byte { return nil }},
		{"one byte short", "shorter than one record: 23 bytes", func(b []byte) []byte { return b[:23] }},
		{"a negative offset", "negative commit log offset: -9223372036854775766", func(b []byte) []byte { b[0] = 0x80; return b }},
		{"no size", "message size is not positive: 0", func(b []byte) []byte { b[11] = 0; return b }},
		{"a negative size", "message size is not positive: -2147483468", func(b []byte) []byte { b[8] = 0x80; return b }},
		{"a state from nowhere", "unknown state 7", func(b []byte) []byte { b[23] = 7; return b }},
		{"no state", "unknown state 0", func(b []byte) []byte { b[23] = 0; return b }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := txstate.Decode(tt.harm(bytes.Clone(good)))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestStatesHaveNames(t *testing.T) {
	require.Equal(t, "prepared", txstate.Prepared.String())
	require.Equal(t, "committed", txstate.Committed.String())
	require.Equal(t, "rolled back", txstate.RolledBack.String())
	require.Equal(t, "5", txstate.State(5).String())
	require.False(t, txstate.State(0).Valid())
}

// R-B-11: the original's seconds turn negative in 2038; read as unsigned they go on.
func TestSecondsGoOnAfter2038(t *testing.T) {
	const millis = 2_200_000_000_999
	r := txstate.Record{StoredAt: txstate.SecondsOf(millis)}
	require.Negative(t, r.StoredAt)
	require.Equal(t, int64(2_200_000_000), r.Seconds())
}

// R-B-51 and its correction.
func TestFillerKeepsPlaceAndTime(t *testing.T) {
	f := txstate.Filler(txstate.Record{CommitOffset: 9, Size: 100, StoredAt: 5, GroupHash: 77, State: txstate.Prepared})
	require.Equal(t, txstate.Record{CommitOffset: 9, Size: 100, StoredAt: 5, State: txstate.RolledBack}, f)
}
