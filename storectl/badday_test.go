package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
)

// A file in the place of the log's folder: nothing is known, and no verb says that all is well or that something is not there.
func TestAFileInThePlaceOfTheLogIsNoHealthyStore(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "commitlog")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "commitlog"), []byte("x"), 0o600))
	status, out, errOut := call(t, "check", dir)
	require.Equal(t, statusTrouble, status)
	require.Contains(t, out, "error: commitlog: offset 0: damaged file: is no folder but a file\n")
	require.Contains(t, out, "verdict       not healthy, and not all could be read: 1 errors")
	require.Contains(t, errOut, "not a directory")
	status, out, errOut = call(t, "get", dir, "--offset", "0")
	require.Equal(t, statusTrouble, status)
	require.NotContains(t, out+errOut, "no such record")
	_, _, errOut = call(t, "identify", dir)
	require.Equal(t, 1, strings.Count(errOut, "commitlog: offset 0: unreadable"))
	status, _, errOut = call(t, "report", dir, "-o", filepath.Join(golden.TempDir(t), "page"))
	require.Equal(t, statusTrouble, status)
	require.Equal(t, 1, strings.Count(errOut, "open commitlog"), errOut)
}

// A log that is gone is the first thing to know: opening would throw away what points to it.
func TestALogThatIsGoneIsAnErrorOfItsOwn(t *testing.T) {
	for _, name := range []string{"rocketmq-3.1.4/mid-transaction", "rocketmq-4.9.7/clean", "rocketmq-5.3.3/clean"} {
		dir := golden.Unpack(t, name)
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "commitlog")))
		status, out, _ := call(t, "check", dir)
		require.Equal(t, statusFindings, status)
		require.Regexp(t, `(?m)^error: commitlog: offset 0: empty commit log: no record in the log, though queues, index or redo log know of records up to \d+$`, out)
		require.Contains(t, out, "to do: start no broker; bring the log back")
	}
}

// What only looks makes no file, not even that of the lock.
func TestARepairThatIsOnlyTriedMakesNoFile(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-3.1.4/abort")
	require.NoFileExists(t, filepath.Join(dir, "lock"))
	before := golden.Snapshot(t, dir)
	for _, args := range [][]string{{"--list"}, {"skip", "--dry-run"}, {"drop", "--dry-run"}, {"restore", "--dry-run"}, {"cut", "--dry-run"}} {
		status, _, errOut := call(t, append([]string{"repair", dir}, args...)...)
		require.NotEqual(t, statusTrouble, status, errOut)
		require.Equal(t, before, golden.Snapshot(t, dir), args)
	}
	status, _, errOut := call(t, "repair", dir, "--undo", "--dry-run")
	require.Equal(t, statusTrouble, status)
	require.Contains(t, errOut, "--dry-run goes with")
}

// Without the stored progress the half messages are listed all the same, and the file is a finding.
func TestTransactionsAreListedWithoutTheStoredProgress(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	want, _, _ := rows[txRow](t, "tx", dir)
	for _, name := range []string{"consumerOffset.json", "consumerOffset.json.bak"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config", name), nil, 0o600))
	}
	got, findings, status := rows[txRow](t, "tx", dir)
	require.Equal(t, statusFindings, status)
	require.Contains(t, findings, `"kind":"damaged file"`)
	require.GreaterOrEqual(t, len(got), len(want))
	status, out, _ := call(t, "recover", dir)
	require.Equal(t, statusFindings, status)
	require.Equal(t, 1, strings.Count(out, "consumerOffset.json: offset 0"), out)
}

// Damage in one of two stores is told once, and in which it is.
func TestADiffSaysInWhichStoreTheDamageIs(t *testing.T) {
	good, bad := golden.Unpack(t, "rocketmq-4.9.7/abort"), golden.Unpack(t, "rocketmq-4.9.7/abort-badcrc")
	_, _, errOut := call(t, "diff", good, bad)
	require.Equal(t, 1, strings.Count(errOut, "in the second: body CRC does not match"), errOut)
	_, _, errOut = call(t, "diff", bad, good)
	require.Equal(t, 1, strings.Count(errOut, "in the first: body CRC does not match"), errOut)
}

// Links to folders above do not make a snapshot run for ever, nor what they lead to part of it twice.
func TestASnapshotFollowsNoLoop(t *testing.T) {
	dir, to := golden.Unpack(t, "rocketmq-4.9.7/clean"), filepath.Join(golden.TempDir(t), "to")
	for name, target := range map[string]string{"a": ".", "b": ".", "c": ".."} {
		if err := os.Symlink(target, filepath.Join(dir, "consumequeue", name)); err != nil {
			return // this system has no links
		}
	}
	status, _, errOut := call(t, "snapshot", dir, "--to", to)
	require.Equal(t, statusFindings, status, errOut)
	require.Contains(t, errOut, "a link to a folder that it lies in")
	require.NoDirExists(t, filepath.Join(to, "consumequeue", "a"))
}
