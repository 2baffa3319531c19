package redolog_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/redolog"
)

func FuzzDecode(f *testing.F) {
	f.Add(redolog.Unit{PhysicalOffset: 1 << 40, Size: 96, TagsCode: 17}.AppendTo(nil))
	f.Add(redolog.Unit{PhysicalOffset: -1, Size: 1 << 30, TagsCode: -9}.AppendTo(nil))
	f.Add(make([]byte, 20))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if u, err := redolog.Decode(b); err == nil {
			require.Equal(t, b[:redolog.UnitSize], u.AppendTo(nil))
			require.True(t, u.PhysicalOffset >= 0 && u.Size > 0 && u.TagsCode >= -1)
		}
	})
}

func FuzzScan(f *testing.F) {
	good := unitBytes(2)
	f.Add(good, int64(len(good)), int64(0))
	f.Add(append(bytes.Clone(good), make([]byte, 30)...), int64(70), int64(40))
	f.Add(append(bytes.Clone(good), 1, 2, 3), int64(1<<40), int64(-20))
	f.Fuzz(func(t *testing.T, b []byte, size, base int64) {
		at := 0
		for e, err := range redolog.Scan("f", base, bytes.NewReader(b), size) {
			if err != nil {
				require.ErrorIs(t, err, mappedfile.ErrCorrupt)
				continue // it must be the last one, or the lines below fail
			}
			require.Equal(t, b[at:at+redolog.UnitSize], e.AppendTo(nil))
			require.Equal(t, (base+int64(at))/redolog.UnitSize, e.Index)
			at += redolog.UnitSize
		}
	})
}

// FuzzOpenSet folds any units and compares with a plain map.
func FuzzOpenSet(f *testing.F) {
	f.Add(unitBytes(9))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s redolog.OpenSet
		model := map[int64]bool{}
		for ; len(b) >= 2; b = b[2:] { // small offsets, so that they meet
			u := redolog.Unit{PhysicalOffset: int64(b[0]), Size: 1, TagsCode: int64(int8(b[1]))}
			s.Apply(u)
			if u.Prepares() {
				model[u.PhysicalOffset] = true
			} else {
				delete(model, u.TagsCode)
			}
		}
		requireOpen(t, model, &s)
	})
}
