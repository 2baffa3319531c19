package repair_test

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/repair"
)

// load copies a directory into a file system.
func load(t *testing.T, into mappedfile.FS, dir string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			return into.MkdirAll(name, 0o755)
		}
		b, err := os.ReadFile(path.Join(dir, name))
		if err != nil {
			return err
		}
		f, err := into.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(b, 0)
		return errors.Join(err, f.Close())
	}))
}

// tree is the content of all files but those of repairs and the lock.
func tree(t *testing.T, fsys mappedfile.FS, dir string, into map[string]string) map[string]string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case name == recovery.LockFile || strings.HasPrefix(name, recovery.LostAndFound):
		case e.IsDir():
			tree(t, fsys, name, into)
		default:
			into[name] = golden.ReadFile(t, fsys, name)
		}
	}
	return into
}

// The power is cut at each step of a repair and of its undoing. Whatever the disk then holds, the repair can be finished and
// undone, and the store is as before the repair, or as behind it; a repair that never began left nothing.
func TestAPowerCutAtAnyStepCanBeFinishedOrUndone(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	at := place(t, dir, "GoldenNormal", 3)
	write(t, dir, log0, at+4, []byte{0})
	small(t, dir)
	for name, do := range map[string]func(r *repair.Repair) error{
		"skip":    func(r *repair.Repair) error { _, err := r.Skip(t.Context()); return err },
		"cut":     func(r *repair.Repair) error { _, err := r.Cut(t.Context(), -1); return err },
		"restore": func(r *repair.Repair) error { _, err := r.RestoreConfig(t.Context()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			inner := memfs.New()
			load(t, inner, dir)
			before := tree(t, inner, ".", map[string]string{})
			whole := crashfs.New(inner)
			require.NoError(t, whole.SyncAll())
			n0 := whole.Steps()
			r, err := repair.Open(whole)
			require.NoError(t, err)
			require.NoError(t, do(r))
			behind := tree(t, whole, ".", map[string]string{})
			done := whole.Steps()
			_, err = r.Undo()
			require.NoError(t, err)
			require.NoError(t, r.Close())
			require.Equal(t, before, tree(t, whole, ".", map[string]string{}))
			steps := changes(whole, n0)
			require.Greater(t, len(steps), 10)
			stride := max(1, len(steps)/10)
			for i := 0; i < len(steps); i += stride {
				powerCut(t, dir, do, steps[i], steps[i] < done, before, behind, uint64(i))
			}
		})
	}
}

// small takes away what the power cut tests need not copy again and again, and damages a file under config.
func small(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(path.Join(dir, "index")))
	require.NoError(t, os.WriteFile(path.Join(dir, "config/consumerOffset.json"), make([]byte, 10), 0o600))
}

// changes are the numbers of the steps that change something.
func changes(c *crashfs.FS, from int) []int {
	var all []int
	for i, e := range c.Events() {
		switch e.Op {
		case crashfs.OpRead, crashfs.OpOpen, crashfs.OpReadDir:
		default:
			if i >= from {
				all = append(all, i)
			}
		}
	}
	return all
}

// powerCut does a repair and its undoing on a disk that fails at a step, and goes on with what the disk holds then.
func powerCut(t *testing.T, dir string, do func(*repair.Repair) error, step int, inRepair bool, before, behind map[string]string, seed uint64) {
	t.Helper()
	inner := memfs.New()
	load(t, inner, dir)
	c := crashfs.New(inner)
	require.NoError(t, c.SyncAll())
	c.CrashAfter(step)
	r, err := repair.Open(c)
	if err == nil {
		if err = do(r); err == nil {
			_, err = r.Undo()
		}
	}
	require.Error(t, err, step)
	for _, finish := range []bool{true, false} {
		img := c.Image(seed)
		r, err := repair.Open(img)
		require.NoError(t, err)
		want := before
		if finish {
			j, err := r.Finish()
			switch {
			case errors.Is(err, repair.ErrNothing):
				all, err := r.Journals()
				require.NoError(t, err)
				if len(all) > 0 && all[0].State == repair.Done {
					want = behind
				}
			default:
				require.NoError(t, err)
				if j.State == repair.Done {
					want = behind
				}
			}
		} else if _, err := r.Undo(); !errors.Is(err, repair.ErrNothing) {
			require.NoError(t, err)
		}
		require.NoError(t, r.Close())
		require.Equal(t, want, tree(t, img, ".", map[string]string{}), "step %d, finish %v, in the repair %v", step, finish, inRepair)
	}
}

func TestAnUnfinishedRepairKeepsOthersAway(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	r := open(t, dir)
	_, err := r.Cut(t.Context(), place(t, dir, "GoldenNormal", 3))
	require.NoError(t, err)
	name := path.Join(dir, recovery.LostAndFound, "repair.1", "journal.json")
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(name, []byte(strings.Replace(string(b), `"done"`, `"begun"`, 1)), 0o600))
	_, err = r.Drop(t.Context())
	require.ErrorIs(t, err, repair.ErrUnfinished)
	j, err := r.Finish()
	require.NoError(t, err)
	require.Equal(t, repair.Done, j.State)
}

// Whatever a journal holds, nothing outside of the store is touched and nothing panics.
func FuzzJournal(f *testing.F) {
	f.Add(`{"number":1,"kind":"cut","state":"begun","steps":[{"op":"move","file":"checkpoint","to":"lost+found/repair.1/aside/checkpoint"}]}`)
	f.Add(`{"state":"undoing","steps":[{"op":"patch","file":"checkpoint","offset":1,"length":9223372036854775807,"saved":"old.0"}]}`)
	f.Add(`{"state":"begun","steps":[{"op":"place","file":"../x","bytes":"new.0"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		m := memfs.New()
		require.NoError(t, m.MkdirAll("commitlog", 0o755))
		require.NoError(t, m.MkdirAll("lost+found/repair.1", 0o755))
		for name, content := range map[string]string{"checkpoint": "0123456789", "lost+found/repair.1/journal.json": text, "lost+found/repair.1/old.0": "abc"} {
			file, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
			require.NoError(t, err)
			_, err = file.WriteAt([]byte(content), 0)
			require.NoError(t, err)
			require.NoError(t, file.Close())
		}
		r, err := repair.Open(m)
		require.NoError(t, err)
		_, _ = r.Finish()
		_, _ = r.Undo()
		require.NoError(t, r.Close())
		_, err = inspect.ReadRebuilt(mapped{text})
		_ = err
	})
}

// mapped is a file system that has one file.
type mapped struct{ text string }

func (m mapped) Open(string) (fs.File, error) { return oneFile{strings.NewReader(m.text)}, nil }

type oneFile struct{ *strings.Reader }

func (oneFile) Stat() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (oneFile) Close() error               { return nil }
