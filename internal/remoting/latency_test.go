package remoting_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

func TestLatenciesFallIntoBucketsOfTwofoldWidth(t *testing.T) { // R-D-121, R-D-124
	var c remoting.LatencyCounter
	empty := c.Load()
	require.Zero(t, empty.Percentile(0.99))
	for _, took := range []time.Duration{
		0, time.Microsecond, 2 * time.Microsecond, 3 * time.Microsecond, time.Millisecond, -time.Second, 400 * 24 * time.Hour,
	} {
		c.Add(took)
	}
	l := c.Load()
	require.EqualValues(t, 7, l.Count())
	require.Equal(t, []int64{2, 1, 2}, l[:3]) // less than 1, 2 and 4 µs
	require.EqualValues(t, 1, l[10])          // 512 µs to 1.024 ms
	require.EqualValues(t, 1, l[31])
	require.Equal(t, 400*24*time.Hour+time.Millisecond+6*time.Microsecond, c.Sum())
}

func TestAPercentileIsTheBoundOfItsBucket(t *testing.T) { // R-D-124
	var l remoting.Latencies
	l[3], l[20] = 99, 1
	require.Equal(t, 8*time.Microsecond, l.Percentile(0.5))
	require.Equal(t, 8*time.Microsecond, l.Percentile(0.989))
	require.Equal(t, l.Bound(20), l.Percentile(0.99), "the hundredth is the slow one")
	require.Equal(t, l.Bound(20), l.Percentile(0.995))
	require.Equal(t, l.Bound(20), l.Percentile(1))
}
