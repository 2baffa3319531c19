package repair_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/repair"
)

const (
	log0   = "commitlog/00000000000000000000"
	normal = "consumequeue/GoldenNormal/0/00000000000000000000"
)

// findings are the findings of a check from severity warning on, a line each.
func findings(t testing.TB, dir string) []string {
	t.Helper()
	d, err := inspect.Open(os.DirFS(dir))
	require.NoError(t, err)
	all := []string{}
	for f, err := range d.Check(t.Context(), inspect.CheckOptions{}) {
		require.NoError(t, err)
		if f.Severity != inspect.Info {
			all = append(all, f.String())
		}
	}
	return all
}

// content is what Snapshot says of the files of a store that matter: not those of repairs, nor the lock.
func content(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, s := range golden.Snapshot(t, dir) {
		if name != recovery.LockFile && !strings.HasPrefix(name, recovery.LostAndFound) && s.Hash != "" {
			all[name] = s.Hash
		}
	}
	return all
}

func open(t testing.TB, dir string) *repair.Repair {
	t.Helper()
	fsys, err := mappedfile.OpenDir(dir, nil)
	require.NoError(t, err)
	r, err := repair.Open(fsys)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// write changes bytes of a file.
func write(t testing.TB, dir, file string, off int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(b, off)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// place is the physical offset of a unit's record.
func place(t testing.TB, dir, topic string, index int64) int64 {
	t.Helper()
	d, err := inspect.Open(os.DirFS(dir))
	require.NoError(t, err)
	for u, err := range d.Queues(t.Context(), inspect.QueueFilter{Topic: topic}, func(inspect.Finding) {}) {
		require.NoError(t, err)
		if u.QueueID == 0 && u.Index == index {
			return u.PhysicalOffset
		}
	}
	t.Fatal("no such unit")
	return 0
}

// segment is the file of the log with a physical offset, and where in it that is.
func segment(t testing.TB, dir string, at int64) (string, int64) {
	t.Helper()
	d, err := inspect.Open(os.DirFS(dir))
	require.NoError(t, err)
	segs, _, err := d.Segments(func(inspect.Finding) {})
	require.NoError(t, err)
	for _, s := range segs {
		if s.Start <= at && at < s.End() {
			return s.File, at - s.Start
		}
	}
	t.Fatal("no such segment")
	return "", 0
}

// stores are one of each line, with a topic that has four messages in its queue 0.
func stores() map[string]string {
	return map[string]string{"rocketmq-3.1.4/clean": "TopicAlpha", "rocketmq-4.9.7/clean": "GoldenNormal", "rocketmq-5.3.3/clean": "GoldenNormal"}
}

func TestCutEndsTheLogAndUndoBringsAllBack(t *testing.T) {
	for name, topic := range stores() {
		t.Run(name, func(t *testing.T) {
			dir := golden.Unpack(t, name)
			before := content(t, dir)
			at := place(t, dir, topic, 3)
			r := open(t, dir)
			j, err := r.Cut(t.Context(), at)
			require.NoError(t, err)
			require.Equal(t, repair.Done, j.State)
			var stats inspect.CheckStats
			d, err := inspect.Open(os.DirFS(dir))
			require.NoError(t, err)
			for f, err := range d.Check(t.Context(), inspect.CheckOptions{Stats: &stats}) {
				require.NoError(t, err)
				require.NotEqual(t, inspect.Error, f.Severity, f)
			}
			require.Equal(t, at, stats.LogEnd)
			j, err = r.Undo()
			require.NoError(t, err)
			require.Equal(t, repair.Undone, j.State)
			require.Equal(t, before, content(t, dir))
			_, err = r.Undo()
			require.ErrorIs(t, err, repair.ErrNothing)
		})
	}
}

func TestCutRefusesAPlaceInsideARecord(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	before := content(t, dir)
	r := open(t, dir)
	_, err := r.Cut(t.Context(), place(t, dir, "GoldenNormal", 3)+1)
	require.ErrorContains(t, err, "no record begins or ends at")
	_, err = r.Cut(t.Context(), -1)
	require.ErrorIs(t, err, repair.ErrNothing)
	require.Equal(t, before, content(t, dir))
}

func TestSkipMakesTheLogReadableBehindDamage(t *testing.T) {
	for name, topic := range stores() {
		for what, harm := range map[string][]byte{"body": {1}, "magic": {0}, "zeros": make([]byte, 60)} {
			t.Run(name+"/"+what, func(t *testing.T) {
				dir := golden.Unpack(t, name)
				at := place(t, dir, topic, 3)
				off := map[string]int64{"body": 90, "magic": 4, "zeros": 0}[what]
				file, pos := segment(t, dir, at)
				write(t, dir, file, pos+off, harm)
				before := content(t, dir)
				require.NotEmpty(t, findings(t, dir))
				r := open(t, dir)
				_, err := r.Skip(t.Context())
				require.NoError(t, err)
				require.Empty(t, findings(t, dir))
				_, err = r.Undo()
				require.NoError(t, err)
				require.Equal(t, before, content(t, dir))
			})
		}
	}
}

func TestDropTakesUnitsBehindTheLogAway(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	const last = "consumequeue/GoldenNormal/0/00000000000000001000"
	stale := []byte{0, 0, 0, 0, 0, 0x0F, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	write(t, dir, last, 360, append(stale, stale...))
	before := content(t, dir)
	require.NotEmpty(t, findings(t, dir))
	r := open(t, dir)
	_, err := r.Drop(t.Context())
	require.NoError(t, err)
	require.Empty(t, findings(t, dir))
	_, err = r.Drop(t.Context())
	require.ErrorIs(t, err, repair.ErrNothing)
	_, err = r.Undo()
	require.NoError(t, err)
	require.Equal(t, before, content(t, dir))
}

func TestRestoreSaysWhatIsDamagedAndHasNoBackup(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	damaged := filepath.Join(dir, "config", "consumerOffset.json")
	require.NoError(t, os.WriteFile(damaged, make([]byte, 40), 0o600))
	require.NoError(t, os.Remove(damaged+".bak"))
	r := open(t, dir)
	j, err := r.RestoreConfig(t.Context())
	require.ErrorIs(t, err, repair.ErrNoBackup)
	require.ErrorContains(t, err, "config/consumerOffset.json: offset 0")
	require.ErrorContains(t, err, "there is no .bak")
	require.Nil(t, j)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "config", "topics.json"), make([]byte, 40), 0o600))
	j, err = r.RestoreConfig(t.Context())
	require.ErrorIs(t, err, repair.ErrNoBackup, "the other file is restored all the same")
	require.Equal(t, repair.Done, j.State)

	require.NoError(t, os.WriteFile(damaged+".bak", make([]byte, 40), 0o600))
	_, err = r.RestoreConfig(t.Context())
	require.ErrorIs(t, err, repair.ErrNoBackup)
	require.ErrorContains(t, err, "its .bak is not known to be good")
}

func TestRestoreTakesTheBackupOfADamagedFile(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	const file = "config/consumerOffset.json"
	good, err := os.ReadFile(filepath.Join(dir, file+".bak"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), make([]byte, 40), 0o600))
	r := open(t, dir)
	_, err = r.RestoreConfig(t.Context())
	require.NoError(t, err)
	now, err := os.ReadFile(filepath.Join(dir, file))
	require.NoError(t, err)
	require.Equal(t, good, now)
	_, err = r.Undo()
	require.NoError(t, err)
	now, err = os.ReadFile(filepath.Join(dir, file))
	require.NoError(t, err)
	require.Equal(t, make([]byte, 40), now)
}

// rebuild makes structures again in a directory of their own.
func rebuild(t *testing.T, dir string, o inspect.RebuildOptions) mappedfile.FS {
	t.Helper()
	d, err := inspect.Open(os.DirFS(dir))
	require.NoError(t, err)
	made, err := mappedfile.OpenDir(golden.TempDir(t), nil)
	require.NoError(t, err)
	_, err = d.Rebuild(t.Context(), made, o, func(f inspect.Finding) { require.NotEqual(t, inspect.Error, f.Severity, f) })
	require.NoError(t, err)
	return made
}

func TestSwapPutsWhatWasRebuiltInPlace(t *testing.T) {
	queue := int32(0)
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	from := place(t, dir, "GoldenNormal", 2)
	for name, o := range map[string]inspect.RebuildOptions{
		"all":      {Derived: inspect.Derived{Queues: true, Index: true}},
		"a topic":  {Derived: inspect.Derived{Queues: true}, RebuiltPart: inspect.RebuiltPart{Topic: "GoldenNormal"}},
		"a queue":  {Derived: inspect.Derived{Queues: true}, RebuiltPart: inspect.RebuiltPart{Topic: "GoldenNormal", Queue: &queue}},
		"a range":  {Derived: inspect.Derived{Queues: true}, RebuiltPart: inspect.RebuiltPart{From: from}},
		"to a end": {Derived: inspect.Derived{Queues: true}, RebuiltPart: inspect.RebuiltPart{To: from + 100_000}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := golden.Copy(t, dir)
			write(t, dir, normal, 60, []byte{0, 0, 0, 0, 0, 0, 0, 1})
			before := content(t, dir)
			require.NotEmpty(t, findings(t, dir))
			r := open(t, dir)
			_, err := r.Swap(t.Context(), rebuild(t, dir, o))
			require.NoError(t, err)
			require.Empty(t, findings(t, dir))
			_, err = r.Undo()
			require.NoError(t, err)
			require.Equal(t, before, content(t, dir))
		})
	}
}

func TestSwapOfACheckpoint(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	write(t, dir, "checkpoint", 0, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	require.NotEmpty(t, findings(t, dir))
	r := open(t, dir)
	_, err := r.Swap(t.Context(), rebuild(t, dir, inspect.RebuildOptions{Derived: inspect.Derived{Checkpoint: true}}))
	require.NoError(t, err)
	require.Empty(t, findings(t, dir))
}

func TestARebuildInPartIsOfQueuesOnly(t *testing.T) {
	d, err := inspect.Open(os.DirFS(golden.Unpack(t, "rocketmq-4.9.7/clean")))
	require.NoError(t, err)
	made, err := mappedfile.OpenDir(golden.TempDir(t), nil)
	require.NoError(t, err)
	_, err = d.Rebuild(t.Context(), made, inspect.RebuildOptions{
		Derived: inspect.Derived{Index: true}, RebuiltPart: inspect.RebuiltPart{Topic: "T"},
	}, func(inspect.Finding) {})
	require.ErrorContains(t, err, "only consume queues")
}

func TestALiveStoreIsRefused(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	fsys, err := mappedfile.OpenDir(dir, nil)
	require.NoError(t, err)
	lock, err := fsys.Lock(recovery.LockFile)
	require.NoError(t, err)
	_, err = repair.Open(fsys)
	require.ErrorIs(t, err, mappedfile.ErrLocked)
	require.NoError(t, lock.Close())
}

func TestAProcessThatHasAFileOpenIsSeen(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-3.1.4/clean")
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return // no such system
	}
	pid, err := repair.InUse(dir)
	require.NoError(t, err)
	require.Zero(t, pid)
	f, err := os.Open(filepath.Join(dir, log0))
	require.NoError(t, err)
	defer f.Close()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	cmd.ExtraFiles = []*os.File{f}
	require.NoError(t, cmd.Start())
	pid, err = repair.InUse(dir)
	require.NoError(t, err)
	require.Equal(t, cmd.Process.Pid, pid)
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
}

func TestADryRunChangesNothing(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	r := open(t, dir)
	r.DryRun = true
	at := place(t, dir, "GoldenNormal", 3)
	before := golden.Snapshot(t, dir)
	j, err := r.Cut(t.Context(), at)
	require.NoError(t, err)
	require.NotEmpty(t, j.Steps)
	require.Equal(t, before, golden.Snapshot(t, dir))
}

func TestUndoIsRefusedWhenTheStoreWasOpenedSince(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	checkpoint := filepath.Join(dir, "checkpoint")
	before := content(t, dir)
	r := open(t, dir)
	cut := func(index int64) {
		_, err := r.Cut(t.Context(), place(t, dir, "GoldenNormal", index))
		require.NoError(t, err)
	}
	cut(3)
	cut(2)
	_, err := r.Undo()
	require.NoError(t, err, "repairs themselves do not count")
	require.NoError(t, os.WriteFile(checkpoint, make([]byte, 4096), 0o600)) // as a recovery does
	_, err = r.Undo()
	require.ErrorIs(t, err, repair.ErrOpened)
	cut(2)
	_, err = r.Undo()
	require.NoError(t, err, "nothing has changed since that one")
	_, err = r.Undo()
	require.ErrorIs(t, err, repair.ErrOpened, "but since this one")
	r.Force = true
	_, err = r.Undo()
	require.NoError(t, err)
	require.Equal(t, before, content(t, dir), "also what had a new file in its way")
}
