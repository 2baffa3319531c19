package txstate_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/txstate"
)

// R-B-18, R-B-63: appends, updates, check rounds, syncs and deletion at the same time. memfs keeps the files on the heap,
// where the race detector sees them.
func TestUpdatesRaceWithCheckRoundsAndDeletion(t *testing.T) {
	const total = 3000
	table := filled(t, memfs.New(), 100)
	var appended, start atomic.Int64
	appended.Store(100)
	var others sync.WaitGroup
	done := make(chan struct{})
	until := func(f func()) {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					f()
				}
			}
		})
	}
	until(func() { // a check round
		last := int64(-1)
		for e, err := range table.All(0) {
			if err == nil && (e.Record != record(e.Number) || e.Number <= last) {
				// Resolved between its number being found and its bytes being read is not possible: one lock covers both.
				t.Errorf("record %d behind %d: %+v", e.Number, last, e.Record)
			}
			last = e.Number
		}
	})
	until(func() { // deletion, and the sync
		if cut := appended.Load() - 60; cut > start.Load() {
			_, err := table.DeleteBefore(record(cut).CommitOffset)
			start.Store(cut / perFile * perFile)
			if err != nil || table.Sync(0) != nil {
				t.Error("deletion", err)
			}
		}
	})
	until(func() { // resolving: an update of a deleted record is not found
		n := appended.Load() - 20
		if n < 0 {
			return
		}
		_, err := table.Update(n, record(n).CommitOffset, record(n).GroupHash, txstate.Committed)
		if err != nil && !errors.Is(err, txstate.ErrNotFound) {
			t.Error("update", err)
		}
	})
	until(func() {
		_, _, err := table.FirstOpen()
		_, lenErr := table.Len()
		_, findErr := table.FindByOffset(record(appended.Load() - 10).CommitOffset)
		if err != nil || lenErr != nil || findErr != nil && !errors.Is(findErr, txstate.ErrNotFound) {
			t.Error("reading", err, lenErr, findErr)
		}
	})
	for i := int64(100); i < total; i++ {
		require.NoError(t, table.Append(i, record(i)))
		appended.Store(i)
	}
	close(done)
	others.Wait()
	require.Equal(t, int64(total), table.Next())
}
