package inspect_test

import (
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// TestEveryGoldenIndexIsListedEntryByEntry compares header, slots and entries of all files of all stores (R-E-092).
func TestEveryGoldenIndexIsListedEntryByEntry(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			want, c := golden.Load(t, name), &collector{}
			d := open(t, golden.Unpack(t, name))
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
		})
	}
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

// TestByKeyFindsWhatTheRealStoreFinds asks each question that the real store was asked. Where its index was made anew and
// lost keys, ours may find more; it never finds less.
func TestByKeyFindsWhatTheRealStoreFinds(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			want := golden.Load(t, name)
			d, c := open(t, golden.Unpack(t, name)), &collector{}
			for i, q := range want.AfterLoad().KeyQueries {
				if i%7 != 0 && len(q.PhysicalOffsets) == 1 {
					continue
				}
				var got []int64
				for r, err := range d.ByKey(t.Context(), q.Topic, q.Key, c.add) {
					require.NoError(t, err)
					got = append(got, r.PhysicalOffset)
				}
				slices.Sort(q.PhysicalOffsets)
				require.True(t, slices.IsSorted(got))
				require.Subset(t, got, q.PhysicalOffsets, "%s#%s", q.Topic, q.Key)
				require.NotEmpty(t, got)
			}
		})
	}
}
