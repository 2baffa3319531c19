package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// R-E-095: a record whose place was damaged, with good ones behind it, is damage in the middle and no leftover of a cut, as for
// plan and recover; it counts in the summary.
func TestTheAdviceForAWrongPlaceInTheMiddleIsThatOfDamage(t *testing.T) {
	h := &harm{t, golden.Unpack(t, store49)}
	h.put64(log0, h.record(normal, 3)+28, 99)
	var stats inspect.CheckStats
	n := 0
	for _, f := range check(t, open(t, h.dir), inspect.CheckOptions{Stats: &stats}) {
		if f.Kind == inspect.BadPlace {
			n++
			means, todo := f.Advice()
			require.NotContains(t, means, "left over")
			require.Contains(t, todo, "recover --on-damage skip")
			require.Contains(t, todo, "repair skip")
		}
	}
	require.Equal(t, 1, n)
	require.EqualValues(t, 1, stats.PassedOver)
}

// What a checkpoint that cannot be used asks for is what docs/operating.md says.
func TestTheAdviceForACheckpointIsToMakeItAgain(t *testing.T) {
	for name, do := range map[string]func(*harm){
		"empty":  func(h *harm) { h.cut("checkpoint", 0) },
		"cut":    func(h *harm) { h.cut("checkpoint", 512) },
		"beyond": func(h *harm) { h.put64("checkpoint", 0, 1<<42) },
	} {
		t.Run(name, func(t *testing.T) {
			h := &harm{t, golden.Unpack(t, store49)}
			do(h)
			n := 0
			for _, f := range check(t, open(t, h.dir), inspect.CheckOptions{}) {
				if f.File == "checkpoint" {
					n++
					_, todo := f.Advice()
					require.Contains(t, todo, "rebuild checkpoint")
					require.NotContains(t, todo, "replica")
				}
			}
			require.Positive(t, n)
		})
	}
}

// R-E-094: a store that was killed before anything was made from its log is no worse than one that was killed later.
func TestQueuesThatAKilledBrokerHasNotMadeAreNoFault(t *testing.T) {
	h := &harm{t, golden.Unpack(t, "rocketmq-4.9.7/abort")}
	for _, name := range []string{"consumequeue", "index", "checkpoint", "config/consumerOffset.json", "config/delayOffset.json", "config/consumerOffset.json.bak", "config/delayOffset.json.bak"} {
		h.remove(name)
	}
	all := check(t, open(t, h.dir), inspect.CheckOptions{})
	require.Empty(t, kinds(all), "%v", all)
	h.remove("abort")
	require.Positive(t, kinds(check(t, open(t, h.dir), inspect.CheckOptions{}))[inspect.MissingQueue])
}
