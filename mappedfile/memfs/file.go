package memfs

import (
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// inode is the content of a file, however many names, open files and mappings it has.
type inode struct {
	fs *FS

	mu       sync.RWMutex
	data     []byte
	modTime  time.Time
	blocks   []uint64 // a bit per reserved page
	reserved int64    // how many
	mappings map[*mapping]struct{}
	unlinked bool
}

func (i *inode) stat() (int64, time.Time) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return int64(len(i.data)), i.modTime
}

// resize sets the length. The caller holds mu.
func (i *inode) resize(size int64) error {
	old := int64(len(i.data))
	for m := range i.mappings {
		if size < int64(len(m.b)) {
			return fmt.Errorf("cut to %d bytes while %d are mapped", size, len(m.b))
		}
	}
	switch {
	case size < 0:
		return syscall.EINVAL
	case size < old:
		clear(i.data[size:])
		i.data = i.data[:size]
		i.release((size+page-1)/page, (old+page-1)/page)
	case size <= int64(cap(i.data)):
		i.data = i.data[:size]
	case len(i.mappings) > 0:
		return fmt.Errorf("grow to %d bytes while mapped", size)
	default:
		data := make([]byte, size)
		copy(data, i.data)
		i.data = data
	}
	i.modTime = time.Now()
	return nil
}

func (i *inode) unlink() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unlinked = true
	i.free()
}

// free gives the blocks of a file back that has neither name nor mapping. The caller holds mu.
func (i *inode) free() {
	if i.unlinked && len(i.mappings) == 0 {
		i.release(0, int64(len(i.blocks)*64))
	}
}

// file is one open file.
type file struct {
	*inode
	name   string
	write  bool
	closed atomic.Bool
}

func (f *file) Name() string { return f.name }

func (f *file) Size() (int64, error) {
	if err := f.check("stat", false); err != nil {
		return 0, err
	}
	size, _ := f.stat()
	return size, nil
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	if err := f.check("read", false); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("read", f.name, fs.ErrInvalid)
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	n := 0
	if off < int64(len(f.data)) {
		n = copy(b, f.data[off:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	if err := f.check("write", true); err != nil {
		return 0, err
	}
	if off < 0 {
		return 0, pathError("write", f.name, fs.ErrInvalid)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	end := off + int64(len(b))
	if err := f.reserve(off, int64(len(b))); err != nil {
		return 0, pathError("write", f.name, err)
	}
	if end > int64(len(f.data)) {
		if err := f.resize(end); err != nil {
			return 0, pathError("write", f.name, err)
		}
	}
	f.modTime = time.Now()
	return copy(f.data[off:], b), nil
}

func (f *file) Allocate(off, n int64) error {
	if err := f.check("allocate", true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if off < 0 || n <= 0 {
		return pathError("allocate", f.name, syscall.EINVAL)
	}
	if err := f.reserve(off, n); err != nil {
		return pathError("allocate", f.name, err)
	}
	if off+n > int64(len(f.data)) {
		if err := f.resize(off + n); err != nil {
			return pathError("allocate", f.name, err)
		}
	}
	return nil
}

func (f *file) Truncate(size int64) error {
	if err := f.check("truncate", true); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.resize(size); err != nil {
		return pathError("truncate", f.name, err)
	}
	return nil
}

func (f *file) Sync() error { return f.check("sync", false) }

func (f *file) Map(size int64, access mappedfile.Access) (mappedfile.Mapping, error) {
	if err := f.check("map", access == mappedfile.ReadWrite); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if size <= 0 || size > int64(len(f.data)) {
		return nil, pathError("map", f.name, fmt.Errorf("cannot map %d of %d bytes", size, len(f.data)))
	}
	m := &mapping{inode: f.inode, name: f.name, b: f.data[:size:size]}
	if f.mappings == nil {
		f.mappings = map[*mapping]struct{}{}
	}
	f.mappings[m] = struct{}{}
	f.fs.mappings.Add(1)
	return m, nil
}

func (f *file) Close() error {
	if f.closed.Swap(true) {
		return pathError("close", f.name, fs.ErrClosed)
	}
	return nil
}

func (f *file) check(op string, write bool) error {
	if f.closed.Load() {
		return pathError(op, f.name, fs.ErrClosed)
	}
	if write && !f.write {
		return pathError(op, f.name, fs.ErrPermission)
	}
	return nil
}

// mapping is a piece of a file's own bytes.
type mapping struct {
	*inode
	name string
	b    []byte // nil when unmapped
}

func (m *mapping) Bytes() []byte { return m.b }

func (m *mapping) SyncRange(off, n int) error { return m.check("msync", off, n) }

func (m *mapping) Advise(off, n int, _ mappedfile.Advice) error { return m.check("madvise", off, n) }

func (m *mapping) check(op string, off, n int) error {
	if off < 0 || n < 0 || off+n > len(m.b) {
		return pathError(op, m.name, syscall.EINVAL)
	}
	return nil
}

func (m *mapping) Unmap() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.b == nil {
		return nil
	}
	delete(m.mappings, m)
	m.b = nil
	m.fs.mappings.Add(-1)
	m.free()
	return nil
}
