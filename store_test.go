package rocketstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/message"
)

// small is a shape that rolls every kind of file soon.
func small() *rocketstore.Options {
	return &rocketstore.Options{SegmentSize: 8192, QueueSegmentSize: 400, IndexSlots: 50, IndexEntries: 40}
}

func open(t *testing.T, dir string, o *rocketstore.Options) *rocketstore.Store {
	t.Helper()
	s, err := rocketstore.Open(dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Abandon() })
	return s
}

func msg(topic string, queue int32, body, tag, keys string) *message.Message {
	p, _ := message.NewProperties("TAGS", tag, "KEYS", keys)
	return &message.Message{Topic: topic, QueueID: queue, Body: []byte(body), Properties: p}
}

func TestPutThenGetInEveryWay(t *testing.T) {
	s := open(t, golden.TempDir(t), small())
	for i := range 200 {
		r, err := s.Put(t.Context(), msg("T", int32(i%2), fmt.Sprint("body ", i), "tag", fmt.Sprint("key-", i)))
		require.NoError(t, err)
		require.EqualValues(t, i/2, r.QueueOffset)
	}
	_, end := s.Bounds()
	require.NoError(t, s.WaitDispatched(t.Context(), end))
	got, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: "T", QueueID: 1, Offset: 98, Max: 10})
	require.NoError(t, err)
	require.Equal(t, rocketstore.Found, got.Status)
	require.Len(t, got.Records, 2)
	require.Equal(t, "body 197", string(got.Records[0].Body))
	got.Release()
	n := 0
	for r, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: "T", Key: "key-7"}) {
		require.NoError(t, err)
		require.Equal(t, "body 7", string(r.Body))
		n++
	}
	require.Equal(t, 1, n)
	require.NoError(t, s.Close(t.Context()))
}

func TestCloseAndOpenAgainKeepsEverything(t *testing.T) {
	dir := golden.TempDir(t)
	s := open(t, dir, small())
	for i := range 100 {
		_, err := s.Put(t.Context(), msg("T", 0, fmt.Sprint("body ", i), "tag", fmt.Sprint("key-", i)))
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(t.Context()))
	s = open(t, dir, nil)
	require.True(t, s.Report().Trusted)
	r, err := s.Put(t.Context(), msg("T", 0, "more", "tag", "k"))
	require.NoError(t, err)
	require.EqualValues(t, 100, r.QueueOffset)
	require.NoError(t, s.Abandon())
	s = open(t, dir, nil)
	require.True(t, s.Report().Unclean)
	n := 0
	for _, err := range s.Messages("T", 0, 0) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 101, n)
	require.NoError(t, s.Close(t.Context()))
}

// A filter may remember: it is asked of each unit once, in order, and what it wants is what is given, whatever is read together.
func TestAFilterIsAskedOfEachUnitOnceAndInOrder(t *testing.T) {
	s := open(t, golden.TempDir(t), small())
	for i := range 300 {
		_, err := s.Put(t.Context(), msg("T", 0, strings.Repeat("b", i), "tag", ""))
		require.NoError(t, err)
	}
	for _, most := range []int{1, 7, 32, 500} {
		asked, given := 0, []int64(nil)
		req := rocketstore.GetRequest{Topic: "T", Max: most, Filter: func(int64) bool { asked++; return asked%3 == 0 }}
		for req.Offset < 300 {
			res, err := s.Get(t.Context(), req)
			require.NoError(t, err)
			for i := range res.Records {
				require.Len(t, res.Records[i].Body, int(res.Offsets[i]))
			}
			given = append(given, res.Offsets...)
			require.EqualValues(t, res.Next, asked, "none is asked beyond what the answer covers")
			req.Offset = res.Next
			res.Release()
		}
		require.Len(t, given, 100)
		require.EqualValues(t, 2, given[0])
		require.EqualValues(t, 299, given[99])
	}
}
