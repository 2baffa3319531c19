package consumequeue_test

import (
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// One goroutine appends to all queues, others read, one syncs, and the budget unmaps all the while: readers see whole units
// only, in order. It runs on the heap, where the race detector sees every byte.
func TestReadersSeeWholeUnitsWhileOneAppends(t *testing.T) {
	const queues, perQueue, readers = 8, 600, 4
	budget := mappedfile.NewBudget(4)
	table := openTable(t, memfs.New(), &consumequeue.Options{SegmentSize: 100 * consumequeue.UnitSize, Budget: budget})
	var done atomic.Bool
	var wg sync.WaitGroup
	errs := make(chan error, readers+2)
	wg.Go(func() {
		defer done.Store(true)
		for i := range int64(perQueue) {
			for id := range int32(queues) {
				q, err := table.Ensure("T", id)
				if err == nil {
					err = q.Append(i+int64(id), nth(i+int64(id)))
				}
				if err != nil {
					errs <- err
					return
				}
			}
		}
	})
	wg.Go(func() {
		for !done.Load() {
			if err := table.Sync(1); err != nil {
				errs <- err
				return
			}
		}
	})
	for range readers {
		wg.Go(func() {
			for !done.Load() {
				if err := readAll(table, queues); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.NoError(t, table.Sync(0))
	for id := range int32(queues) {
		q := table.Lookup("T", id)
		requireUnits(t, q, int64(id), int64(id)+perQueue)
		first, _ := q.Bounds()
		require.Equal(t, int64(id), first)
	}
	mapped, _ := budget.Stats()
	require.LessOrEqual(t, mapped, 4)
}

// readAll reads what all queues have now.
func readAll(table *consumequeue.Table, queues int32) error {
	var dst [33]consumequeue.Unit
	for id := range queues {
		q := table.LookupBytes([]byte("T"), id)
		if q == nil {
			continue
		}
		from, end := q.Bounds()
		for from < end {
			n, err := q.Read(from, dst[:])
			if err != nil {
				return err
			}
			for i, u := range dst[:n] {
				if u != nth(from+int64(i)) {
					return fmt.Errorf("queue %d: unit %d is %+v", id, from+int64(i), u)
				}
			}
			from += int64(n)
		}
		if _, err := q.MinFor(500); err != nil {
			return err
		}
		q.MaxPhysical()
	}
	return nil
}

// R-E-047: however many queues there are, files and mappings stay within the budget, and no file is opened by opening.
func TestManyQueuesStayWithinTheBudget(t *testing.T) {
	const topics, perTopic, most = 40, 25, 8
	fsys := memfs.New()
	for round := range int64(2) {
		budget := mappedfile.NewBudget(most)
		table := openTable(t, fsys, &consumequeue.Options{SegmentSize: small, Budget: budget})
		mapped, _ := budget.Stats()
		require.Zero(t, mapped)
		for topic := range topics {
			for id := range int32(perTopic) {
				q := ensure(t, table, fmt.Sprintf("topic-%d", topic), id)
				appendRange(t, q, round*3, round*3+3)
				mapped, _ = budget.Stats()
				require.LessOrEqual(t, mapped, most)
			}
		}
		for q := range table.All() {
			requireUnits(t, q, 0, round*3+3)
		}
		mapped, _ = budget.Stats()
		require.LessOrEqual(t, mapped, most)
		require.NoError(t, table.Sync(0))
		require.NoError(t, table.Close())
	}
}

// openingFS calls a function before a file is opened.
type openingFS struct {
	mappedfile.FS
	before func()
}

func (o *openingFS) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	o.before()
	return o.FS.OpenFile(name, flag, perm)
}

// A sync of the table that comes while a run is appended does not keep the next one from making the run durable.
func TestARunIsNotForgottenBySyncs(t *testing.T) {
	disk := crashfs.New(memfs.New())
	fsys := &openingFS{disk, func() {}}
	table := openTable(t, fsys, nil)
	q := ensure(t, table, "T", 0)
	appendRange(t, q, 0, 5) // the next unit needs another file
	require.NoError(t, table.Sync(0))
	syncs := 0
	fsys.before = func() {
		syncs++
		require.NoError(t, table.Sync(0))
	}
	require.NoError(t, q.AppendRun(5, nth(5).AppendTo(nil)))
	require.Positive(t, syncs)
	require.NoError(t, table.Sync(0))
	requireUnits(t, ensure(t, openTable(t, disk.Image(0), nil), "T", 0), 0, 6) // what a power cut leaves
}
