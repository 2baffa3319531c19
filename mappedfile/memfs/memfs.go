package memfs

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// FS is a tree of files on the heap. All methods may be called from many goroutines.
type FS struct {
	mu     sync.Mutex
	root   *node
	locked map[string]bool
	space
}

// node is a file or a directory.
type node struct {
	children map[string]*node // of a directory; nil for a file
	mode     fs.FileMode
	file     *inode
}

// New gives an empty file system.
func New() *FS {
	return &FS{root: newDir(0o755), locked: map[string]bool{}}
}

func newDir(perm fs.FileMode) *node {
	return &node{children: map[string]*node{}, mode: fs.ModeDir | perm.Perm()}
}

// OpenFile opens or makes a file; see [mappedfile.FS].
func (m *FS) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, err := m.parent("open", name)
	if err != nil {
		return nil, err
	}
	n := parent.children[base]
	switch {
	case base == "." || n != nil && n.file == nil:
		return nil, pathError("open", name, syscall.EISDIR)
	case n == nil && flag&os.O_CREATE == 0:
		return nil, pathError("open", name, fs.ErrNotExist)
	case n != nil && flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, pathError("open", name, fs.ErrExist)
	case n == nil:
		n = &node{mode: perm.Perm(), file: &inode{fs: m, modTime: time.Now()}}
		parent.children[base] = n
	}
	f := &file{inode: n.file, name: name, write: flag&(os.O_WRONLY|os.O_RDWR) != 0}
	if flag&os.O_TRUNC != 0 {
		return f, f.Truncate(0)
	}
	return f, nil
}

// WriteFile makes or replaces a file that holds b, which belongs to the file system from then on, and the directories
// above it.
func (m *FS) WriteFile(name string, b []byte) error {
	if err := m.MkdirAll(path.Dir(path.Clean(name)), 0o755); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, err := m.parent("write", name)
	if err != nil {
		return err
	}
	if n := parent.children[base]; base == "." || n != nil && n.file == nil {
		return pathError("write", name, syscall.EISDIR)
	}
	i := &inode{fs: m, modTime: time.Now(), data: slices.Clip(b)}
	if err := i.reserve(0, int64(len(b))); err != nil {
		return pathError("write", name, err)
	}
	parent.children[base] = &node{mode: 0o644, file: i}
	return nil
}

// MkdirAll makes a directory and its parents.
func (m *FS) MkdirAll(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parts, err := split("mkdir", name)
	if err != nil {
		return err
	}
	n := m.root
	for _, part := range parts {
		next := n.children[part]
		if next == nil {
			next = newDir(perm)
			n.children[part] = next
		}
		if next.file != nil {
			return pathError("mkdir", name, syscall.ENOTDIR)
		}
		n = next
	}
	return nil
}

// Rename moves a file or directory, replacing a file of the new name.
func (m *FS) Rename(oldname, newname string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldBase, err := m.parent("rename", oldname)
	if err != nil {
		return err
	}
	to, newBase, err := m.parent("rename", newname)
	if err != nil {
		return err
	}
	n := from.children[oldBase]
	if n == nil {
		return pathError("rename", oldname, fs.ErrNotExist)
	}
	old := to.children[newBase]
	if newBase == "." || old != nil && old != n && (old.file == nil || n.file == nil) {
		return pathError("rename", newname, fs.ErrExist)
	}
	if old != nil && old != n {
		old.file.unlink()
	}
	delete(from.children, oldBase)
	to.children[newBase] = n
	return nil
}

// Remove deletes a file or an empty directory. Open files and mappings of it go on working.
func (m *FS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, err := m.parent("remove", name)
	if err != nil {
		return err
	}
	n := parent.children[base]
	if n == nil {
		return pathError("remove", name, fs.ErrNotExist)
	}
	if len(n.children) > 0 {
		return pathError("remove", name, syscall.ENOTEMPTY)
	}
	if n.file != nil {
		n.file.unlink()
	}
	delete(parent.children, base)
	return nil
}

// ReadDir lists a directory, sorted by name.
func (m *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.dir("readdir", name)
	if err != nil {
		return nil, err
	}
	entries := make([]fs.DirEntry, 0, len(n.children))
	for _, base := range slices.Sorted(maps.Keys(n.children)) {
		entries = append(entries, fs.FileInfoToDirEntry(n.children[base].info(base)))
	}
	return entries, nil
}

// SyncDir checks that the directory exists: nothing here is ever durable.
func (m *FS) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.dir("sync", name)
	return err
}

// SyncAll does nothing.
func (m *FS) SyncAll() error { return nil }

// Lock takes the writer's lock, making the file.
func (m *FS) Lock(name string) (io.Closer, error) {
	f, err := m.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := path.Clean(name)
	if m.locked[key] {
		return nil, fmt.Errorf("lock %s: %w", name, mappedfile.ErrLocked)
	}
	m.locked[key] = true
	return &lock{fs: m, key: key, f: f}, nil
}

type lock struct {
	fs   *FS
	key  string
	f    mappedfile.File
	once sync.Once
}

func (l *lock) Close() error {
	err := fs.ErrClosed
	l.once.Do(func() {
		l.fs.mu.Lock()
		defer l.fs.mu.Unlock()
		delete(l.fs.locked, l.key)
		err = l.f.Close()
	})
	return err
}

// parent gives the directory of name and the last part of it, "." for the root itself. The caller holds mu.
func (m *FS) parent(op, name string) (*node, string, error) {
	parts, err := split(op, name)
	if err != nil {
		return nil, "", err
	}
	if len(parts) == 0 {
		return m.root, ".", nil
	}
	n := m.root
	for _, part := range parts[:len(parts)-1] {
		if n = n.children[part]; n == nil {
			return nil, "", pathError(op, name, fs.ErrNotExist)
		}
		if n.file != nil {
			return nil, "", pathError(op, name, syscall.ENOTDIR)
		}
	}
	return n, parts[len(parts)-1], nil
}

// dir gives the directory called name. The caller holds mu.
func (m *FS) dir(op, name string) (*node, error) {
	parent, base, err := m.parent(op, name)
	if err != nil {
		return nil, err
	}
	n := parent
	if base != "." {
		n = parent.children[base]
	}
	if n == nil {
		return nil, pathError(op, name, fs.ErrNotExist)
	}
	if n.file != nil {
		return nil, pathError(op, name, syscall.ENOTDIR)
	}
	return n, nil
}

func split(op, name string) ([]string, error) {
	clean := path.Clean(name)
	if !fs.ValidPath(clean) {
		return nil, pathError(op, name, fs.ErrInvalid)
	}
	if clean == "." {
		return nil, nil
	}
	return strings.Split(clean, "/"), nil
}

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// info describes a node at the time of the call.
func (n *node) info(name string) fs.FileInfo {
	i := info{name: name, mode: n.mode}
	if n.file != nil {
		i.size, i.modTime = n.file.stat()
	}
	return i
}

type info struct {
	name    string
	size    int64
	mode    fs.FileMode
	modTime time.Time
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return i.mode }
func (i info) ModTime() time.Time { return i.modTime }
func (i info) IsDir() bool        { return i.mode.IsDir() }
func (i info) Sys() any           { return nil }
