package index_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

func FuzzDecodeHeader(f *testing.F) {
	f.Add(index.Header{BeginTimestamp: start, EndTimestamp: start + 1, EndOffset: 1 << 40, SlotCount: 3, IndexCount: 5}.AppendTo(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := index.DecodeHeader(b); err == nil {
			require.Equal(t, b[:index.HeaderSize], h.AppendTo(nil))
			if h.Check(small) == nil {
				require.Less(t, h.Keys(), small.Entries)
			}
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(index.Entry{KeyHash: -5, PhysicalOffset: 1 << 40, TimeDiff: 3, Previous: 2}.AppendTo(nil), int32(3))
	f.Add([]byte{}, int32(0))
	f.Fuzz(func(t *testing.T, b []byte, number int32) {
		if e, err := index.DecodeEntry(b); err == nil {
			require.Equal(t, b[:index.EntrySize], e.AppendTo(nil))
			if e.Check(number) == nil {
				require.Less(t, e.Previous, number)
			}
		}
	})
}

// seeds are files of the shape small, good and bad.
func seeds(f *testing.F) {
	fsys := memfs.New()
	x := open(f, fsys, small, nil)
	for i := range int64(8) {
		put(f, x, i, start, "a")
	}
	b := content(f, fsys)[0]
	f.Add(b)
	for _, at := range []int{39, 43, 56 + 2*20 + 19, 56 + 8*20 + 4, 30} {
		bad := bytes.Clone(b)
		bad[at] ^= 0x87
		f.Add(bad)
	}
	f.Add(b[:len(b)-1])
	f.Add([]byte{})
	f.Add(make([]byte, len(b)))
}

// FuzzScan lays any bytes open: nothing panics, and every pass ends.
func FuzzScan(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		size := int64(len(b))
		for _, slots := range []int32{1, 2, 3, 4, 5} {
			d, err := index.ScanFile("f", bytes.NewReader(b), size, slots)
			if err != nil {
				continue
			}
			for s, err := range d.Slots() {
				require.Less(t, s.Slot, slots)
				require.True(t, err == nil || errors.Is(err, mappedfile.ErrCorrupt))
			}
			for e, err := range d.Entries() {
				require.Less(t, e.Number, d.Shape.Entries)
				require.True(t, err == nil || errors.Is(err, mappedfile.ErrCorrupt))
			}
			for err := range d.Check() {
				require.ErrorIs(t, err, mappedfile.ErrCorrupt)
			}
		}
		if s, ok, err := index.InferShape("f", bytes.NewReader(b), size); err == nil && ok {
			require.Equal(t, size, s.Size())
		}
	})
}

// FuzzIndex opens any bytes as an index and asks, puts, drops and asks again: each query ends, newest first in each file, and
// what is put is found.
func FuzzIndex(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		fsys := memfs.New()
		write(t, fsys, "20231114221320000", append(bytes.Clone(b), make([]byte, max(0, int(small.Size())-len(b)))...))
		x, err := index.Open(fsys, "index", &index.Options{Slots: small.Slots, Entries: small.Entries})
		if err != nil {
			require.Greater(t, int64(len(b)), small.Size())
			return
		}
		ends(t, x)
		next := max(x.EndOffset(), x.Files()[0].Header.EndOffset, 0) + 1
		if next > 0 {
			put(t, x, next, start, "b")
			found, _ := answers(x, "b")
			require.Contains(t, found, next)
		}
		require.NoError(t, x.Sync())
		ends(t, x)
		_, err = x.DropFrom(100)
		require.NoError(t, err)
		_, err = x.DropAfterTime(start)
		require.NoError(t, err)
		ends(t, x)
		require.NoError(t, x.Close())
	})
}

// FuzzProve damages a file and the mark of it: either nothing is proved, or taking the file up makes it the one that it was.
func FuzzProve(f *testing.F) {
	f.Add(uint16(0), byte(0), uint16(0), byte(0), int32(6))
	f.Add(uint16(index.HeaderSize), byte(7), uint16(39), byte(3), int32(6))
	f.Add(uint16(index.HeaderSize+4*index.SlotSize+3*index.EntrySize), byte(1), uint16(36), byte(1), int32(5))
	f.Add(uint16(index.HeaderSize+4*index.SlotSize+6*index.EntrySize), byte(1), uint16(3), byte(1), int32(-1))
	f.Fuzz(func(t *testing.T, at uint16, flip byte, at2 uint16, flip2 byte, count int32) {
		fsys := memfs.New()
		x := open(t, fsys, small, nil)
		for i := range int64(5) {
			put(t, x, 100*i, start+1000*i, string(rune('a'+i)))
		}
		m, err := x.Mark()
		require.NoError(t, err)
		require.NoError(t, x.Close())
		whole := content(t, fsys)[0]
		b := bytes.Clone(whole)
		b[int(at)%len(b)] ^= flip
		b[int(at2)%len(b)] ^= flip2
		write(t, fsys, m.File, b)
		m.Header.IndexCount = count
		x = open(t, fsys, small, nil)
		p, err := x.Prove(m)
		require.NoError(t, err)
		if p == nil {
			return
		}
		require.Equal(t, int32(6), count)
		require.NoError(t, x.TakeUp(p))
		require.NoError(t, x.Close())
		got, unused := content(t, fsys)[0], index.HeaderSize+index.SlotSize*int(small.Slots)
		copy(got[unused:unused+index.EntrySize], whole[unused:]) // entry 0
		require.Equal(t, whole, got)
	})
}

func ends(t *testing.T, x *index.Index) {
	t.Helper()
	file, last := "", int32(0)
	for h, err := range x.Query("T", "a", 0, 1<<62) {
		if err != nil {
			continue
		}
		if h.File == file {
			require.Less(t, h.Number, last)
		}
		file, last = h.File, h.Number
	}
}

// FuzzInferShape damages a real file: what is inferred is its shape or nothing.
func FuzzInferShape(f *testing.F) {
	name := "rocketmq-3.1.4/mid-transaction"
	whole := goldenFiles(f, golden.Unpack(f, name))[0]
	shape := shapeOf(golden.Load(f, name))
	f.Add(uint16(0), byte(0))
	f.Add(uint16(39), byte(3))
	f.Add(uint16(240+24), byte(1))
	f.Fuzz(func(t *testing.T, at uint16, flip byte) {
		b := bytes.Clone(whole)
		b[int(at)%len(b)] ^= flip
		s, ok, err := index.InferShape("f", bytes.NewReader(b), int64(len(b)))
		require.NoError(t, err)
		if ok {
			require.Equal(t, shape, s)
		}
	})
}
