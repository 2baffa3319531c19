package mappedfile_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// R-E-018.
func TestBudgetUnmapsWhatWasNotUsedForLongest(t *testing.T) {
	fsys, budget := memfs.New(), mappedfile.NewBudget(3)
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Budget: budget})
	for i := range 10 {
		put(t, q, strings.Repeat(string(rune('a'+i)), page))
	}
	require.NoError(t, q.Sync(0))
	mapped, bytes := budget.Stats()
	require.Equal(t, 3, mapped)
	require.Equal(t, int64(3*page), bytes)
	require.Equal(t, 3, fsys.Mappings())

	text(t, q, 0, 1)
	evicted := q.Stats().Evicted
	for i := range int64(100) { // the first is used all the time, so it stays
		text(t, q, 0, 1)
		text(t, q, i%9*page+page, 1)
		text(t, q, 0, 1)
	}
	require.InDelta(t, 100, q.Stats().Evicted-evicted, 3, "one for each change of the other")
	require.Equal(t, 3, fsys.Mappings())
}

func TestBudgetLeavesSegmentsWithViewsAlone(t *testing.T) {
	fsys, budget := memfs.New(), mappedfile.NewBudget(2)
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Budget: budget})
	for i := range 6 {
		put(t, q, strings.Repeat(string(rune('a'+i)), page))
	}
	var views []mappedfile.View
	for i := range int64(6) {
		v, err := q.View(i*page, page)
		require.NoError(t, err)
		views = append(views, v)
	}
	mapped, _ := budget.Stats()
	require.Equal(t, 6, mapped, "more than the limit while views are out")
	for i, v := range views {
		require.Equal(t, strings.Repeat(string(rune('a'+i)), page), string(v.Bytes()))
		v.Release()
	}
	mapped, _ = budget.Stats()
	require.Equal(t, 2, mapped)
	require.NoError(t, q.Close())
	mapped, bytes := budget.Stats()
	require.Zero(t, mapped)
	require.Zero(t, bytes)
}

// An evicted segment has its file closed too; what is dirty in it is still synced.
func TestBudgetBoundsOpenFilesOfManyQueues(t *testing.T) {
	const queues, limit = 200, 10
	fsys, budget := openDir(t, t.TempDir()), mappedfile.NewBudget(limit)
	before := openFiles(t)
	var all []*mappedfile.Queue
	for i := range queues {
		all = append(all, open(t, fsys, fmt.Sprintf("queue/%d", i), mappedfile.Options{SegmentSize: page, Budget: budget}))
	}
	for round := range 3 {
		for _, q := range all {
			put(t, q, fmt.Sprintf("round %d;", round))
		}
		require.LessOrEqual(t, openFiles(t)-before, limit+1)
	}
	for i, q := range all {
		require.NoError(t, q.Sync(0))
		require.Equal(t, int64(24), q.Flushed())
		require.Equal(t, "round 0;round 1;round 2;", text(t, q, 0, 24), "queue %d", i)
		require.NoError(t, q.Close())
	}
	require.Equal(t, before, openFiles(t))
}

// openFiles counts this process's descriptors where the system tells.
func openFiles(t *testing.T) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}
