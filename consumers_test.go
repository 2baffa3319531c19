package rocketstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

func TestConsumersProgressIsListedAndForgotten(t *testing.T) { // R-F-08, R-G-34
	fsys := memfs.New()
	o := &rocketstore.Options{FS: fsys, Sparse: true, SegmentSize: 1 << 20, QueueSegmentSize: 6000, IndexSlots: 100, IndexEntries: 400}
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	s.SetConsumerOffset("T", "G", 1, 5)
	s.SetConsumerOffset("T", "G", 0, 7)
	s.SetConsumerOffset("U", "G", 0, 9)
	s.SetConsumerOffset("U", rocketstore.TransactionGroup, 0, 3)
	require.Equal(t, []rocketstore.ConsumerProgress{
		{Topic: "T", Group: "G", QueueID: 1, Offset: 5},
		{Topic: "T", Group: "G", QueueID: 0, Offset: 7},
		{Topic: "U", Group: "G", QueueID: 0, Offset: 9},
		{Topic: "U", Group: rocketstore.TransactionGroup, QueueID: 0, Offset: 3},
	}, s.ConsumerOffsets())
	s.ForgetConsumerOffsets(func(topic, _ string) bool { return topic == "U" })
	require.Empty(t, s.DelayOffsets())
	require.NoError(t, s.Close(t.Context()))

	again, err := rocketstore.Open("", o)
	require.NoError(t, err)
	defer func() { require.NoError(t, again.Close(t.Context())) }()
	_, there := again.ConsumerOffset("U", "G", 0)
	require.False(t, there)
	_, there = again.ConsumerOffset("U", rocketstore.TransactionGroup, 0) // on which its recovery rests
	require.True(t, there)
}

func TestDiskUseIsThatOfTheFileSystem(t *testing.T) { // protocol.md 16: commitLogDiskRatio
	o := &rocketstore.Options{FS: memfs.New(), Sparse: true, SegmentSize: 1 << 20, QueueSegmentSize: 6000, IndexSlots: 100, IndexEntries: 400}
	o.Retention.Usage = func() (mappedfile.Usage, error) { return mappedfile.Usage{Used: 3, Total: 4}, nil }
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(t.Context())) }()
	use, err := s.DiskUse()
	require.NoError(t, err)
	require.InDelta(t, 0.75, use, 1e-9)
}
