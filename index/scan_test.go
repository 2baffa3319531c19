package index_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
)

func dump(t *testing.T, b []byte, slots int32) *index.Dump {
	t.Helper()
	d, err := index.ScanFile("index/f", bytes.NewReader(b), int64(len(b)), slots)
	require.NoError(t, err)
	return d
}

func TestScanGoesOnBehindDamage(t *testing.T) {
	shape := index.Shape{Slots: 3, Entries: 9}
	b := filledFile(t, shape, nil, 0, 6)
	at := 40 + 3*4 + 20*4
	copy(b[at:], index.Entry{PhysicalOffset: -1}.AppendTo(nil))
	binary.BigEndian.PutUint32(b[44:], 70)
	d := dump(t, b, 3)
	entries, slots, bad := 0, 0, []error{}
	for _, err := range d.Entries() {
		if entries++; err != nil {
			bad = append(bad, err)
		}
	}
	for _, err := range d.Slots() {
		if slots++; err != nil {
			bad = append(bad, err)
		}
	}
	require.Equal(t, []int{6, 3, 2}, []int{entries, slots, len(bad)})
	requireCorrupt(t, bad[0], "index/f", int64(at), "entry 4: offset -1")
	requireCorrupt(t, bad[1], "index/f", 44, "slot 1 begins with entry 70 of 6")
}

// Batches hold the same entries as Entries, and end with each that cannot be believed.
func TestEntryBatchesGiveWhatEntriesDo(t *testing.T) {
	shape := index.Shape{Slots: 3, Entries: 9}
	b := filledFile(t, shape, nil, 0, 7)
	copy(b[40+3*4+20*4:], index.Entry{PhysicalOffset: -1}.AppendTo(nil))
	for _, end := range []int{len(b), 40 + 3*4 + 20*6} {
		d, err := index.ScanFile("index/f", bytes.NewReader(b[:end]), int64(len(b)), 3)
		require.NoError(t, err)
		var entries []index.Numbered
		var wrong []error
		for e, err := range d.Entries() {
			if e.Number > 0 {
				entries = append(entries, e)
			}
			if err != nil {
				wrong = append(wrong, err)
			}
		}
		for n := range 9 {
			var batched []index.Numbered
			var bad []error
			for batch, err := range d.EntryBatches(n) {
				require.LessOrEqual(t, len(batch), max(n, 1))
				batched = append(batched, batch...)
				if err != nil {
					bad = append(bad, err)
				}
			}
			require.Equal(t, entries, batched)
			require.Equal(t, wrong, bad)
		}
		for _, err := range d.EntryBatches(2) {
			require.Equal(t, end < len(b), err != nil)
			break
		}
	}
}

func TestScanStopsWhenTheCallerDoes(t *testing.T) {
	d := dump(t, filledFile(t, index.Shape{Slots: 3, Entries: 9}, nil, 0, 6), 3)
	for e, err := range d.Entries() {
		require.NoError(t, err)
		require.Equal(t, int32(1), e.Number)
		break
	}
	for s, err := range d.Slots() {
		require.NoError(t, err)
		require.NotZero(t, s.Newest)
		break
	}
}

func TestScanBoundsAHeaderThatCountsTooMuch(t *testing.T) {
	b := filledFile(t, index.Shape{Slots: 3, Entries: 9}, nil, 0, 8)
	for _, count := range []int32{10, 1 << 30, 1<<31 - 1} {
		binary.BigEndian.PutUint32(b[36:], uint32(count))
		n := 0
		for _, err := range dump(t, b, 3).Entries() {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 8, n)
	}
}

func TestScanRefusesASizeThatCannotBe(t *testing.T) {
	for _, tt := range []struct {
		size  int
		slots int32
	}{{0, 1}, {44, 1}, {91, 2}, {8440, 101}, {8440, 0}, {8440, -5}} {
		_, err := index.ScanFile("index/f", bytes.NewReader(make([]byte, tt.size)), int64(tt.size), tt.slots)
		requireCorrupt(t, err, "index/f", 0, "no index file has this size")
	}
	_, err := index.ScanFile("index/f", bytes.NewReader(make([]byte, 10)), 8440, 100)
	requireCorrupt(t, err, "index/f", 0, "the file ends before 40")
	d, err := index.ScanFile("index/f", bytes.NewReader(make([]byte, 300)), 8440, 100)
	require.NoError(t, err)
	d.Header.IndexCount = 9
	for _, err := range d.Slots() {
		requireCorrupt(t, err, "index/f", 40, "the file ends before 440")
	}
	for _, err := range d.Entries() {
		requireCorrupt(t, err, "index/f", 460, "the file ends before 620")
	}
}

// What a check says of each kind of damage.
func TestCheckFindsEachContradiction(t *testing.T) {
	shape := index.Shape{Slots: 2, Entries: 9}
	entryAt := func(n int) int { return 40 + 2*4 + 20*n }
	for _, tt := range []struct {
		name string
		harm func(b []byte)
		want string
	}{
		{"header", func(b []byte) { binary.BigEndian.PutUint32(b[36:], 200) }, "index count 200"},
		{"entry", func(b []byte) { b[entryAt(3)+4] = 0x80 }, "entry 3: offset -"},
		{"chain misses an entry", func(b []byte) { binary.BigEndian.PutUint32(b[entryAt(8)+16:], 0) }, "entry 8 says that the one before it is 0, but it is"},
		{"slot is stale", func(b []byte) { binary.BigEndian.PutUint32(b[40:], 1) }, "slot 0 begins with entry 1, the newest is"},
		{"offset goes back", func(b []byte) { binary.BigEndian.PutUint64(b[entryAt(8)+4:], 0) }, "entry 8: offset 0 after 600"},
		{"offset beyond the header", func(b []byte) { binary.BigEndian.PutUint64(b[24:], 100) }, "offset 700, the header ends at 100"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := filledFile(t, shape, nil, 0, 8)
			for err := range dump(t, b, 2).Check() {
				require.NoError(t, err)
			}
			tt.harm(b)
			var found []error
			for err := range dump(t, b, 2).Check() {
				require.ErrorIs(t, err, mappedfile.ErrCorrupt)
				require.ErrorContains(t, err, "index/f: offset ")
				found = append(found, err)
			}
			require.ErrorContains(t, errors.Join(found...), tt.want)
			for err := range dump(t, b, 2).Check() {
				require.Error(t, err)
				break
			}
		})
	}
}

// hugeSlots is a file of 70 million slots, more than a check looks at together, and of one entry, whose slot is the last.
type hugeSlots struct{}

func (hugeSlots) ReadAt(b []byte, off int64) (int, error) {
	const slots = 70_000_000
	clear(b)
	for at, part := range map[int64][]byte{
		0:                    index.Header{SlotCount: 1, IndexCount: 2}.AppendTo(nil),
		40 + 4*(slots-1):     {0, 0, 0, 1},
		40 + 4*slots + 20:    index.Entry{KeyHash: slots - 1}.AppendTo(nil),
		40 + 4*(slots/2) + 1: {7},
	} {
		for i, c := range part {
			if p := at + int64(i) - off; p >= 0 && p < int64(len(b)) {
				b[p] = c
			}
		}
	}
	return len(b), nil
}

func TestCheckOfVeryManySlotsGoesInRounds(t *testing.T) {
	s := index.Shape{Slots: 70_000_000, Entries: 2}
	d, err := index.ScanFile("index/f", hugeSlots{}, s.Size(), s.Slots)
	require.NoError(t, err)
	var found []error
	for err := range d.Check() {
		found = append(found, err)
	}
	require.Len(t, found, 1)
	requireCorrupt(t, found[0], "index/f", 140_000_040, "slot 35000000 begins with entry 458752, the newest is 0")
}
