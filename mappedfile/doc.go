// Package mappedfile holds runs of fixed-size, memory-mapped segment files, as the commit log, the consume queues and
// the transaction files of a RocketMQ store are made of, and the file layer below them.
//
// A directory holds segments; each file's name is the offset of its first byte as 20 decimal digits, so the next file's
// name is higher by the segment size. A [Queue] is one such directory: bytes are appended at its end, never across a
// segment's border, overwritten in place, looked at through a [View], made durable by Sync, and go away at both ends by
// DeleteBefore and TruncateAfter.
//
// # Positions
//
//	Bounds start ... Flushed ... Bounds end ... Written ... end of the last file
//
// Everything before Flushed is on the device, with the names of its files. Readers see what lies before the end of
// Bounds. Written is beyond that only in [Staged] mode. Behind it lie zeros, unless an unclean stop left something:
// opening does not recover, it takes the end of the last file for the end; the owner looks with ViewSegment and then
// calls SetEnd or TruncateAfter.
//
// # Durability
//
// A segment's length and its name (and the names of directories that were made for it) are made durable before Sync
// counts the first byte in it, and before a further segment is made: after a power cut there is no gap between files.
// The first sync that fails is final: the kernel may have dropped the pages. Its error is kept and returned by every
// later Append and Sync; reads go on.
//
// # Memory
//
// Bytes of a mapping leave the package inside a [View] only. Unmapping, also by eviction, deletion, truncation and
// Close, waits for the last view. Blocks are reserved before a mapping is written, so that a full disk is an error
// (syscall.ENOSPC) and not a signal; what else may go wrong in mapped memory becomes [ErrFault] in [Guard].
//
// # Goroutines
//
// Append, Fill, WriteAt, SetEnd, Begin, Repair, TruncateAfter and DeleteBefore are for one goroutine at a time; the
// owner's append lock sees to that. Views, Sync, Commit, Bounds and the other methods that only look may be called from
// many goroutines next to it. The one thing that the owner must keep apart is WriteAt and the reading of the same bytes.
//
// The file layer is [FS]: [OpenDir] is the operating system's, rooted at a directory; [IOFS] reads any io/fs; package
// memfs keeps files on the heap, where the race detector sees them; package crashfs cuts the power.
package mappedfile
