package inspect_test

import (
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// compareIndex compares shape, header, slots and entries of all files.
func compareIndex(t *testing.T, d *inspect.Dir, want *golden.Expected) {
	c := &collector{}
	var got []golden.IndexFile
	for x, err := range d.IndexFiles(t.Context(), c.add) {
		require.NoError(t, err)
		require.True(t, x.Known, x.File)
		require.Equal(t, want.Config().IndexSlots, x.Shape.Slots)
		require.Equal(t, want.Config().IndexEntries, x.Shape.Entries)
		got = append(got, goldenIndex(t, x))
	}
	require.Equal(t, want.IndexFiles(), got)
	require.Empty(t, c.brief())
}

func goldenIndex(t *testing.T, x *inspect.IndexFile) golden.IndexFile {
	t.Helper()
	g := golden.IndexFile{
		Name: path.Base(x.File), BeginTimestamp: x.BeginTimestamp, EndTimestamp: x.EndTimestamp, BeginOffset: x.BeginOffset,
		EndOffset: x.EndOffset, SlotCount: x.SlotCount, IndexCount: x.IndexCount,
	}
	for v, err := range x.Slots() {
		require.NoError(t, err)
		g.Slots = append(g.Slots, golden.Slot{Slot: v.Slot, Entry: v.Newest})
	}
	for e, err := range x.Entries() {
		require.NoError(t, err)
		g.Entries = append(g.Entries, golden.IndexEntry{
			Number: e.Number, KeyHash: e.KeyHash, PhysicalOffset: e.PhysicalOffset, TimeDiff: e.TimeDiff, Previous: e.Previous,
		})
	}
	return g
}

// compareKeys asks some of the questions that the real store was asked, those with several answers all. Where its index
// lost keys, ours may find more; it never finds less.
func compareKeys(t *testing.T, d *inspect.Dir, want *golden.Expected) {
	for i, q := range want.AfterLoad().KeyQueries {
		if i%16 != 0 && len(q.PhysicalOffsets) == 1 {
			continue
		}
		var got []int64
		c := &collector{}
		for r, err := range d.ByKey(t.Context(), q.Topic, q.Key, c.add) {
			require.NoError(t, err)
			got = append(got, r.PhysicalOffset)
		}
		slices.Sort(q.PhysicalOffsets)
		require.True(t, slices.IsSorted(got))
		require.Subset(t, got, q.PhysicalOffsets, "%s#%s", q.Topic, q.Key)
		require.NotEmpty(t, got)
	}
}

// compareTransactions compares all records of the state table and all units of the redo log of 3.1.
func compareTransactions(t *testing.T, d *inspect.Dir, want *golden.Expected) {
	c := &collector{}
	records := []golden.StateRecord{}
	for r, err := range d.StateTable(t.Context(), c.add) {
		require.NoError(t, err)
		records = append(records, golden.StateRecord{
			Number: r.Number, PhysicalOffset: r.CommitOffset, Size: r.Size, StoredAt: r.StoredAt, GroupHash: r.GroupHash,
			State: int32(r.State),
		})
	}
	require.ElementsMatch(t, want.StateTable(), records)
	units := []golden.Unit{}
	for u, err := range d.RedoLog(t.Context(), c.add) {
		require.NoError(t, err)
		units = append(units, golden.Unit{
			Index: u.Index, PhysicalOffset: u.PhysicalOffset, Size: u.Size, TagsCode: u.TagsCode,
		})
	}
	require.ElementsMatch(t, want.RedoLog(), units)
	require.Empty(t, c.brief())
}
