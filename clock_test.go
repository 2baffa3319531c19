package rocketstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// The store's own clock, which is not everywhere time.Now, tells the same time.
func TestAPutIsStampedWithTheSystemsTime(t *testing.T) {
	s, err := rocketstore.Open("", &rocketstore.Options{FS: memfs.New(), SegmentSize: 1 << 20, IndexSlots: 100, IndexEntries: 100})
	require.NoError(t, err)
	before := time.Now().UnixMilli()
	put, err := s.Put(context.Background(), &message.Message{Topic: "T", Body: []byte("b")})
	after := time.Now().UnixMilli()
	require.NoError(t, err)
	require.GreaterOrEqual(t, put.StoreTimestamp, before)
	require.LessOrEqual(t, put.StoreTimestamp, after)
	got, err := s.MessageAt(put.PhysicalOffset)
	require.NoError(t, err)
	require.GreaterOrEqual(t, got.BornTimestamp, before)
	require.LessOrEqual(t, got.BornTimestamp, put.StoreTimestamp)
	require.NoError(t, s.Close(context.Background()))
}
