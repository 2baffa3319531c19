package inspect_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/inspect"
)

const (
	testSlots   = 7
	testEntries = 20
)

// indexFile is an index file of 7 slots that leads from a key of TopicA to each of the offsets.
func indexFile(keys []string, offsets []int64) []byte {
	shape := index.Shape{Slots: testSlots, Entries: testEntries}
	b := make([]byte, shape.Size())
	h := index.Header{BeginTimestamp: 1, EndTimestamp: 2, BeginOffset: offsets[0], IndexCount: 1}
	for i, key := range keys {
		hash := index.KeyHash("TopicA", key)
		slot := index.HeaderSize + index.Slot(hash, testSlots)*index.SlotSize
		e := index.Entry{KeyHash: hash, PhysicalOffset: offsets[i], Previous: int32(binary.BigEndian.Uint32(b[slot:]))}
		copy(b[entryAt(h.IndexCount):], e.AppendTo(nil))
		binary.BigEndian.PutUint32(b[slot:], uint32(h.IndexCount))
		h.IndexCount, h.SlotCount, h.EndOffset = h.IndexCount+1, h.SlotCount+1, offsets[i]
	}
	copy(b, h.AppendTo(nil))
	return b
}

func entryAt(number int32) int64 {
	return index.HeaderSize + testSlots*index.SlotSize + int64(number)*index.EntrySize
}

// find asks for a key and gives the offsets of the records found.
func find(t *testing.T, s tree, key string) ([]int64, *collector) {
	t.Helper()
	d, err := inspect.Open(s)
	require.NoError(t, err)
	c := &collector{}
	var got []int64
	for r, err := range d.ByKey(t.Context(), "TopicA", key, c.add) {
		require.NoError(t, err)
		got = append(got, r.PhysicalOffset)
	}
	return got, c
}

// keyed is a tree whose log has a record for each key, and the offsets of these.
func keyed(keys ...string) (tree, []int64) {
	s := newTree()
	var b []byte
	var offsets []int64
	for _, key := range keys {
		offsets = append(offsets, int64(len(b)))
		b = append(b, record(int64(len(b)), "body", "KEYS", key+" other")...)
	}
	s.log(0, 1<<16, b)
	return s, offsets
}

func TestByKeyComparesWithTheRecord(t *testing.T) {
	s, offsets := keyed("Aa", "BB", "Aa", "C#C") // TopicA#Aa and TopicA#BB have the same hash
	s.put("index/20240101000000000", indexFile([]string{"Aa", "BB", "Aa", "C#C"}, offsets))
	got, c := find(t, s, "Aa")
	require.Equal(t, []int64{offsets[0], offsets[2]}, got)
	require.Empty(t, c.all)
	got, _ = find(t, s, "BB")
	require.Equal(t, offsets[1:2], got)
	got, _ = find(t, s, "other") // is in no index file
	require.Equal(t, offsets, got)
	got, _ = find(t, s, "nothing")
	require.Empty(t, got)
}

// A chain that goes in a circle or out of the file must not hang or lose the record that the log has.
func TestBrokenChainsAreReportedAndEnd(t *testing.T) {
	for _, tt := range []struct {
		name string
		harm func(b []byte)
	}{
		{"circle", func(b []byte) { binary.BigEndian.PutUint32(b[entryAt(2)+16:], 2) }},
		{"forward", func(b []byte) { binary.BigEndian.PutUint32(b[entryAt(1)+16:], 2) }},
		{"negative", func(b []byte) { binary.BigEndian.PutUint32(b[entryAt(2)+16:], 0xFFFFFFFF) }},
		{"slot beyond the file", func(b []byte) {
			slot := index.HeaderSize + index.Slot(index.KeyHash("TopicA", "Aa"), testSlots)*index.SlotSize
			binary.BigEndian.PutUint32(b[slot:], 0x7FFFFFFF)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, offsets := keyed("Aa", "Aa")
			good := indexFile([]string{"x", "y", "z"}, []int64{0, 0, 0})
			s.put("index/20230101000000000", good) // tells the number of slots
			bad := indexFile([]string{"Aa", "Aa"}, offsets)
			tt.harm(bad)
			s.put("index/20240101000000000", bad)
			got, c := find(t, s, "Aa")
			require.NotEmpty(t, got)
			require.NotEmpty(t, c.all)
			for _, f := range c.all {
				require.Equal(t, inspect.BadIndex, f.Kind)
				require.Equal(t, "index/20240101000000000", f.File)
			}
		})
	}
}

func TestIndexFilesThatTellNothingAreGivenAsTheyAre(t *testing.T) {
	s := newTree()
	full := indexFile([]string{"x", "y"}, []int64{0, 101})
	s.put("index/20230101000000000", full)
	s.put("index/20240101000000000", make([]byte, len(full))) // made, never put to
	s.put("index/20250101000000000", make([]byte, 30))
	s.put("index/20260101000000000", nil)
	s.put("index/readme", nil)
	d, err := inspect.Open(s)
	require.NoError(t, err)
	c := &collector{}
	var got []string
	for x, err := range d.IndexFiles(t.Context(), c.add) {
		require.NoError(t, err)
		got = append(got, fmt.Sprint(x.File, x.Shape, x.Known, x.IndexCount))
	}
	require.Equal(t, []string{"index/20230101000000000{7 20} true 3", "index/20240101000000000{7 20} false 0"}, got)
	require.ElementsMatch(t, []string{
		"foreign file|index/readme|0",
		"wrong file size|index/20250101000000000|0", "damaged index file|index/20250101000000000|0",
		"wrong file size|index/20260101000000000|0", "damaged index file|index/20260101000000000|0",
	}, c.brief())
}

func TestAHeaderThatCannotBeBelievedIsReported(t *testing.T) {
	s := newTree()
	b := indexFile([]string{"x", "y"}, []int64{0, 101})
	binary.BigEndian.PutUint32(b[36:], 0x7FFFFFFF) // index count
	s.put("index/20230101000000000", b)
	d, err := inspect.Open(s)
	require.NoError(t, err)
	c := &collector{}
	n := 0
	for x, err := range d.IndexFiles(t.Context(), c.add) {
		require.NoError(t, err)
		n++
		for _, err := range x.Entries() {
			require.NoError(t, err)
		}
		for _, err := range x.Slots() {
			require.NoError(t, err)
		}
	}
	require.Equal(t, 1, n)
	require.NotEmpty(t, c.all)
}

func TestByIDTakesTheIDsOfBrokersAndOfClients(t *testing.T) {
	const unique = "7F0000013E445FFD2B27949CC22400AA"
	s := newTree()
	b := record(0, "one")
	b = append(b, record(int64(len(b)), "two", "UNIQ_KEY", unique)...)
	s.log(0, 4096, b)
	d, err := inspect.Open(s)
	require.NoError(t, err)
	for id, want := range map[string]int{"0A00000100002A9F0000000000000000": 1, unique: 1, "0A00000100002A9F0000000000000001": 0, "0A00000200002A9F0000000000000000": 0} {
		n := 0
		for _, err := range d.ByID(t.Context(), id, "", func(inspect.Finding) {}) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, want, n, id)
	}
}
