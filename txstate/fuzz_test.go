package txstate_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/txstate"
)

func FuzzDecode(f *testing.F) {
	f.Add(txstate.Record{CommitOffset: 1 << 40, Size: 96, State: txstate.Committed}.AppendTo(nil))
	f.Add(txstate.Record{CommitOffset: -1, Size: 1 << 30, StoredAt: -1, GroupHash: -5, State: 6}.AppendTo(nil))
	f.Add(make([]byte, 24))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := txstate.Decode(b); err == nil {
			require.Equal(t, b[:txstate.RecordSize], r.AppendTo(nil))
			require.True(t, r.CommitOffset >= 0 && r.Size > 0 && r.State.Valid())
		}
	})
}

func FuzzScan(f *testing.F) {
	good := record(3).AppendTo(record(1).AppendTo(nil))
	f.Add(good, int64(len(good)), int64(0))
	f.Add(append(bytes.Clone(good), make([]byte, 30)...), int64(72), int64(48))
	f.Add(append(bytes.Clone(good), 1, 2, 3), int64(1<<40), int64(-24))
	f.Fuzz(func(t *testing.T, b []byte, size, base int64) {
		at := 0
		for e, err := range txstate.Scan("f", base, bytes.NewReader(b), size) {
			if err != nil {
				require.ErrorIs(t, err, mappedfile.ErrCorrupt)
				continue // it must be the last one, or the lines below fail
			}
			require.Equal(t, b[at:at+txstate.RecordSize], e.AppendTo(nil))
			require.Equal(t, (base+int64(at))/txstate.RecordSize, e.Number)
			at += txstate.RecordSize
		}
	})
}
