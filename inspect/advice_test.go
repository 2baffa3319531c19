package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

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
