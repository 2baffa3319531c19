package inspect_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// check gives all findings of a directory.
func check(t testing.TB, d *inspect.Dir, o inspect.CheckOptions) []inspect.Finding {
	t.Helper()
	var all []inspect.Finding
	for f, err := range d.Check(t.Context(), o) {
		require.NoError(t, err)
		all = append(all, f)
	}
	return all
}

// kinds counts findings of severity warning and error by kind.
func kinds(all []inspect.Finding) map[inspect.Kind]int {
	n := map[inspect.Kind]int{}
	for _, f := range all {
		if f.Severity != inspect.Info {
			n[f.Kind]++
		}
	}
	return n
}

// known is what is wrong with the golden stores, by kind and number; the others are whole. Those of 3.1.4 that were rebuilt
// have what its own recovery does wrong: numbers of transactions changed, ends forgotten, keys lost with the index file that
// it removes after a crash.
func known() map[string]map[inspect.Kind]int {
	rebuilt := func(renumbered, state, missing int) map[inspect.Kind]int {
		m := map[inspect.Kind]int{inspect.MissingKeys: 1}
		for k, n := range map[inspect.Kind]int{inspect.Renumbered: renumbered, inspect.StateBehind: state, inspect.MissingState: missing} {
			if n > 0 {
				m[k] = n
			}
		}
		return m
	}
	return map[string]map[inspect.Kind]int{
		"rocketmq-3.1.4/abort-torn":                   {inspect.BadSize: 1, inspect.StateBehind: 1},
		"rocketmq-3.1.4/abort-torn-props":             {inspect.WrongUnit: 1},
		"rocketmq-3.1.4/abort-torn-topic":             {inspect.BadSize: 1, inspect.StateBehind: 1},
		"rocketmq-3.1.4/missing-statetable":           {inspect.MissingState: 10},
		"rocketmq-3.1.4/missing-statetable-continued": {inspect.MissingState: 8},
		"rocketmq-3.1.4/prepared-nogroup":             {inspect.Renumbered: 1},
		"rocketmq-3.1.4/rebuilt":                      rebuilt(15, 13, 8),
		"rocketmq-3.1.4/rebuilt-continued":            rebuilt(10, 2, 0),
		"rocketmq-3.1.4/rebuilt-oneredo":              rebuilt(10, 0, 0),
		"rocketmq-3.1.4/torn-prepared":                {inspect.BadSize: 1, inspect.CheckpointBeyond: 2},
		"rocketmq-3.1.4/torn-prepared-twice":          {inspect.WrongRedo: 1},
		"rocketmq-4.9.7/abort-badcrc":                 {inspect.BadCRC: 1},
		"rocketmq-4.9.7/abort-short":                  {inspect.ShortSegment: 1, inspect.BadSize: 1},
		"rocketmq-4.9.7/abort-torn":                   {inspect.BadSize: 1},
		"rocketmq-4.9.7/missing-cq":                   {inspect.MissingQueue: 20},
		"rocketmq-4.9.7/missing-cq-abort":             {inspect.MissingQueue: 20},
		"rocketmq-5.3.3/abort-badcrc":                 {inspect.BadCRC: 1},
		"rocketmq-5.3.3/abort-short":                  {inspect.ShortSegment: 1, inspect.BadSize: 1, inspect.CheckpointBeyond: 1},
		"rocketmq-5.3.3/abort-torn":                   {inspect.BadSize: 1, inspect.CheckpointBeyond: 1},
		"rocketmq-5.3.3/missing-cq":                   {inspect.MissingQueue: 20},
		"rocketmq-5.3.3/missing-cq-abort":             {inspect.MissingQueue: 20},
	}
}

// R-E-094, R-E-095: nothing is found in a store that a real broker stopped cleanly, and only what is wrong in the others.
// Nothing is written either (R-E-014).
func TestCheckFindsNothingWrongInGoldenStoresThatAreWhole(t *testing.T) {
	t.Parallel()
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			dir, want := golden.Unpack(t, name), known()[name]
			before := golden.Snapshot(t, dir)
			var stats inspect.CheckStats
			all := check(t, open(t, dir), inspect.CheckOptions{Stats: &stats})
			require.Equal(t, before, golden.Snapshot(t, dir))
			if want == nil {
				want = map[inspect.Kind]int{}
			}
			require.Equal(t, want, kinds(all), "%v", all)

			e := golden.Load(t, name)
			require.Equal(t, int64(len(listed(e))), stats.Records)
			require.Equal(t, e.Abort(), !stats.Clean)
			for _, f := range all {
				means, todo := f.Kind.Advice()
				require.NotEmpty(t, means, f.Kind)
				require.NotEmpty(t, todo, f.Kind)
			}
		})
	}
}

// What a real broker's own recovery left is whole as well, but for what it loses: the keys of records before its start.
func TestCheckOfStoresThatTheRealProgramRecovered(t *testing.T) {
	t.Parallel()
	// After a crash it removes the index and makes only a part again; it leaves bad records and their units behind the end; it
	// takes a queue that is gone for one that begins late, and 4.9 forgets there what a delay level is.
	left := map[string]map[inspect.Kind]int{
		"rocketmq-4.9.7/abort":               {inspect.MissingKeys: 1},
		"rocketmq-4.9.7/abort-badcrc":        {inspect.MissingKeys: 1, inspect.BadCRC: 1, inspect.IndexBehind: 1},
		"rocketmq-4.9.7/abort-cqbehind":      {inspect.MissingKeys: 1},
		"rocketmq-4.9.7/abort-torn":          {inspect.MissingKeys: 1, inspect.BadSize: 1},
		"rocketmq-4.9.7/missing-index-abort": {inspect.MissingKeys: 1},
		"rocketmq-5.3.3/missing-index-abort": {inspect.MissingKeys: 1},
		"rocketmq-4.9.7/missing-cq-abort":    {inspect.MissingKeys: 1, inspect.MissingQueue: 6, inspect.MissingUnits: 5, inspect.WrongTime: 13},
		"rocketmq-5.3.3/abort-badcrc":        {inspect.BadCRC: 1, inspect.IndexBehind: 1},
		"rocketmq-5.3.3/abort-torn":          {inspect.BadSize: 1},
		"rocketmq-5.3.3/missing-cq-abort":    {inspect.MissingQueue: 6, inspect.MissingUnits: 5},
	}
	for _, name := range golden.Names("4.9.7", "5.3.3") {
		base := filepath.Base(name)
		if !strings.HasPrefix(base, "abort") && !strings.HasPrefix(base, "missing") || base == "abort-short" {
			continue // never reopened, or refused
		}
		t.Run(name, func(t *testing.T) {
			var want reopened
			require.NoError(t, json.Unmarshal(golden.Load(t, name).Raw("opened"), &want))
			dir := golden.Unpack(t, name)
			overlay(t, dir, golden.Unpack(t, name+".reopened"), &want)
			expect := left[name]
			if expect == nil {
				expect = map[inspect.Kind]int{}
			}
			require.Equal(t, expect, kinds(check(t, open(t, dir), inspect.CheckOptions{})))
		})
	}
}

// The findings that the cases ask for, by kind, file and offset, and no other of severity warning or error.
func TestCheckOfCases(t *testing.T) {
	const queue, log0 = "consumequeue/TopicA/0/00000000000000000000", "commitlog/00000000000000000000"
	more := map[string][]string{
		"checkpoint-empty-file":     {"queue without files|consumequeue/TopicA/0|0", "damaged file|checkpoint|0"},
		"clean-exit-queue-behind":   {"queue behind the log|" + queue + "|120"},
		"config-json-nul":           {"damaged file|config/topics.json|106", "backup used|config/consumerOffset.json|0", "damaged file|config/delayOffset.json|26"},
		"foreign-file-in-commitlog": {"foreign file|consumequeue/TopicA/.DS_Store|0", "foreign file|commitlog/.DS_Store|0", "foreign file|commitlog/00000000000000000000.bak|0", "foreign file|commitlog/the-bad-empty-file|0"},
		"ipv6-hosts":                {"queue without files|consumequeue/TopicA/0|0"},
		"log-gap-in-the-middle":     {"gap|commitlog/00000000000000008192|0", "checkpoint beyond the log|checkpoint|0", "checkpoint beyond the log|checkpoint|8"},
		"offset-beyond-end":         {"stored offset beyond the end of its queue|config/consumerOffset.json|18"},
		"torn-tail-crc":             {"lengths do not add up|" + log0 + "|2604"},
		"transaction-redo-replay":   {"queue without files|consumequeue/TopicT/0|0"},
		"zero-byte-last-segment":    {"empty segment|commitlog/00000000000000004096|0"},
	}
	for _, name := range golden.Cases() {
		c := golden.LoadCase(t, name)
		if c.Store == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var expect struct {
				Check []struct {
					Kind, File string
					Offset     int64
				}
			}
			require.NoError(t, json.Unmarshal(c.Expect, &expect))
			want := more[name]
			for _, f := range expect.Check {
				want = append(want, fmt.Sprintf("%s|%s|%d", f.Kind, f.File, f.Offset))
			}
			got := &collector{}
			for _, f := range check(t, open(t, c.Store), inspect.CheckOptions{}) {
				if f.Severity != inspect.Info {
					got.add(f)
				}
			}
			slices.Sort(want)
			have := got.brief()
			slices.Sort(have)
			require.Equal(t, want, have)
		})
	}
}
