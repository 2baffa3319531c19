//go:build unix && !linux

package mappedfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes a BSD lock, which holds within one process too. Java's record lock does not see it; the lock that
// conflicts with both is Linux's.
func lockFile(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
