package recovery_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/recovery"
)

// The checkpoints of all golden stores decode to what the real store says of them (R-E-061).
func TestGoldenCheckpoints(t *testing.T) {
	for _, name := range golden.Names() {
		exp := golden.Load(t, name)
		fsys, err := mappedfile.OpenDir(golden.Unpack(t, name), &mappedfile.DirOptions{ReadOnly: true})
		require.NoError(t, err)
		c, damaged, err := recovery.ReadCheckpoint(fsys)
		require.NoError(t, err)
		require.NoError(t, damaged)
		want := exp.Checkpoint()
		require.Equal(t, recovery.Checkpoint{
			Physic: want.PhysicTimestamp, Logics: want.LogicsTimestamp, Index: want.IndexTimestamp,
			MasterFlushed: want.MasterFlushedOffset, ConfirmOffset: want.ConfirmOffset,
		}, c, name)
		unclean, err := recovery.Aborted(fsys)
		require.NoError(t, err)
		require.Equal(t, exp.Abort(), unclean, name)
	}
}

// Writing keeps the bytes behind the known fields, and a short file is damage, not zero times (R-E-061, R-E-063).
func TestCheckpointFile(t *testing.T) {
	fsys := memfs.New()
	c, damaged, err := recovery.ReadCheckpoint(fsys)
	require.NoError(t, err)
	require.NoError(t, damaged)
	require.Zero(t, c)

	want := recovery.Checkpoint{Physic: 1, Logics: 2, Index: 3, MasterFlushed: 4, ConfirmOffset: 5}
	f, err := fsys.OpenFile(recovery.CheckpointFile, os.O_RDWR|os.O_CREATE, 0o640)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(recovery.CheckpointSize))
	_, err = f.WriteAt([]byte("later"), 4000)
	require.NoError(t, err)
	require.NoError(t, recovery.WriteCheckpoint(fsys, want, 0o640))
	c, damaged, err = recovery.ReadCheckpoint(fsys)
	require.NoError(t, err)
	require.NoError(t, damaged)
	require.Equal(t, want, c)
	b := make([]byte, 5)
	_, err = f.ReadAt(b, 4000)
	require.NoError(t, err)
	require.Equal(t, "later", string(b))

	require.NoError(t, f.Truncate(39))
	_, damaged, err = recovery.ReadCheckpoint(fsys)
	require.NoError(t, err)
	require.ErrorIs(t, damaged, mappedfile.ErrCorrupt)
	require.ErrorContains(t, damaged, "39 bytes, want 4096")
	require.NoError(t, f.Close())
}

// The start after a crash lies 3 s before the checkpoint from 4.0 on, and not at all in 3.1 (formats.md 7).
func TestCheckpointMinimum(t *testing.T) {
	c := recovery.Checkpoint{Physic: 10_000, Logics: 9_000, Index: 1}
	require.EqualValues(t, 9_000, c.Min(dialect.V31()))
	require.EqualValues(t, 6_000, c.Min(dialect.V49()))
	require.Zero(t, recovery.Checkpoint{Physic: 10, Logics: 10}.Min(dialect.V53()))
}

// The abort file is there while a store is open; 5.x writes the process id into it (R-E-063).
func TestAbortFile(t *testing.T) {
	for _, d := range []*dialect.Dialect{dialect.V31(), dialect.V49(), dialect.V53()} {
		dir := t.TempDir()
		fsys, err := mappedfile.OpenDir(dir, nil)
		require.NoError(t, err)
		require.NoError(t, recovery.MarkOpen(fsys, d, 0o640))
		unclean, err := recovery.Aborted(fsys)
		require.NoError(t, err)
		require.True(t, unclean)
		b, err := os.ReadFile(filepath.Join(dir, recovery.AbortFile))
		require.NoError(t, err)
		want := ""
		if d.Name == "5.3" {
			want = strconv.Itoa(os.Getpid())
		}
		require.Equal(t, want, string(b))
		require.NoError(t, recovery.MarkClosed(fsys))
		require.NoError(t, recovery.MarkClosed(fsys))
		unclean, err = recovery.Aborted(fsys)
		require.NoError(t, err)
		require.False(t, unclean)
	}
}

func FuzzDecodeCheckpoint(f *testing.F) {
	f.Add(recovery.Checkpoint{Physic: 1, Logics: 1 << 60, Index: -1, MasterFlushed: 7, ConfirmOffset: 9}.AppendTo(nil))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := recovery.DecodeCheckpoint(b); err == nil {
			require.Equal(t, b[:40], c.AppendTo(nil))
		}
	})
}
