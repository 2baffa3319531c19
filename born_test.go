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

// A message without a time of birth was born when it was stored; one with a time keeps it.
func TestAMessageWithoutBirthIsBornWhenItIsStored(t *testing.T) {
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
	require.Equal(t, put.StoreTimestamp, got.BornTimestamp)

	put, err = s.Put(context.Background(), &message.Message{Topic: "T", Body: []byte("b"), BornTimestamp: 7})
	require.NoError(t, err)
	got, err = s.MessageAt(put.PhysicalOffset)
	require.NoError(t, err)
	require.Equal(t, int64(7), got.BornTimestamp)
	require.NoError(t, s.Close(context.Background()))
}
