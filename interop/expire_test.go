//go:build interop

package interop_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
)

// TestExpiredStoreGoesToTheRealOne: a directory whose oldest files our retention deleted is opened by the real store, after a
// clean stop and after a kill; it reads what is left, all of it and in order, goes on at the queues' ends, and we read
// that again (R-G-18).
func TestExpiredStoreGoesToTheRealOne(t *testing.T) {
	for _, l := range lines() {
		t.Run(l.version, func(t *testing.T) {
			t.Parallel()
			for name, kill := range map[string]bool{"clean": false, "killed": true} {
				t.Run(name, func(t *testing.T) { expired(t, l, kill) })
			}
		})
	}
}

func expired(t *testing.T, l line, kill bool) {
	dir := filepath.Join(t.TempDir(), "store")
	b := newBook(t, l)
	k := kind{batches: l.batches, ipv6: l.ipv6, uniqueKeys: true}
	store, err := rocketstore.Open(dir, &rocketstore.Options{
		Dialect: l.dialect, SegmentSize: small.segment, QueueSegmentSize: small.queue, IndexSlots: small.indexSlots, IndexEntries: small.indexKeys,
		Retention: rocketstore.Retention{KeepQueues: true},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Abandon() })
	b.add(putOurs(t, store, workload("ours", oursMessages, k)))
	ends := make(map[queueName]int64)
	for _, m := range b.sent {
		ends[queueName{m.Topic, m.QueueID}] = m.QueueOffset + 1
	}
	done, err := store.Expire(t.Context(), rocketstore.ExpireOptions{MaxBytes: 2 * small.segment})
	require.NoError(t, err)
	require.Positive(t, done.LogStart)
	b.sent = slices.DeleteFunc(b.sent, func(m sent) bool { return m.PhysicalOffset < done.LogStart })
	if kill {
		_, end := store.Bounds()
		require.NoError(t, store.WaitDispatched(t.Context(), end))
		require.NoError(t, store.Abandon())
	} else {
		require.NoError(t, store.Close(t.Context()))
	}

	j := startJVM(t, l)
	j.open(t, dir, small, nil)
	checkLeft(t, j, b, ends)
	more := j.put(t, workload("java", javaMessages, k))
	for _, m := range more {
		name := queueName{m.Topic, m.QueueID}
		require.Equal(t, ends[name], m.QueueOffset, "%v", name)
		ends[name]++
	}
	b.add(more)
	checkLeft(t, j, b, ends)
	j.shutdown(t)

	s := openOurs(t, l, dir, small)
	require.EqualValues(t, -1, s.Report().TruncatedAt)
	start, _ := s.Bounds()
	require.Equal(t, done.LogStart, start)
	for name, want := range b.queues() {
		var got []int64
		for r, err := range s.Messages(name.topic, name.id, 0) {
			require.NoError(t, err)
			got = append(got, r.PhysicalOffset)
		}
		require.Equal(t, physical(want), got, "%v", name)
	}
	for key, want := range b.keys() {
		checkHits(t, "our store", key, want, ourHits(t, s, key), everyKey)
	}
	require.NoError(t, s.Close(t.Context()))
	j.halt(t)
}

func physical(messages []sent) []int64 {
	var offsets []int64
	for _, m := range messages {
		offsets = append(offsets, m.PhysicalOffset)
	}
	return offsets
}

// checkLeft compares what the real store reads with the book, whose first messages are gone.
func checkLeft(t *testing.T, j *jvm, b *book, ends map[queueName]int64) {
	t.Helper()
	d := j.dump(t, small)
	require.Len(t, d.Records, len(b.sent))
	for i, want := range b.sent {
		b.checkRecord(t, want, d.Records[i])
	}
	left := b.queues()
	for _, q := range d.Queues {
		name := queueName{q.Topic, q.QueueID}
		require.Equal(t, ends[name], q.Max, "end of %v", name)
		got := slices.DeleteFunc(q.Got, func(at int64) bool { return at < 0 })
		require.Equal(t, physical(left[name]), append([]int64(nil), got...), "messages of %v", name)
		delete(left, name)
	}
	require.Empty(t, left)
}
