package rocketstore_test

import (
	"flag"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
)

var crashBugs = flag.Int("crash.bugs", 6, "crash tests: with how many seeds each planted bug is looked for")

// skip plants a bug: operations of these kinds on files of the directory claim success and do nothing.
func skip(dir string, ops ...crashfs.Op) func(*call) {
	return func(c *call) {
		if slices.Contains(ops, c.op) && (c.name == dir || strings.HasPrefix(c.name, dir+"/")) {
			c.skip = true
		}
	}
}

// shortSync plants a bug: an msync that is a page too short.
func shortSync(dir string) func(*call) {
	return func(c *call) {
		if c.op == crashfs.OpSyncRange && strings.HasPrefix(c.name, dir+"/") {
			c.n -= mappedfile.PageSize
			c.skip = c.n <= 0
		}
	}
}

// plantedBug is something that an implementation may do wrong.
type plantedBug struct {
	name string
	harm func(*call)
	// where makes a history one in which the bug can show.
	where func(*history)
	// more is how many times as often as usual a history is cut, where recovery mends most of what the bug does.
	more int
}

func plantedBugs() []plantedBug {
	return []plantedBug{
		{name: "skipped directory sync", harm: skip("commitlog", crashfs.OpSyncDir)},
		{name: "msync a page too short", harm: shortSync("commitlog"), where: func(h *history) { h.opts.Write = mappedfile.Mapped }},
		{name: "checkpoint before its data", more: 5, harm: skip("consumequeue", crashfs.OpSyncRange), where: func(h *history) {
			h.opts.Recovery.VerifyBytes, h.opts.NoIndex, h.past, h.idle, h.long = 1, true, nil, true, 3
			h.often = append(h.often, (*history).checkpoint, (*history).checkpoint, (*history).timePasses, (*history).timePasses)
		}},
		{name: "index not cut", harm: skip("index", crashfs.OpRemove), where: func(h *history) {
			h.opts.NoIndex = false
			h.past = []int{endKill, endCut}
		}},
		{name: "redo log not cut", harm: skip("transaction/redolog", crashfs.OpWrite, crashfs.OpRemove), where: func(h *history) {
			h.use("3.1", true)
			h.opts.Sync, h.opts.RedoSegmentSize, h.past = commitlog.SyncInterval, 20, slices.Repeat([]int{endCut}, 12)
			h.often = append(h.often, (*history).prepare, (*history).prepare, (*history).writeback)
		}},
		{name: "state table not synced", harm: skip("transaction/statetable", crashfs.OpSyncRange), where: func(h *history) {
			h.use("3.1", true)
			h.past, h.often = []int{endKill}, append(h.often, (*history).prepare)
			h.last = append(h.last, (*history).finish, (*history).finish, (*history).finish, (*history).finish)
		}},
	}
}

// A suite that passes whatever the code does proves nothing: each planted bug is caught with at least half of the seeds. (A
// hundred of them in .ci/run.)
func TestCrashImagesCatchPlantedBugs(t *testing.T) {
	t.Parallel()
	for _, bug := range plantedBugs() {
		t.Run(bug.name, func(t *testing.T) {
			caught, planted, first := 0, 0, error(nil)
			for seed := uint64(1); seed <= uint64(*crashBugs); seed++ {
				var happened atomic.Bool
				_, _, err := historyOf(t, seed, cutsPerSeed*max(1, bug.more), func(h *history) {
					h.harm = append(h.harm, func(c *call) {
						if bug.harm(c); c.skip {
							happened.Store(true)
						}
					})
					if bug.where != nil {
						bug.where(h)
					}
				})
				if happened.Load() {
					planted++
				}
				if err != nil {
					if caught++; first == nil {
						first = err
					}
				}
			}
			t.Logf("happened with %d, caught with %d of %d seeds, first: %v", planted, caught, *crashBugs, first)
			require.GreaterOrEqual(t, 2*planted, *crashBugs)
			require.GreaterOrEqual(t, 2*caught, *crashBugs)
		})
	}
}
