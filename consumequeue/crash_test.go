package consumequeue_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

const (
	crashQueues = 3
	// crashSegment is three pages and a bit, so that a file is synced in pieces and units straddle pages.
	crashSegment = 650 * consumequeue.UnitSize
)

// crashRun appends, cuts and syncs at random on a disk that lies as planted says, cuts the power now and then, and gives
// what is wrong with one of the disks that may be found: nil when all that was synced is there on each.
func crashRun(seed uint64, plant func(*crashfs.FS)) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	disk := crashfs.New(memfs.New())
	plant(disk)
	table, err := consumequeue.OpenTable(disk, root, &consumequeue.Options{SegmentSize: crashSegment, Budget: mappedfile.NewBudget(2)})
	if err != nil {
		return err
	}
	defer func() { _ = table.Abandon() }()
	var first, next, durable [crashQueues]int64
	for id := range first {
		first[id] = rng.Int64N(1000)
		next[id], durable[id] = first[id], first[id]
	}
	for range 40 {
		id := rng.IntN(crashQueues)
		q, err := table.Ensure("T", int32(id))
		if err != nil {
			return err
		}
		switch rng.IntN(6) {
		default:
			for range rng.IntN(400) {
				if err := q.Append(next[id], nth(next[id])); err != nil {
					return err
				}
				next[id]++
			}
		case 0:
			next[id] -= rng.Int64N(next[id] - first[id] + 1)
			durable[id] = min(durable[id], next[id])
			if err := q.TruncateAfter(next[id]); err != nil {
				return err
			}
		case 1:
			if err := table.Sync(0); err != nil {
				return err
			}
			durable = next
		}
		snapshot := disk.Snapshot()
		for image := range uint64(3) {
			if err := checkImage(snapshot.Image(image*uint64(rng.Uint32())), first, durable, next); err != nil {
				return fmt.Errorf("seed %d: %w", seed, err)
			}
		}
	}
	return nil
}

// checkImage opens a disk after a power cut: what was synced is there, nothing lies behind what was appended, and the
// queues go on from there.
func checkImage(disk mappedfile.FS, first, durable, next [crashQueues]int64) error {
	table, err := consumequeue.OpenTable(disk, root, &consumequeue.Options{SegmentSize: crashSegment})
	if err != nil {
		return err
	}
	defer func() { _ = table.Abandon() }()
	for id := range first {
		q := table.Lookup("T", int32(id))
		if q == nil {
			if durable[id] > first[id] {
				return fmt.Errorf("queue %d is gone, synced up to %d", id, durable[id])
			}
			continue
		}
		end, err := q.FindEnd(true)
		if err != nil {
			return err
		}
		if end < durable[id] && durable[id] > first[id] || end > next[id] {
			return fmt.Errorf("queue %d ends at %d, synced up to %d, appended up to %d", id, end, durable[id], next[id])
		}
		for i := first[id]; i < durable[id]; i++ {
			if u, err := q.Get(i); err != nil || u != nth(i) {
				return fmt.Errorf("queue %d: unit %d is %v, %w", id, i, u, err)
			}
		}
		if err := continueQueue(q, min(end, durable[id]), durable[id]); err != nil {
			return err
		}
	}
	return nil
}

// continueQueue cuts what was not synced, or cannot be believed, and appends.
func continueQueue(q *consumequeue.Queue, cut, from int64) error {
	if err := q.TruncateAfter(cut); err != nil {
		return err
	}
	for i := from; i < from+5; i++ {
		if err := q.Append(i, nth(i)); err != nil {
			return err
		}
	}
	end, err := q.FindEnd(true)
	if err != nil || end != from+5 {
		return fmt.Errorf("%s: cut at %d and continued at %d, it ends at %d: %w", q.Dir(), cut, from, end, err)
	}
	return nil
}

// R-E-008, R-E-012, R-E-013: what Sync has vouched for survives a power cut, on every disk that may be found after it.
func TestSyncedUnitsSurviveAPowerCut(t *testing.T) {
	for seed := range uint64(6) {
		require.NoError(t, crashRun(seed, func(*crashfs.FS) {}))
	}
}

// The suite sees a sync that is left out.
func TestCrashSuiteSeesPlantedBugs(t *testing.T) {
	for _, op := range []crashfs.Op{crashfs.OpSyncDir, crashfs.OpSyncRange, crashfs.OpSync} {
		seen := false
		for seed := uint64(0); seed < 30 && !seen; seed++ {
			seen = crashRun(seed, func(disk *crashfs.FS) { disk.Ignore(op, "") }) != nil
		}
		require.True(t, seen, "%s left out", op)
	}
}
