package rocketstore_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
)

func openSet(t *testing.T, s *rocketstore.Store) []golden.OpenTransaction {
	t.Helper()
	var open []golden.OpenTransaction
	for tx, err := range s.OpenTransactions(t.Context()) {
		require.NoError(t, err)
		open = append(open, golden.OpenTransaction{PhysicalOffset: tx.PhysicalOffset, Number: tx.Number})
	}
	return open
}

// TestGoldenTransactionsKeepTheirNumbers opens the 3.1.4 stores and finds every open transaction under the number that its
// message carries, whatever the original made of it (R-B-50 to R-B-58, R-B-66).
func TestGoldenTransactionsKeepTheirNumbers(t *testing.T) {
	for _, name := range golden.Names("3.1.4") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			exp, dir := golden.Load(t, name), golden.Unpack(t, name)
			s, err := rocketstore.Open(dir, &rocketstore.Options{HoldDelayed: true})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Abandon() })
			want := exp.Derived().OpenTransactions
			require.ElementsMatch(t, want, openSet(t, s))
			require.NoError(t, s.Close(t.Context()))
			s, err = rocketstore.Open(dir, &rocketstore.Options{HoldDelayed: true})
			require.NoError(t, err)
			require.True(t, s.Report().Trusted)
			require.ElementsMatch(t, want, openSet(t, s))
			require.NoError(t, s.Close(t.Context()))
		})
	}
}
