package rocketstore_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// leftBehind makes, each time anew and the same, the disk of a killed store of which much is missing: the log's end is torn,
// a queue and the index are gone, another queue is cut short, the state table is gone.
func leftBehind(t *testing.T, o *rocketstore.Options) *memfs.FS {
	fsys := memfs.New()
	now := int64(1_000_000)
	o.FS, o.Now = fsys, func() int64 { now += 10; return now }
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	for i := range 60 {
		m := msg([]string{"A", "B"}[i%2], 0, strings.Repeat("x", i*7), "tag", "key")
		if i%10 == 3 {
			m = with(m, message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, producerGroup)
		}
		_, err := s.Put(t.Context(), m)
		require.NoError(t, err)
	}
	_, end := s.Bounds()
	require.NoError(t, s.WaitDispatched(t.Context(), end))
	require.NoError(t, s.Abandon())
	files, err := diskContents(fsys)
	require.NoError(t, err)
	for name, b := range files {
		switch {
		case strings.HasPrefix(name, "consumequeue/B/"), strings.HasPrefix(name, "index/"), strings.HasPrefix(name, "transaction/statetable/"):
			require.NoError(t, fsys.Remove(name))
		case strings.HasPrefix(name, "consumequeue/A/0/00000000000000000400"):
			require.NoError(t, fsys.WriteFile(name, make([]byte, len(b))))
		case name == "commitlog/"+mappedfile.SegmentName(end/o.SegmentSize*o.SegmentSize):
			torn := []byte(b)
			clear(torn[end%o.SegmentSize-20:])
			require.NoError(t, fsys.WriteFile(name, torn))
		}
	}
	return fsys
}

// A recovery that is cut off after any of its steps, by a kill or by a power cut, and run again leaves byte for byte what one
// leaves that was not; and so does one whose context ends (R-E-073, R-E-079, R-B-60).
func TestRecoveryInterruptedAnywhereEndsTheSame(t *testing.T) {
	o := small()
	o.SegmentSize, o.StateSegmentSize, o.RedoSegmentSize, o.FlushEvery, o.CheckpointEvery = 4096, 240, 200, time.Hour, time.Hour
	o.Transactions, o.HoldDelayed = rocketstore.StateTable, true
	recovered := func(fsys mappedfile.FS) map[string]string {
		o.FS = fsys
		s, err := rocketstore.Open("", o)
		require.NoError(t, err)
		require.NoError(t, s.Abandon())
		files, err := diskContents(fsys)
		require.NoError(t, err)
		return files
	}
	uncut := crashfs.New(leftBehind(t, o))
	want := recovered(uncut)
	require.Greater(t, uncut.Steps(), 50)
	same := func(got map[string]string, text string, args ...any) {
		t.Helper()
		require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)), append([]any{text}, args...)...)
		for name := range want {
			require.Equal(t, want[name], got[name], append([]any{name + " " + text}, args...)...)
		}
	}
	for cut := range uncut.Steps() {
		disk := crashfs.New(leftBehind(t, o))
		disk.CrashAfter(cut)
		o.FS = disk
		if s, err := rocketstore.Open("", o); err == nil {
			require.NoError(t, s.Abandon())
		}
		for image := range uint64(4) { // nothing that was not synced, all of it, and some
			same(recovered(disk.Image(image)), "cut after %d steps, image %d", cut, image)
		}
	}
	for _, phase := range []string{"check", "replay"} {
		ctx, cancel := context.WithCancel(t.Context())
		stopped := *o
		stopped.FS = leftBehind(t, o)
		stopped.Recovery.Progress = func(now string, _, _ int64) {
			if now == phase {
				cancel()
			}
		}
		s, err := rocketstore.OpenContext(ctx, "", &stopped)
		if phase == "replay" && err == nil { // short enough to be done by then
			require.NoError(t, s.Abandon())
		} else {
			require.ErrorIs(t, err, context.Canceled)
		}
		cancel()
		same(recovered(stopped.FS), "context ended in phase %s", phase)
	}
	require.Equal(t, want, recovered(uncut), "run twice")
	require.Contains(t, want, recovery.AbortFile)
}
