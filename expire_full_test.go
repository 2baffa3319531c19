package rocketstore_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// A disk that is full to the last block, so that puts fail and the dispatch may stand still, is made room on by the rule that
// forces deletion, puts go on, and the store is closed cleanly (R-G-17, R-E-038). However fast puts come, the dispatch is never
// so far behind that nothing can be deleted.
func TestForcedDeletionMakesRoomOnAFullDisk(t *testing.T) {
	const segment = 16384
	for _, segments := range []int64{7, 8, 13, 40} {
		t.Run(fmt.Sprintf("room for %d segments", segments), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { forcedDeletion(t, segment, segments*segment) })
		})
	}
}

func forcedDeletion(t *testing.T, segment, limit int64) {
	fsys := memfs.New()
	used := func() float64 { return float64(fsys.Used()) / float64(limit) }
	o := small()
	o.FS, o.SegmentSize, o.HoldDelayed, o.FlushEvery, o.CheckpointEvery = fsys, segment, true, time.Hour, time.Hour
	o.Retention = rocketstore.Retention{ForceRatio: 0.85, DiskRatio: 0.85, Usage: func() (mappedfile.Usage, error) {
		return mappedfile.Usage{Used: fsys.Used(), Total: limit}, nil
	}}
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Abandon() })
	fsys.Limit(limit)
	put := func() error {
		_, err := s.Put(t.Context(), msg("T", 0, strings.Repeat("x", 1000), "", "key"))
		return err
	}
	for err == nil {
		err = put()
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Greater(t, used(), 0.85)
	time.Sleep(5 * time.Minute) // in the bubble
	require.LessOrEqual(t, used(), 0.86)
	start, _ := s.Bounds()
	require.Positive(t, start)
	require.NoError(t, put())
	require.NoError(t, s.Close(t.Context()))
	s, err = rocketstore.Open("", o)
	require.NoError(t, err)
	require.Empty(t, s.Report().Warnings)
	require.NoError(t, s.Close(t.Context()))
}

// A dry run on a store that was killed, or that has a writer, lists what the writer would delete: the segment made ahead is not
// the last one (R-G-19).
func TestDryRunDoesNotCountTheSegmentMadeAhead(t *testing.T) {
	fsys := memfs.New()
	o := small()
	o.FS, o.SegmentSize = fsys, 4096
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	for range 20 {
		_, err := s.Put(t.Context(), msg("T", 0, strings.Repeat("x", 1000), "", ""))
		require.NoError(t, err)
	}
	_, end := s.Bounds()
	require.NoError(t, s.WaitDispatched(t.Context(), end))
	ask := rocketstore.ExpireOptions{MaxBytes: 1, DryRun: true}
	want, err := s.Expire(t.Context(), ask)
	require.NoError(t, err)
	require.NoError(t, s.Abandon())
	ahead := "commitlog/" + mappedfile.SegmentName(end-end%4096+4096)
	_, err = fsys.OpenFile(ahead, 0, 0)
	if err != nil { // it was not made yet
		require.NoError(t, fsys.WriteFile(ahead, make([]byte, 4096)))
	}
	readOnly := *o
	readOnly.ReadOnly = true
	s, err = rocketstore.Open("", &readOnly)
	require.NoError(t, err)
	got, err := s.Expire(t.Context(), ask)
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	require.Equal(t, want, got)
	require.NotEmpty(t, got.Files)
}
