package consumequeue_test

import (
	"cmp"
	"crypto/md5"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// scanFiles calls scan for each file of one queue's folder in order and gives all that it yields.
func scanFiles[E any](t *testing.T, dir string, scan func(file string, base int64, r *os.File, size int64) iter.Seq2[E, error]) (all []E) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range files {
		base, ok := mappedfile.ParseSegmentName(entry.Name())
		require.True(t, ok)
		f, err := os.Open(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
		info, err := f.Stat()
		require.NoError(t, err)
		entries, err := drain(scan(entry.Name(), base, f, info.Size()))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		all = append(all, entries...)
	}
	return all
}

// R-E-040, R-E-041, R-E-042, R-E-048: each unit of each golden store is read as the real program reads it, by the scans
// and by the table, and nothing is changed by that.
func TestGoldenStoresAreReadAsJavaReadsThem(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, dir := golden.Load(t, name), golden.Unpack(t, name)
			before := golden.Snapshot(t, dir)
			requireScansRead(t, dir, want)
			requireTableReads(t, dir, want)
			require.Equal(t, before, golden.Snapshot(t, dir))
		})
	}
}

func requireScansRead(t *testing.T, dir string, want *golden.Expected) {
	t.Helper()
	for _, q := range want.Queues() {
		got := scanFiles(t, filepath.Join(dir, "consumequeue", q.Topic, strconv.Itoa(int(q.QueueID))),
			func(file string, base int64, r *os.File, size int64) iter.Seq2[consumequeue.Entry, error] {
				return consumequeue.Scan(file, base, r, size)
			})
		require.Equal(t, q.Units, convert(got, func(e consumequeue.Entry) golden.Unit {
			return golden.Unit{Index: e.Index, PhysicalOffset: e.PhysicalOffset, Size: e.Size, TagsCode: e.TagsCode}
		}), "%s/%d", q.Topic, q.QueueID)
	}
	for _, q := range want.BatchQueues() {
		got := scanFiles(t, filepath.Join(dir, "batchconsumequeue", q.Topic, strconv.Itoa(int(q.QueueID))),
			func(file string, base int64, r *os.File, size int64) iter.Seq2[consumequeue.BatchEntry, error] {
				return consumequeue.ScanBatch(file, base, r, size)
			})
		require.Equal(t, q.Units, convert(got, func(e consumequeue.BatchEntry) golden.BatchUnit {
			return golden.BatchUnit{
				Index: e.Index, PhysicalOffset: e.PhysicalOffset, Size: e.Size, TagsCode: e.TagsCode, StoreTime: e.StoreTime,
				BaseOffset: e.BaseOffset, BatchSize: e.BatchSize, CompactedOffset: e.CompactedOffset, Reserved: e.Reserved,
			}
		}), "%s/%d", q.Topic, q.QueueID)
	}
	for _, q := range want.ExtUnits() {
		got := scanFiles(t, filepath.Join(dir, "consumequeue_ext", q.Topic, strconv.Itoa(int(q.QueueID))),
			func(file string, base int64, r *os.File, size int64) iter.Seq2[consumequeue.ExtEntry, error] {
				return keepBitmaps(consumequeue.ScanExt(file, base, r, size))
			})
		for i := range q.Units {
			if len(q.Units[i].Bitmap) == 0 {
				q.Units[i].Bitmap = nil
			}
		}
		require.Equal(t, q.Units, convert(got, func(e consumequeue.ExtEntry) golden.ExtUnit {
			return golden.ExtUnit{
				Offset: e.Offset, End: e.End, Size: e.Size, TagsCode: e.TagsCode, StoreTime: e.StoreTime, Bitmap: e.Bitmap,
			}
		}), "%s/%d", q.Topic, q.QueueID)
		requireAddressesLeadToUnits(t, want, q)
	}
}

// keepBitmaps copies the bitmaps, which are valid only until the next unit.
func keepBitmaps(seq iter.Seq2[consumequeue.ExtEntry, error]) iter.Seq2[consumequeue.ExtEntry, error] {
	return func(yield func(consumequeue.ExtEntry, error) bool) {
		for e, err := range seq {
			e.Bitmap = slices.Clone(e.Bitmap)
			if !yield(e, err) {
				return
			}
		}
	}
}

func convert[A, B any](as []A, f func(A) B) (bs []B) {
	for _, a := range as {
		bs = append(bs, f(a))
	}
	return bs
}

// requireAddressesLeadToUnits checks that each tags code of the queue that is an address leads to an extension unit.
func requireAddressesLeadToUnits(t *testing.T, want *golden.Expected, ext golden.ExtQueue) {
	t.Helper()
	at := make(map[int64]bool)
	for _, u := range ext.Units {
		at[u.Offset] = !u.End
	}
	for _, q := range want.Queues() {
		if q.Topic != ext.Topic || q.QueueID != ext.QueueID {
			continue
		}
		for _, u := range q.Units {
			if consumequeue.IsExtAddress(u.TagsCode) {
				require.True(t, at[consumequeue.ExtOffset(u.TagsCode)], "%s/%d: unit %d", q.Topic, q.QueueID, u.Index)
			}
		}
	}
}

// goldenTable opens the consume queues of an unpacked store for reading.
func goldenTable(t *testing.T, dir string, want *golden.Expected) *consumequeue.Table {
	t.Helper()
	fsys, err := mappedfile.OpenDir(dir, &mappedfile.DirOptions{ReadOnly: true})
	require.NoError(t, err)
	return openTable(t, fsys, &consumequeue.Options{
		SegmentSize: want.Config().QueueFileSize, ReadOnly: true, Budget: mappedfile.NewBudget(2),
	})
}

func requireTableReads(t *testing.T, dir string, want *golden.Expected) {
	t.Helper()
	table := goldenTable(t, dir, want)
	require.Empty(t, table.Notices())
	require.Equal(t, len(want.Queues()), table.Stats().Queues)
	for _, w := range want.Queues() {
		q := table.LookupBytes([]byte(w.Topic), w.QueueID)
		require.NotNil(t, q, "%s/%d", w.Topic, w.QueueID)
		requireGoldenUnits(t, q, w.Units)
	}
	require.NoError(t, table.Sync(0))
	require.NoError(t, table.Close())
}

func requireGoldenUnits(t *testing.T, q *consumequeue.Queue, want []golden.Unit) {
	t.Helper()
	_, end := q.Bounds()
	careful, err := q.FindEnd(true)
	require.NoError(t, err)
	require.Equal(t, end, careful, "no golden queue has stale units: %s", q.Dir())
	if len(want) == 0 {
		require.Zero(t, end)
		return
	}
	require.Equal(t, want[len(want)-1].Index+1, end, q.Dir())
	got := make([]consumequeue.Unit, len(want)+1)
	n, err := q.Read(want[0].Index, got)
	require.NoError(t, err)
	require.Equal(t, len(want), n)
	for i, u := range got[:n] {
		read := golden.Unit{Index: want[0].Index + int64(i), PhysicalOffset: u.PhysicalOffset, Size: u.Size, TagsCode: u.TagsCode}
		require.Equal(t, want[i], read)
	}
	require.Equal(t, got[n-1].End(), q.MaxPhysical())
}

// Byte equality: the units of a store that stopped cleanly, appended in log order, give the files that Java wrote.
func TestAppendingGivesJavasFiles(t *testing.T) {
	for _, name := range golden.Names() {
		want := golden.Load(t, name)
		if want.Abort() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := memfs.New()
			table := openTable(t, fsys, &consumequeue.Options{SegmentSize: want.Config().QueueFileSize})
			type placed struct {
				golden.Unit
				q *consumequeue.Queue
			}
			var all []placed
			for _, w := range want.Queues() {
				for _, u := range w.Units {
					if u.Size != consumequeue.Filler().Size {
						all = append(all, placed{u, ensure(t, table, w.Topic, w.QueueID)})
					}
				}
			}
			slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.PhysicalOffset, b.PhysicalOffset) })
			for range 2 { // a second dispatch of the same records changes nothing
				for _, u := range all {
					require.NoError(t, u.q.Append(u.Index, consumequeue.Unit{PhysicalOffset: u.PhysicalOffset, Size: u.Size, TagsCode: u.TagsCode}))
				}
			}
			require.Zero(t, table.Stats().HolesFilled)
			compared := 0
			for _, f := range want.Files() {
				if !strings.HasPrefix(f.Path, "consumequeue/") {
					continue
				}
				require.Equal(t, f.MD5, fmt.Sprintf("%x", md5.Sum(readFile(t, fsys, f.Path))), f.Path)
				compared++
			}
			ours := 0
			for q := range table.All() {
				ours += len(q.Segments())
			}
			require.Equal(t, compared, ours)
		})
	}
}
