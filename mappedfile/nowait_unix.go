//go:build unix

package mappedfile

import "syscall"

// Flags of opening: noWait does not wait for the other end of a named pipe, onlyFolder is an error for all but folders.
const (
	noWait     = syscall.O_NONBLOCK
	onlyFolder = syscall.O_DIRECTORY | syscall.O_NONBLOCK
)
