package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
)

// startBroker starts a broker that is registered with a name server, and gives the name server's address.
func startBroker(t *testing.T, more ...string) (namesrv string) {
	t.Helper()
	names := startNamesrv(t)
	file := filepath.Join(golden.TempDir(t), "broker.conf")
	require.NoError(t, os.WriteFile(file, []byte("brokerName=b\nmappedFileSizeCommitLog=1048576\nmaxHashSlotNum=100\nmaxIndexNum=400\ntraceTopicEnable=true\n"), 0o600))
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx, append([]string{"broker", "-c", file, "--store", filepath.Join(golden.TempDir(t), "store"), "--port", "0", "-n", names.namesrv}, more...), w, io.Discard)
		_ = w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	lines := bufio.NewScanner(r)
	require.True(t, lines.Scan())
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return names.namesrv
}

// call runs the program and gives what it printed.
func call(t *testing.T, args ...string) (status int, out, errOut string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var o, e bytes.Buffer
	status = run(ctx, args, &o, &e)
	return status, o.String(), e.String()
}

func TestSendSaysWhereTheMessageIsAndTraceShowsItsWay(t *testing.T) {
	ns := startBroker(t)
	status, out, errOut := call(t, "send", "-n", ns, "-t", "T", "-k", "order-1", "--tag", "A", "--trace", "--json", "hello")
	require.Zero(t, status, errOut)
	var row struct{ Status, Broker, MsgID, OffsetMsgID string }
	require.NoError(t, json.Unmarshal([]byte(out), &row))
	require.Equal(t, "SEND_OK", row.Status)
	require.Equal(t, "b", row.Broker)
	require.Len(t, row.MsgID, 32)

	status, out, errOut = call(t, "trace", "-n", ns, row.MsgID)
	require.Zero(t, status, errOut)
	require.Contains(t, out, "message "+row.MsgID)
	require.Contains(t, out, "group storectl to topic T")
	require.Contains(t, out, row.OffsetMsgID)
	status, out, errOut = call(t, "trace", "-n", ns, "--json", "--since", "1h", row.MsgID)
	require.Zero(t, status, errOut)
	var record struct {
		Kind    string
		Success bool
	}
	require.NoError(t, json.Unmarshal([]byte(out), &record))
	require.Equal(t, "Pub", record.Kind)
	require.True(t, record.Success)
	status, _, errOut = call(t, "trace", "-n", ns, strings.Repeat("0", 32))
	require.Equal(t, statusFindings, status)
	require.Contains(t, errOut, "no trace of message")
	status, _, _ = call(t, "trace", "-n", ns, "--topic", "none", row.MsgID)
	require.Equal(t, statusTrouble, status)
}

func TestSendTakesLinesCountsAndARate(t *testing.T) {
	ns := startBroker(t)
	file := filepath.Join(golden.TempDir(t), "lines")
	require.NoError(t, os.WriteFile(file, []byte("one\ntwo\nthree\n"), 0o600))
	status, out, errOut := call(t, "send", "-n", ns, "-t", "T", "--file", file, "--count", "10", "--rate", "1000", "--json")
	require.Zero(t, status, errOut)
	var sum struct{ Sent, Failed int64 }
	require.NoError(t, json.Unmarshal([]byte(out), &sum))
	require.EqualValues(t, 30, sum.Sent)
	require.Zero(t, sum.Failed)
	status, out, errOut = call(t, "send", "-n", ns, "-t", "T", "--count", "500", "hello")
	require.Zero(t, status, errOut)
	require.Regexp(t, `(?m)^ +500 +0 `, out)
	status, out, _ = call(t, "send", "-n", ns, "-t", "T", "hello")
	require.Zero(t, status)
	require.Contains(t, out, "SEND_OK")
}

func TestSendSaysWhatIsWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"either a BODY or --file":  {"send", "-t", "T"},
		"--count is at least 1":    {"send", "-t", "T", "--count", "0", "x"},
		"required flag(s)":         {"send", "x"},
		"no name server":           {"send", "-n", "127.0.0.1:1", "-t", "T", "--timeout", "1s", "x"},
		"other characters than":    {"send", "-t", "a b", "x"},
		"no such file":             {"send", "-t", "T", "--file", filepath.Join(golden.TempDir(t), "none")},
		"missing port":             {"trace", "-n", "x", "ID"},
		"property's name and valu": {"send", "-t", "T", "-k", "a b", "x"},
	} {
		status, _, errOut := call(t, args...)
		require.Equal(t, statusTrouble, status, want)
		require.Contains(t, errOut, want)
	}
}
