package mappedfile

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/edsrzf/mmap-go"
)

// syncFile is fdatasync, which covers the length too.
func syncFile(f *os.File) error {
	if err := retry(func() error { return unix.Fdatasync(int(f.Fd())) }); err != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

// syncDir syncs an open directory. File systems that know no sync of directories say EINVAL.
func syncDir(f *os.File) error {
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}

// bootID is made by the kernel at each start.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func syncFileSystem(f *os.File) error {
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: f.Name(), Err: err}
	}
	return nil
}

// allocate reserves blocks by fallocate, or by writing where the file system cannot.
func allocate(f *os.File, off, n int64) error {
	err := retry(func() error { return unix.Fallocate(int(f.Fd()), 0, off, n) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return allocateByWriting(f, off, n)
	}
	return err
}

// nextData skips holes, and blocks that were reserved and never written.
func nextData(f *os.File, off int64) (int64, bool) {
	next, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return 0, false
	}
	if err != nil {
		return off, true
	}
	return next, true
}

func startSync(f *os.File, off, n int64) error {
	return retry(func() error { return unix.SyncFileRange(int(f.Fd()), off, n, unix.SYNC_FILE_RANGE_WRITE) })
}

func msync(m mmap.MMap, lo, hi int) error {
	return retry(func() error { return unix.Msync(m[lo:hi], unix.MS_SYNC) })
}

func advise(b []byte, a Advice) error {
	flag := unix.MADV_NORMAL
	switch a {
	case Sequential:
		flag = unix.MADV_SEQUENTIAL
	case Random:
		flag = unix.MADV_RANDOM
	case WillNeed:
		flag = unix.MADV_WILLNEED
	case DontNeed:
		flag = unix.MADV_DONTNEED
	case Populate:
		flag = unix.MADV_POPULATE_WRITE
	case Pin:
		return unix.Mlock(b)
	}
	return retry(func() error { return unix.Madvise(b, flag) })
}

// lockFile takes an open-file-description lock, which conflicts with other descriptors of this process too and with the
// record lock that Java's FileChannel.tryLock(0, 1, false) takes.
func lockFile(f *os.File) error {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: 0, Len: 1}
	err := retry(func() error { return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock) })
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrLocked
	}
	return err
}

// retry calls f again while a signal interrupts it.
func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
