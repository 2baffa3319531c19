package mappedfile

import (
	"io"
	"io/fs"
)

// FS is the file layer of one store directory. Names are slash-separated and relative to that directory; a name that
// leaves it is an error. The operating system's is [OpenDir]; memfs keeps the files on the heap, crashfs adds power cuts.
// All methods may be called from many goroutines. Errors match io/fs: errors.Is(err, fs.ErrNotExist) and so on.
type FS interface {
	// OpenFile opens name with the flags of package os (os.O_RDONLY, os.O_RDWR, os.O_CREATE, os.O_EXCL).
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	// MkdirAll makes a directory and its parents; existing ones are fine.
	MkdirAll(name string, perm fs.FileMode) error
	// Rename replaces newname by oldname in one step.
	Rename(oldname, newname string) error
	// Remove deletes one file or empty directory.
	Remove(name string) error
	// ReadDir lists a directory, sorted by name. "." is the store directory itself.
	ReadDir(name string) ([]fs.DirEntry, error)
	// SyncDir makes creations, renames and removals in a directory durable.
	SyncDir(name string) error
	// Lock takes the exclusive writer's lock on byte 0 of name, creating it if need be, without waiting.
	// It returns [ErrLocked] when another holder, in this process or in another one, has it. Closing the
	// result releases it. On Linux it is an open-file-description lock (F_OFD_SETLK), which conflicts with
	// the record lock that RocketMQ 4.x takes.
	Lock(name string) (io.Closer, error)
}

// File is one open file of an [FS].
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Name is the name that the file was opened with.
	Name() string
	// Size is the length in bytes.
	Size() (int64, error)
	// Allocate reserves blocks for n bytes from off on, so that writing there later cannot run out of space; the
	// content stays and the file grows if it has to. A full disk is an error that matches syscall.ENOSPC.
	Allocate(off, n int64) error
	// Truncate sets the length. New bytes are zero; cutting and growing again zeroes the bytes in between.
	// The caller has no mapping of the bytes that go.
	Truncate(size int64) error
	// Sync makes content and length durable (fdatasync or better). It says nothing of the directory entry.
	Sync() error
	// Map maps the first size bytes. The file must be at least that long while it is mapped.
	Map(size int64, access Access) (Mapping, error)
}

// Mapping is a file's bytes in memory. What is written to Bytes is seen by File.ReadAt and the other way round.
type Mapping interface {
	// Bytes is the mapped memory. It is not valid after Unmap.
	Bytes() []byte
	// SyncRange makes n bytes from off on durable; the range is widened to whole pages.
	SyncRange(off, n int) error
	// Advise tells the kernel how n bytes from off on will be used. Where it has no meaning it does nothing.
	Advise(off, n int, a Advice) error
	// Unmap ends the mapping. It does not sync. A second call does nothing.
	Unmap() error
}

// Access says what a mapping may be used for.
type Access int

// The kinds of access.
const (
	ReadOnly Access = iota
	ReadWrite
)

// Advice is a hint for [Mapping.Advise].
type Advice int

// The hints, after madvise(2).
const (
	Normal Advice = iota
	Sequential
	Random
	WillNeed
	DontNeed
	// Populate faults the pages in for writing ahead of use (MADV_POPULATE_WRITE).
	Populate
	// Pin keeps the pages in memory (mlock) until the mapping ends.
	Pin
)

// PageSize is the unit of flushing that RocketMQ counts in, whatever the machine's page is.
const PageSize = 4096
