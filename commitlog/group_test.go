package commitlog_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
)

// TestOneSyncServesAllWhoWriteAgain counts syncs: each serves all writers, not half of them. R-E-030.
func TestOneSyncServesAllWhoWriteAgain(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // yielding then has an order
	const writers, puts = 16, 100
	var written, syncs atomic.Int64
	g := commitlog.NewGroup(func() (int64, error) {
		end := written.Load()
		for range 50 { // the device is slower than the writers
			runtime.Gosched()
		}
		syncs.Add(1)
		return end, nil
	})
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range puts {
				if err := g.Wait(t.Context(), written.Add(1), time.Hour); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	require.LessOrEqual(t, syncs.Load(), int64(puts+puts/5))
}
