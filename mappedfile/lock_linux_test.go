package mappedfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// R-E-015: Java's FileChannel.tryLock(0, 1, false) is a record lock on byte 0.
func TestLockConflictsWithJavasRecordLock(t *testing.T) {
	dir := t.TempDir()
	fsys := openDir(t, dir)
	ours, err := fsys.Lock("lock")
	require.NoError(t, err)
	java, err := os.OpenFile(dir+"/lock", os.O_RDWR, 0)
	require.NoError(t, err)
	defer java.Close()
	record := func() error {
		return unix.FcntlFlock(java.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Len: 1})
	}
	require.ErrorIs(t, record(), unix.EAGAIN)
	require.NoError(t, ours.Close())
	require.NoError(t, record())
	_, err = fsys.Lock("lock")
	require.ErrorIs(t, err, mappedfile.ErrLocked)
	require.ErrorContains(t, err, filepath.Join(dir, "lock"))
}
