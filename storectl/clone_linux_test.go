package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/message"
)

// cloningDisk mounts a small file system whose files can share blocks. It needs root, a loop device and one of two programs; where
// they are missing there is none.
func cloningDisk(t *testing.T) (string, bool) {
	t.Helper()
	work := t.TempDir()
	image, dir := filepath.Join(work, "image"), filepath.Join(work, "disk")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	require.NoError(t, os.Truncate(image, 512<<20))
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, mkfs := range [][]string{{"mkfs.xfs", "-q", "-f", "-m", "reflink=1"}, {"mkfs.btrfs", "-q", "-f"}} {
		for _, command := range [][]string{append(mkfs, image), {"mount", "-o", "loop", image, dir}} {
			out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
			if err != nil {
				t.Logf("%v: %v %s", command, err, out)
				break
			}
			if command[0] == "mount" {
				t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
				return dir, true
			}
		}
	}
	return "", false
}

// room is how many bytes are free on the file system of dir, when all is on the disk.
func room(t *testing.T, dir string) int64 {
	t.Helper()
	syscall.Sync()
	var s syscall.Statfs_t
	require.NoError(t, syscall.Statfs(dir, &s))
	return int64(s.Bfree) * s.Bsize
}

// On a file system that can, a snapshot's full files are clones: they take no room, are whole, and what is written to one of the
// two does not reach the other.
func TestASnapshotOfClonesTakesNoRoom(t *testing.T) {
	disk, ok := cloningDisk(t)
	if !ok {
		return // said why
	}
	dir, to := filepath.Join(disk, "store"), filepath.Join(disk, "copy")
	s, err := rocketstore.Open(dir, &rocketstore.Options{SegmentSize: 2 << 20, QueueSegmentSize: 20_000})
	require.NoError(t, err)
	for range 10_000 {
		_, err := s.Put(t.Context(), &message.Message{Topic: "T", Body: make([]byte, 1000)})
		require.NoError(t, err)
	}
	require.NoError(t, s.Close(t.Context()))
	original, before := contents(t, dir), room(t, disk)
	for _, share := range []string{"clone", "auto"} {
		status, out, errOut := call(t, "snapshot", dir, "--to", to, "--share", share)
		require.Equal(t, statusFine, status, out+errOut)
		require.Less(t, before-room(t, disk), int64(6<<20), "five files of 2 MiB are shared")
		for name := range original {
			if name == "lock" {
				continue // of nobody in the copy
			}
			info, err := os.Stat(filepath.Join(to, name))
			require.NoError(t, err)
			require.EqualValues(t, 1, info.Sys().(*syscall.Stat_t).Nlink, name)
		}
		first := filepath.Join(to, "commitlog", "00000000000000000000")
		b, err := os.ReadFile(first)
		require.NoError(t, err)
		require.Equal(t, original["commitlog/00000000000000000000"], string(b))
		status, out, errOut = call(t, "check", to)
		require.Equal(t, statusFine, status, out+errOut)
		f, err := os.OpenFile(first, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("changed"), 100)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, original, contents(t, dir))
		require.NoError(t, os.RemoveAll(to))
	}
}
