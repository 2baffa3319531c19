package consumequeue_test

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
)

const scanned = "consumequeue/T/0/00000000000000000100"

// drain collects what a scan yields and the error that ended it.
func drain[E any](seq iter.Seq2[E, error]) (entries []E, err error) {
	for e, err := range seq {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func unit(offset int64, size int32) consumequeue.Unit {
	return consumequeue.Unit{PhysicalOffset: offset, Size: size, TagsCode: -offset}
}

func units(us ...consumequeue.Unit) (b []byte) {
	for _, u := range us {
		b = u.AppendTo(b)
	}
	return b
}

func TestScanEndsAtAUnitOfZeros(t *testing.T) {
	b := units(consumequeue.Filler(), unit(100, 50), unit(150, 7), consumequeue.Unit{}, unit(157, 9))
	got, err := drain(consumequeue.Scan(scanned, 100, bytes.NewReader(b), int64(len(b))))
	require.NoError(t, err)
	require.Equal(t, []consumequeue.Entry{
		{Index: 5, Unit: consumequeue.Filler()}, {Index: 6, Unit: unit(100, 50)}, {Index: 7, Unit: unit(150, 7)},
	}, got)
}

func TestScanReadsManyWindows(t *testing.T) {
	const n = 20_000
	var b []byte
	for i := range int64(n) {
		b = unit(i*10, 10).AppendTo(b)
	}
	next := int64(0)
	for e, err := range consumequeue.Scan(scanned, 0, bytes.NewReader(b), int64(len(b))) {
		require.NoError(t, err)
		require.Equal(t, consumequeue.Entry{Index: next, Unit: unit(next*10, 10)}, e)
		next++
	}
	require.EqualValues(t, n, next)
}

func TestScanStopsAtDamageAndNamesIt(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		at         int64
		harm       func(b []byte) []byte
		size       int64 // 0: that of the bytes
	}{
		{"negative offset", "impossible queue unit: offset -9223372036854775658, size 7", 20, func(b []byte) []byte { b[20] = 0x80; return b }, 0},
		{"size zero", "impossible queue unit: offset 150, size 0", 20, func(b []byte) []byte { b[31] = 0; return b }, 0},
		{"only tags", "impossible queue unit: offset 0, size 0", 20, func(b []byte) []byte { clear(b[20:32]); return b }, 0},
		{"cut in a unit", "a unit of 20 bytes, cut after 15", 40, func(b []byte) []byte { return b[:55] }, 0},
		{"shorter than said", "the file should have 60, it ends here", 40, func(b []byte) []byte { return b[:40] }, 60},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := tt.harm(units(unit(100, 50), unit(150, 7), unit(157, 9)))
			if tt.size == 0 {
				tt.size = int64(len(b))
			}
			got, err := drain(consumequeue.Scan(scanned, 100, bytes.NewReader(b), tt.size))
			require.Len(t, got, int(tt.at/20))
			require.ErrorContains(t, err, tt.want)
			corrupt, ok := errors.AsType[*mappedfile.CorruptError](err)
			require.True(t, ok)
			require.Equal(t, scanned, corrupt.File)
			require.Equal(t, tt.at, corrupt.Offset)
		})
	}
}

func TestScanPassesOverAZeroRemainder(t *testing.T) {
	b := append(units(unit(100, 50)), 0, 0, 0)
	got, err := drain(consumequeue.Scan(scanned, 0, bytes.NewReader(b), int64(len(b))))
	require.NoError(t, err)
	require.Len(t, got, 1)
}

// broken is a file whose device fails.
type broken struct{}

func (broken) ReadAt([]byte, int64) (int, error) { return 0, io.ErrClosedPipe }

func TestScanYieldsReadErrorsAsTheyAre(t *testing.T) {
	_, err := drain(consumequeue.Scan(scanned, 0, broken{}, 20))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NotErrorIs(t, err, mappedfile.ErrCorrupt)
	require.ErrorContains(t, err, scanned)
	_, err = drain(consumequeue.ScanBatch(scanned, 0, broken{}, 46))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	_, err = drain(consumequeue.ScanExt(scanned, 0, broken{}, 46))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestScansStopWhenAsked(t *testing.T) {
	b := units(unit(100, 50), unit(150, 7))
	for _, err := range consumequeue.Scan(scanned, 0, bytes.NewReader(b), 40) {
		require.NoError(t, err)
		break
	}
	b = consumequeue.BatchUnit{Size: 1, BatchSize: 1}.AppendTo(nil)
	for _, err := range consumequeue.ScanBatch(scanned, 0, bytes.NewReader(append(b, b...)), 92) {
		require.NoError(t, err)
		break
	}
	b = consumequeue.ExtUnit{}.AppendTo(nil)
	for _, err := range consumequeue.ScanExt(scanned, 0, bytes.NewReader(append(b, b...)), 40) {
		require.NoError(t, err)
		break
	}
}

func TestScanBatchYieldsUnitsAndStopsAtDamage(t *testing.T) {
	good := consumequeue.BatchUnit{PhysicalOffset: 9, Size: 8, StoreTime: 7, BaseOffset: 6, BatchSize: 5, CompactedOffset: -1}
	bad := good
	bad.BatchSize = 0
	b := bad.AppendTo(good.AppendTo(good.AppendTo(nil)))
	got, err := drain(consumequeue.ScanBatch(scanned, 460, bytes.NewReader(b), int64(len(b))))
	require.Equal(t, []consumequeue.BatchEntry{{Index: 10, BatchUnit: good}, {Index: 11, BatchUnit: good}}, got)
	require.ErrorIs(t, err, mappedfile.ErrCorrupt)
	require.ErrorContains(t, err, "offset 92: impossible queue unit: offset 9, size 8, base offset 6, batch size 0")

	got, err = drain(consumequeue.ScanBatch(scanned, 0, bytes.NewReader(make([]byte, 460)), 460))
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestScanExtYieldsUnitsAndTheEndMark(t *testing.T) {
	one, two := consumequeue.ExtUnit{Size: 20, TagsCode: 3}, consumequeue.ExtUnit{Size: 23, StoreTime: 4, Bitmap: []byte{1, 2, 3}}
	b := two.AppendTo(one.AppendTo(nil))
	got, err := drain(consumequeue.ScanExt(scanned, 1024, bytes.NewReader(append(b, 0xFF, 0xFF, 1)), 46))
	require.NoError(t, err)
	require.Equal(t, []consumequeue.ExtEntry{{Offset: 1024, ExtUnit: one}, {Offset: 1044, ExtUnit: two}, {Offset: 1067, End: true}}, got)

	got, err = drain(consumequeue.ScanExt(scanned, 0, bytes.NewReader(append(b, 0, 0, 1, 1)), 47))
	require.NoError(t, err)
	require.Len(t, got, 2)

	got, err = drain(consumequeue.ScanExt(scanned, 0, bytes.NewReader(append(b, 0, 21)), 45))
	require.Len(t, got, 2)
	require.ErrorContains(t, err, scanned+": offset 43: too few bytes: an extension unit has at least 20, there are 2")
}

// Many at a time are the same units as one by one, whatever ends them.
func TestScanManyGivesWhatScanDoes(t *testing.T) {
	good := units(unit(0, 91), consumequeue.Filler(), unit(91, 92), unit(200, 93), unit(300, 1))
	for name, b := range map[string][]byte{
		"all good":        good,
		"none":            nil,
		"zeros behind":    append(bytes.Clone(good), make([]byte, 60)...),
		"an impossible":   append(bytes.Clone(good), units(unit(-4, 3), unit(400, 5))...),
		"the last is cut": good[:len(good)-7],
	} {
		one, oneErr := drain(consumequeue.Scan(scanned, 2000, bytes.NewReader(b), int64(len(b))))
		for n := range 7 {
			var many []consumequeue.Entry
			var manyErr error
			for batch, err := range consumequeue.ScanMany(scanned, 2000, bytes.NewReader(b), int64(len(b)), n) {
				require.LessOrEqual(t, len(batch), max(n, 1), name)
				if manyErr = err; err != nil && len(batch) > 0 {
					batch = batch[:len(batch)-1]
				}
				many = append(many, batch...)
			}
			require.Equal(t, one, many, name)
			require.Equal(t, oneErr, manyErr, name)
		}
	}
	for _, err := range consumequeue.ScanMany(scanned, 2000, bytes.NewReader(good), int64(len(good)), 2) {
		require.NoError(t, err)
		break // a caller may want no more
	}
}
