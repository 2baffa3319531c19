package redolog_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// Appends, replays, syncs and deletion at the same time. memfs keeps the files on the heap, where the race detector sees
// them.
func TestAppendsRaceWithReplayAndDeletion(t *testing.T) {
	const total = 3000
	log := filled(t, memfs.New(), 50)
	var appended atomic.Int64
	appended.Store(50)
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
	until(func() {
		for e, err := range log.Replay(0) {
			if err != nil || e.Unit != unit(e.Index) {
				t.Error("replay", e, err)
			}
		}
	})
	deleted := int64(0)
	until(func() {
		if cut := appended.Load() - 60; cut > deleted {
			deleted = cut / perFile * perFile
			if _, err := log.DeleteBefore(unit(cut).PhysicalOffset); err != nil || log.Sync(0) != nil {
				t.Error("deletion", err)
			}
		}
	})
	until(func() {
		if last, ok := log.Last(); !ok || last.PhysicalOffset < unit(49).PhysicalOffset {
			t.Error("last", last, ok)
		}
		// Deletion may overtake it.
		if _, err := log.Get(appended.Load() - 30); err != nil && !errors.Is(err, mappedfile.ErrOutOfRange) {
			t.Error("get", err)
		}
	})
	for i := int64(50); i < total; i++ {
		_, err := log.Append(unit(i))
		require.NoError(t, err)
		appended.Store(i)
	}
	close(done)
	others.Wait()
}
