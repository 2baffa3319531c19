package crashfs

import (
	"io/fs"
	"slices"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// file is one open file.
type file struct {
	mappedfile.File // the inner one
	fs              *FS
	node            *node
}

func (f *file) event(op Op, off, n int64) Event {
	return Event{Op: op, Name: f.Name(), Off: off, N: n}
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	if err := f.allow(f.event(OpRead, off, int64(len(b)))); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, off)
}

// allow is begin for operations that do not change anything.
func (f *file) allow(e Event) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	_, err := f.fs.begin(e)
	return err
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if ignored, err := f.fs.begin(f.event(OpWrite, off, int64(len(b)))); err != nil || ignored {
		return len(b), err
	}
	n, err := f.File.WriteAt(b, off)
	if err != nil {
		return n, err
	}
	return n, f.node.resized()
}

func (f *file) Allocate(off, n int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if ignored, err := f.fs.begin(f.event(OpAllocate, off, n)); err != nil || ignored {
		return err
	}
	if err := f.File.Allocate(off, n); err != nil {
		return err
	}
	return f.node.resized()
}

func (f *file) Truncate(size int64) error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	return f.truncate(size)
}

func (f *file) truncate(size int64) error {
	if ignored, err := f.fs.begin(f.event(OpTruncate, size, 0)); err != nil || ignored {
		return err
	}
	if err := f.File.Truncate(size); err != nil {
		return err
	}
	return f.node.resized()
}

// Sync makes the file durable in the simulation. The inner file is not synced: nobody needs it.
func (f *file) Sync() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	size, err := f.node.size()
	if err != nil {
		return err
	}
	ignored, err := f.fs.begin(f.event(OpSync, 0, size))
	if ignored {
		return nil
	}
	if err != nil {
		return f.node.failSync(f.fs, 0, size, err)
	}
	return f.node.sync()
}

// failSync gives err after noting which pages are lost, unless it is the power that is off.
func (n *node) failSync(c *FS, from, to int64, err error) error {
	if c.crashedErr() == nil {
		if lerr := n.lose(from, to); lerr != nil {
			return lerr
		}
	}
	return err
}

func (f *file) Map(size int64, access mappedfile.Access) (mappedfile.Mapping, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if _, err := f.fs.begin(f.event(OpMap, 0, size)); err != nil {
		return nil, err
	}
	inner, err := f.File.Map(size, access)
	if err != nil {
		return nil, err
	}
	m := &mapping{Mapping: inner, fs: f.fs, node: f.node, name: f.Name()}
	if access == mappedfile.ReadWrite {
		f.node.mappings = append(f.node.mappings, m)
		f.node.touched = true
	}
	return m, nil
}

// mapping is one mapped file.
type mapping struct {
	mappedfile.Mapping // the inner one
	fs                 *FS
	node               *node
	name               string
}

func (m *mapping) SyncRange(off, n int) error {
	m.fs.mu.Lock()
	defer m.fs.mu.Unlock()
	from, to := int64(off), int64(off)+int64(n)
	ignored, err := m.fs.begin(Event{Op: OpSyncRange, Name: m.name, Off: from, N: int64(n)})
	if ignored {
		return nil
	}
	if err != nil {
		return m.node.failSync(m.fs, from, to, err)
	}
	b := m.Bytes()
	if off < 0 || n < 0 || to > int64(len(b)) {
		return &fs.PathError{Op: "msync", Path: m.name, Err: fs.ErrInvalid}
	}
	m.node.syncRange(b, from, to)
	return nil
}

func (m *mapping) Unmap() error {
	m.fs.mu.Lock()
	defer m.fs.mu.Unlock()
	m.node.mappings = slices.DeleteFunc(m.node.mappings, func(e *mapping) bool { return e == m })
	return m.Mapping.Unmap()
}
