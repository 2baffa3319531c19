package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// TestEveryGoldenQueueIsListedUnitByUnit compares all units of all stores, pre-blank fillers and batch units included (R-E-048).
func TestEveryGoldenQueueIsListedUnitByUnit(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			want, c := golden.Load(t, name), &collector{}
			d := open(t, golden.Unpack(t, name))
			queues, batches := listQueues(t, d, c)
			require.Equal(t, someQueues(want.Queues()), queues)
			require.Equal(t, want.BatchQueues(), batches)
			for _, f := range c.all {
				t.Log(f)
			}
		})
	}
}

// someQueues leaves out queues without a unit: their files are all zero.
func someQueues(all []golden.Queue) []golden.Queue {
	var out []golden.Queue
	for _, q := range all {
		if len(q.Units) > 0 {
			out = append(out, q)
		}
	}
	return out
}

func listQueues(t *testing.T, d *inspect.Dir, c *collector) (queues []golden.Queue, batches []golden.BatchQueue) {
	t.Helper()
	for u, err := range d.Queues(t.Context(), inspect.QueueFilter{}, c.add) {
		require.NoError(t, err)
		if b := u.Batch; b != nil {
			if n := len(batches); n == 0 || batches[n-1].Topic != u.Topic || batches[n-1].QueueID != u.QueueID {
				batches = append(batches, golden.BatchQueue{Topic: u.Topic, QueueID: u.QueueID})
			}
			q := &batches[len(batches)-1]
			q.Units = append(q.Units, golden.BatchUnit{
				Index: u.Index, PhysicalOffset: b.PhysicalOffset, Size: b.Size, TagsCode: b.TagsCode, StoreTime: b.StoreTime,
				BaseOffset: b.BaseOffset, BatchSize: b.BatchSize, CompactedOffset: b.CompactedOffset, Reserved: b.Reserved,
			})
			continue
		}
		if n := len(queues); n == 0 || queues[n-1].Topic != u.Topic || queues[n-1].QueueID != u.QueueID {
			queues = append(queues, golden.Queue{Topic: u.Topic, QueueID: u.QueueID})
		}
		q := &queues[len(queues)-1]
		q.Units = append(q.Units, golden.Unit{Index: u.Index, PhysicalOffset: u.PhysicalOffset, Size: u.Size, TagsCode: u.TagsCode})
	}
	return queues, batches
}

// TestEveryGoldenExtensionIsListedUnitByUnit compares all extension units (R-E-048).
func TestEveryGoldenExtensionIsListedUnitByUnit(t *testing.T) {
	seen := 0
	for _, name := range golden.Names("4.9.7", "5.3.3") {
		want := golden.Load(t, name)
		if len(want.ExtUnits()) == 0 {
			continue
		}
		seen++
		t.Run(name, func(t *testing.T) {
			d, c := open(t, golden.Unpack(t, name)), &collector{}
			var got []golden.ExtQueue
			for u, err := range d.Extensions(t.Context(), inspect.QueueFilter{}, c.add) {
				require.NoError(t, err)
				if n := len(got); n == 0 || got[n-1].Topic != u.Topic || got[n-1].QueueID != u.QueueID {
					got = append(got, golden.ExtQueue{Topic: u.Topic, QueueID: u.QueueID})
				}
				q := &got[len(got)-1]
				bitmap := append([]byte{}, u.Bitmap...)
				if u.End {
					bitmap = nil
				}
				q.Units = append(q.Units, golden.ExtUnit{
					Offset: u.ExtEntry.Offset, Size: u.Size, TagsCode: u.TagsCode, StoreTime: u.StoreTime, Bitmap: bitmap, End: u.End,
				})
			}
			require.Equal(t, want.ExtUnits(), got)
			require.Empty(t, c.all)
		})
	}
	require.Equal(t, 2, seen)
}
