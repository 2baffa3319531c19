package inspect_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/inspect"
)

func TestUnitsAreNumberedByTheirPlace(t *testing.T) {
	s := newTree()
	filler := consumequeue.Filler().AppendTo(nil)
	s.queue("TopicA", 3, 200, 10, filler, filler, unit(0, 101), unit(101, 101), unit(202, 101), unit(303, 101), unit(404, 101), unit(505, 101), unit(606, 101), unit(707, 101))
	s.queue("TopicA", 3, 400, 10, unit(808, 101))
	got, c := indexes(t, s)
	require.Equal(t, []int64{10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, got)
	require.Empty(t, c.all)
}

func TestUnitsBehindZerosAreGivenAndTheZerosReported(t *testing.T) {
	zero := make([]byte, 20)
	s := newTree()
	s.queue("TopicA", 0, 0, 10, unit(0, 101), zero, zero, unit(101, 101))
	s.queue("TopicA", 0, 200, 10)
	s.queue("TopicA", 0, 400, 10, zero, unit(202, 101))
	got, c := indexes(t, s)
	require.Equal(t, []int64{0, 3, 21}, got)
	require.Equal(t, []string{
		"zeros with data behind them|consumequeue/TopicA/0/00000000000000000000|20",
		"zeros with data behind them|consumequeue/TopicA/0/00000000000000000000|80",
	}, c.brief())
	require.Equal(t, []int64{1, 3, 4, 21}, []int64{c.all[0].From, c.all[0].To, c.all[1].From, c.all[1].To})
}

func TestImpossibleUnitsArePassedOverTogether(t *testing.T) {
	s := newTree()
	s.queue("TopicA", 0, 0, 10, unit(0, 101), unit(-1, 101), unit(5, 0), unit(5, -3), unit(101, 101), unit(-7, 1))
	got, c := indexes(t, s)
	require.Equal(t, []int64{0, 4}, got)
	require.Equal(t, []string{
		"impossible queue unit|consumequeue/TopicA/0/00000000000000000000|20",
		"impossible queue unit|consumequeue/TopicA/0/00000000000000000000|100",
	}, c.brief())
	require.Equal(t, []int64{1, 4, 5, 6}, []int64{c.all[0].From, c.all[0].To, c.all[1].From, c.all[1].To})
}

func TestQueuesComeByTopicAndNumber(t *testing.T) {
	s := newTree()
	for _, q := range []struct {
		topic string
		id    int32
	}{{"b", 10}, {"b", 9}, {"a", 0}, {"%RETRY%g", 0}} {
		s.queue(q.topic, q.id, 0, 10, unit(0, 101))
	}
	d, err := inspect.Open(s)
	require.NoError(t, err)
	var got []any
	for u, err := range d.Queues(t.Context(), inspect.QueueFilter{}, func(inspect.Finding) {}) {
		require.NoError(t, err)
		got = append(got, u.Topic, u.QueueID)
	}
	require.Equal(t, []any{"%RETRY%g", int32(0), "a", int32(0), "b", int32(9), "b", int32(10)}, got)

	nine := int32(9)
	n := 0
	for u, err := range d.Queues(t.Context(), inspect.QueueFilter{Topic: "b", Queue: &nine}, func(inspect.Finding) {}) {
		require.NoError(t, err)
		require.Equal(t, nine, u.QueueID)
		n++
	}
	require.Equal(t, 1, n)
}

// R-E-008.
func TestForeignNamesAmongQueuesAreReported(t *testing.T) {
	s := newTree()
	s.queue("TopicA", 0, 0, 10, unit(0, 101))
	s.put("consumequeue/notes", nil)
	s.put("consumequeue/TopicA/x/y", nil)
	s.put("consumequeue/TopicA/007/00000000000000000000", nil)
	s.put("consumequeue/TopicA/0/0001", nil)
	s.put("consumequeue/0/00000000000000000000", make([]byte, 200)) // what 3.1 makes of an empty topic
	got, c := indexes(t, s)
	require.Equal(t, []int64{0}, got)
	require.ElementsMatch(t, []string{
		"foreign file|consumequeue/notes|0", "foreign file|consumequeue/TopicA/x|0", "foreign file|consumequeue/TopicA/007|0",
		"foreign file|consumequeue/TopicA/0/0001|0", "foreign file|consumequeue/0/00000000000000000000|0",
	}, c.brief())
}

func TestQueuesInRocksDBAreRecognised(t *testing.T) {
	s := newTree()
	s.put("consumequeue/CURRENT", []byte("MANIFEST-000001\n"))
	s.put("consumequeue/000004.sst", nil)
	got, c := indexes(t, s)
	require.Empty(t, got)
	require.Equal(t, []string{"not read|consumequeue|0"}, c.brief())
	d, err := inspect.Open(s)
	require.NoError(t, err)
	id, err := d.Identify(t.Context())
	require.NoError(t, err)
	require.Equal(t, []inspect.Recognised{{What: "queues in RocksDB", Path: "consumequeue"}}, id.Recognised)
}

func TestAnExtensionEndsWhereItCannotBeBelieved(t *testing.T) {
	s := newTree()
	good := consumequeue.ExtUnit{TagsCode: 5, StoreTime: 9, Bitmap: []byte{1, 2}}.AppendTo(nil)
	bad := append([]byte{}, good...)
	binary.BigEndian.PutUint16(bad[18:], 7)
	s.put("consumequeue_ext/TopicA/0/00000000000000000000", file(1024, good, bad, good))
	s.put("consumequeue_ext/TopicA/0/00000000000000001024", file(1024, good))
	d, err := inspect.Open(s)
	require.NoError(t, err)
	var got []int64
	c := &collector{}
	for u, err := range d.Extensions(t.Context(), inspect.QueueFilter{}, c.add) {
		require.NoError(t, err)
		got = append(got, u.Offset)
	}
	require.Equal(t, []int64{0, 1024}, got)
	require.Equal(t, []string{"impossible queue unit|consumequeue_ext/TopicA/0/00000000000000000000|22"}, c.brief())
}
