//go:build interop

package interop_test

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/recovery"
)

// continuedMessages are put behind what the real store had written.
const continuedMessages = 30

// TestContinuedRealStoreGoesBack: a directory that a real broker wrote is opened by us, whatever its last stop or damage,
// continued and closed; the real store of its line then reads the same records, queues and keys as we do.
func TestContinuedRealStoreGoesBack(t *testing.T) {
	for _, l := range lines() {
		t.Run(l.version, func(t *testing.T) {
			t.Parallel()
			for _, name := range golden.Names(l.version) {
				if filepath.Base(name) == "batchcq" {
					continue // is refused for writing
				}
				t.Run(filepath.Base(name), func(t *testing.T) { continueAndReturn(t, l, name) })
			}
		})
	}
}

// ourView is what we read in a store.
type ourView struct {
	end     int64
	records []commitlog.Record // topics, places and sizes only
	queues  map[queueName]map[int64]int64
	max     map[queueName]int64
}

func continueAndReturn(t *testing.T, l line, name string) {
	config := golden.Load(t, name).Config()
	dir := golden.Unpack(t, name)
	shape := shape{config.CommitLogFileSize, config.QueueFileSize, config.IndexSlots, config.IndexEntries}
	options := &rocketstore.Options{ // the sizes tell where all files of a kind are missing
		SegmentSize: shape.segment, QueueSegmentSize: shape.queue, IndexSlots: shape.indexSlots, IndexEntries: shape.indexKeys,
	}
	s, err := rocketstore.Open(dir, options)
	if refused, ok := errors.AsType[*recovery.RefusedError](err); ok && refused.Kind == recovery.KindDamage {
		options.Recovery.OnDamage = recovery.CutAndKeep
		s, err = rocketstore.Open(dir, options)
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	require.Equal(t, l.dialect, s.Dialect().Name)
	b := newBook(t, l)
	b.add(putOurs(t, s, workload("continued", continuedMessages, kind{batches: l.batches, ipv6: l.ipv6, uniqueKeys: true})))
	view := lookAt(t, s)
	require.NoError(t, s.Close(t.Context()))

	j := startJVM(t, l)
	opened := j.open(t, dir, shape, goldenSettings(config))
	d := j.dump(t, shape)
	require.Len(t, d.Records, len(view.records))
	for i, r := range d.Records {
		o := view.records[i]
		require.Equal(t, []any{o.PhysicalOffset, o.Size, string(o.Topic), o.QueueID, o.QueueOffset},
			[]any{r.PhysicalOffset, r.StoreSize, r.Topic, r.QueueID, r.QueueOffset})
	}
	blank := (view.end + shape.segment - 1) / shape.segment * shape.segment
	require.Contains(t, []int64{view.end, blank}, opened.MaxPhysical, "the end of the log")
	view.checkQueues(t, d)
	b.checkJavaKeys(t, j, everyKey)
}

func goldenSettings(c golden.Config) map[string]string {
	more := map[string]string{"maxMessageSize": strconv.Itoa(int(c.MaxMessageSize))}
	if c.StateTableFileSize > 0 {
		more["tranStateTableMapedFileSize"] = strconv.FormatInt(c.StateTableFileSize, 10)
		more["tranRedoLogMapedFileSize"] = strconv.FormatInt(c.RedoLogFileSize, 10)
	}
	if c.QueueExt {
		more["enableConsumeQueueExt"] = "true"
		more["mappedFileSizeConsumeQueueExt"] = strconv.FormatInt(c.QueueExtFileSize, 10)
	}
	if c.LightQueues {
		more["enableLmq"], more["enableMultiDispatch"] = "true", "true"
	}
	if c.PropertyCRC {
		more["enabledAppendPropCRC"] = "true"
	}
	return more
}

func lookAt(t *testing.T, s *rocketstore.Store) ourView {
	t.Helper()
	v := ourView{queues: make(map[queueName]map[int64]int64), max: make(map[queueName]int64)}
	_, v.end = s.Bounds()
	for r, err := range s.Records(0) {
		require.NoError(t, err)
		v.records = append(v.records, commitlog.Record{
			PhysicalOffset: r.PhysicalOffset, Size: r.Size, Topic: append([]byte(nil), r.Topic...), QueueID: r.QueueID, QueueOffset: r.QueueOffset,
		})
	}
	for q, err := range s.Queues(t.Context()) {
		require.NoError(t, err)
		name := queueName{q.Topic, q.QueueID}
		v.max[name], v.queues[name] = q.Max, make(map[int64]int64)
		for at := q.Min; at < q.Max; {
			res, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: q.Topic, QueueID: q.QueueID, Offset: at})
			require.NoError(t, err)
			for i, r := range res.Records {
				v.queues[name][res.Offsets[i]] = r.PhysicalOffset
			}
			at = res.Next
			res.Release()
		}
	}
	return v
}

func (v ourView) checkQueues(t *testing.T, d javaDump) {
	t.Helper()
	seen := 0
	for _, q := range d.Queues {
		name := queueName{q.Topic, q.QueueID}
		ours, known := v.queues[name]
		if !known && q.Max == 0 {
			continue
		}
		require.True(t, known, "the real store has a queue %v", name)
		seen++
		require.Equal(t, v.max[name], q.Max, "end of %v", name)
		found := make(map[int64]int64)
		for i, u := range q.Units {
			if u.Size == 0x7FFFFFFF && u.Offset == 0 {
				continue // fills the place of a message that is no longer there
			}
			found[u.Index] = u.Offset
			require.Equal(t, u.Offset, q.Got[i], "message got from %v at %d", name, u.Index)
		}
		require.Equal(t, ours, found, "units of %v", name)
	}
	require.Len(t, v.queues, seen, "queues that the real store does not know")
}
