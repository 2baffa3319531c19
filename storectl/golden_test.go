package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"path"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

var update = flag.Bool("update", false, "write the golden output of the scripts anew")

// rows runs a verb with --json and gives the lines of its standard output.
func rows[T any](t *testing.T, args ...string) (rows []T, findings string, status int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = run(t.Context(), append(args, "--json"), &stdout, &stderr)
	require.Less(t, status, statusTrouble, stderr.String())
	for d := json.NewDecoder(&stdout); ; {
		d.DisallowUnknownFields()
		var row T
		err := d.Decode(&row)
		if errors.Is(err, io.EOF) {
			return rows, withoutLooked(stderr.String()), status
		}
		require.NoError(t, err)
		rows = append(rows, row)
	}
}

// withoutLooked is a standard error without the line that says when a store was looked at.
func withoutLooked(text string) string {
	return regexp.MustCompile(`(?m)^({"looked":{"at":[0-9]+}}|looked at .*: not stopped cleanly, or running)\n`).ReplaceAllString(text, "")
}

// TestVerbsPrintWhatGoldenStoresHold compares the JSON of the verbs with what the real programs read, for all golden stores
// (R-E-092, R-E-093), and proves that no verb changes a byte or a time (R-E-014).
func TestVerbsPrintWhatGoldenStoresHold(t *testing.T) {
	for _, name := range golden.Names() {
		t.Run(name, func(t *testing.T) {
			dir, want := golden.Unpack(t, name), golden.Load(t, name)
			before := golden.Snapshot(t, dir)
			t.Run("cat", func(t *testing.T) { compareCat(t, dir, want) })
			t.Run("queues", func(t *testing.T) { compareQueues(t, dir, want) })
			t.Run("index", func(t *testing.T) { compareIndex(t, dir, want) })
			id, _, _ := rows[inspect.Identity](t, "identify", dir)
			require.Equal(t, want.Line(), id[0].Dialect)
			rows[recordRow](t, "get", dir, "--offset", "0")
			require.Equal(t, before, golden.Snapshot(t, dir))
		})
	}
}

// compareCat compares every field of every record.
func compareCat(t *testing.T, dir string, want *golden.Expected) {
	got, findings, status := rows[recordRow](t, "cat", dir)
	var expect []recordRow
	damage := false
	for _, r := range want.Records() {
		damage = damage || !r.Whole()
		if r.DecodedBytes == 0 || r.CRCWrong {
			expect = append(expect, goldenRow(&r))
		}
	}
	require.Equal(t, expect, got)
	for _, s := range want.Segments() {
		damage = damage || s.Why == "bad size"
	}
	if damage {
		require.Equal(t, statusFindings, status)
		require.Contains(t, findings, `{"finding":{"kind":`)
	} else {
		require.Empty(t, findings)
		require.Equal(t, statusFine, status)
	}
}

func goldenRow(r *golden.Record) recordRow {
	row := recordRow{
		File: r.File, PhysicalOffset: r.PhysicalOffset, StoreSize: r.StoreSize, Magic: fmt.Sprintf("%08x", r.Magic), Topic: r.Topic,
		QueueID: r.QueueID, QueueOffset: r.QueueOffset, Flag: r.Flag, SysFlag: r.SysFlag, BornTimestamp: r.BornTimestamp,
		BornHost: host(r.BornHost), StoreTimestamp: r.StoreTimestamp, StoreHost: host(r.StoreHost), ReconsumeTimes: r.ReconsumeTimes,
		PreparedTransactionOffset: r.PreparedTransactionOffset, BodyCRC: r.BodyCRC, BodyLength: int(r.BodyLength),
		BodyMD5: r.BodyMD5, MsgID: r.MsgID, Properties: r.Properties,
	}
	if row.Properties == nil {
		row.Properties = map[string]string{}
	}
	if r.CRCWrong {
		row.Damaged = "crc"
	}
	return row
}

func host(a netip.AddrPort) string { return a.String() }

// anyUnit is a row of queues, of either kind.
type anyUnit struct {
	unitRow
	StoreTime  *int64
	BaseOffset *int64
	BatchSize  *int16
}

// compareQueues compares every unit.
func compareQueues(t *testing.T, dir string, want *golden.Expected) {
	got, findings, status := rows[anyUnit](t, "queues", dir)
	var expect []anyUnit
	for _, q := range want.Queues() {
		for _, u := range q.Units {
			expect = append(expect, anyUnit{unitRow: unitRow{q.Topic, q.QueueID, u.Index, u.PhysicalOffset, u.Size, u.TagsCode}})
		}
	}
	for _, q := range want.BatchQueues() {
		for _, u := range q.Units {
			expect = append(expect, anyUnit{
				unitRow{q.Topic, q.QueueID, u.Index, u.PhysicalOffset, u.Size, u.TagsCode},
				&u.StoreTime, &u.BaseOffset, &u.BatchSize,
			})
		}
	}
	require.Equal(t, expect, got)
	require.Empty(t, findings)
	require.Equal(t, statusFine, status)
}

// anyIndex is a row of index, of either kind.
type anyIndex struct {
	File                                                 string
	BeginTimestamp, EndTimestamp, BeginOffset, EndOffset *int64
	SlotCount, IndexCount                                *int32
	Slots                                                [][2]int32
	Entry, KeyHash                                       *int32
	Offset                                               *int64
	TimeDiff, Previous                                   *int32
}

// compareIndex compares header, slots and entries of every file.
func compareIndex(t *testing.T, dir string, want *golden.Expected) {
	got, findings, status := rows[anyIndex](t, "index", dir)
	var expect []anyIndex
	for _, f := range want.IndexFiles() {
		file := path.Join("index", f.Name)
		slots := [][2]int32{}
		for _, s := range f.Slots {
			slots = append(slots, [2]int32{s.Slot, s.Entry})
		}
		expect = append(expect, anyIndex{
			File: file, BeginTimestamp: &f.BeginTimestamp, EndTimestamp: &f.EndTimestamp, BeginOffset: &f.BeginOffset,
			EndOffset: &f.EndOffset, SlotCount: &f.SlotCount, IndexCount: &f.IndexCount, Slots: slots,
		})
		for _, e := range f.Entries {
			expect = append(expect, anyIndex{
				File: file, Entry: &e.Number, KeyHash: &e.KeyHash, Offset: &e.PhysicalOffset, TimeDiff: &e.TimeDiff, Previous: &e.Previous,
			})
		}
	}
	require.Equal(t, expect, got)
	require.Empty(t, findings)
	require.Equal(t, statusFine, status)
}

// Of a store that a broker may be working on each verb that looks says when it looked, in text and in JSON; of one that was stopped
// in order it need not.
func TestALiveStoreIsLookedAtAtAMoment(t *testing.T) {
	live, stopped := golden.Unpack(t, "rocketmq-4.9.7/abort"), golden.Unpack(t, "rocketmq-4.9.7/clean")
	for _, args := range [][]string{
		{"cat"}, {"export"}, {"tail"}, {"check"}, {"get", "--offset", "0"}, {"get", "--topic", "T", "--key", "none"}, {"trace", "none"}, {"tx"},
	} {
		with := func(dir string, more ...string) []string {
			return append(append([]string{args[0], dir}, args[1:]...), more...)
		}
		_, _, errOut := call(t, with(live)...)
		require.Regexp(t, `(?m)^looked at 20\d\d-\d\d-\d\dT[0-9:.]+Z: not stopped cleanly, or running$`, errOut, args)
		_, _, errOut = call(t, with(live, "--json")...)
		require.Regexp(t, `(?m)^{"looked":{.*"at":\d{13}}}$`, errOut, args)
		_, _, errOut = call(t, with(stopped)...)
		require.NotContains(t, errOut, "looked at", args)
	}
	_, out, _ := call(t, "check", live, "--json")
	require.Regexp(t, `"summary":{"line":"4.x","clean":false,.*,"at":\d{13}}\n`, out)
}
