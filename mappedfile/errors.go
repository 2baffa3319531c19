package mappedfile

import (
	"errors"
	"fmt"
)

// Errors that callers branch on.
var (
	// ErrCorrupt is the class of every [CorruptError].
	ErrCorrupt = errors.New("corrupt")
	// ErrClosed is returned by whatever is used after its Close.
	ErrClosed = errors.New("closed")
	// ErrLocked says that another writer has the store directory.
	ErrLocked = errors.New("locked by another writer")
	// ErrReadOnly is returned by a write to something that was opened for reading only.
	ErrReadOnly = errors.New("opened read-only")
	// ErrOutOfRange says that an offset is outside what a queue of segments holds.
	ErrOutOfRange = errors.New("offset out of range")
	// ErrSegmentFull says that bytes do not fit into what is left of the last segment; nothing was written.
	ErrSegmentFull = errors.New("segment full")
	// ErrFault says that touching mapped memory failed: the file was cut short by somebody, or the device failed.
	ErrFault = errors.New("fault in mapped memory")
)

// CorruptError says which bytes on disk could not be believed, and why.
type CorruptError struct {
	File   string // path inside the store directory, with forward slashes
	Offset int64  // bytes from the start of that file
	Err    error  // what was wrong there; never nil
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: offset %d: %v", e.File, e.Offset, e.Err)
}

// Unwrap lets errors.Is find both the class and the cause.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }
