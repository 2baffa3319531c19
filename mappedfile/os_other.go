//go:build !linux

package mappedfile

import (
	"os"
	"runtime"

	"github.com/edsrzf/mmap-go"
)

func syncFile(f *os.File) error { return f.Sync() }

// syncDir syncs an open directory. Windows has no such thing.
func syncDir(f *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return f.Sync()
}

// bootID has no portable form.
func bootID() string { return "" }

// syncFileSystem cannot be had here.
func syncFileSystem(*os.File) error { return errNoSyncAll }

func allocate(f *os.File, off, n int64) error { return allocateByWriting(f, off, n) }

func nextData(_ *os.File, off int64) (int64, bool) { return off, true }

func startSync(f *os.File, _, _ int64) error { return syncFile(f) }

// msync syncs the whole mapping: there is no portable ranged sync.
func msync(m mmap.MMap, _, _ int) error { return m.Flush() }

// advise has no portable form, but for locking.
func advise(b []byte, a Advice) error {
	if a == Pin {
		return mmap.MMap(b).Lock()
	}
	return nil
}
