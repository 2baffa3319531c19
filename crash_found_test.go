package rocketstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// The tests here are of what the crash images found, one for each mended bug.

// Staged bytes are dispatched when they are committed, not only with the next put; Close waits for that (R-E-068).
func TestStagedMessagesAreDispatchedOnceCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := small()
		o.FS, o.Write, o.FlushEvery = memfs.New(), mappedfile.Staged, time.Hour
		s, err := rocketstore.Open("", o)
		require.NoError(t, err)
		_, err = s.Put(t.Context(), msg("T", 0, "staged", "", ""))
		require.NoError(t, err)
		time.Sleep(time.Second)
		synctest.Wait()
		got, err := s.Get(t.Context(), rocketstore.GetRequest{Topic: "T"})
		require.NoError(t, err)
		require.Len(t, got.Records, 1)
		got.Release()
		_, err = s.Put(t.Context(), msg("T", 0, "not committed when the store is closed", "", ""))
		require.NoError(t, err)
		require.NoError(t, s.Close(t.Context()))
		s, err = rocketstore.Open("", o)
		require.NoError(t, err)
		require.Len(t, bodies(t, s, "T", 0), 2)
		require.NoError(t, s.Close(t.Context()))
	})
}
