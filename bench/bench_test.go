package bench_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/bench"
)

// The names of cases are of keys and values, and none comes twice.
func TestCasesHaveNames(t *testing.T) {
	for _, wide := range []bool{false, true} {
		seen := make(map[string]bool)
		for _, c := range bench.Cases(&bench.Options{Wide: wide}) {
			require.False(t, seen[c.Name], c.Name)
			seen[c.Name] = true
			for _, part := range strings.Split(c.Name, "/")[1:] {
				require.Contains(t, part, "=")
			}
		}
		require.Greater(t, len(seen), 60)
	}
}

// Each case of the matrix runs (R-E-085, R-E-086).
func TestCasesRun(t *testing.T) {
	groups := make(map[string]bool)
	for _, c := range bench.Cases(&bench.Options{SegmentSize: 1 << 20, Pages: []int{1, 3}}) {
		groups[c.Group()] = true
		run, err := c.Open(t.Context(), t.TempDir())
		require.NoError(t, err, c.Name)
		res, err := c.Drive(run, func(begun int64) bool { return begun < 3 })
		require.NoError(t, err, c.Name)
		require.NoError(t, run.Close(), c.Name)
		require.Equal(t, 3*c.Ops, res.Ops, c.Name)
		require.Positive(t, res.Rate, c.Name)
		require.LessOrEqual(t, res.P50, res.P999, c.Name)
	}
	require.Len(t, groups, 10)
}

// A percentile is the one of the sorted times, to 3 %.
func TestTimesKnowTheirPercentiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Int64Range(0, 1<<40), 1, 200).Draw(t, "times")
		var whole, part bench.Times
		for i, d := range all {
			if i%3 == 0 {
				part.Add(time.Duration(d))
			} else {
				whole.Add(time.Duration(d))
			}
		}
		whole.Merge(&part)
		slices.Sort(all)
		require.EqualValues(t, len(all), whole.Count())
		for _, q := range []float64{0, 0.5, 0.99, 1} {
			want := all[min(int(q*float64(len(all))), len(all)-1)]
			got := int64(whole.At(q))
			require.LessOrEqual(t, got, want)
			require.GreaterOrEqual(t, float64(got), float64(want)*0.96)
		}
	})
	var none bench.Times
	require.Zero(t, none.At(0.5))
}

// The same workload fills two stores alike, and each key is found.
func TestWorkloadIsTheSameEachTime(t *testing.T) {
	w := bench.Workload{Body: 100}
	again := bench.Workload{Body: 100}
	require.Equal(t, w.Message(7), again.Message(7))
	s, err := rocketstore.Open(t.TempDir(), &rocketstore.Options{SegmentSize: 1 << 20, IndexSlots: 100, IndexEntries: 1000, Sparse: true})
	require.NoError(t, err)
	end, err := w.Fill(t.Context(), s, 40)
	require.NoError(t, err)
	_, logEnd := s.Bounds()
	require.Equal(t, logEnd, end)
	for i := range int64(40) {
		found := 0
		for r, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: "Bench", Key: w.Key(i), Max: 2}) {
			require.NoError(t, err)
			require.EqualValues(t, i%4, r.QueueID)
			found++
		}
		require.Equal(t, 1, found)
	}
	require.NoError(t, s.Close(t.Context()))
}

func TestHostIsDescribed(t *testing.T) {
	h := bench.HostOf(t.TempDir())
	require.Positive(t, h.Cores)
	require.NotEmpty(t, h.Kernel)
	require.Len(t, h.Lines(), 5)
}
