package consumequeue_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

func FuzzDecode(f *testing.F) {
	f.Add(unit(1<<40, 96).AppendTo(nil))
	f.Add(consumequeue.Filler().AppendTo(nil))
	f.Add(make([]byte, 19))
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := consumequeue.Decode(b)
		require.Equal(t, len(b) < consumequeue.UnitSize, err != nil)
		if err == nil {
			require.Equal(t, b[:consumequeue.UnitSize], u.AppendTo(nil))
		}
	})
}

func FuzzDecodeBatch(f *testing.F) {
	f.Add(consumequeue.BatchUnit{PhysicalOffset: 9, Size: 8, BaseOffset: 6, BatchSize: 5, CompactedOffset: -1}.AppendTo(nil))
	f.Add(make([]byte, 45))
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := consumequeue.DecodeBatch(b)
		require.Equal(t, len(b) < consumequeue.BatchUnitSize, err != nil)
		if err == nil {
			require.Equal(t, b[:consumequeue.BatchUnitSize], u.AppendTo(nil))
		}
	})
}

func FuzzDecodeExt(f *testing.F) {
	f.Add(consumequeue.ExtUnit{TagsCode: 3, StoreTime: 4, Bitmap: []byte{1, 2, 3}}.AppendTo(nil))
	f.Add(bytes.Repeat([]byte{0x7F, 0xFF}, 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		if u, err := consumequeue.DecodeExt(b); err == nil {
			require.Equal(t, b[:u.Size], u.AppendTo(nil))
			code, ok := consumequeue.ExtTagsCode(b[:consumequeue.ExtUnitMin])
			require.True(t, ok)
			require.Equal(t, u.TagsCode, code)
		}
		_, _ = consumequeue.ExtTagsCode(b)
	})
}

// FuzzScan walks any bytes with all three scans: they end, and what they refuse they refuse as damage with a place.
func FuzzScan(f *testing.F) {
	f.Add(units(consumequeue.Filler(), unit(100, 50), unit(150, 7)), int64(100))
	f.Add(consumequeue.ExtUnit{TagsCode: 3, StoreTime: 4, Bitmap: []byte{1, 2, 3}}.AppendTo([]byte{0xFF}), int64(0))
	f.Add(consumequeue.BatchUnit{Size: 8, BatchSize: 5}.AppendTo(nil), int64(1<<62))
	f.Fuzz(func(t *testing.T, b []byte, base int64) {
		size := int64(len(b))
		entries, err := drain(consumequeue.Scan("f", base, bytes.NewReader(b), size))
		require.LessOrEqual(t, len(entries), len(b)/consumequeue.UnitSize)
		batches, err2 := drain(consumequeue.ScanBatch("f", base, bytes.NewReader(b), size))
		require.LessOrEqual(t, len(batches), len(b)/consumequeue.BatchUnitSize)
		exts, err3 := drain(consumequeue.ScanExt("f", base, bytes.NewReader(b), size))
		require.LessOrEqual(t, len(exts), len(b)/consumequeue.ExtUnitMin+1)
		for _, err := range []error{err, err2, err3} {
			if err != nil {
				require.ErrorIs(t, err, mappedfile.ErrCorrupt)
			}
		}
	})
}

// FuzzQueueFiles opens queues whose two files hold any bytes: everything can be asked of them, nothing is changed by that,
// and they can be cut and continued.
func FuzzQueueFiles(f *testing.F) {
	f.Add(units(nth(0), nth(1), nth(2), nth(3), nth(4)), units(nth(5), consumequeue.Unit{}, nth(7)))
	f.Add(units(consumequeue.Filler(), consumequeue.Filler(), nth(2)), []byte{})
	f.Add(bytes.Repeat([]byte{0xFF}, small), bytes.Repeat([]byte{0x01}, 33))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		fsys := memfs.New()
		a, b = pad(a[:min(len(a), small):min(len(a), small)], small), b[:min(len(b), small)]
		writeFile(t, fsys, segmentName(100), a)
		writeFile(t, fsys, segmentName(200), b)
		q := openTable(t, fsys, nil).Lookup("T", 0)
		first, end := q.Bounds()
		require.True(t, 5 <= first && first <= end && end <= 15)
		for i := first; i < end; i++ {
			_, err := q.Get(i)
			require.NoError(t, err)
		}
		n, err := q.Read(first, make([]consumequeue.Unit, 20))
		require.NoError(t, err)
		require.Equal(t, end-first, int64(n))
		careful, err := q.FindEnd(true)
		require.NoError(t, err)
		_, err = q.OffsetAt(40, func(u consumequeue.Unit) (int64, error) { return u.PhysicalOffset, nil })
		require.NoError(t, err)
		require.NoError(t, q.SetMin(1000))
		q.MaxPhysical()
		require.Equal(t, a, readFile(t, fsys, segmentName(100)))
		require.Equal(t, b, readFile(t, fsys, segmentName(200))[:len(b)])

		require.NoError(t, q.TruncateAfter(careful))
		_, end = q.Bounds()
		appendRange(t, q, end, end+7)
		_, end = q.Bounds()
		found, err := q.FindEnd(false)
		require.NoError(t, err)
		require.Equal(t, end, found)
	})
}
