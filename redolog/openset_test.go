package redolog_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore/redolog"
)

func requireOpen(t require.TestingT, model map[int64]bool, s *redolog.OpenSet) {
	require.Equal(t, len(model), s.Len())
	require.Equal(t, slices.Sorted(maps.Keys(model)), slices.Collect(s.All()))
	require.Equal(t, len(model), s.Len()) // All may rearrange, not change
	for offset := range model {
		require.True(t, s.Has(offset))
	}
}

// R-B-50: a prepared unit opens, a resolving one closes what it names.
func TestOpenSetFoldsAsTheOriginalDoes(t *testing.T) {
	var s redolog.OpenSet
	require.Zero(t, s.Len())
	require.False(t, s.Has(0))
	for i := range int64(9) {
		s.Apply(unit(i))
	}
	require.Equal(t, []int64{1200, 1800, 2400}, slices.Collect(s.All()))
	s.Apply(redolog.Unit{PhysicalOffset: 9000, Size: 1, TagsCode: 1200})
	s.Apply(redolog.Unit{PhysicalOffset: 9001, Size: 1, TagsCode: 1200}) // a second end
	s.Apply(redolog.Unit{PhysicalOffset: 9002, Size: 1, TagsCode: 1201}) // of nothing
	require.Equal(t, []int64{1800, 2400}, slices.Collect(s.All()))
	require.False(t, s.Has(1200))
	for range s.All() {
		break
	}
}

// Units in log order with many thousands, so that the set compacts.
func TestOpenSetOfManyIsThatOfAMap(t *testing.T) {
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, 0))
	var s redolog.OpenSet
	model := map[int64]bool{}
	var prepared []int64
	for offset := range int64(60_000) {
		if len(prepared) == 0 || rnd.IntN(2) == 0 {
			s.Apply(redolog.Unit{PhysicalOffset: offset, Size: 1, TagsCode: redolog.Prepared})
			model[offset] = true
			prepared = append(prepared, offset)
			continue
		}
		i := rnd.IntN(len(prepared))
		s.Apply(redolog.Unit{PhysicalOffset: offset, Size: 1, TagsCode: prepared[i]})
		delete(model, prepared[i])
		prepared = slices.Delete(prepared, i, i+1)
	}
	requireOpen(t, model, &s)
}

func TestOpenSetTakesAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s redolog.OpenSet
		model := map[int64]bool{}
		for range rapid.IntRange(0, 80).Draw(t, "units") {
			offset := rapid.Int64Range(0, 30).Draw(t, "offset")
			tags := rapid.Int64Range(-1, 30).Draw(t, "tags")
			s.Apply(redolog.Unit{PhysicalOffset: offset, Size: 1, TagsCode: tags})
			if tags == redolog.Prepared {
				model[offset] = true
			} else {
				delete(model, tags)
			}
			require.Equal(t, len(model), s.Len())
			if rapid.IntRange(0, 9).Draw(t, "look") == 0 {
				requireOpen(t, model, &s)
			}
		}
		requireOpen(t, model, &s)
	})
}
