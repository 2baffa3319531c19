package index

import (
	"fmt"
	"path"
	"slices"
)

// DropAfterTime removes what an unclean stop may have left torn, t being the checkpoint's index time in ms: the first file
// that ends after t, is not full or has a damaged header, and all files behind it; and all behind the first file that ends
// exactly at t, for that is the one whose end became the index time ([Index.FullThrough]). Java removes by time alone; but a
// file that is not full was not synced for the checkpoint, one behind it may seem older since the clock went back, and nothing
// is put again into a file that another one follows. Files of length 0 go as well. [Index.DroppedFrom] says where the index
// has to be made again from. It returns the files removed, newest first, as paths; the removal is durable.
func (x *Index) DropAfterTime(t int64) ([]string, error) { return x.DropTail(Synced(x.Files(), t)) }

// Synced says how many of the files, from the oldest on, a checkpoint with index time t proves to be whole after an unclean
// stop. [Index.DropAfterTime] keeps these.
func Synced(files []FileInfo, t int64) int {
	for i, f := range files {
		if f.Damaged != nil || f.Header.IndexCount < f.Entries || f.Header.EndTimestamp > t || i > 0 && files[i-1].Header.EndTimestamp == t {
			return i
		}
	}
	return len(files)
}

// DropTail removes all files but the oldest keep. All else is as with [Index.DropAfterTime].
func (x *Index) DropTail(keep int) ([]string, error) {
	n := -1
	return x.dropTail(func(*file) bool { n++; return n >= keep })
}

// DropFrom removes the first file whose end offset is physicalOffset or more, or whose header is damaged, and all files
// behind it: the log ends there, so what they say of it is about records that are gone. All else is as with
// [Index.DropAfterTime].
func (x *Index) DropFrom(physicalOffset int64) ([]string, error) {
	return x.dropTail(func(f *file) bool { return f.head.EndOffset >= physicalOffset })
}

// RemoveAll removes every index file, newest first, and leaves foreign files alone. All else is as with [Index.DropAfterTime].
func (x *Index) RemoveAll() ([]string, error) {
	return x.dropTail(func(*file) bool { return true })
}

// DroppedFrom is where the index has to be made again from, because of the files dropped since [Open]: the offset of the
// last record of the last file that stayed, or where the first dropped file began when none stayed before it (0 when it
// does not say). Ok is false when nothing was dropped.
func (x *Index) DroppedFrom() (physicalOffset int64, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.dropped.from, x.dropped.any
}

// dropTail removes the first file that is damaged or for which bad holds, and all behind it.
func (x *Index) dropTail(bad func(*file) bool) ([]string, error) {
	x.syncMu.Lock()
	defer x.syncMu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.writable(); err != nil {
		return nil, err
	}
	keep := slices.IndexFunc(x.files, func(f *file) bool { return f.damaged != nil || bad(f) })
	if keep < 0 {
		keep = len(x.files)
	}
	x.noteDropped(keep)
	var names []string
	for len(x.files) > keep {
		f := x.files[len(x.files)-1]
		if err := f.close(); err != nil {
			return names, x.fail(err)
		}
		x.files = x.files[:len(x.files)-1]
		if err := x.remove(f.path, &names); err != nil {
			return names, err
		}
		// Each for itself: an older removal that reached the disk alone would leave a hole, which nothing can fill.
		if err := x.syncDir(); err != nil {
			return names, err
		}
	}
	n := len(names)
	for ; len(x.empty) > 0; x.empty = x.empty[1:] {
		if err := x.remove(path.Join(x.dir, x.empty[0]), &names); err != nil {
			return names, err
		}
	}
	x.newest = ""
	if keep > 0 {
		x.newest = x.files[keep-1].name
	}
	if len(names) == n {
		return names, nil
	}
	return names, x.syncDir()
}

// noteDropped remembers what the files from keep on held.
func (x *Index) noteDropped(keep int) {
	if keep == len(x.files) {
		return
	}
	from := int64(0)
	if first := x.files[keep]; first.damaged == nil && first.head.Keys() > 0 {
		from = first.head.BeginOffset
	}
	for _, f := range slices.Backward(x.files[:keep]) {
		if f.damaged == nil {
			from = f.head.EndOffset
			break
		}
	}
	for _, f := range x.files[keep:] {
		if f.damaged == nil && f.head.Keys() > 0 {
			from = min(from, f.head.BeginOffset)
		}
	}
	if x.dropped.any {
		from = min(from, x.dropped.from)
	}
	x.dropped = dropped{true, from}
}

// remove deletes one file and notes its name. A failure is final: the file would be found again behind newer ones.
func (x *Index) remove(name string, names *[]string) error {
	if err := x.fsys.Remove(name); err != nil {
		return x.fail(err)
	}
	*names = append(*names, name)
	x.opts.Logger.Info("index file removed", "file", name)
	return nil
}

// syncDir makes removals durable.
func (x *Index) syncDir() error {
	if err := x.fsys.SyncDir(x.dir); err != nil {
		return x.fail(fmt.Errorf("sync directory %s: %w", x.dir, err))
	}
	return nil
}

// DeleteBefore removes the files, oldest first and never the last one, all of whose records lie below logMin, where the commit
// log now begins. It returns them as paths; the removal is durable.
func (x *Index) DeleteBefore(logMin int64) ([]string, error) {
	x.syncMu.Lock()
	defer x.syncMu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.writable(); err != nil {
		return nil, err
	}
	var names []string
	for len(x.files) > 1 && x.endsBefore(0, logMin) {
		f := x.files[0]
		if err := f.close(); err != nil {
			return names, x.fail(err)
		}
		x.files = x.files[1:]
		if err := x.remove(f.path, &names); err != nil {
			return names, err
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return names, x.syncDir()
}

// DeletableBefore lists the files that [Index.DeleteBefore] removes.
func (x *Index) DeletableBefore(logMin int64) []FileInfo {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var infos []FileInfo
	for i, f := range x.files[:max(0, len(x.files)-1)] {
		if !x.endsBefore(i, logMin) {
			break
		}
		infos = append(infos, FileInfo{f.name, f.head, f.shape, f.damaged})
	}
	return infos
}

// endsBefore says whether all records of a file that is not the last lie below logMin. Where its header is damaged, the next
// file's begins no earlier than it ended. The caller holds mu.
func (x *Index) endsBefore(i int, logMin int64) bool {
	if f := x.files[i]; f.damaged == nil {
		return f.head.EndOffset < logMin
	}
	next := x.files[i+1]
	return next.damaged == nil && next.head.BeginOffset < logMin
}
