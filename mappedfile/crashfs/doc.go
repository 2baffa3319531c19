// Package crashfs is a [mappedfile.FS] that cuts the power. It wraps another file layer (memfs as a rule), keeps beside
// each file what is durable of it, and gives images: fresh file systems that hold one of the states in which a disk may be
// found after the power failed at this moment. It also fails operations on demand.
//
// # What is durable when
//
//	bytes written by WriteAt or through a mapping   after File.Sync, or Mapping.SyncRange of exactly that range
//	a length (Truncate, Allocate, growing WriteAt)  after File.Sync
//	a name made, removed, renamed                   after SyncDir of its directory
//
// Whatever is not durable may be there or not, each piece for itself and in any order: of each 4096-byte page the old
// bytes, the new ones, or some of its 512-byte sectors new; of lengths the durable one or any that the file had since; of
// names each change or not (a rename in one step: the old name or the new). A file's content may be durable while its
// name is not. Writes through a mapping are found by comparing its bytes with what is durable. A removal in one
// directory and an addition in another that are one rename never lose the file.
//
// After a sync that was made to fail, the pages that it was to write are lost unless they are changed again: a later
// sync says that all is well and does not write them, as Linux does.
//
// # Use
//
//	fsys := crashfs.New(memfs.New())
//	fsys.CrashAfter(n)                  // after n changing operations everything fails with ErrCrashed
//	workload(fsys)                      // runs until it sees that error
//	for seed := range uint64(100) {
//		reopen(fsys.Image(seed))        // recover, check what was acknowledged and that nothing was invented
//	}
//
// Seed 0 is the disk where nothing unsynced arrived, seed 1 the one where everything did (a killed process); others are
// random. [FS.Images] goes through the images of a short history one by one. Many images of one moment are cheapest from one
// [FS.Snapshot]. A test of this kind must also see a planted bug: [FS.Ignore] makes the disk lie, as if the caller had left
// a sync out.
package crashfs
