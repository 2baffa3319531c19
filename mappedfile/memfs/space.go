package memfs

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"sync/atomic"
	"syscall"
)

const page = 4096

// space counts what the files take.
type space struct {
	limit    atomic.Int64 // pages; 0 none
	used     atomic.Int64 // pages
	mappings atomic.Int64
}

// Limit lets all files together have n bytes of blocks, in whole pages; 0 is no limit. Allocate and WriteAt beyond it fail
// with syscall.ENOSPC and do nothing.
func (m *FS) Limit(n int64) { m.limit.Store((n + page - 1) / page) }

// Used gives the bytes of blocks that files have, in whole pages.
func (m *FS) Used() int64 { return m.used.Load() * page }

// Mappings gives the number of mappings not unmapped.
func (m *FS) Mappings() int { return int(m.mappings.Load()) }

// Unreserved lists the pages, as "file: offset", that hold something other than zero and were neither reserved by
// Allocate nor written by WriteAt: writing them through the mapping would have killed the process on a full disk.
// No other goroutine may be writing.
func (m *FS) Unreserved() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.root.unreserved(".")
}

func (n *node) unreserved(name string) []string {
	if n.file != nil {
		return n.file.unreserved(name)
	}
	var found []string
	for _, base := range slices.Sorted(maps.Keys(n.children)) {
		found = append(found, n.children[base].unreserved(path.Join(name, base))...)
	}
	return found
}

func (i *inode) unreserved(name string) []string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	var found []string
	for off := 0; off < len(i.data); off += page {
		if !i.has(int64(off/page)) && slices.ContainsFunc(i.data[off:min(off+page, len(i.data))], func(c byte) bool { return c != 0 }) {
			found = append(found, fmt.Sprintf("%s: %d", name, off))
		}
	}
	return found
}

func (i *inode) has(p int64) bool {
	return p/64 < int64(len(i.blocks)) && i.blocks[p/64]&(1<<(p%64)) != 0
}

// reserve takes blocks for n bytes from off on, all or none. The caller holds mu.
func (i *inode) reserve(off, n int64) error {
	if n == 0 {
		return nil
	}
	first, last := off/page, (off+n-1)/page
	need := int64(0)
	for p := first; p <= last; p++ {
		if !i.has(p) {
			need++
		}
	}
	if need == 0 {
		return nil
	}
	if used := i.fs.used.Add(need); i.fs.limit.Load() > 0 && used > i.fs.limit.Load() {
		i.fs.used.Add(-need)
		return syscall.ENOSPC
	}
	for int64(len(i.blocks)) <= last/64 {
		i.blocks = append(i.blocks, 0)
	}
	for p := first; p <= last; p++ {
		i.blocks[p/64] |= 1 << (p % 64)
	}
	i.reserved += need
	return nil
}

// release gives the blocks of the pages [from, to) back. The caller holds mu.
func (i *inode) release(from, to int64) {
	for p := from; p < min(to, int64(len(i.blocks)*64)); p++ {
		if i.has(p) {
			i.blocks[p/64] &^= 1 << (p % 64)
			i.reserved--
			i.fs.used.Add(-1)
		}
	}
}
