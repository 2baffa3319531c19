package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// openOnes lists what a store has as open, in its table and by what is found without one.
func openOnes(t *testing.T, dir string) (rows int, c *collector) {
	t.Helper()
	c = &collector{}
	for tx, err := range open(t, dir).Transactions(t.Context(), c.add) {
		require.NoError(t, err)
		if tx.Open() {
			rows++
		}
	}
	return rows, c
}

// R-E-094, R-B-64: whatever of the files of the transactions of 3.1 is lost, the prepared messages in the log show it: check and
// diff find it, and the open ones are still told.
func TestLostTransactionFilesAreFoundByTheLog(t *testing.T) {
	t.Parallel()
	good := golden.Unpack(t, "rocketmq-3.1.4/mid-transaction")
	want, _ := openOnes(t, good)
	require.Positive(t, want)
	for _, tt := range []struct {
		name         string
		do           func(h *harm)
		state, redo  bool // is found missing
		told         int  // open ones that are told without a table
		severityOfTx inspect.Severity
	}{
		{"all", func(h *harm) { h.remove("transaction") }, true, true, want, inspect.Warning},
		{"all and the index", func(h *harm) { h.remove("transaction"); h.remove("index") }, true, true, want, inspect.Warning},
		{"redo log", func(h *harm) { h.remove("transaction/redolog") }, false, true, 0, ""},
		{"table", func(h *harm) { h.remove("transaction/statetable") }, true, false, want, inspect.Warning},
		{"all by a kill", func(h *harm) { h.remove("transaction"); h.write("abort", "") }, false, false, want, inspect.Info},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := &harm{t, golden.Copy(t, good)}
			tt.do(h)
			found := kinds(check(t, open(t, h.dir), inspect.CheckOptions{}))
			require.Equal(t, tt.state, found[inspect.MissingState] > 0, "%v", found)
			require.Equal(t, tt.redo, found[inspect.MissingRedo] > 0, "%v", found)
			_, c := openOnes(t, h.dir)
			n := 0
			for _, f := range c.all {
				if f.Kind == inspect.MissingState {
					require.Equal(t, tt.severityOfTx, f.Severity)
					n++
				}
			}
			require.Equal(t, tt.told, n, "%v", c.all)
			r, _ := compared(t, good, h.dir)
			require.Positive(t, r.Findings)
			require.True(t, open(t, h.dir).HasStateTable())
		})
	}
}
