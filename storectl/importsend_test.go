package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// sentRow is what an import into brokers prints.
type importedRow struct {
	Sent, Failed, Unsafe int64
	LeftOut              map[string]int64
	Seconds              float64
}

// exportOf exports a store into a file.
func exportOf(t *testing.T, dir string, more ...string) string {
	t.Helper()
	status, out, errOut := call(t, append([]string{"export", dir}, more...)...)
	require.Zero(t, status, errOut)
	file := filepath.Join(golden.TempDir(t), "lines")
	require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
	return file
}

// recordsOf reads the records of some topics, of all when none is named, from the log, which has what a broker acknowledged.
func recordsOf(t *testing.T, dir string, topics ...string) (all []commitlog.Record) {
	t.Helper()
	d, err := inspect.Open(os.DirFS(dir))
	require.NoError(t, err)
	for r, err := range d.Log(t.Context(), inspect.LogRange{}, func(inspect.Finding) {}) {
		require.NoError(t, err)
		if (len(topics) == 0 || slices.Contains(topics, string(r.Topic))) && r.SysFlag.Queued() {
			r.Body, r.Topic, r.Properties = bytes.Clone(r.Body), bytes.Clone(r.Topic), bytes.Clone(r.Properties)
			all = append(all, r.Record)
		}
	}
	return all
}

// R-E-101: what an export holds comes to a broker with topic, queue, order, properties, keys, tag, unique key, flag, born time and body.
func TestImportSendsWhatABrokerCanKeep(t *testing.T) {
	for _, name := range []string{"rocketmq-3.1.4/clean", "rocketmq-4.9.7/clean", "rocketmq-5.3.3/crc"} {
		t.Run(name, func(t *testing.T) {
			from, to := golden.Unpack(t, name), filepath.Join(golden.TempDir(t), "to")
			before := golden.Snapshot(t, from)
			ns := startBroker(t, "--store", to)
			imported, problems, status := rows[importedRow](t, "import", "-n", ns, exportOf(t, from), "--keep-going")
			require.Len(t, imported, 1)
			require.Equal(t, before, golden.Snapshot(t, from))
			require.Equal(t, imported[0].Failed > 0, status == statusFindings, problems)
			require.EqualValues(t, imported[0].Failed, strings.Count(problems, "\n"))

			names := map[string]bool{}
			for _, r := range recordsOf(t, to) {
				names[string(r.Topic)] = true
			}
			sent := int64(0)
			for topic := range names {
				sent += compareSent(t, recordsOf(t, from, topic), recordsOf(t, to, topic))
			}
			require.Equal(t, imported[0].Sent, sent)
			require.Positive(t, sent)
		})
	}
}

// compareSent compares the records of one topic, queue by queue, and gives how many there are. Those with an empty body stay behind.
func compareSent(t *testing.T, from, to []commitlog.Record) int64 {
	t.Helper()
	byQueue := func(all []commitlog.Record) map[int32][]commitlog.Record {
		out := map[int32][]commitlog.Record{}
		for _, r := range all {
			if len(r.Body) > 0 {
				out[r.QueueID] = append(out[r.QueueID], r)
			}
		}
		return out
	}
	want, got := byQueue(from), byQueue(to)
	n := int64(0)
	for queue, records := range want {
		require.Len(t, got[queue], len(records))
		for i, w := range records {
			g := got[queue][i]
			n++
			plain, err := inspect.PlainBody(&w)
			require.NoError(t, err)
			there, err := inspect.PlainBody(&g)
			require.NoError(t, err)
			require.Equal(t, plain, there)
			require.Equal(t, w.Flag, g.Flag)
			require.Equal(t, w.BornTimestamp, g.BornTimestamp)
			require.EqualValues(t, i, g.QueueOffset)
			require.Zero(t, g.SysFlag.Transaction())
			compareProperties(t, &w, message.Properties(w.Properties).Map(), message.Properties(g.Properties).Map())
		}
	}
	return n
}

func compareProperties(t *testing.T, w *commitlog.Record, want, got map[string]string) {
	t.Helper()
	if _, ok := want[message.PropertyUniqueKey]; !ok {
		require.Equal(t, w.ID(), got[message.PropertyUniqueKey], "the old message id")
	}
	for _, name := range doneMarks() {
		require.NotContains(t, got, name)
		delete(want, name)
	}
	for _, name := range []string{message.PropertyCluster, message.PropertyRegion, message.PropertyTraceSwitch, message.PropertyWait} { // the broker's own
		delete(want, name)
	}
	for name, value := range want {
		require.Equal(t, value, got[name], name)
	}
}

// source makes a store with messages in four queues and gives it.
func source(t *testing.T, messages int) string {
	t.Helper()
	dir := filepath.Join(golden.TempDir(t), "from")
	s, err := rocketstore.Open(dir, &rocketstore.Options{SegmentSize: 1 << 20})
	require.NoError(t, err)
	for i := range messages {
		m := &message.Message{Topic: "T", QueueID: int32(i % 4), Body: []byte{byte(i), byte(i >> 8)}, BornTimestamp: 1700000000000 + int64(i)}
		require.NoError(t, m.SetKeys("k"))
		_, err := s.Put(t.Context(), m)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(t.Context()))
	return dir
}

func TestAnImportIntoABrokerThatIsStoppedGoesOnFromItsCursor(t *testing.T) {
	from, to := source(t, 700), filepath.Join(golden.TempDir(t), "to")
	ns := startBroker(t, "--store", to)
	input, cursor := exportOf(t, from), filepath.Join(golden.TempDir(t), "cursor")
	stops := 0
	for status := statusTrouble; status != statusFine; stops++ {
		require.Less(t, stops, 20)
		ctx := newCountdown(t.Context(), 300)
		var out, problems bytes.Buffer
		status = run(ctx, []string{"import", "-n", ns, input, "--cursor", cursor, "--json"}, &out, &problems)
		if status != statusFine {
			require.Contains(t, problems.String(), "stopped before the end")
		}
	}
	require.Greater(t, stops, 1)
	require.EqualValues(t, 700, compareSent(t, recordsOf(t, from, "T"), recordsOf(t, to, "T")), "none is there twice")
	again, _, _ := rows[importedRow](t, "import", "-n", ns, input, "--cursor", cursor)
	require.Zero(t, again[0].Sent)
	status, _, errOut := call(t, "import", "-n", ns, exportOf(t, source(t, 701), "--from", "100"), "--cursor", cursor)
	require.Equal(t, statusTrouble, status)
	require.Contains(t, errOut, "of another input")
}

func TestAnImportNamesTheRecordThatNoBrokerTakes(t *testing.T) {
	from, to := source(t, 4), filepath.Join(golden.TempDir(t), "to")
	ns := startBroker(t, "--store", to)
	input := exportOf(t, from)
	status, out, errOut := call(t, "import", "-n", ns, input, "--queues", "2", "--json", "--keep-going")
	require.Equal(t, statusFindings, status, errOut)
	require.Contains(t, errOut, "record 3 (T/2/0 at ")
	require.Contains(t, errOut, "topic T has no queue 2, only 2: make the topic with more, or say --any-queue")
	require.Contains(t, errOut, "record 4 (T/3/0 at ")
	var row importedRow
	require.NoError(t, json.Unmarshal([]byte(out), &row))
	require.EqualValues(t, 2, row.Sent)
	require.EqualValues(t, 2, row.Failed)
	status, _, errOut = call(t, "import", "-n", ns, input)
	require.Equal(t, statusTrouble, status)
	require.Contains(t, errOut, "T has no queue")
	status, out, errOut = call(t, "import", "-n", ns, input, "--any-queue", "--rate", "1000")
	require.Zero(t, status, errOut)
	require.Regexp(t, `(?m)^ +4 +0 +0 `, out)
	status, _, errOut = call(t, "import", "-n", ns, input, "--broker", "other")
	require.Equal(t, statusTrouble, status)
	require.Contains(t, errOut, "no queue that can be written at broker other")
	torn := filepath.Join(golden.TempDir(t), "torn")
	require.NoError(t, os.WriteFile(torn, []byte(`{"topic":"T","record":"AAAA"}`), 0o600))
	status, _, errOut = call(t, "import", "-n", ns, torn)
	require.Equal(t, statusTrouble, status)
	require.Contains(t, errOut, "record 1: ")
}

func TestImportSaysWhichFlagsDoNotGoTogether(t *testing.T) {
	for want, args := range map[string][]string{
		"say the DIR of a new store":            {"import"},
		"with --namesrv there is no DIR":        {"import", "-n", "127.0.0.1:1", "a", "b"},
		"--rate is for brokers":                 {"import", "--rate", "1", "a"},
		"--segment-size is for a new store":     {"import", "-n", "127.0.0.1:1", "--segment-size", "5", "a"},
		"no name server":                        {"import", "-n", "127.0.0.1:1", "--timeout", "1s", exportOf(t, source(t, 1))},
		"cursor":                                {"import", "-n", "127.0.0.1:1", "--cursor", os.Args[0]},
		"--rate is not negative, --queues at l": {"import", "-n", "127.0.0.1:1", "--queues", "0"},
	} {
		status, _, errOut := call(t, args...)
		require.Equal(t, statusTrouble, status, want)
		require.Contains(t, errOut, want)
	}
}

// A message that waits for its time is sent with its level again, if that is wanted, and else left out.
func TestAnImportSendsDelayedMessagesOnRequest(t *testing.T) {
	dir, to := filepath.Join(golden.TempDir(t), "from"), filepath.Join(golden.TempDir(t), "to")
	s, err := rocketstore.Open(dir, &rocketstore.Options{SegmentSize: 1 << 20, HoldDelayed: true})
	require.NoError(t, err)
	m := &message.Message{Topic: "T", QueueID: 1, Body: []byte("later")}
	m.SetDelayLevel(18)
	_, err = s.Put(t.Context(), m)
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	ns := startBroker(t, "--store", to)
	input := exportOf(t, dir)
	left, _, _ := rows[importedRow](t, "import", "-n", ns, input)
	require.Equal(t, map[string]int64{ofSystem: 1}, left[0].LeftOut)
	sent, _, _ := rows[importedRow](t, "import", "-n", ns, input, "--delayed")
	require.EqualValues(t, 1, sent[0].Sent)
	waits := recordsOf(t, to, recovery.ScheduleTopic)
	require.Len(t, waits, 1)
	require.EqualValues(t, 17, waits[0].QueueID)
	require.Equal(t, "T", string(message.Lookup(waits[0].Properties, message.PropertyRealTopic)))
}
