package consumequeue_test

import (
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
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

// R-E-040, R-E-041, R-E-042, R-E-048: each unit of each golden store is read as the real program reads it.
func TestScansReadWhatJavaReads(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(path.Base(name), func(t *testing.T) {
			t.Parallel()
			want, dir := golden.Load(t, name), golden.Unpack(t, name)
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
		})
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
