package rocketstore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
)

// Under SyncInterval a power cut takes at most what was put in the last interval, also when that is one short message
// (design.md 4.1).
func TestAnIntervalIsAllThatAPowerCutTakes(t *testing.T) {
	for _, write := range []mappedfile.WriteMode{mappedfile.Mapped, mappedfile.Pwrite, mappedfile.Staged} {
		synctest.Test(t, func(t *testing.T) {
			disk := crashfs.New(memfs.New())
			o := small()
			o.FS, o.Write, o.FlushEvery, o.CheckpointEvery = disk, write, 2*time.Second, time.Hour
			s, err := rocketstore.Open("", o)
			require.NoError(t, err)
			time.Sleep(5 * time.Second) // in the bubble
			_, err = s.Put(t.Context(), msg("T", 0, "short", "", ""))
			require.NoError(t, err)
			time.Sleep(o.FlushEvery + time.Millisecond)
			synctest.Wait()
			kept := disk.Image(0) // nothing that was not synced
			_, err = s.Put(t.Context(), msg("T", 0, "too late", "", ""))
			require.NoError(t, err)
			late := disk.Image(0)
			require.NoError(t, s.Abandon())
			for _, o.FS = range []mappedfile.FS{kept, late} {
				s, err = rocketstore.Open("", o)
				require.NoError(t, err)
				require.Equal(t, []string{"short"}, bodies(t, s, "T", 0))
				require.NoError(t, s.Abandon())
			}
		})
	}
}

// Under SyncGroup a put that has returned is on the device, with the names of its files; one that says not to wait is not
// (R-E-077).
func TestAcknowledgedUnderSyncGroupIsOnTheDevice(t *testing.T) {
	for _, write := range []mappedfile.WriteMode{mappedfile.Mapped, mappedfile.Pwrite, mappedfile.Staged} {
		disk := crashfs.New(memfs.New())
		o := small()
		o.FS, o.Write, o.Sync, o.FlushEvery, o.CheckpointEvery = disk, write, rocketstore.SyncGroup, time.Hour, time.Hour
		s, err := rocketstore.Open("", o)
		require.NoError(t, err)
		want := []string{}
		for i := range 100 { // over some segments
			want = append(want, string(rune('a'+i%26)))
			_, err = s.Put(t.Context(), msg("T", 0, want[i], "", ""))
			require.NoError(t, err)
		}
		_, err = s.Put(t.Context(), with(msg("T", 0, "does not wait", "", ""), "WAIT", "false"))
		require.NoError(t, err)
		image := disk.Image(0)
		require.NoError(t, s.Abandon())
		o.FS = image
		s, err = rocketstore.Open("", o)
		require.NoError(t, err)
		require.Equal(t, want, bodies(t, s, "T", 0))
		require.NoError(t, s.Abandon())
	}
}

// A record that is larger than what is gathered for one write is read like any other, with nothing put behind it.
func TestALargeMessageUnderSyncGroupIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := rocketstore.Open("", &rocketstore.Options{
			FS: memfs.New(), Sparse: true, SegmentSize: 8 << 20, IndexSlots: 100, IndexEntries: 400, Sync: rocketstore.SyncGroup,
		})
		require.NoError(t, err)
		_, err = s.Put(t.Context(), &message.Message{Topic: "T", Body: make([]byte, 4<<20)})
		require.NoError(t, err)
		_, end := s.Bounds()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of the bubble
		defer cancel()
		require.NoError(t, s.WaitDispatched(ctx, end))
		require.NoError(t, s.Close(t.Context()))
	})
}
