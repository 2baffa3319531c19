package inspect_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// savedStates are what a check of a directory saves at the end of each file of the log, as JSON, each with what was found so far.
func savedStates(t *testing.T, dir string) (saved []string, found [][]string) {
	t.Helper()
	sofar := []string{}
	o := inspect.CheckOptions{Max: -1, Save: func(s *inspect.CheckState) {
		b, err := json.Marshal(s)
		require.NoError(t, err)
		saved = append(saved, string(b))
		found = append(found, append([]string{}, sofar...))
	}}
	for f, err := range open(t, dir).Check(t.Context(), o) {
		require.NoError(t, err)
		sofar = append(sofar, f.String())
	}
	return saved, found
}

// Wherever a check ends, what it found and what the rest finds is together what a whole one finds.
func TestACheckThatIsGoneOnWithFindsWhatAWholeOneDoes(t *testing.T) {
	t.Parallel()
	for _, rows := range [][]planted{{{name: "nothing", do: func(*harm) {}}}, logDamages(), queueDamages(), indexDamages(), otherDamages()} {
		whole := golden.Unpack(t, store49)
		for _, tt := range rows {
			t.Run(tt.name, func(t *testing.T) {
				h := &harm{t, golden.Copy(t, whole)}
				tt.do(h)
				var want inspect.CheckStats
				all := []string{}
				for _, f := range check(t, open(t, h.dir), inspect.CheckOptions{Max: -1, Stats: &want}) {
					all = append(all, f.String())
				}
				saved, found := savedStates(t, h.dir)
				for i, text := range saved {
					if i > 0 && i < len(saved)-1 && i != len(saved)/2 {
						continue
					}
					var s inspect.CheckState
					require.NoError(t, json.Unmarshal([]byte(text), &s))
					var stats inspect.CheckStats
					got := found[i]
					for _, f := range check(t, open(t, h.dir), inspect.CheckOptions{Max: -1, Stats: &stats, Resume: &s}) {
						got = append(got, f.String())
					}
					require.ElementsMatch(t, all, got)
					require.Equal(t, want, stats)
				}
			})
		}
	}
}

func TestAnInterruptedCheckSavesHowFarItCame(t *testing.T) {
	dir := golden.Unpack(t, store49)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var last *inspect.CheckState
	o := inspect.CheckOptions{Save: func(s *inspect.CheckState) { last = s; stop() }}
	var ended error
	for _, err := range open(t, dir).Check(ctx, o) {
		ended = err
	}
	require.ErrorIs(t, ended, context.Canceled)
	require.NotNil(t, last)
	require.Positive(t, last.Next)
	require.Empty(t, kinds(check(t, open(t, dir), inspect.CheckOptions{Resume: last})))
}

func TestAStateOfAnotherStoreIsLeftOutOfAccount(t *testing.T) {
	saved, _ := savedStates(t, golden.Unpack(t, store49))
	require.NotEmpty(t, saved)
	for _, other := range []string{store31, storeBCQ} {
		var s inspect.CheckState
		require.NoError(t, json.Unmarshal([]byte(saved[len(saved)-1]), &s))
		var stats inspect.CheckStats
		require.Empty(t, kinds(check(t, open(t, golden.Unpack(t, other)), inspect.CheckOptions{Resume: &s, Stats: &stats})))
		require.Zero(t, stats.LogStart)
	}
}
