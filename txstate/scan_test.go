package txstate_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/txstate"
)

// record is a believable record for a number.
func record(number int64) txstate.Record {
	return txstate.Record{
		CommitOffset: 1000 + number*200, Size: 200, StoredAt: int32(1_700_000_000 + number), GroupHash: int32(number % 7),
		State: txstate.Prepared,
	}
}

func recordBytes(n int64) []byte {
	var b []byte
	for i := range n {
		b = record(i).AppendTo(b)
	}
	return b
}

type scanned struct {
	entries []txstate.Entry
	err     error
}

func scan(base int64, r io.ReaderAt, size int64) scanned {
	var s scanned
	for e, err := range txstate.Scan("transaction/statetable/file", base, r, size) {
		if s.err = err; err == nil {
			s.entries = append(s.entries, e)
		}
	}
	return s
}

func TestScanNumbersRecordsByTheirPlace(t *testing.T) {
	const n = 4096 + 5 // more than a window
	b := append(recordBytes(n), make([]byte, 240)...)
	s := scan(48, bytes.NewReader(b), int64(len(b)))
	require.NoError(t, s.err)
	require.Len(t, s.entries, n)
	for i, e := range s.entries {
		require.Equal(t, txstate.Entry{Number: int64(i) + 2, Record: record(int64(i))}, e)
	}
}

func TestScanStopsAtWhatCannotBeBelieved(t *testing.T) {
	b := recordBytes(4)
	b[2*txstate.RecordSize+23] = 5
	s := scan(0, bytes.NewReader(b), int64(len(b)))
	require.Len(t, s.entries, 2)
	corrupt, ok := errors.AsType[*mappedfile.CorruptError](s.err)
	require.True(t, ok)
	require.Equal(t, int64(48), corrupt.Offset)
	require.ErrorContains(t, s.err, "transaction/statetable/file: offset 48: unknown state 5")
}

func TestScanOfAFileCutInARecord(t *testing.T) {
	b := recordBytes(3)
	cut := b[:len(b)-10]
	s := scan(0, bytes.NewReader(cut), int64(len(cut)))
	require.Len(t, s.entries, 2)
	require.ErrorIs(t, s.err, mappedfile.ErrCorrupt)
	require.ErrorContains(t, s.err, "shorter than one record")

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

// lazyReader gives fewer bytes than asked for, without an error.
type lazyReader struct{}

func (lazyReader) ReadAt([]byte, int64) (int, error) { return 0, nil }

type brokenReader struct{ err error }

func (r brokenReader) ReadAt([]byte, int64) (int, error) { return 0, r.err }

func TestScanGivesReadErrors(t *testing.T) {
	want := errors.New("device is gone")
	s := scan(0, brokenReader{want}, 100)
	require.ErrorIs(t, s.err, want)
	require.NotErrorIs(t, s.err, mappedfile.ErrCorrupt)
	require.ErrorIs(t, scan(0, lazyReader{}, 100).err, io.ErrUnexpectedEOF)
}

func TestScanMayBeLeftEarly(t *testing.T) {
	b := recordBytes(3)
	for e, err := range txstate.Scan("f", 0, bytes.NewReader(b), int64(len(b))) {
		require.NoError(t, err)
		require.Zero(t, e.Number)
		break
	}
}
