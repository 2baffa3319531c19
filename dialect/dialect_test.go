package dialect_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/dialect"
)

func TestParseKnowsTheThreeLines(t *testing.T) {
	for _, name := range []string{"3.1", "4.9", "5.3"} {
		d, err := dialect.Parse(name)
		require.NoError(t, err)
		require.Equal(t, name, d.Name)
	}
	_, err := dialect.Parse("4.3")
	require.ErrorContains(t, err, `"4.3"`)
}

// R-E-025, R-E-052, R-E-056, R-E-057, R-E-066: what differs between the lines.
func TestLinesDifferInWhatTheyAreNamedFor(t *testing.T) {
	old, v4, v5 := dialect.V31(), dialect.V49(), dialect.V53()
	require.EqualValues(t, 524288, old.MaxMessageSize)
	require.EqualValues(t, 4194304, v4.MaxMessageSize)
	require.True(t, old.LimitsWholeRecord)
	require.False(t, v4.LimitsWholeRecord)
	require.Equal(t, 255, v5.MaxRetryTopicLength)
	require.Equal(t, 127, v5.MaxTopicLength)
	require.True(t, v5.WritesV2)
	require.False(t, v4.WritesV2)
	require.True(t, old.EndsProperties)
	require.False(t, v4.EndsProperties)
	require.True(t, v5.EndsProperties)
	require.True(t, old.KeepsSignedKeyHash && old.CountsEveryIndexEntry && old.HasStateTable && !old.IndexesUniqueKey && !old.IndexesCommits)
	require.True(t, v4.IndexesUniqueKey && v4.IndexesCommits && !v4.KeepsSignedKeyHash && !v4.CountsEveryIndexEntry && !v4.HasStateTable)
	require.Zero(t, old.CheckpointMargin)
	require.EqualValues(t, 3000, v4.CheckpointMargin)
	require.Len(t, strings.Fields(old.DelayLevels), 16)
	require.Len(t, strings.Fields(v5.DelayLevels), 18)
	require.Equal(t, "timestatmp", old.TimestampKey)
	require.Equal(t, "4.9", v4.Name, "making the third does not change the second")
}
