package inspect_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// compareIdentity compares line, cleanness, sizes and counts.
func compareIdentity(t *testing.T, d *inspect.Dir, want *golden.Expected) {
	id, err := d.Identify(t.Context())
	require.NoError(t, err)
	require.Equal(t, want.Line(), id.Dialect, id.Why)
	require.Equal(t, want.Abort(), !id.Clean)
	requireSizes(t, want, id.Sizes)
	require.Empty(t, id.Other)

	records, last := int64(0), golden.Record{}
	byQueue := make(map[string]map[int32]int64)
	for _, r := range listed(want) {
		if !r.CRCWrong {
			if byQueue[r.Topic] == nil {
				byQueue[r.Topic] = make(map[int32]int64)
			}
			byQueue[r.Topic][r.QueueID]++
			last = r
		}
		records++
	}
	require.Equal(t, records, id.CommitLog.Records)
	require.Equal(t, want.Records()[0].StoreTimestamp, id.CommitLog.FirstStoreTime)
	require.Equal(t, last.StoreTimestamp, id.CommitLog.LastStoreTime)
	units := make(map[string]map[int32]inspect.QueueSummary)
	for _, q := range id.Queues {
		require.Equal(t, byQueue[q.Topic][q.QueueID], q.Records, "%s/%d", q.Topic, q.QueueID)
		if units[q.Topic] == nil {
			units[q.Topic] = make(map[int32]inspect.QueueSummary)
		}
		units[q.Topic][q.QueueID] = q
	}
	for _, q := range someQueues(want.Queues()) {
		got := units[q.Topic][q.QueueID]
		require.Equal(t, q.Units[len(q.Units)-1].Index+1, got.Max)
	}
	if want.Abort() {
		return
	}
	for _, q := range want.AfterLoad().Queues {
		if got := units[q.Topic][q.QueueID]; got.Units > 0 {
			require.Equal(t, q.Max, got.Max, "%s/%d", q.Topic, q.QueueID)
			require.Equal(t, q.Min, got.Min)
		}
	}
}

func requireSizes(t *testing.T, want *golden.Expected, got inspect.Sizes) {
	t.Helper()
	c := want.Config()
	have := make(map[string]bool)
	for _, f := range want.Files() {
		have[dirOf(f.Path)] = true
	}
	expect := inspect.Sizes{CommitLog: c.CommitLogFileSize}
	if have["consumequeue"] {
		expect.Queue = c.QueueFileSize
	}
	if have["consumequeue_ext"] {
		expect.Extension = c.QueueExtFileSize
	}
	if have["batchconsumequeue"] {
		expect.BatchQueue = c.BatchQueueFileSize
	}
	if have["transaction/statetable"] {
		expect.StateTable = c.StateTableFileSize
	}
	if have["transaction/redolog"] {
		expect.RedoLog = c.RedoLogFileSize
	}
	if have["index"] {
		expect.IndexSlots, expect.IndexEntries = c.IndexSlots, c.IndexEntries
	}
	require.Equal(t, expect, got)
}

// dirOf is the first part of a path, or the first two under transaction.
func dirOf(path string) string {
	for i, c := range path {
		if c == '/' && path[:i] != "transaction" {
			return path[:i]
		}
	}
	return path
}
