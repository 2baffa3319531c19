//go:build unix

package rocketstore_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/recovery"
)

// Whatever stands in the place of one of the store's files or folders is refused with its name before anything is changed,
// and nobody waits for the other end of a named pipe.
func TestWhatStandsInThePlaceOfAFileIsRefused(t *testing.T) {
	t.Parallel()
	things := map[string]func(name string) error{
		"folder": func(name string) error { return os.Mkdir(name, 0o700) },
		"pipe":   func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"loop":   func(name string) error { return os.Symlink(filepath.Base(name), name) },
	}
	files := []string{
		"checkpoint", "abort", "lock", "config/rocketstore.json", "config/rocketstoreQueues.json", "config/delayOffset.json",
		"config/consumerOffset.json", "config/topics.json", "config/delayOffset.json.bak", "index/20200101000000000",
		"commitlog/00000000000000016384", "consumequeue/T/0/00000000000000000400",
	}
	folders := []string{"commitlog", "consumequeue", "index", "config", "lost+found", "consumequeue/T", "consumequeue/T/0"}
	for kind, place := range things {
		for _, name := range append(files, folders...) {
			if kind == "folder" && !slices.Contains(files, name) {
				continue
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				dir := golden.TempDir(t)
				s, err := rocketstore.Open(dir, small())
				require.NoError(t, err)
				_, err = s.Put(t.Context(), msg("T", 0, "body", "", "key"))
				require.NoError(t, err)
				require.NoError(t, s.Close(t.Context()))
				require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
				require.NoError(t, place(filepath.Join(dir, name)))
				before := filesOf(t, dir)
				_, err = rocketstore.Open(dir, nil)
				require.ErrorContains(t, err, name)
				d, _, planErr := rocketstore.Plan(t.Context(), dir, nil)
				if planErr == nil && d.Refused != nil {
					planErr = d.Refused
				}
				require.EqualError(t, planErr, err.Error())
				require.Equal(t, before, filesOf(t, dir))
				if name != recovery.AbortFile {
					require.NoFileExists(t, filepath.Join(dir, recovery.AbortFile))
				}
			})
		}
	}
}

// Errors of the lock and of permissions name the directory of the store.
func TestErrorsNameTheStoreDirectory(t *testing.T) {
	dir := golden.TempDir(t)
	s := open(t, dir, small())
	_, err := rocketstore.Open(dir, nil)
	require.ErrorIs(t, err, rocketstore.ErrLocked)
	require.ErrorContains(t, err, filepath.Join(dir, "lock"))
	require.NoError(t, s.Close(t.Context()))
	require.NoError(t, os.Remove(filepath.Join(dir, "checkpoint")))
	require.NoError(t, os.Symlink("../outside", filepath.Join(dir, "checkpoint")))
	_, err = rocketstore.Open(dir, nil)
	require.ErrorContains(t, err, filepath.Join(dir, "checkpoint"))
}

// The sizes that we noted count where no file shows any: another one is refused, and none means them (design.md 4.7).
func TestNotedSizesHoldWhereNoFileShowsThem(t *testing.T) {
	dir := golden.TempDir(t)
	s := open(t, dir, small())
	_, err := s.Put(t.Context(), msg("T", 0, "body", "", "key"))
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	for _, name := range []string{"consumequeue", "index"} {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	for name, o := range map[string]*rocketstore.Options{
		"QueueSegmentSize": {QueueSegmentSize: 6_000_000}, "IndexSlots": {IndexSlots: 5_000_000}, "IndexEntries": {IndexEntries: 20_000_000},
	} {
		_, err := rocketstore.Open(dir, o)
		require.ErrorIs(t, err, rocketstore.ErrCorrupt)
		require.ErrorContains(t, err, "config/rocketstore.json")
		require.ErrorContains(t, err, name)
	}
	s = open(t, dir, nil)
	require.Equal(t, []string{"body"}, bodies(t, s, "T", 0))
	require.NoError(t, s.Close(t.Context()))
	info, err := os.Stat(filepath.Join(dir, "consumequeue/T/0/00000000000000000000"))
	require.NoError(t, err)
	require.EqualValues(t, 400, info.Size())
	// A directory without a store may become one of other sizes.
	dir = golden.TempDir(t)
	require.NoError(t, open(t, dir, small()).Close(t.Context()))
	require.NoError(t, open(t, dir, &rocketstore.Options{SegmentSize: 4096, QueueSegmentSize: 200}).Close(t.Context()))
}
