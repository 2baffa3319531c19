package rocketstore_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// Old messages go by hand: first what would go, then for good.
func ExampleStore_Expire() {
	ctx := context.Background()
	store, err := rocketstore.Open("", &rocketstore.Options{FS: memfs.New(), SegmentSize: 4096, NoIndex: true})
	if err != nil {
		log.Fatal(err)
	}
	for range 10 {
		if _, err := store.Put(ctx, &message.Message{Topic: "Orders", Body: make([]byte, 1800)}); err != nil {
			log.Fatal(err)
		}
	}
	for _, dry := range []bool{true, false} {
		gone, err := store.Expire(ctx, rocketstore.ExpireOptions{MaxBytes: 3 * 4096, DryRun: dry})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(gone.Files), "files,", gone.Messages, "messages; the log begins at", gone.LogStart)
	}
	answer, err := store.Get(ctx, rocketstore.GetRequest{Topic: "Orders", Offset: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Status, "go on at", answer.Next)
	answer.Release()
	if err := store.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 2 files, 4 messages; the log begins at 8192
	// 2 files, 4 messages; the log begins at 8192
	// OFFSET_TOO_SMALL go on at 4
}

// A disk that is full, so that puts fail and the dispatch may stand still, is made room on by the rule that forces deletion,
// and puts go on (R-G-17, R-E-038).
func TestForcedDeletionMakesRoomOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New()
		o := small()
		o.FS, o.SegmentSize, o.HoldDelayed, o.FlushEvery, o.CheckpointEvery = fsys, 16384, true, time.Hour, time.Hour
		const limit = 40 * 16384
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
		n := 0
		for ; err == nil; n++ {
			err = put()
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.Greater(t, n, 300)
		require.Greater(t, float64(fsys.Used())/limit, 0.95)
		time.Sleep(5 * time.Minute)
		require.LessOrEqual(t, float64(fsys.Used())/limit, 0.86)
		start, _ := s.Bounds()
		require.Positive(t, start)
		require.NoError(t, put())
		require.NoError(t, s.Close(t.Context()))
		s, err = rocketstore.Open("", o)
		require.NoError(t, err)
		require.Empty(t, s.Report().Warnings)
		require.NoError(t, s.Close(t.Context()))
	})
}
