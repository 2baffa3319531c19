package golden

import (
	"io"
	"os"
	"testing"

	"github.com/rocketstore/rocketstore/mappedfile"
)

const (
	memoryDisk     = "/dev/shm"
	enoughOnMemory = 2 << 30 // bytes; a full one would end the tests by a fault
)

// TempDir is a temporary directory of the test as [testing.TB.TempDir] gives it, but on the machine's file system in memory
// where there is one with room: most tests are about what is in the files, and on some disks the making of a thousand files
// takes longer than all else. When TMPDIR is set, it is there.
func TempDir(tb testing.TB) string {
	tb.Helper()
	if os.Getenv("TMPDIR") != "" || !roomInMemory() {
		return tb.TempDir()
	}
	dir, err := os.MkdirTemp(memoryDisk, "rocketstore-test-")
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("golden: %v", err)
		}
	})
	return dir
}

func roomInMemory() bool {
	d, err := mappedfile.OpenDir(memoryDisk, &mappedfile.DirOptions{ReadOnly: true})
	if err != nil {
		return false
	}
	defer func() { _ = d.(io.Closer).Close() }()
	use, err := mappedfile.DiskUsage(d)
	return err == nil && use.Total-use.Used >= enoughOnMemory
}
