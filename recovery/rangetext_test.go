package recovery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/recovery"
)

func TestOneUnitIsNamedAsOne(t *testing.T) {
	require.Equal(t, "unit 47 becomes a filler", recovery.RangeSays("unit", 47, 47, "becomes a filler", "become fillers"))
	require.Equal(t, "units 47 to 48 become fillers", recovery.RangeSays("unit", 47, 48, "becomes a filler", "become fillers"))
	require.Equal(t, "unit 3 becomes", recovery.VoidUnits([]int64{3}, "becomes", "become"))
	require.Equal(t, "units 3 to 5 become", recovery.VoidUnits([]int64{3, 4, 5}, "becomes", "become"))
	require.Equal(t, "2 units from 3 to 5 become", recovery.VoidUnits([]int64{3, 5}, "becomes", "become"))
}
