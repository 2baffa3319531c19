package index_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// made lists the stores whose index real RocketMQ built in one run from the records of the log. The first ones it stopped
// cleanly; the others were killed after everything had reached their files.
func made() []string {
	return []string{
		"rocketmq-3.1.4/clean", "rocketmq-3.1.4/mid-transaction", "rocketmq-3.1.4/missing-statetable",
		"rocketmq-3.1.4/missing-statetable-continued",
		"rocketmq-4.9.7/clean", "rocketmq-4.9.7/ext", "rocketmq-4.9.7/ipv6", "rocketmq-4.9.7/lmq", "rocketmq-4.9.7/missing-cq",
		"rocketmq-5.3.3/clean", "rocketmq-5.3.3/ext", "rocketmq-5.3.3/ipv6", "rocketmq-5.3.3/lmq", "rocketmq-5.3.3/missing-cq",
		"rocketmq-5.3.3/batchcq", "rocketmq-5.3.3/crc", "rocketmq-5.3.3/timer",

		"rocketmq-3.1.4/abort", "rocketmq-3.1.4/abort-lag", "rocketmq-3.1.4/abort-oneredo", "rocketmq-3.1.4/prepared-nogroup",
		"rocketmq-4.9.7/abort", "rocketmq-4.9.7/abort-cqbehind", "rocketmq-4.9.7/missing-cq-abort",
		"rocketmq-5.3.3/abort", "rocketmq-5.3.3/abort-cqbehind", "rocketmq-5.3.3/missing-cq-abort",
	}
}

func TestIndexesOfRealStores(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			e, store := golden.Load(t, name), golden.Unpack(t, name)
			files := goldenFiles(t, store)
			t.Run("is read entry by entry", func(t *testing.T) { readsEntryByEntry(t, e, files) })
			t.Run("answers as the real store does", func(t *testing.T) { answersAlike(t, e, store) })
			if !slices.Contains(made(), name) {
				return
			}
			t.Run("is made from the log byte for byte", func(t *testing.T) { isMadeFromTheLog(t, e, files) })
			t.Run("is the same after a drop and a replay", func(t *testing.T) { isTheSameAfterReplay(t, e, store, files) })
		})
	}
}

// R-E-051, R-E-052, R-E-053, R-E-055, R-E-056, R-E-057.
func isMadeFromTheLog(t *testing.T, e *golden.Expected, want [][]byte) {
	d := lineOf(t, e)
	fsys := memfs.New()
	x := open(t, fsys, shapeOf(e), d)
	for _, r := range e.Records() {
		require.NoError(t, x.Put(keysOf(r, d)))
	}
	require.NoError(t, x.Sync())
	require.NotEmpty(t, want)
	requireSameFiles(t, want, content(t, fsys))
	require.Empty(t, fsys.Unreserved()) // R-E-018: a full disk would not have killed the process
}

// R-E-058: what is dropped after a crash comes back as it was, and another replay of the whole log changes nothing.
func isTheSameAfterReplay(t *testing.T, e *golden.Expected, store string, want [][]byte) {
	d := lineOf(t, e)
	fsys := folder(t, store)
	x := open(t, fsys, shapeOf(e), d)
	_, err := x.DropAfterTime(e.Checkpoint().IndexTimestamp)
	require.NoError(t, err)
	from, dropped := x.DroppedFrom()
	require.True(t, dropped) // the newest file is not full
	for _, r := range e.Records() {
		if r.PhysicalOffset >= from {
			require.NoError(t, x.Put(keysOf(r, d)))
		}
	}
	for _, r := range e.Records() {
		require.NoError(t, x.Put(keysOf(r, d)))
	}
	require.NoError(t, x.Sync())
	requireSameFiles(t, want, content(t, fsys))
}

// requireSameFiles says where the first difference is instead of printing files.
func requireSameFiles(t *testing.T, want, have [][]byte) {
	t.Helper()
	require.Len(t, have, len(want))
	for i := range want {
		if bytes.Equal(want[i], have[i]) {
			continue
		}
		at := 0
		for at < len(want[i]) && at < len(have[i]) && want[i][at] == have[i][at] {
			at++
		}
		require.Failf(t, "files differ", "file %d from byte %d on, lengths %d and %d", i, at, len(want[i]), len(have[i]))
	}
}

func readsEntryByEntry(t *testing.T, e *golden.Expected, files [][]byte) {
	require.Len(t, files, len(e.IndexFiles()))
	for i, want := range e.IndexFiles() {
		shape, ok, err := index.InferShape(want.Name, bytes.NewReader(files[i]), int64(len(files[i])))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, shapeOf(e), shape)

		d, err := index.ScanFile(want.Name, bytes.NewReader(files[i]), int64(len(files[i])), shape.Slots)
		require.NoError(t, err)
		require.Equal(t, index.Header{
			BeginTimestamp: want.BeginTimestamp, EndTimestamp: want.EndTimestamp, BeginOffset: want.BeginOffset,
			EndOffset: want.EndOffset, SlotCount: want.SlotCount, IndexCount: want.IndexCount,
		}, d.Header)
		var slots []golden.Slot
		for s, err := range d.Slots() {
			require.NoError(t, err)
			slots = append(slots, golden.Slot{Slot: s.Slot, Entry: s.Newest})
		}
		require.Equal(t, want.Slots, slots)
		var entries []golden.IndexEntry
		for n, err := range d.Entries() {
			require.NoError(t, err)
			entries = append(entries, golden.IndexEntry{
				Number: n.Number, KeyHash: n.KeyHash, PhysicalOffset: n.PhysicalOffset, TimeDiff: n.TimeDiff, Previous: n.Previous,
			})
		}
		require.Equal(t, want.Entries, entries)
		for err := range d.Check() {
			require.NoError(t, err)
		}
	}
}

// answersAlike: R-E-053, R-E-054. A store that was killed, or opened without its queues, drops or adds entries of its index
// while it opens, so its answers are of other files than these.
func answersAlike(t *testing.T, e *golden.Expected, store string) {
	x := openReadOnly(t, store, shapeOf(e))
	most := 64
	if e.Line() == "3.1" {
		most = 32
	}
	for _, q := range e.AfterLoad().KeyQueries {
		found := offsetsIn(t, x, q.Topic, q.Key, 0, 1<<62)
		if e.Abort() || strings.HasSuffix(e.Name(), "missing-cq") {
			continue
		}
		found = found[:min(most, len(found))]
		if e.Line() != "3.1" { // they sort before they answer
			slices.Sort(found)
		}
		require.Equal(t, q.PhysicalOffsets, found, "%s %s", q.Topic, q.Key)
	}
}

func openReadOnly(t *testing.T, store string, s index.Shape) *index.Index {
	t.Helper()
	fsys, err := mappedfile.OpenDir(store, &mappedfile.DirOptions{ReadOnly: true})
	require.NoError(t, err)
	x, err := index.Open(fsys, "index", &index.Options{Slots: s.Slots, Entries: s.Entries, ReadOnly: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

// A query by hash alone gives both records; telling them apart is for whoever reads them.
func TestCollidingKeysAreBothFound(t *testing.T) {
	c := golden.LoadCase(t, "index-hash-collision")
	x := openReadOnly(t, c.Store, index.Shape{Slots: c.Given.Config.IndexSlots, Entries: c.Given.Config.IndexEntries})
	for _, k := range [][2]string{{"AaTopicUser", "Aa"}, {"BBTopicUser", "BB"}, {"AaTopicUser", "BB"}} {
		require.Equal(t, []int64{119, 0}, offsetsIn(t, x, k[0], k[1], 1_700_000_000_000, 1_700_000_010_000))
	}
	shape, ok, err := index.InferDir(folder(t, c.Store), "index")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, index.Shape{Slots: 16, Entries: 64}, shape)
}
