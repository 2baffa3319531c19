package rocketstore_test

import (
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// The flags of the crash tests.
var (
	crashSeed   = flag.Uint64("crash.seed", 0, "crash tests: the one history to run; 0: as many as -crash.images asks for")
	crashStep   = flag.Int("crash.step", whole, "crash tests: with -crash.seed, after which step of the last life the power is cut")
	crashImages = flag.Int("crash.images", 200, "crash tests: how many images of the disk are looked at")
)

const (
	// whole is a step that no life reaches: the power is cut after it has ended.
	whole = 1 << 30
	// Cuts of a history, and images of each.
	cutsPerSeed  = 4
	imagesPerCut = 5
)

// bubble runs f in a synctest bubble.
func bubble(t *testing.T, f func() error) (err error) {
	synctest.Test(t, func(*testing.T) { err = f() })
	return err
}

// imagesOf runs a history, cuts the power after so many steps and examines some images of the disk. Change is called before
// the history begins.
func imagesOf(t *testing.T, seed uint64, cut int, change func(*history)) (steps int, n tally, err error) {
	err = bubble(t, func() error {
		h := newHistory(seed)
		defer func() {
			n = h.tally
			if h.store != nil {
				_ = h.store.Abandon() // ended already, unless something is wrong
			}
		}()
		if change != nil {
			change(h)
		}
		if steps, err = h.run(cut); err != nil {
			return err
		}
		snapshot := h.disk.Snapshot()
		for i := range uint64(imagesPerCut) {
			image := i
			if i > 1 {
				image = seed*31 + uint64(cut)*7 + i
			}
			h.trace("image %d", image)
			fresh := func() mappedfile.FS { return snapshot.Image(image) }
			if i%2 == 1 {
				err = h.examineInterrupted(fresh, image)
			} else {
				err = h.examine(fresh())
			}
			if err != nil {
				return fmt.Errorf("image %d: %w", image, err)
			}
		}
		return nil
	})
	return steps, n, err
}

// historyOf runs the history of a seed several times and cuts the power at its end and at other steps, so many in all, until
// something is wrong. It says where it was cut last.
func historyOf(t *testing.T, seed uint64, cuts int, change func(*history)) (cut int, n tally, err error) {
	cut = whole
	steps, n, err := imagesOf(t, seed, cut, change)
	rng := rand.New(rand.NewPCG(seed, 11))
	for i := 0; err == nil && i < cuts-1; i++ {
		var more tally
		cut = rng.IntN(steps + 1)
		_, more, err = imagesOf(t, seed, cut, change)
		n.add(more)
	}
	return cut, n, err
}

// TestCrashImages cuts the power in the middle of seeded histories and looks at what recovery makes of the disk. An acknowledged batch
// is all there (R-D-097).
func TestCrashImages(t *testing.T) {
	t.Parallel()
	if *crashSeed != 0 {
		_, n, err := imagesOf(t, *crashSeed, *crashStep, func(h *history) {
			h.trace = t.Logf
			h.opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", n)
		return
	}
	var sum tally
	for seed := uint64(1); sum.images < *crashImages; seed++ {
		cut, n, err := historyOf(t, seed, cutsPerSeed, nil)
		sum.add(n)
		if err != nil {
			t.Errorf("%v\nreplay: go test -run '^TestCrashImages$' -crash.seed=%d -crash.step=%d .", err, seed, cut)
		}
	}
	t.Logf("%+v", sum)
}
