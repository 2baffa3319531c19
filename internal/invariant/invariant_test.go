package invariant_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/invariant"
)

func TestCheckPanicsOnlyWhenEnabled(t *testing.T) {
	require.NotPanics(t, func() { invariant.Check(true, "holds") })
	broken := func() { invariant.Check(false, "flushed <= written") }
	if invariant.Enabled {
		require.PanicsWithValue(t, "broken invariant: flushed <= written", broken)
	} else {
		require.NotPanics(t, broken)
	}
}
