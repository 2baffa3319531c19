package index

import (
	"encoding/binary"
	"fmt"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Sync makes durable what was put before it. Puts and queries go on meanwhile. The first failure is final, since the kernel
// may have dropped what it could not write: later calls and puts give it again, and queries go on. In an index for reading
// there is nothing to do.
func (x *Index) Sync() error {
	x.syncMu.Lock()
	defer x.syncMu.Unlock()
	if err := x.beforeSync(); err != nil || x.opts.ReadOnly {
		return err
	}
	for {
		job, ok := x.nextSync()
		if !ok {
			return nil
		}
		err := job.run()
		x.mu.Lock()
		if err == nil {
			job.f.durable = job.full
		} else {
			err = x.fail(fmt.Errorf("sync %s: %w", job.f.path, err))
		}
		x.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// beforeSync says why nothing can be synced. It also does what 5.x does when it stops: a last file without entries gets the
// index count 1.
func (x *Index) beforeSync() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed || x.failed != nil || x.opts.ReadOnly {
		if x.opts.ReadOnly && !x.closed {
			return nil
		}
		return x.writable()
	}
	if len(x.files) == 0 || !x.rules.countsEmpty {
		return nil
	}
	f := x.files[len(x.files)-1]
	if f.damaged != nil || f.head.Keys() > 0 {
		return nil
	}
	return mappedfile.Guard(f.path, func() error {
		count := f.b[posIndexCount:HeaderSize]
		if binary.BigEndian.Uint32(count) != 0 {
			return nil
		}
		if err := f.reserve(); err != nil {
			return err
		}
		binary.BigEndian.PutUint32(count, 1)
		f.dirty = true
		return nil
	})
}

// syncJob is what one file needs to be durable.
type syncJob struct {
	f        *file
	from, to int64 // bytes of entries
	written  bool  // through this index
	full     bool  // and nothing will be written behind it
}

// nextSync takes the oldest file that needs syncing.
func (x *Index) nextSync() (syncJob, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.files {
		job := syncJob{f, f.dirtyFrom, f.dirtyTo, f.dirty, f.full()}
		if f.damaged == nil && (job.written || job.full && !f.durable) {
			f.dirty, f.dirtyFrom, f.dirtyTo = false, 0, 0
			return job, true
		}
	}
	return syncJob{}, false
}

// run syncs entries before the slots that point at them. A file that is full is synced as a whole: a process before this one
// may have been killed before it synced what it had put there.
func (j syncJob) run() error {
	if j.to > j.from {
		if err := j.f.m.SyncRange(int(j.from), int(j.to-j.from)); err != nil {
			return err
		}
	}
	if j.written {
		if err := j.f.m.SyncRange(0, int(j.f.shape.entryPos(0))); err != nil {
			return err
		}
	}
	if j.full {
		return j.f.h.Sync()
	}
	return nil
}

// FullThrough is the end timestamp in ms of the newest file such that it and all before it are full and synced; 0 when there is
// none. It is the checkpoint's index time: files up to it survive an unclean stop. A file that was full when it was opened
// counts from the next [Index.Sync] on. Files with a damaged header do not count.
func (x *Index) FullThrough() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	t := int64(0)
	for _, f := range x.files {
		if f.damaged != nil {
			continue
		}
		if !f.full() || !f.durable {
			break
		}
		t = f.head.EndTimestamp
	}
	return t
}
