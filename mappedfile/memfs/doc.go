// Package memfs is a [mappedfile.FS] on the heap: fast, gone with the process, and visible to the race detector, which
// does not see mapped memory. A mapping is the file's own bytes, so what is written through one is seen by ReadAt and by
// every other mapping.
//
// It is stricter than a real system where that finds bugs: a file cannot be cut below, nor grow out of, memory that is
// mapped, an unmapped mapping gives no bytes, and [FS.Unreserved] tells which pages were written through a mapping
// without being reserved before, where a full disk would have killed the process. [FS.Limit] makes the disk full.
package memfs
