package rocketstore_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// wholePrefix is the records before the first one that is damaged.
func wholePrefix(records []golden.Record) []golden.Record {
	for i := range records {
		if !records[i].Whole() {
			return records[:i]
		}
	}
	return records
}

// queueModel is what the records say is in the queues: physical offset by queue offset.
func queueModel(t *testing.T, line string, records []golden.Record) map[string]map[int64]int64 {
	t.Helper()
	model := make(map[string]map[int64]int64)
	put := func(queue string, at, physical int64) {
		if model[queue] == nil {
			model[queue] = make(map[int64]int64)
		}
		if _, taken := model[queue][at]; !taken {
			model[queue][at] = physical
		}
	}
	for _, r := range records {
		if !message.SysFlag(r.SysFlag).Queued() || message.SysFlag(r.SysFlag).Has(message.FlagInnerBatch) {
			continue
		}
		put(fmt.Sprintf("%s/%d", r.Topic, r.QueueID), r.QueueOffset, r.PhysicalOffset)
		names, offsets := r.Properties[message.PropertyMultiDispatch], r.Properties[message.PropertyMultiQueueOffset]
		if offsets == "" || line == "3.1" {
			continue
		}
		places := strings.Split(offsets, ",")
		for i, n := range strings.Split(names, ",") {
			var at int64
			_, err := fmt.Sscan(places[i], &at)
			require.NoError(t, err)
			put(n+"/0", at, r.PhysicalOffset)
		}
	}
	return model
}

func readQueues(t *testing.T, s *rocketstore.Store) map[string]map[int64]int64 {
	t.Helper()
	got := make(map[string]map[int64]int64)
	for q, err := range s.Queues(t.Context()) {
		require.NoError(t, err)
		for at := q.Min; at < q.Max; {
			res, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: q.Topic, QueueID: q.QueueID, Offset: at})
			require.NoError(t, err)
			for i, r := range res.Records {
				key := fmt.Sprintf("%s/%d", q.Topic, q.QueueID)
				if got[key] == nil {
					got[key] = make(map[int64]int64)
				}
				got[key][res.Offsets[i]] = r.PhysicalOffset
			}
			res.Release()
			at = res.Next
		}
	}
	return got
}

// TestGoldenStoresOpenComplete opens each store that real RocketMQ wrote, for writing and for reading, and compares every
// queue with the records of the log (R-E-066, R-E-068, R-E-070, R-E-071, R-E-077).
func TestGoldenStoresOpenComplete(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			exp := golden.Load(t, name)
			dir := golden.Unpack(t, name)
			before := golden.Snapshot(t, dir)
			s, err := rocketstore.Open(dir, &rocketstore.Options{HoldDelayed: true})
			switch filepath.Base(name) {
			case "abort-badcrc", "batchcq":
				refused, ok := errors.AsType[*recovery.RefusedError](err)
				require.True(t, ok, "%v", err)
				require.NotEmpty(t, refused.File)
				after := golden.Snapshot(t, dir)
				delete(after, "lock")
				delete(before, "lock")
				delete(after, ".")
				delete(before, ".")
				require.Equal(t, before, after)
				return
			}
			require.NoError(t, err)
			require.Equal(t, exp.Line(), s.Dialect().Name)
			t.Cleanup(func() { _ = s.Abandon() })
			records := wholePrefix(exp.Records())
			want := queueModel(t, exp.Line(), records)
			got := readQueues(t, s)
			require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
			require.Equal(t, want, got)
			last := records[len(records)-1]
			_, end := s.Bounds()
			if blanks := exp.Blanks(); len(blanks) == 0 || blanks[len(blanks)-1].PhysicalOffset < last.PhysicalOffset {
				require.Equal(t, last.PhysicalOffset+int64(last.StoreSize), end)
			}
			for _, q := range exp.AfterLoad().KeyQueries {
				for _, at := range q.PhysicalOffsets {
					checkKey(t, s, q.Topic, q.Key, at)
				}
			}
			for _, r := range records {
				if f := message.SysFlag(r.SysFlag).Transaction(); f == message.FlagRollback || f == message.FlagCommit && exp.Line() == "3.1" {
					continue
				}
				for k := range message.Keys(r.Properties[message.PropertyKeys]) {
					checkKey(t, s, r.Topic, k, r.PhysicalOffset)
				}
			}
			require.NoError(t, s.Close(t.Context()))
			again, err := rocketstore.Open(dir, &rocketstore.Options{HoldDelayed: true})
			require.NoError(t, err)
			require.True(t, again.Report().Trusted)
			require.Equal(t, want, readQueues(t, again))
			require.NoError(t, again.Close(t.Context()))
		})
	}
}

func checkKey(t *testing.T, s *rocketstore.Store, topic, key string, physical int64) {
	t.Helper()
	found := false
	for r, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: topic, Key: key}) {
		require.NoError(t, err)
		found = found || r.PhysicalOffset == physical
	}
	require.True(t, found, "%s#%s at %d", topic, key, physical)
}
