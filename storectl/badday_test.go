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
	for _, folder := range []string{"", "consumequeue", "config"} {
		for name, target := range map[string]string{"a": ".", "b": ".", "c": ".."} {
			if err := os.Symlink(target, filepath.Join(dir, folder, name)); err != nil {
				return // this system has no links
			}
		}
	}
	status, _, errOut := call(t, "snapshot", dir, "--to", to)
	require.Equal(t, statusFindings, status, errOut)
	require.Contains(t, errOut, "a link to a folder that it lies in")
	require.Contains(t, errOut, "c: offset 0: foreign file: a link, with a name that no store has")
	require.NoDirExists(t, filepath.Join(to, "consumequeue", "a"))
	require.NoDirExists(t, filepath.Join(to, "c"))
}

// What stands in the place of another thing, or is a link that leads nowhere, is a finding with its name, and the rest is looked at.
func TestWhatIsInAnothersPlaceIsAFinding(t *testing.T) {
	const queue = "consumequeue/GoldenTiny/0/00000000000000000000"
	for _, tt := range []struct {
		name, at, want string
		put            func(file string) error
	}{
		{"a link that leads nowhere", queue, "warning: " + queue + ": offset 0: foreign file: no regular file, but a link that leads to none", func(f string) error { return os.Symlink("/nowhere/at/all", f) }},
		{"a link in a circle", "commitlog/00000000000000524288", "warning: commitlog/00000000000000524288: offset 0: foreign file: no regular file, but a link that leads to none", func(f string) error { return os.Symlink(filepath.Base(f), f) }},
		{"a link for an index file", "index/20261129203500354", "warning: index/20261129203500354: offset 0: foreign file: no regular file, but a link that leads to none", func(f string) error { return os.Symlink(filepath.Base(f), f) }},
		{"a folder for a segment", "commitlog/00000000000000524288", "no regular file, but a folder", func(f string) error { return os.Mkdir(f, 0o750) }},
		{"a folder for the checkpoint", "checkpoint", "error: checkpoint: offset 0: damaged file: is no regular file, but a folder", func(f string) error { return os.Mkdir(f, 0o750) }},
		{"a link for the checkpoint", "checkpoint", "error: checkpoint: offset 0: damaged file: is no regular file, but a link that leads to none", func(f string) error { return os.Symlink("checkpoint", f) }},
		{"a file for the index", "index", "error: index: offset 0: damaged file: is no folder but a file", func(f string) error { return os.WriteFile(f, nil, 0o600) }},
		{"a link for the queues", "consumequeue", "error: consumequeue: offset 0: damaged file: is no folder but a link that leads to none", func(f string) error { return os.Symlink("nowhere", f) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
			file := filepath.Join(dir, filepath.FromSlash(tt.at))
			require.NoError(t, os.RemoveAll(file))
			require.NoError(t, tt.put(file))
			status, out, errOut := call(t, "check", dir)
			require.Equal(t, statusFindings, status, errOut)
			require.Equal(t, 1, strings.Count(out, tt.want), out)
			require.Contains(t, out, "verdict       not healthy: ")
		})
	}
}

// Index files whose contents changed places are told by where they begin.
func TestIndexFilesThatWereExchangedAreFound(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	first, second := filepath.Join(dir, "index", "20261129203500354"), filepath.Join(dir, "index", "20261129203501297")
	require.NoError(t, os.Rename(first, first+".x"))
	require.NoError(t, os.Rename(second, first))
	require.NoError(t, os.Rename(first+".x", second))
	status, out, _ := call(t, "check", dir)
	require.Equal(t, statusFindings, status)
	require.Contains(t, out, "warning: index/20261129203501297: offset 16: index header does not match: it begins at 0 in the log, before 20261129203500354, which has an older name: were they exchanged?")
}

// The summary of check counts damage that is passed over, and says to do what plan and recover ask for.
func TestTheSummaryOfCheckCountsAWrongPlaceInTheMiddle(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	f, err := os.OpenFile(filepath.Join(dir, "commitlog", "00000000000000000000"), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{0x11, 0x22, 0x33, 0x44}, 28+4) // of the first record
	require.NoError(t, err)
	require.NoError(t, f.Close())
	status, out, _ := call(t, "check", dir)
	require.Equal(t, statusFindings, status)
	require.Contains(t, out, "(places where damage is passed over: 1)")
	require.NotContains(t, out, "0 damaged")
	require.Contains(t, out, "recover --on-damage skip")
}

// Opening for writing follows no link of the structures' files, nor one that leads out of the store: check says so, as plan does.
func TestCheckReportsTheLinksThatOpeningDoesNotFollow(t *testing.T) {
	for _, tt := range []struct {
		at   string
		away bool // the link leads out of the store
		plan string
	}{
		{at: "commitlog/00000000000000262144", plan: "is no regular file but a symbolic link"},
		{at: "consumequeue/GoldenTiny/0/00000000000000000000", plan: "is no regular file but a symbolic link"},
		{at: "index/20261129203500354", plan: "is no regular file but a symbolic link"},
		{at: "consumequeue/GoldenTiny", plan: "consumequeue/GoldenTiny"},
		{at: "consumequeue/GoldenTiny/0", plan: "consumequeue/GoldenTiny/0"},
		{at: "consumequeue", away: true, plan: "consumequeue"},
		{at: "config", away: true, plan: "config"},
		{at: "checkpoint", away: true, plan: "checkpoint"},
	} {
		t.Run(tt.at, func(t *testing.T) {
			dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
			file, moved := filepath.Join(dir, filepath.FromSlash(tt.at)), filepath.Join(dir, "elsewhere")
			if tt.away {
				moved = filepath.Join(golden.TempDir(t), "elsewhere")
			}
			require.NoError(t, os.Rename(file, moved))
			target, err := filepath.Rel(filepath.Dir(file), moved)
			require.NoError(t, err)
			if err := os.Symlink(target, file); err != nil {
				return // this system has no links
			}
			status, out, errOut := call(t, "check", dir)
			require.Equal(t, statusFindings, status, errOut)
			require.Equal(t, 1, strings.Count(out, "warning: "+tt.at+": offset 0: is a symbolic link"), out)
			_, out, errOut = call(t, "plan", dir)
			require.Contains(t, out+errOut, tt.plan)
		})
	}
	// One that leads to another place of the store is as good as what it leads to.
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	require.NoError(t, os.Rename(filepath.Join(dir, "index"), filepath.Join(dir, "elsewhere")))
	if err := os.Symlink("elsewhere", filepath.Join(dir, "index")); err != nil {
		return
	}
	status, out, errOut := call(t, "check", dir)
	require.Equal(t, statusFine, status, out+errOut)
	status, out, errOut = call(t, "plan", dir)
	require.Equal(t, statusFine, status, out+errOut)
}
