package redolog_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/redolog"
)

// unit is a believable unit for an index: prepared, prepared, the end of the first of them, and so on.
func unit(index int64) redolog.Unit {
	u := redolog.Unit{PhysicalOffset: 1000 + index*200, Size: 200, TagsCode: redolog.Prepared}
	if index%3 == 2 {
		u.TagsCode = 1000 + (index-2)*200
	}
	return u
}

func unitBytes(n int64) []byte {
	var b []byte
	for i := range n {
		b = unit(i).AppendTo(b)
	}
	return b
}

type scanned struct {
	entries []redolog.Entry
	err     error
}

func scan(base int64, r io.ReaderAt, size int64) scanned {
	var s scanned
	for e, err := range redolog.Scan("transaction/redolog/file", base, r, size) {
		if s.err = err; err == nil {
			s.entries = append(s.entries, e)
		}
	}
	return s
}

func TestScanNumbersUnitsByTheirPlace(t *testing.T) {
	const n = 4096 + 5 // more than a window
	b := append(unitBytes(n), make([]byte, 240)...)
	s := scan(40, bytes.NewReader(b), int64(len(b)))
	require.NoError(t, s.err)
	require.Len(t, s.entries, n)
	for i, e := range s.entries {
		require.Equal(t, redolog.Entry{Index: int64(i) + 2, Unit: unit(int64(i))}, e)
	}
}

func TestScanStopsAtWhatCannotBeBelieved(t *testing.T) {
	b := unitBytes(4)
	b[2*redolog.UnitSize+8] = 0xFF
	s := scan(0, bytes.NewReader(b), int64(len(b)))
	require.Len(t, s.entries, 2)
	corrupt, ok := errors.AsType[*mappedfile.CorruptError](s.err)
	require.True(t, ok)
	require.Equal(t, int64(40), corrupt.Offset)
	require.ErrorContains(t, s.err, "transaction/redolog/file: offset 40: message size is not positive")
}

func TestScanOfAFileCutInAUnit(t *testing.T) {
	b := unitBytes(3)
	cut := b[:len(b)-10]
	s := scan(0, bytes.NewReader(cut), int64(len(cut)))
	require.Len(t, s.entries, 2)
	require.ErrorContains(t, s.err, "shorter than one unit")

	s = scan(0, bytes.NewReader(cut), int64(len(b))) // the caller thinks that it is longer
	require.Len(t, s.entries, 2)
	require.ErrorIs(t, s.err, io.ErrUnexpectedEOF)
	require.ErrorIs(t, s.err, mappedfile.ErrCorrupt)
}

func TestScanOfNothing(t *testing.T) {
	for _, size := range []int64{0, -1, 10} {
		s := scan(0, bytes.NewReader(make([]byte, 10)), size)
		require.NoError(t, s.err)
		require.Empty(t, s.entries)
	}
}

type brokenReader struct{ err error }

func (r brokenReader) ReadAt([]byte, int64) (int, error) { return 0, r.err }

func TestScanGivesReadErrors(t *testing.T) {
	want := errors.New("device is gone")
	s := scan(0, brokenReader{want}, 100)
	require.ErrorIs(t, s.err, want)
	require.NotErrorIs(t, s.err, mappedfile.ErrCorrupt)
	require.ErrorIs(t, scan(0, brokenReader{nil}, 100).err, io.ErrUnexpectedEOF)
}

func TestScanMayBeLeftEarly(t *testing.T) {
	b := unitBytes(3)
	for e, err := range redolog.Scan("f", 0, bytes.NewReader(b), int64(len(b))) {
		require.NoError(t, err)
		require.Zero(t, e.Index)
		break
	}
}
