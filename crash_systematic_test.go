package rocketstore_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

var (
	crashSubsets = flag.Int("crash.subsets", 0, "crash tests: how many images of each cut of a small history are looked at, all if there are no more; 0: three of every third")
	crashCut     = flag.Int("crash.cut", -1, "crash tests: the one cut of a small history to look at")
)

// smallHistory is one short life of a store, operation by operation.
type smallHistory struct {
	name   string
	line   string
	table  bool
	policy commitlog.SyncPolicy
	does   []func(*history) error
}

func smallHistories() []smallHistory {
	put := func(h *history) error { return h.put(h.message()) }
	return []smallHistory{
		{"puts", "4.9", false, commitlog.SyncGroup, []func(*history) error{put, put}},
		{"unsynced puts", "5.3", false, commitlog.SyncInterval, []func(*history) error{put, put, (*history).sync, put}},
		{"state table", "3.1", true, commitlog.SyncGroup, []func(*history) error{(*history).prepare, (*history).prepare, (*history).finish}},
		{"half messages", "4.9", false, commitlog.SyncInterval, []func(*history) error{(*history).prepare, (*history).finish, (*history).checkpoint}},
		{"roll", "4.9", true, commitlog.SyncInterval, []func(*history) error{(*history).putBatch, (*history).putBatch, (*history).putBatch, (*history).putBatch}},
	}
}

// few is how many images of a cut are looked at, and every which cut, unless the flag says more.
const few = 3

// subsetsOf does a small history, cuts the power after so many steps and goes through the states of the disk. It says how
// many steps the whole history has.
func (s *smallHistory) subsetsOf(t *testing.T, cut int) (steps int, n tally, err error) {
	err = bubble(t, func() error {
		h := newHistory(7)
		h.use(s.line, s.table)
		h.opts.Sync, h.opts.Write, h.opts.HoldDelayed, h.opts.NoIndex, h.past = s.policy, mappedfile.Mapped, true, false, nil
		h.does = s.does
		defer func() { n = h.tally }()
		if steps, err = h.run(cut); err != nil {
			return err
		}
		for image := range h.disk.Images(cmp.Or(*crashSubsets, few)) {
			if err := h.examine(image.FS); err != nil {
				return fmt.Errorf("%w\nimage %s", err, image.Text)
			}
		}
		return nil
	})
	return steps, n, err
}

// Of small histories the power is cut after every single step, and all states of the disk are looked at, or as many as
// the flag says (R-E-081).
func TestCrashOfSmallHistoriesAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, s := range smallHistories() {
		t.Run(s.name, func(t *testing.T) {
			steps, sum, err := s.subsetsOf(t, whole)
			require.NoError(t, err)
			for cut := range steps {
				if *crashCut >= 0 && cut != *crashCut || *crashCut < 0 && *crashSubsets == 0 && cut%few != 0 {
					continue
				}
				_, n, err := s.subsetsOf(t, cut)
				sum.add(n)
				if err != nil {
					t.Errorf("cut after %d steps: %v\nreplay: go test -run '%s' -crash.subsets=%d -crash.cut=%d .", cut, err, t.Name(), *crashSubsets, cut)
				}
			}
			t.Logf("%d steps, %+v", steps, sum)
		})
	}
}

// The same seed gives the same operations on the disk in the same order, and the same images, so that a failure replays.
func TestCrashImagesReplay(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		var did [2]string
		for i := range did {
			require.NoError(t, bubble(t, func() error {
				h := newHistory(seed)
				if _, err := h.run(60); err != nil {
					return err
				}
				for _, e := range h.disk.Events() {
					did[i] += fmt.Sprintln(e)
				}
				files, err := diskContents(h.disk.Image(5))
				for _, name := range slices.Sorted(maps.Keys(files)) {
					did[i] += fmt.Sprintf("%s %08x\n", name, message.CRC([]byte(files[name])))
				}
				return err
			}))
		}
		require.Equal(t, did[0], did[1], "seed %d", seed)
	}
}
