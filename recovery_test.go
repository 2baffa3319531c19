package rocketstore_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// filled makes a store of five segments: Idle/0 only in the first, Busy/0 all over. It is left as by a kill, or closed.
func filled(t *testing.T, clean bool) (dir string, records int) {
	t.Helper()
	dir = golden.TempDir(t)
	o := small()
	o.SegmentSize = 4096
	s := open(t, dir, o)
	for i := range 120 {
		topic := "Busy"
		if i < 10 {
			topic = "Idle"
		}
		_, err := s.Put(t.Context(), msg(topic, 0, fmt.Sprint("body ", i), "tag", fmt.Sprint("key-", i)))
		require.NoError(t, err)
	}
	if clean {
		require.NoError(t, s.Close(t.Context()))
	} else {
		_, end := s.Bounds()
		require.NoError(t, s.WaitDispatched(t.Context(), end))
		require.NoError(t, s.Abandon())
	}
	return dir, 120
}

// complete opens the store and checks that every record is in its queue and found by its key.
func complete(t *testing.T, dir string, records int) *recovery.Report {
	t.Helper()
	s := open(t, dir, nil)
	require.Len(t, bodies(t, s, "Idle", 0), 10)
	require.Len(t, bodies(t, s, "Busy", 0), records-10)
	for _, key := range []string{"key-0", "key-9"} {
		n := 0
		for _, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: "Idle", Key: key}) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 1, n, key)
	}
	r, err := s.Put(t.Context(), msg("Idle", 0, "next", "", ""))
	require.NoError(t, err)
	require.EqualValues(t, 10, r.QueueOffset)
	require.NoError(t, s.Close(t.Context()))
	return s.Report()
}

func writeAt(t *testing.T, name string, offset int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(b, offset)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// Whatever became of the derived files, they are made again from the log, after either kind of stop (R-E-066, R-E-068).
func TestDerivedFilesAreMadeAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		harm func(t *testing.T, dir string)
		// inside: the harm changes no end of a structure.
		inside bool
	}{
		{name: "nothing", harm: func(*testing.T, string) {}},
		{name: "queue of an idle topic is gone", harm: func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "consumequeue/Idle")))
		}},
		{name: "all queues are gone", harm: func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "consumequeue")))
		}},
		{name: "index is gone", harm: func(t *testing.T, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "index")))
		}},
		{name: "first index file is gone", harm: func(t *testing.T, dir string) {
			files, err := os.ReadDir(filepath.Join(dir, "index"))
			require.NoError(t, err)
			require.NoError(t, os.Remove(filepath.Join(dir, "index", files[0].Name())))
		}},
		{inside: true, name: "queue has a hole", harm: func(t *testing.T, dir string) {
			writeAt(t, filepath.Join(dir, "consumequeue/Busy/0", mappedfile.SegmentName(0)), 100, make([]byte, 60))
		}},
		{name: "queue begins with zeros", harm: func(t *testing.T, dir string) {
			writeAt(t, filepath.Join(dir, "consumequeue/Idle/0", mappedfile.SegmentName(0)), 0, make([]byte, 40))
		}},
		{inside: true, name: "queue points elsewhere", harm: func(t *testing.T, dir string) {
			writeAt(t, filepath.Join(dir, "consumequeue/Busy/0", mappedfile.SegmentName(0)), 200, binary.BigEndian.AppendUint64(nil, 5))
		}},
		{name: "checkpoint is gone", harm: func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "checkpoint")) }},
		{name: "checkpoint has no bytes", harm: func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "checkpoint"), nil, 0o600))
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "consumequeue")))
		}},
		{name: "checkpoint claims the far future", harm: func(t *testing.T, dir string) {
			c := recovery.Checkpoint{Physic: 1 << 60, Logics: 1 << 60, Index: 1 << 60}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "checkpoint"), append(c.AppendTo(nil), make([]byte, 4056)...), 0o600))
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "consumequeue")))
		}},
		{name: "our note is gone", harm: func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "config/rocketstore.json")) }},
		{name: "our note is no JSON", harm: func(t *testing.T, dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "config/rocketstore.json"), []byte("{\x00"), 0o600))
		}},
	} {
		for _, clean := range []bool{true, false} {
			if clean && tt.inside {
				continue // a clean stop of our own is believed as long as the ends are as they were
			}
			t.Run(fmt.Sprintf("%s/clean=%t", tt.name, clean), func(t *testing.T) {
				dir, n := filled(t, clean)
				tt.harm(t, dir)
				complete(t, dir, n)
			})
		}
	}
}

// A torn record at the end is cut and reported, the rest kept; the cut leaves zeros (R-E-012, R-E-070).
func TestTornTailIsCut(t *testing.T) {
	dir, n := filled(t, false)
	s := open(t, dir, &rocketstore.Options{ReadOnly: true})
	last := s.Report().LastRecord
	require.NoError(t, s.Close(t.Context()))
	segment := filepath.Join(dir, "commitlog", mappedfile.SegmentName(last-last%4096))
	writeAt(t, segment, last%4096+80, []byte("torn here, surely"))
	r := func() *recovery.Report {
		s := open(t, dir, nil)
		require.Len(t, bodies(t, s, "Busy", 0), n-11)
		require.NoError(t, s.Close(t.Context()))
		return s.Report()
	}()
	require.Equal(t, last, r.TruncatedAt)
	require.Positive(t, r.CutBytes)
	b, err := os.ReadFile(segment)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 4096-last%4096), b[last%4096:])
}

// Damage in the middle is refused and nothing changed; by choice the log is cut there and the rest kept aside (R-E-071).
func TestDamageInTheMiddleNeedsAChoice(t *testing.T) {
	dir, _ := filled(t, false)
	segment := filepath.Join(dir, "commitlog", mappedfile.SegmentName(4096))
	before, err := os.ReadFile(segment)
	require.NoError(t, err)
	writeAt(t, segment, 90, []byte{before[90] ^ 1})
	snapshot := golden.Snapshot(t, dir)
	_, err = rocketstore.Open(dir, nil)
	var refused *recovery.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, recovery.KindDamage, refused.Kind)
	require.Equal(t, "commitlog/00000000000000004096", refused.File)
	require.Zero(t, refused.Offset)
	require.Equal(t, snapshot, golden.Snapshot(t, dir))

	ro := open(t, dir, &rocketstore.Options{ReadOnly: true})
	damaged := 0
	for _, err := range ro.Messages("Busy", 0, 0) {
		if err != nil {
			require.ErrorIs(t, err, mappedfile.ErrCorrupt)
			damaged++
		}
	}
	require.Equal(t, 1, damaged)
	require.NoError(t, ro.Close(t.Context()))

	s := open(t, dir, &rocketstore.Options{Recovery: recovery.Options{OnDamage: recovery.CutAndKeep}})
	_, end := s.Bounds()
	require.EqualValues(t, 4096, end)
	kept, err := os.ReadFile(filepath.Join(dir, "lost+found/commitlog/00000000000000004096.0"))
	require.NoError(t, err)
	require.Equal(t, before[200:], kept[200:4096])
	require.NoError(t, s.Close(t.Context()))
}

// By choice damage is passed over: all good records stay, the damaged bytes are kept aside, and every later opening finds
// its way (R-E-071).
func TestDamageCanBeSkipped(t *testing.T) {
	for _, harm := range []struct {
		name   string
		offset int64
		bytes  []byte
		lost   int
	}{
		{"one body", 90, []byte{0xFF}, 1},
		{"header", 0, make([]byte, 40), 1},
		{"three records", 100, make([]byte, 300), 4},
		{"end of the segment", 3800, make([]byte, 296), 3},
		{"whole segment", 0, make([]byte, 4096), 33},
	} {
		t.Run(harm.name, func(t *testing.T) {
			dir, n := filled(t, false)
			segment := filepath.Join(dir, "commitlog", mappedfile.SegmentName(4096))
			before, err := os.ReadFile(segment)
			require.NoError(t, err)
			writeAt(t, segment, harm.offset, harm.bytes)
			damaged, err := os.ReadFile(segment)
			require.NoError(t, err)
			require.NotEqual(t, before, damaged)
			_, err = rocketstore.Open(dir, nil)
			require.ErrorContains(t, err, recovery.KindDamage)

			s := open(t, dir, &rocketstore.Options{Recovery: recovery.Options{OnDamage: recovery.Skip}})
			left := len(bodies(t, s, "Busy", 0))
			require.InDelta(t, n-10-harm.lost, left, 2)
			require.NoError(t, s.Abandon())
			files, err := os.ReadDir(filepath.Join(dir, "lost+found/commitlog"))
			require.NoError(t, err)
			require.Len(t, files, 1)
			kept, err := os.ReadFile(filepath.Join(dir, "lost+found/commitlog", files[0].Name()))
			require.NoError(t, err)
			require.True(t, bytes.Contains(damaged, kept))

			for range 2 { // after a kill, and after a clean stop
				s = open(t, dir, nil)
				require.Len(t, bodies(t, s, "Busy", 0), left)
				start, _ := s.Bounds()
				for _, err := range s.Records(start) {
					require.NoError(t, err)
				}
				require.NoError(t, s.Close(t.Context()))
			}
		})
	}
}

// Recovery twice gives the same bytes (R-E-073).
func TestRecoveryIsIdempotent(t *testing.T) {
	dir, _ := filled(t, false)
	require.NoError(t, open(t, dir, nil).Abandon())
	first := golden.Snapshot(t, dir)
	require.NoError(t, open(t, dir, nil).Abandon())
	second := golden.Snapshot(t, dir)
	for name, f := range first {
		require.Equal(t, f.Hash, second[name].Hash, name)
	}
	require.Len(t, second, len(first))
}

// Only one writer; a reader needs no lock, and changes nothing (R-E-014, R-E-015).
func TestOneWriterAndReadersThatTouchNothing(t *testing.T) {
	dir, n := filled(t, true)
	s := open(t, dir, nil)
	_, err := rocketstore.Open(dir, nil)
	require.ErrorIs(t, err, mappedfile.ErrLocked)
	require.NoError(t, s.Sync())
	before := golden.Snapshot(t, dir)
	ro := open(t, dir, &rocketstore.Options{ReadOnly: true})
	require.Len(t, bodies(t, ro, "Busy", 0), n-10)
	_, err = ro.Put(t.Context(), msg("Busy", 0, "no", "", ""))
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	require.NoError(t, ro.Close(t.Context()))
	require.Equal(t, before, golden.Snapshot(t, dir))
	require.NoError(t, s.Close(t.Context()))
	require.ErrorIs(t, s.Sync(), rocketstore.ErrClosed)
	require.NoError(t, s.Close(t.Context()))
}
