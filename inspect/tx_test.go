package inspect_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/message"
)

// Each record of each 3.1.4 store has what its prepared message says; what 3.1.4 numbered anew, and the redo units that it
// left behind a cut, are found (R-B-64, R-B-66, R-B-69).
func TestTransactionsOfGoldenStores(t *testing.T) {
	renumbered := map[string]int{ // by reading the READMEs of the stores: those that 3.1.4 has rebuilt or continued
		"rebuilt": 15, "rebuilt-oneredo": 10, "rebuilt-continued": 10,
	}
	redo := map[string]int{"abort-torn": 1, "abort-torn-topic": 1, "torn-prepared": 1, "torn-prepared-twice": 1}
	for _, name := range golden.Names("3.1.4") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			exp, base := golden.Load(t, name), filepath.Base(name)
			d := open(t, golden.Unpack(t, name))
			messages := make(map[int64]*golden.Record)
			for i, r := range exp.Records() {
				messages[r.PhysicalOffset] = &exp.Records()[i]
			}
			kinds := make(map[inspect.Kind]int)
			count := func(f inspect.Finding) { kinds[f.Kind]++ }
			n := 0
			for tx, err := range d.Transactions(t.Context(), count) {
				require.NoError(t, err)
				want := exp.StateTable()[n]
				require.Equal(t, want.Number, tx.Number)
				require.Equal(t, want.PhysicalOffset, tx.CommitOffset)
				n++
				m := messages[tx.CommitOffset]
				if !m.Whole() { // the log ends before it
					require.EqualValues(t, -1, tx.Carried)
					require.Equal(t, 1, kinds[inspect.Orphan])
					continue
				}
				require.Equal(t, m.QueueOffset, tx.Carried)
				require.Equal(t, m.Properties[message.PropertyProducerGroup], tx.Group)
				require.Equal(t, m.Topic, tx.Topic)
				require.Equal(t, m.MsgID, tx.MsgID)
				require.Equal(t, m.StoreTimestamp, tx.StoreTimestamp)
				require.Equal(t, want.State == 4, tx.Open())
			}
			require.Len(t, exp.StateTable(), n)
			if want, ok := renumbered[base]; ok {
				require.Equal(t, want, kinds[inspect.Renumbered])
			}
			if base == "missing-statetable" { // a lost table looks as if nothing were open
				require.Equal(t, map[inspect.Kind]int{inspect.MissingState: 10}, kinds)
			}
			if base == "clean" || base == "abort" || base == "mid-transaction" {
				require.Empty(t, kinds)
			}
			clear(kinds)
			n = 0
			for u, err := range d.RedoUnits(t.Context(), count) {
				require.NoError(t, err)
				require.Equal(t, exp.RedoLog()[n].PhysicalOffset, u.PhysicalOffset)
				n++
			}
			require.Len(t, exp.RedoLog(), n)
			require.Equal(t, redo[base], kinds[inspect.RedoBeyond]+kinds[inspect.WrongRedo], "%v", kinds)
		})
	}
}

// Half and op messages in the log fold to the transactions that the store itself has as open (R-B-71).
func TestHalfTransactionsOfGoldenStores(t *testing.T) {
	t.Parallel()
	open49 := 0
	for _, name := range golden.Names("4.9.7", "5.3.3") {
		base := filepath.Base(name)
		if base == "abort-badcrc" || base == "batchcq" || base == "missing-cq" || base == "missing-cq-abort" {
			continue // not opened, or only with queues
		}
		dir := golden.Unpack(t, name)
		s, err := rocketstore.Open(dir, &rocketstore.Options{ReadOnly: true})
		require.NoError(t, err)
		d := open(t, dir)
		require.False(t, d.HasStateTable())
		var got []rocketstore.OpenTransaction
		for tx, err := range d.HalfTransactions(t.Context(), func(inspect.Finding) {}) {
			require.NoError(t, err)
			require.Equal(t, "GoldenTx", tx.Topic)
			require.Equal(t, "GoldenTxGroup", tx.Group)
			require.True(t, tx.Open())
			got = append(got, rocketstore.OpenTransaction{
				Number: tx.Number, PhysicalOffset: tx.CommitOffset, Size: tx.Size, StoreTimestamp: tx.StoreTimestamp, GroupHash: tx.GroupHash,
			})
		}
		n := 0
		for tx, err := range s.OpenTransactions(t.Context()) {
			require.NoError(t, err)
			require.Less(t, n, len(got), name)
			tx.Checks = 0
			require.Equal(t, tx, got[n], name)
			n++
		}
		require.Len(t, got, n, name)
		open49 += n
		require.NoError(t, s.Close(t.Context()))
	}
	require.Greater(t, open49, 50)
}
