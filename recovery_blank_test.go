package rocketstore_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// secondRecord gives the place in its file of the second record of a segment, and how long it is.
func secondRecord(t *testing.T, segment string) (at, size int64) {
	t.Helper()
	b, err := os.ReadFile(segment)
	require.NoError(t, err)
	at = int64(binary.BigEndian.Uint32(b))
	return at, int64(binary.BigEndian.Uint32(b[at:]))
}

// A blank in the middle of a file hides what lies behind it. It is damage when it does not state how much is left of the
// file, and when a queue goes on in a later file where the hidden records end: nothing vanishes silently (R-E-067, R-E-071).
func TestABlankThatHidesRecordsIsDamage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		states func(size, left int64) int64
	}{
		{"the size of the record", func(size, _ int64) int64 { return size }},
		{"no size", func(int64, int64) int64 { return 0 }},
		{"more than is left", func(_, left int64) int64 { return left + 1 }},
		{"what is left", func(_, left int64) int64 { return left }},
	} {
		for _, clean := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/clean=%t", tt.name, clean), func(t *testing.T) {
				dir, n := filled(t, clean)
				remove(t, filepath.Join(dir, "config/rocketstore.json")) // else a clean stop is believed
				segment := filepath.Join(dir, "commitlog", mappedfile.SegmentName(4096))
				at, size := secondRecord(t, segment)
				head := binary.BigEndian.AppendUint32(nil, uint32(tt.states(size, 4096-at)))
				writeAt(t, segment, at, binary.BigEndian.AppendUint32(head, commitlog.MagicBlank))
				before := golden.Snapshot(t, dir)
				_, err := rocketstore.Open(dir, nil)
				var refused *recovery.RefusedError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, recovery.KindDamage, refused.Kind)
				require.Equal(t, "commitlog/00000000000000004096", refused.File)
				require.Equal(t, at, refused.Offset)
				after := golden.Snapshot(t, dir)
				delete(after, "lock")
				delete(before, "lock")
				delete(before, ".")
				delete(after, ".")
				require.Equal(t, before, after)

				s := open(t, dir, &rocketstore.Options{Recovery: recovery.Options{OnDamage: recovery.Skip}})
				require.Len(t, bodies(t, s, "Busy", 0), n-10-1)
				require.NoError(t, s.Close(t.Context()))
			})
		}
	}
}

// A blank that states what is left, and behind which no queue goes on, may be the original's, which leaves what it has cut: the
// log ends there, and what lies behind it is told of (R-E-071).
func TestRecordsBehindAnHonestBlankAreToldOf(t *testing.T) {
	dir, _ := filled(t, false)
	files, err := os.ReadDir(filepath.Join(dir, "commitlog"))
	require.NoError(t, err)
	for _, f := range files {
		if f.Name() > mappedfile.SegmentName(4096) {
			remove(t, filepath.Join(dir, "commitlog", f.Name()))
		}
	}
	segment := filepath.Join(dir, "commitlog", mappedfile.SegmentName(4096))
	at, _ := secondRecord(t, segment)
	writeAt(t, segment, at, commitlog.AppendBlank(nil, int(4096-at))[:commitlog.BlankSize])
	before, err := os.ReadFile(segment)
	require.NoError(t, err)
	s := open(t, dir, nil)
	i := slices.IndexFunc(s.Report().Warnings, func(w recovery.Warning) bool { return w.Kind == recovery.KindHidden })
	require.NotEqual(t, -1, i, "%+v", s.Report().Warnings)
	w := s.Report().Warnings[i]
	require.Equal(t, "commitlog/00000000000000004096", w.File)
	require.Equal(t, at, w.Offset)
	require.Equal(t, []int64{4096 + at, 8192}, []int64{w.From, w.To})
	require.NoError(t, s.Close(t.Context()))
	after, err := os.ReadFile(segment)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// A plan names each file that opening changes, and none that it leaves as it is.
func TestPlanNamesNoMoreThanOpeningChanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		harm func(t *testing.T, h *harmed)
		want string
	}{
		{"short last queue file", func(t *testing.T, h *harmed) { require.NoError(t, os.Truncate(h.queue(), 250)) }, "consumequeue/T/0/00000000000000000000"},
		{"rubbish in the segment behind the last", func(t *testing.T, h *harmed) {
			require.NoError(t, os.WriteFile(h.path("commitlog/"+mappedfile.SegmentName(oneSegment)), []byte(strings.Repeat("?", oneSegment)), 0o600))
		}, "commitlog/" + mappedfile.SegmentName(oneSegment)},
		{"topic that is no folder", func(t *testing.T, h *harmed) {
			h.raw(t, commitlog.Record{Topic: []byte("a/b")})
		}, ""},
		{"files of a queue behind its end", func(t *testing.T, h *harmed) {
			require.NoError(t, os.WriteFile(h.path("consumequeue/T/0/"+mappedfile.SegmentName(1200)), make([]byte, 400), 0o600))
		}, "consumequeue/T/0/" + mappedfile.SegmentName(1200)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarmed(t, "4.9", false)
			tt.harm(t, h)
			before := golden.Snapshot(t, h.dir)
			plan, changes, err := rocketstore.Plan(t.Context(), h.dir, &h.opts)
			require.NoError(t, err)
			s := open(t, h.dir, &h.opts)
			comparePlan(t, plan, changes, s, before, h.dir)
			after := golden.Snapshot(t, h.dir)
			named := tt.want == ""
			for _, c := range changes {
				named = named || c.File == tt.want
				changed := c.File == recovery.IndexDir // is made again, to the same bytes
				for name := range before {
					if name == c.File || strings.HasPrefix(name, c.File+"/") {
						changed = changed || before[name].Hash != after[name].Hash
					}
				}
				require.True(t, changed, "%v", c)
			}
			require.True(t, named, "%v", changes)
		})
	}
}

// Planning refuses with the words of opening, whichever of two reasons comes first.
func TestPlanAndOpenRefuseForTheSameReason(t *testing.T) {
	dir, _ := filled(t, false)
	require.NoError(t, os.Truncate(filepath.Join(dir, "commitlog", mappedfile.SegmentName(4096)), 0))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "config"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config/consumerOffset.json"), []byte("{\x00"), 0o600))
	_, _, planned := rocketstore.Plan(t.Context(), dir, nil)
	_, err := rocketstore.Open(dir, nil)
	require.Error(t, err)
	require.EqualError(t, planned, err.Error())
}

// Damage at the very end of a queue can be passed over too; its queue offset is not given out again, and the next opening
// changes nothing (R-E-071, R-E-078).
func TestDamageOfTheLastRecordOfAQueueCanBeSkipped(t *testing.T) {
	dir := t.TempDir()
	o := small()
	s := open(t, dir, o)
	var last rocketstore.PutResult
	for i := range 10 {
		res, err := s.Put(t.Context(), msg("Ends", 0, fmt.Sprint("body ", i), "tag", "key"))
		require.NoError(t, err)
		last = res
	}
	for range 10 {
		_, err := s.Put(t.Context(), msg("GoesOn", 0, "body", "tag", "key"))
		require.NoError(t, err)
	}
	_, end := s.Bounds()
	require.NoError(t, s.WaitDispatched(t.Context(), end))
	require.NoError(t, s.Abandon())
	writeAt(t, filepath.Join(dir, "commitlog", mappedfile.SegmentName(0)), last.PhysicalOffset+90, []byte{0xFF})
	o.Recovery.OnDamage = recovery.Skip
	s = open(t, dir, o)
	require.Len(t, bodies(t, s, "Ends", 0), 9)
	require.Equal(t, []recovery.Lost{{Topic: "Ends", From: 9, To: 9, NextReadable: 10}}, s.Report().Lost)
	require.NoError(t, s.Abandon())
	first := golden.Snapshot(t, dir)
	require.NoError(t, open(t, dir, nil).Abandon())
	for name, f := range golden.Snapshot(t, dir) {
		require.Equal(t, first[name].Hash, f.Hash, name)
	}
	s = open(t, dir, nil)
	res, err := s.Put(t.Context(), msg("Ends", 0, "next", "", ""))
	require.NoError(t, err)
	require.EqualValues(t, 10, res.QueueOffset)
	require.NoError(t, s.Close(t.Context()))
}

// A file that alone shows a size is taken for cut short where our note has another one. Without a note the error says which
// file's length is impossible, and what was expected (R-E-008).
func TestALoneShortFileDoesNotShowTheSize(t *testing.T) {
	for name, file := range map[string]string{
		"log":         "commitlog/" + mappedfile.SegmentName(0),
		"queue":       "consumequeue/T/0/" + mappedfile.SegmentName(0),
		"redo log":    recovery.RedoLogDir + "/" + mappedfile.SegmentName(0),
		"state table": recovery.StateTableDir + "/" + mappedfile.SegmentName(0),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarmed(t, "3.1", false)
			info, err := os.Stat(h.path(file))
			require.NoError(t, err)
			size := info.Size()
			cut := min(size-1, 3999)
			require.NoError(t, os.Truncate(h.path(file), cut))
			for _, o := range []*rocketstore.Options{nil, &h.opts} {
				s := open(t, h.dir, o)
				require.Len(t, bodies(t, s, "T", 0), 10)
				require.NoError(t, s.Abandon())
				info, err = os.Stat(h.path(file))
				require.NoError(t, err)
				require.Equal(t, size, info.Size())
				require.NoError(t, os.Truncate(h.path(file), cut))
			}
			if name == "queue" {
				return // any length is one of a queue file
			}
			remove(t, h.path("config/rocketstore.json"))
			_, err = rocketstore.Open(h.dir, nil)
			require.ErrorIs(t, err, rocketstore.ErrCorrupt)
			require.ErrorContains(t, err, file)
			require.ErrorContains(t, err, strconv.FormatInt(cut, 10))
		})
	}
}

// A queue whose first file is gone is told of and made again (R-E-045, R-E-072).
func TestAQueueWithoutItsFirstFileIsToldOf(t *testing.T) {
	for _, clean := range []bool{false, true} {
		dir, n := filled(t, clean)
		remove(t, filepath.Join(dir, "consumequeue/Busy/0", mappedfile.SegmentName(0)))
		s := open(t, dir, nil)
		require.True(t, slices.ContainsFunc(s.Report().Warnings, func(w recovery.Warning) bool {
			return w.Kind == recovery.KindQueueFileGone && w.File == "consumequeue/Busy/0"
		}), "%+v", s.Report().Warnings)
		require.Len(t, bodies(t, s, "Busy", 0), n-10)
		require.NoError(t, s.Close(t.Context()))
	}
}
