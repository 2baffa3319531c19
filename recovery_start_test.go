package rocketstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// TestStartOfTheWalk shows where recovery begins to read the log, and why there (R-E-065, R-E-066): a store of six segments
// whose records are 100 s apart from segment to segment, with a checkpoint made in the fourth.
func TestStartOfTheWalk(t *testing.T) {
	t.Parallel()
	const size = 4096
	type store struct {
		dir  string
		at   func(segment int) string // path of a file of the log
		note string
	}
	least := recovery.Options{VerifyBytes: 1}
	for _, tt := range []struct {
		name    string
		dialect string
		clean   bool
		noIndex bool
		back    int64 // ms
		harm    func(t *testing.T, s *store)
		options recovery.Options
		start   int64 // segment; -1: the end
		why     string
	}{
		{name: "a clean stop of our own", clean: true, start: -1, why: "clean stop of our own"},
		{
			name: "a clean stop of the original", clean: true, why: "the whole log is compared with queues and index",
			harm: func(t *testing.T, s *store) { remove(t, s.note) },
		},
		{
			name: "a clean stop of the original, less compared", clean: true, options: recovery.Options{VerifyBytes: 2*size + 1}, start: 4,
			why:  "the last 2 segments are compared with queues and index",
			harm: func(t *testing.T, s *store) { remove(t, s.note) },
		},
		{
			name: "the last record is not as we left it", clean: true, options: least, start: 5, why: "the last 1 segments are compared with queues and index",
			harm: func(t *testing.T, s *store) {
				b, err := os.ReadFile(s.at(5))
				require.NoError(t, err)
				end := len(strings.TrimRight(string(b), "\x00"))
				writeAt(t, s.at(5), int64(end-3), []byte{1})
			},
		},
		{
			name: "a queue is gone", clean: true, options: least, why: "queue T/0 is missing",
			harm: func(t *testing.T, s *store) {
				remove(t, filepath.Join(s.dir, "consumequeue"))
				remove(t, s.note)
			},
		},
		{
			name: "a queue is behind", clean: true, options: least, start: 4, why: "first record that queue T/0 may lack",
			harm: func(t *testing.T, s *store) {
				name := filepath.Join(s.dir, "consumequeue/T/0", mappedfile.SegmentName(400))
				writeAt(t, name, 6*20, make([]byte, 14*20)) // the last unit that stays is 25, of the fifth segment
				remove(t, s.note)
			},
		},
		{
			name: "the index is gone", clean: true, options: least, why: "there is no index",
			harm: func(t *testing.T, s *store) {
				remove(t, filepath.Join(s.dir, "index"))
				remove(t, s.note)
			},
		},
		{
			name: "derived files are not as we left them", clean: true, options: least, why: "not as our own clean stop left them",
			harm: func(t *testing.T, s *store) { remove(t, filepath.Join(s.dir, "index")) },
		},
		{name: "a kill", why: "the whole log is compared with queues and index"},
		{
			name: "a kill, less compared", options: least, noIndex: true, start: 2,
			why: "last segment whose first record (1200000) is not younger than the checkpoint (1297000)",
		},
		{
			name: "a kill, and a checkpoint that claims more than our note", options: least, noIndex: true, start: 3,
			why: "segment up to which our last checkpoint was complete",
			harm: func(t *testing.T, s *store) {
				c := recovery.Checkpoint{Physic: 1_500_000, Logics: 1_500_000}
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, "checkpoint"), append(c.AppendTo(nil), make([]byte, 4056)...), 0o600))
			},
		},
		{
			name: "a kill, and a clock that went back by 150 s in the third segment", options: least, noIndex: true, back: 150_000, start: 1,
			why: "last segment before the clock went back",
		},
		{
			name: "a kill, with the index counted", options: recovery.Options{VerifyBytes: 1, IndexSafe: true}, noIndex: true,
			why: "first segment: none is older than the checkpoint",
		},
		{
			name: "no checkpoint", options: least, why: "first segment: none is older than the checkpoint",
			harm: func(t *testing.T, s *store) { remove(t, filepath.Join(s.dir, "checkpoint")) },
		},
		{
			name: "a checkpoint from the future", options: least, noIndex: true, why: "so it proves nothing",
			harm: func(t *testing.T, s *store) {
				c := recovery.Checkpoint{Physic: 1 << 60, Logics: 1 << 60}
				require.NoError(t, os.WriteFile(filepath.Join(s.dir, "checkpoint"), append(c.AppendTo(nil), make([]byte, 4056)...), 0o600))
				remove(t, s.note)
			},
		},
		{
			name: "a kill, and index files that nothing vouches for", options: least, why: "begin of the index files that are made again",
		},
		{
			name: "3.1, a clean stop", dialect: "3.1", clean: true, options: least, why: "state table and redo log are compared with the whole log",
			harm: func(t *testing.T, s *store) { remove(t, s.note) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := golden.TempDir(t)
			now := int64(1_000_000)
			o := rocketstore.Options{
				Dialect: tt.dialect, SegmentSize: size, QueueSegmentSize: 400, IndexSlots: 50, IndexEntries: 200, HoldDelayed: true, NoIndex: tt.noIndex,
				CheckpointEvery: time.Hour, Now: func() int64 { return now },
			}
			s := open(t, dir, &o)
			for segment := range int64(6) {
				for _, end := s.Bounds(); end < segment*size+3000; _, end = s.Bounds() {
					_, err := s.Put(t.Context(), msg("T", 0, strings.Repeat("x", 500), "", "k"))
					require.NoError(t, err)
				}
				_, end := s.Bounds()
				require.NoError(t, s.WaitDispatched(t.Context(), end))
				if segment == 3 {
					require.NoError(t, s.Checkpoint(t.Context()))
				}
				if now += 100_000; segment == 1 {
					now -= tt.back
				}
			}
			if tt.clean {
				require.NoError(t, s.Close(t.Context()))
			} else {
				require.NoError(t, s.Abandon())
			}
			st := &store{dir: dir, note: filepath.Join(dir, "config/rocketstore.json"), at: func(n int) string {
				return filepath.Join(dir, "commitlog", mappedfile.SegmentName(int64(n*size)))
			}}
			if tt.harm != nil {
				tt.harm(t, st)
			}
			o.Recovery = tt.options
			s = open(t, dir, &o)
			r := s.Report()
			require.Contains(t, r.Reason, tt.why)
			if tt.start < 0 {
				require.Equal(t, r.LogEnd, r.Start)
			} else {
				require.Equal(t, tt.start, r.Start/size, r.Reason)
			}
			require.NoError(t, s.Close(t.Context()))
		})
	}
}
