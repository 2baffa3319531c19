//go:build unix

package recovery_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// A segment that somebody cuts short while its records are dispatched gives an error, wherever that happens, and the process lives.
func TestLogCutShortUnderADispatchIsAnError(t *testing.T) {
	for _, during := range []string{"reading", "a sink", "telling"} {
		dir := t.TempDir()
		fsys, err := mappedfile.OpenDir(dir, nil)
		require.NoError(t, err)
		log, err := commitlog.Open(fsys, &commitlog.Options{SegmentSize: logSegment, NoAhead: true})
		require.NoError(t, err)
		f, d := newFeed(t), newDerived(t)
		f.log = log
		f.put(t, 20)
		cut := func() { require.NoError(t, os.Truncate(filepath.Join(dir, "commitlog", mappedfile.SegmentName(0)), 0)) }
		places, told := placesBefore(t, log, f.at), 0
		sink := &eager{"sink", new([]string), func(*commitlog.Record) error { return nil }}
		live := recovery.NewDispatcher(log, d.derive, 0, sink, d.queue, d.index)
		live.OnApplied(func(r *commitlog.Record, _ *recovery.Derived) {
			if r.PhysicalOffset == places[3] && during == "telling" {
				cut()
			}
			_ = string(r.Topic) + string(r.Properties)
			told++
		})
		switch during {
		case "reading":
			cut()
		case "a sink":
			sink.fail = func(*commitlog.Record) error {
				cut()
				return nil
			}
		}
		err = live.CatchUp(t.Context())
		require.ErrorIs(t, err, mappedfile.ErrFault, during)
		require.ErrorContains(t, err, mappedfile.SegmentName(0))
		require.Equal(t, map[string]int{"telling": 3}[during], told)
		require.Equal(t, places[told], live.Offset())
		require.EqualValues(t, told, live.Count())
		live.Close()
		require.NoError(t, log.Abandon())
	}
}
