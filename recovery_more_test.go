package rocketstore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// harmed is a small store that a test harms: one segment with ten messages in T/0, and in one of 3.1 three prepared ones and
// the commit of the second.
type harmed struct {
	dir  string
	put  []rocketstore.PutResult // of T/0
	opts rocketstore.Options
}

const oneSegment = 16384

func newHarmed(t *testing.T, dialect string, clean bool) *harmed {
	t.Helper()
	h := &harmed{dir: golden.TempDir(t), opts: rocketstore.Options{
		Dialect: dialect, SegmentSize: oneSegment, QueueSegmentSize: 400, IndexSlots: 50, IndexEntries: 40, HoldDelayed: true,
	}}
	s := open(t, h.dir, &h.opts)
	for i := range 10 {
		res, err := s.Put(t.Context(), msg("T", 0, strings.Repeat("x", 100+i), "tag", "key"))
		require.NoError(t, err)
		h.put = append(h.put, res)
	}
	if dialect == "3.1" {
		put := prepare(t, s, 3)
		commit(t, s, put[1])
	}
	if clean {
		require.NoError(t, s.Close(t.Context()))
	} else {
		h.stop(t, s)
	}
	return h
}

// stop ends a store as a kill does, after all was dispatched.
func (h *harmed) stop(t *testing.T, s *rocketstore.Store) {
	t.Helper()
	_, end := s.Bounds()
	require.NoError(t, s.WaitDispatched(t.Context(), end))
	require.NoError(t, s.Abandon())
}

func (h *harmed) path(name string) string { return filepath.Join(h.dir, filepath.FromSlash(name)) }

func (h *harmed) log() string { return h.path("commitlog/" + mappedfile.SegmentName(0)) }

func (h *harmed) queue() string { return h.path("consumequeue/T/0/" + mappedfile.SegmentName(0)) }

// raw appends a record as it is, as a replica does, and kills the store.
func (h *harmed) raw(t *testing.T, r commitlog.Record) {
	t.Helper()
	s := open(t, h.dir, nil)
	h.feed(t, s, r)
	h.stop(t, s)
}

func (h *harmed) feed(t *testing.T, s *rocketstore.Store, r commitlog.Record) {
	t.Helper()
	_, end := s.Bounds()
	r.Magic, r.PhysicalOffset, r.StoreTimestamp, r.BornTimestamp = commitlog.MagicV1, end, h.put[0].StoreTimestamp+1000, 1
	r.BodyCRC = message.CRC(r.Body)
	require.NoError(t, s.AppendRaw(t.Context(), end, r.AppendTo(nil)))
	_, end = s.Bounds()
	require.NoError(t, s.WaitDispatched(t.Context(), end))
}

func remove(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(name))
}

// TestEachWarning harms a store in each way that recovery warns of, and finds the warning with its file, and the choice that
// goes with it.
func TestEachWarning(t *testing.T) {
	t.Parallel()
	const log0 = "commitlog/00000000000000000000"
	flip := func(t *testing.T, name string, at int64) {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		writeAt(t, name, at, []byte{b[at] ^ 0x40})
	}
	for _, tt := range []struct {
		name    string
		dialect string
		clean   bool
		harm    func(t *testing.T, h *harmed)
		options recovery.Options
		kind    string
		file    string
		refused bool
		left    int // messages of T/0
	}{
		{
			name: "the last record is damaged", kind: recovery.KindTornTail, file: log0, left: 9,
			harm: func(t *testing.T, h *harmed) { flip(t, h.log(), h.put[9].PhysicalOffset+95) },
		},
		{
			name: "a record in the middle is damaged", kind: recovery.KindDamage, file: log0, refused: true,
			harm: func(t *testing.T, h *harmed) { flip(t, h.log(), h.put[4].PhysicalOffset+95) },
		},
		{
			name: "zeros in the middle", kind: recovery.KindDamage, file: log0, refused: true,
			harm: func(t *testing.T, h *harmed) {
				writeAt(t, h.log(), h.put[4].PhysicalOffset, make([]byte, h.put[6].PhysicalOffset-h.put[4].PhysicalOffset))
			},
		},
		{
			name: "cut there by choice", kind: recovery.KindCut, file: log0, left: 4, options: recovery.Options{OnDamage: recovery.CutAndKeep},
			harm: func(t *testing.T, h *harmed) { flip(t, h.log(), h.put[4].PhysicalOffset+95) },
		},
		{
			name: "passed over by choice", kind: recovery.KindSkipped, file: log0, left: 9, options: recovery.Options{OnDamage: recovery.Skip},
			harm: func(t *testing.T, h *harmed) { flip(t, h.log(), h.put[4].PhysicalOffset+95) },
		},
		{
			name: "a hole that is too small to be filled", kind: recovery.KindDamage, file: log0, refused: true, options: recovery.Options{OnDamage: recovery.Skip},
			harm: func(t *testing.T, h *harmed) {
				last := h.put[9]
				end := last.PhysicalOffset + int64(last.Size)
				r := commitlog.Record{
					Magic: commitlog.MagicV1, Topic: []byte("T"), QueueOffset: 10, PhysicalOffset: end + 50, StoreTimestamp: last.StoreTimestamp + 1, BornTimestamp: 1,
				}
				writeAt(t, h.log(), end, r.AppendTo(bytes.Repeat([]byte{0xFF}, 50)))
			},
		},
		{
			name: "queue offsets of damage that is passed over", kind: recovery.KindLost, file: "consumequeue/T/0", left: 9,
			options: recovery.Options{OnDamage: recovery.Skip},
			harm:    func(t *testing.T, h *harmed) { flip(t, h.log(), h.put[4].PhysicalOffset+95) },
		},
		{
			name: "the original cut and wrote on", kind: recovery.KindStaleRecords, file: log0, left: 6,
			harm: func(t *testing.T, h *harmed) {
				// The record at 5 was cut and written anew, shorter: the old ones behind it lie on, from 6 on whole.
				b, err := os.ReadFile(h.log())
				require.NoError(t, err)
				r, err := commitlog.Decode(b[h.put[5].PhysicalOffset:])
				require.NoError(t, err)
				r.Body, r.StoreTimestamp, r.BodyCRC = r.Body[:50], r.StoreTimestamp+5000, message.CRC(r.Body[:50])
				writeAt(t, h.log(), h.put[5].PhysicalOffset, r.AppendTo(nil))
			},
		},
		{
			name: "units behind the end of the log", clean: true, kind: recovery.KindStaleUnits, file: "consumequeue/T/0", left: 10,
			harm: func(t *testing.T, h *harmed) {
				unit := binary.BigEndian.AppendUint64(nil, 15000)
				unit = binary.BigEndian.AppendUint32(unit, 200)
				writeAt(t, h.queue(), 200, append(unit, make([]byte, 8)...))
			},
		},
		{
			name: "a queue is behind", clean: true, kind: recovery.KindQueueBehind, file: "consumequeue/T/0", left: 10,
			harm: func(t *testing.T, h *harmed) { writeAt(t, h.queue(), 100, make([]byte, 100)) },
		},
		{
			name: "a queue is gone", clean: true, kind: recovery.KindQueueGone, file: "consumequeue/T/0", left: 10,
			harm: func(t *testing.T, h *harmed) { remove(t, h.path("consumequeue")) },
		},
		{
			name: "two records claim one queue offset", kind: recovery.KindOffsetTwice, file: "consumequeue/T/0", left: 10,
			harm: func(t *testing.T, h *harmed) { h.raw(t, commitlog.Record{Topic: []byte("T"), QueueOffset: 3}) },
		},
		{
			name: "a unit points elsewhere", kind: recovery.KindWrongUnit, file: "consumequeue/T/0", left: 10,
			harm: func(t *testing.T, h *harmed) { flip(t, h.queue(), 5*20+6) },
		},
		{
			name: "a unit points elsewhere, after a clean stop", clean: true, kind: recovery.KindWrongUnit, file: "consumequeue/T/0", left: 10,
			harm: func(t *testing.T, h *harmed) {
				flip(t, h.queue(), 5*20+6)
				remove(t, h.path("config/rocketstore.json"))
			},
		},
		{
			name: "queue offsets without a record", kind: recovery.KindHole, file: "consumequeue/T/0", left: 11,
			harm: func(t *testing.T, h *harmed) {
				h.raw(t, commitlog.Record{Topic: []byte("T"), QueueOffset: 17})
				remove(t, h.path("consumequeue"))
			},
		},
		{
			name: "an absurd queue offset", kind: recovery.KindHole, file: "commitlog", left: 11,
			harm: func(t *testing.T, h *harmed) {
				h.raw(t, commitlog.Record{Topic: []byte("T"), QueueOffset: 1 << 50})
				remove(t, h.path("consumequeue"))
			},
		},
		{
			name: "a topic that cannot be a folder", kind: recovery.KindUnsafeTopic, file: "commitlog", left: 10,
			harm: func(t *testing.T, h *harmed) { h.raw(t, commitlog.Record{Topic: []byte("../T")}) },
		},
		{
			name: "the index is gone", clean: true, kind: recovery.KindIndexRebuilt, file: "index", left: 10,
			harm: func(t *testing.T, h *harmed) { remove(t, h.path("index")) },
		},
		{
			name: "the checkpoint is short", kind: recovery.KindCheckpoint, file: "checkpoint", left: 10,
			harm: func(t *testing.T, h *harmed) {
				require.NoError(t, os.WriteFile(h.path("checkpoint"), make([]byte, 39), 0o600))
			},
		},
		{
			name: "the log is gone", kind: recovery.KindEmptyLog, file: "commitlog", refused: true,
			harm: func(t *testing.T, h *harmed) { remove(t, h.path("commitlog")) },
		},
		{
			name: "anew by choice", kind: recovery.KindEmptyLog, file: "consumequeue/T/0", options: recovery.Options{StartAnew: true},
			harm: func(t *testing.T, h *harmed) { remove(t, h.path("commitlog")) },
		},
		{
			name: "batch queues", kind: recovery.KindBatchQueue, file: "batchconsumequeue", refused: true,
			harm: func(t *testing.T, h *harmed) {
				require.NoError(t, os.MkdirAll(h.path("batchconsumequeue/T/0"), 0o700))
				remove(t, h.path("config/rocketstore.json"))
				h.opts.Dialect = ""
			},
		},
		{
			name: "queues in RocksDB", kind: recovery.KindRocksDB, file: "consumequeue", refused: true,
			harm: func(t *testing.T, h *harmed) {
				require.NoError(t, os.WriteFile(h.path("consumequeue/CURRENT"), []byte("MANIFEST-000004\n"), 0o600))
			},
		},
		{
			name: "a foreign file", clean: true, kind: mappedfile.ForeignFile, file: "commitlog/notes", left: 10,
			harm: func(t *testing.T, h *harmed) {
				require.NoError(t, os.WriteFile(h.path("commitlog/notes"), []byte("x"), 0o600))
			},
		},
		{
			name: "a short last file", kind: mappedfile.ShortSegment, file: log0, left: 10,
			harm: func(t *testing.T, h *harmed) { require.NoError(t, os.Truncate(h.log(), 9000)) },
		},
		{
			name: "an empty last file", kind: mappedfile.EmptySegment, file: "commitlog/00000000000000016384", left: 10,
			harm: func(t *testing.T, h *harmed) {
				require.NoError(t, os.WriteFile(h.path("commitlog/"+mappedfile.SegmentName(oneSegment)), nil, 0o600))
			},
		},
		{
			name: "a file of offsets is damaged", clean: true, kind: config.BackupUsed, file: "config/consumerOffset.json", left: 10,
			harm: func(t *testing.T, h *harmed) {
				require.NoError(t, os.WriteFile(h.path("config/consumerOffset.json"), []byte("{\x00"), 0o600))
				require.NoError(t, os.WriteFile(h.path("config/consumerOffset.json.bak"), []byte(`{"offsetTable":{}}`), 0o600))
			},
		},
		{
			name: "the note of queues without files is damaged", clean: true, kind: recovery.KindIdleQueues, file: config.IdleQueuesFile, left: 10,
			harm: func(t *testing.T, h *harmed) {
				require.NoError(t, os.WriteFile(h.path(config.IdleQueuesFile), []byte("{"), 0o600))
			},
		},
		{
			name: "the redo log lacks units", dialect: "3.1", clean: true, kind: recovery.KindStaleRedo, file: redolog.Dir, left: 10,
			harm: func(t *testing.T, h *harmed) { remove(t, h.path("transaction/redolog")) },
		},
		{
			name: "the state table says another state", dialect: "3.1", clean: true, kind: recovery.KindStateTable, file: txstate.Dir, left: 10,
			harm: func(t *testing.T, h *harmed) {
				writeAt(t, h.path(txstate.Dir+"/"+mappedfile.SegmentName(0)), 23, []byte{byte(txstate.Committed)})
				remove(t, h.path("config/rocketstore.json"))
			},
		},
		{
			name: "two prepared messages have one number", dialect: "3.1", kind: recovery.KindNumberTwice, file: txstate.Dir, left: 10,
			harm: func(t *testing.T, h *harmed) {
				h.raw(t, commitlog.Record{Topic: []byte("T"), SysFlag: message.FlagPrepared, QueueOffset: 0, Properties: []byte("PGROUP\x01g\x02")})
			},
		},
		{
			name: "a number that cannot be right", dialect: "3.1", kind: recovery.KindWildNumber, left: 10,
			harm: func(t *testing.T, h *harmed) {
				h.raw(t, commitlog.Record{Topic: []byte("T"), SysFlag: message.FlagPrepared, QueueOffset: 1 << 60, Properties: []byte("PGROUP\x01g\x02")})
			},
		},
		{
			name: "a prepared message without a group", dialect: "3.1", kind: recovery.KindNoGroup, file: "commitlog", left: 10,
			harm: func(t *testing.T, h *harmed) {
				h.raw(t, commitlog.Record{Topic: []byte("T"), SysFlag: message.FlagPrepared, QueueOffset: 3})
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHarmed(t, tt.dialect, tt.clean)
			tt.harm(t, h)
			before := golden.Snapshot(t, h.dir)
			h.opts.Recovery = tt.options
			plan, changes, err := rocketstore.Plan(t.Context(), h.dir, &h.opts)
			require.Equal(t, before, golden.Snapshot(t, h.dir))
			s, openErr := rocketstore.Open(h.dir, &h.opts)
			if err == nil {
				comparePlan(t, plan, changes, s, before, h.dir)
			} else {
				require.EqualError(t, openErr, err.Error())
			}
			if err = openErr; tt.refused {
				var refused *recovery.RefusedError
				require.ErrorAs(t, err, &refused)
				require.Equal(t, tt.kind, refused.Kind)
				require.Equal(t, tt.file, refused.File)
				require.Equal(t, before, golden.Snapshot(t, h.dir))
				return
			}
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Abandon() })
			require.True(t, slices.ContainsFunc(s.Report().Warnings, func(w recovery.Warning) bool {
				return w.Kind == tt.kind && (tt.file == "" || w.File == tt.file) && w.Text != ""
			}), "%+v", s.Report().Warnings)
			require.Len(t, bodies(t, s, "T", 0), tt.left)
			require.NoError(t, s.Close(t.Context()))
			s = open(t, h.dir, nil)
			require.Equal(t, tt.left > 0, s.Report().Trusted)
			for _, w := range s.Report().Warnings {
				require.Contains(t, []string{mappedfile.ForeignFile, config.BackupUsed, recovery.KindIdleQueues}, w.Kind, "%+v", w) // these stay
			}
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

// foreseen are the warnings of the replay that a plan gives too.
func foreseen(all []recovery.Warning) (some []recovery.Warning) {
	for _, w := range all {
		switch w.Kind {
		case recovery.KindUnsafeTopic, recovery.KindNumberTwice, recovery.KindWildNumber, recovery.KindNoGroup, recovery.KindNoPrepared:
			some = append(some, w)
		}
	}
	return some
}

// comparePlan checks that opening did what was planned: the same end of the log and the same cut, and no change to a file of
// log or queues that the plan does not name.
func comparePlan(t *testing.T, plan *recovery.Decision, changes []recovery.Change, s *rocketstore.Store, before map[string]golden.State, dir string) {
	t.Helper()
	if plan.Refused != nil {
		require.Nil(t, s)
		return
	}
	r := s.Report()
	require.Equal(t, plan.LogEnd, r.LogEnd)
	require.Equal(t, plan.TruncatedAt, r.TruncatedAt)
	require.Equal(t, plan.Start, r.Start)
	require.Equal(t, plan.Reason, r.Reason)
	require.Equal(t, foreseen(r.Warnings), foreseen(plan.Warnings))
	after := golden.Snapshot(t, dir)
	for name := range before {
		if _, ok := after[name]; !ok {
			after[name] = golden.State{}
		}
	}
	for name, file := range after {
		top, _, _ := strings.Cut(name, "/")
		if file.Size == before[name].Size && file.Hash == before[name].Hash || slices.Contains([]string{"abort", "lock", "checkpoint", "config"}, top) {
			continue
		}
		require.True(t, slices.ContainsFunc(changes, func(c recovery.Change) bool {
			return name == c.File || strings.HasPrefix(name, c.File+"/")
		}), "%s in %v", name, changes)
	}
}

// What the live dispatch comes upon goes to the logger, not into the report, which is the caller's by then: the end of a
// transaction that is in no table, and a topic that cannot be a folder.
func TestLiveDispatchWarnsInTheLog(t *testing.T) {
	h := newHarmed(t, "3.1", true)
	var text bytes.Buffer
	h.opts.Logger = slog.New(slog.NewTextHandler(&text, nil))
	s := open(t, h.dir, &h.opts)
	h.feed(t, s, commitlog.Record{Topic: []byte("T"), SysFlag: message.FlagRollback, PreparedTransactionOffset: 5, Properties: []byte("PGROUP\x01g\x02")})
	h.feed(t, s, commitlog.Record{Topic: []byte("a/b")})
	require.NoError(t, s.Close(context.Background()))
	require.Empty(t, s.Report().Warnings)
	require.Contains(t, text.String(), recovery.KindNoTransaction)
	require.Contains(t, text.String(), recovery.KindUnsafeTopic)
}
