package rocketstore_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/recovery"
)

// What the real stores made of each golden store, and what we make of it, differs only as the table of docs/recovery.md says,
// a line for each difference.
func TestDifferencesFromTheRealStoresAreListed(t *testing.T) {
	t.Parallel()
	var rows []string
	for _, name := range golden.Names() {
		rows = append(rows, differences(t, name)...)
	}
	text, err := os.ReadFile("docs/recovery.md")
	require.NoError(t, err)
	var listed []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| rocketmq-") {
			listed = append(listed, strings.TrimSuffix(line, "\n"))
		}
	}
	require.Equal(t, rows, listed, "docs/recovery.md should have:\n%s", strings.Join(rows, "\n"))
}

func differences(t *testing.T, name string) (rows []string) {
	exp := golden.Load(t, name)
	theirs := exp.AfterLoad()
	add := func(what string, original, ours any) {
		rows = append(rows, fmt.Sprintf("| %s | %s | %v | %v |", name, what, original, ours))
	}
	s, err := rocketstore.Open(golden.Unpack(t, name), &rocketstore.Options{HoldDelayed: true})
	if refused, ok := errors.AsType[*recovery.RefusedError](err); ok {
		add("opening", map[bool]string{true: "opens", false: "refuses"}[theirs.Loaded], "refuses: "+refused.Kind)
		return rows
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Abandon()) }()
	if !theirs.Loaded {
		add("opening", "refuses", "opens")
		return rows
	}
	if _, end := s.Bounds(); end != theirs.MaxOffset {
		add("end of the log", theirs.MaxOffset, end)
	}
	for _, d := range queueDifferences(t, s, theirs.Queues) {
		add(d[0], d[1], d[2])
	}
	asked, missed := 0, 0
	for _, q := range theirs.KeyQueries {
		found := 0
		for r, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: q.Topic, Key: q.Key}) {
			require.NoError(t, err)
			if found++; found > 32 { // as the original was asked
				break
			}
			if asked++; !slices.Contains(q.PhysicalOffsets, r.PhysicalOffset) {
				missed++
			}
		}
	}
	if missed > 0 {
		add("messages found by the keys that were asked for", asked-missed, asked)
	}
	if exp.Line() != "3.1" {
		return rows
	}
	info, _ := s.StateTableInfo()
	if theirs.NextStateNumber != info.Next {
		add("next transaction number", theirs.NextStateNumber, info.Next)
	}
	var open, known []int64
	for tx, err := range s.OpenTransactions(t.Context()) {
		require.NoError(t, err)
		open = append(open, tx.Number)
	}
	for _, r := range theirs.StateTable {
		if r.State == 4 {
			known = append(known, r.Number)
		}
	}
	if !slices.Equal(open, known) {
		add("numbers of open transactions", known, open)
	}
	return rows
}

// queueDifferences gives the ranges of queues that differ, in the order of their names; many of them as one line.
func queueDifferences(t *testing.T, s *rocketstore.Store, theirs []golden.QueueRange) (rows [][3]string) {
	type bounds struct{ min, max int64 }
	original, ours := make(map[string]bounds), make(map[string]bounds)
	for _, q := range theirs {
		original[fmt.Sprintf("%s/%d", q.Topic, q.QueueID)] = bounds{q.Min, q.Max}
	}
	for q, err := range s.Queues(t.Context()) {
		require.NoError(t, err)
		ours[fmt.Sprintf("%s/%d", q.Topic, q.QueueID)] = bounds{q.Min, q.Max}
	}
	all := maps.Clone(original)
	maps.Copy(all, ours)
	var had, have int64
	for _, key := range slices.Sorted(maps.Keys(all)) {
		a, b := original[key], ours[key]
		if a == b {
			continue
		}
		had, have = had+a.max-a.min, have+b.max-b.min
		rows = append(rows, [3]string{"queue " + key, fmt.Sprintf("%d to %d", a.min, a.max), fmt.Sprintf("%d to %d", b.min, b.max)})
	}
	if len(rows) > 3 {
		return [][3]string{{fmt.Sprintf("units in %d queues", len(rows)), strconv.FormatInt(had, 10), strconv.FormatInt(have, 10)}}
	}
	return rows
}
