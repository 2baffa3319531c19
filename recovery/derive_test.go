package recovery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// Delay levels are numbers with a unit; a level beyond the last counts as the last (R-D-101, R-D-102).
func TestDelayLevels(t *testing.T) {
	levels, err := recovery.ParseDelayLevels("1s 5m 2h 1d")
	require.NoError(t, err)
	for level, want := range map[int]int64{-1: 1_000, 0: 1_000, 1: 1_000, 2: 300_000, 3: 7_200_000, 4: 86_400_000, 5: 86_400_000, 99: 86_400_000} {
		require.Equal(t, want, levels.DeliverAt(level, 0), level)
	}
	for _, wrong := range []string{"1", "s", "x5s", "-1s", "5w", "99999999999s"} {
		_, err := recovery.ParseDelayLevels(wrong)
		require.ErrorContains(t, err, "want a number and one of s, m, h, d", wrong)
	}
	for d, want := range map[*dialect.Dialect]int{dialect.V31(): 16, dialect.V49(): 18, dialect.V53(): 18} {
		derive, err := recovery.NewDeriver(d, "")
		require.NoError(t, err)
		require.Len(t, derive.Levels, want)
	}
}

// Which units a record has: none for prepared and rollback, the delivery time in the schedule topic, one more for each
// light queue that has an offset (formats.md 4.8, 5.1, 5.2).
func TestUnitsOfARecord(t *testing.T) {
	tag := message.TagsCode("TagA")
	for _, tt := range []struct {
		name, properties string
		topic            string
		flags            message.SysFlag
		want             []recovery.Placement
	}{
		{name: "plain", want: []recovery.Placement{{QueueID: 2, QueueOffset: 7}}},
		{name: "tag", properties: "TAGS\x01TagA\x02", want: []recovery.Placement{{QueueID: 2, QueueOffset: 7, Unit: consumequeue.Unit{TagsCode: tag}}}},
		{name: "prepared", flags: message.FlagPrepared},
		{name: "rollback", flags: message.FlagRollback},
		{name: "commit", flags: message.FlagCommit, want: []recovery.Placement{{QueueID: 2, QueueOffset: 7}}},
		{name: "inner batch", flags: message.FlagInnerBatch},
		{
			name: "delayed", topic: recovery.ScheduleTopic, properties: "DELAY\x013\x02TAGS\x01TagA",
			want: []recovery.Placement{{QueueID: 2, QueueOffset: 7, Unit: consumequeue.Unit{TagsCode: 1000 + 10_000}}},
		},
		{
			name: "light queues", properties: "INNER_MULTI_DISPATCH\x01%LMQ%a,plain,%LMQ%b,%LMQ%c\x02INNER_MULTI_QUEUE_OFFSET\x014,,x,9\x02",
			want: []recovery.Placement{
				{QueueID: 2, QueueOffset: 7},
				{Topic: []byte("%LMQ%a"), QueueOffset: 4},
				{Topic: []byte("%LMQ%c"), QueueOffset: 9},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			derive, err := recovery.NewDeriver(dialect.V49(), "")
			require.NoError(t, err)
			r := commitlog.Record{
				Topic: []byte("T"), QueueID: 2, QueueOffset: 7, PhysicalOffset: 50, Size: 91, SysFlag: tt.flags, StoreTimestamp: 1000,
				Properties: []byte(tt.properties),
			}
			if tt.topic != "" {
				r.Topic = []byte(tt.topic)
			}
			var got []recovery.Placement
			require.NoError(t, derive.Units(&r, func(p recovery.Placement) error {
				require.EqualValues(t, 50, p.Unit.PhysicalOffset)
				require.EqualValues(t, 91, p.Unit.Size)
				p.Unit.PhysicalOffset, p.Unit.Size = 0, 0
				if string(p.Topic) == string(r.Topic) {
					p.Topic = nil
				}
				got = append(got, p)
				return nil
			}))
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.want, derivedAtOnce(t, derive, &r))
		})
	}
}

// derivedAtOnce is the units of a record as Derive and Light give them.
func derivedAtOnce(t *testing.T, derive *recovery.Deriver, r *commitlog.Record) []recovery.Placement {
	t.Helper()
	var x recovery.Derived
	derive.Derive(r, &x)
	var got []recovery.Placement
	add := func(p recovery.Placement) error {
		p.Unit.PhysicalOffset, p.Unit.Size = 0, 0
		got = append(got, p)
		return nil
	}
	if x.Queued {
		require.NoError(t, add(recovery.Placement{QueueID: r.QueueID, QueueOffset: r.QueueOffset, Unit: x.Unit}))
	}
	require.NoError(t, x.Light(r, add))
	unique, keys := derive.Keys(r)
	require.Equal(t, [][]byte{unique, keys}, [][]byte{x.Unique, x.Keys})
	return got
}

// Of properties the store takes only those that have one of its names and a value; where one is there twice the last counts.
func TestAttributesAreFoundByTheirWholeName(t *testing.T) {
	derive, err := recovery.NewDeriver(dialect.V49(), "")
	require.NoError(t, err)
	for properties, want := range map[string][2]string{
		"KEYS\x01k\x02UNIQ_KEY\x01u\x02":               {"u", "k"},
		"KEYS\x01k\x02KEYS\x01l":                       {"", "l"},
		"KEYS\x01k\x02KEYS\x01\x02":                    {"", "k"},
		"KEYS2\x01k\x02UNIQ\x01u\x02KEY\x01x\x02":      {"", ""},
		"KEYS\x02\x01k\x02\x02U\x02K":                  {"", ""},
		"x\x01KEYS\x01k\x02UNIQ_KEY\x01\x01u\x02":      {"\x01u", ""},
		"\x01KEYS\x01k\x02\x02UNIQ_KEY\x01u\x01v\x02k": {"u\x01v", ""},
	} {
		unique, keys := derive.Keys(&commitlog.Record{Properties: []byte(properties)})
		require.Equal(t, want, [2]string{string(unique), string(keys)}, "%q", properties)
	}
}

// What is derived is derived for each message: nothing may be allocated.
func TestDerivingDoesNotAllocate(t *testing.T) {
	derive, err := recovery.NewDeriver(dialect.V49(), "")
	require.NoError(t, err)
	r := commitlog.Record{Topic: []byte("T"), Properties: []byte("KEYS\x01a b\x02UNIQ_KEY\x01u\x02TAGS\x01TagA\x02")}
	place := func(recovery.Placement) error { return nil }
	var x recovery.Derived
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if err := derive.Units(&r, place); err != nil {
			t.Error(err)
		}
		if u, k := derive.Keys(&r); len(u) != 1 || len(k) != 3 {
			t.Error("wrong keys")
		}
		if derive.Derive(&r, &x); !x.Queued || len(x.Unique) != 1 || len(x.Keys) != 3 {
			t.Error("wrong keys")
		}
	}))
}

// Each golden directory shows the line that wrote it and the sizes of its files (design.md 4.7).
func TestIdentifyGoldenStores(t *testing.T) {
	for _, name := range golden.Names() {
		exp := golden.Load(t, name)
		fsys, err := mappedfile.OpenDir(golden.Unpack(t, name), &mappedfile.DirOptions{ReadOnly: true})
		require.NoError(t, err)
		id, err := recovery.Identify(fsys)
		require.NoError(t, err)
		require.Equal(t, exp.Line(), id.Line, "%s: %s", name, id.Why)
		c := exp.Config()
		require.Equal(t, c.CommitLogFileSize, id.CommitLog.Bytes, name)
		if len(exp.Queues()) > 0 && len(exp.BatchQueues()) == 0 {
			require.Equal(t, c.QueueFileSize, id.Queue.Bytes, name)
		}
		if len(exp.IndexFiles()) > 0 {
			require.Equal(t, c.IndexSlots, id.IndexSlots, name)
			require.Equal(t, c.IndexEntries, id.IndexEntries, name)
		}
	}
}
