package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ficlone is FICLONE of ioctl_ficlone(2): one file takes over the blocks of another, and either copies what it changes.
const ficlone = 0x40049409

// cloneFile makes a file that shares the blocks of another. It returns errors.ErrUnsupported where the file system cannot.
func cloneFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // it was only read
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), ficlone, source.Fd())
	if errno == 0 {
		return syncedFile{f}.Close()
	}
	err = fmt.Errorf("clone %s: %w", from, errors.Join(errors.ErrUnsupported, errno))
	return errors.Join(err, f.Close(), os.Remove(to))
}

// syncFolder makes the names in a folder durable.
func syncFolder(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
