package crashfs

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// FS is a file layer with a power switch. All methods may be called from many goroutines.
type FS struct {
	inner mappedfile.FS

	mu      sync.Mutex // guards all below, and nodes
	root    *node
	pending []*change
	err     error // of reading inner
	faults
}

// New wraps inner; what it holds already is durable. Nobody else may use inner from then on. If inner cannot be read,
// every operation says so.
func New(inner mappedfile.FS) *FS {
	c := &FS{inner: inner, root: newDir(0o755)}
	c.err = c.load(c.root, ".")
	return c
}

// load takes what is in a directory for durable.
func (c *FS) load(dir *node, name string) error {
	entries, err := c.inner.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range entries {
		sub := path.Join(name, e.Name())
		info, err := e.Info()
		if err != nil {
			return err
		}
		n := newDir(info.Mode())
		if e.IsDir() {
			err = c.load(n, sub)
		} else {
			n, err = c.loadFile(sub, info.Mode())
		}
		if err != nil {
			return err
		}
		dir.live[e.Name()], dir.durable[e.Name()] = n, n
	}
	return nil
}

func (c *FS) loadFile(name string, perm fs.FileMode) (*node, error) {
	f, err := c.inner.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	n := &node{perm: perm.Perm(), inner: f}
	return n, n.sync()
}

// OpenFile opens or makes a file; see [mappedfile.FS].
func (c *FS) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	parent, base, err := c.parent("open", name)
	if err != nil {
		return nil, err
	}
	n := parent.live[base]
	op := OpOpen
	if n == nil && flag&os.O_CREATE != 0 {
		op = OpCreate
	}
	if _, err := c.begin(Event{Op: op, Name: name}); err != nil {
		return nil, err
	}
	f, err := c.inner.OpenFile(name, flag&^os.O_TRUNC, perm)
	if err != nil {
		return nil, err
	}
	if n == nil {
		// One handle stays open, to read the content whatever happens to the name.
		keep, err := c.inner.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		n = &node{perm: perm.Perm(), inner: keep}
		c.change(part{parent, base, n})
	}
	wrapped := &file{File: f, fs: c, node: n}
	if flag&os.O_TRUNC != 0 {
		return wrapped, wrapped.truncate(0)
	}
	return wrapped, nil
}

// MkdirAll makes a directory and its parents.
func (c *FS) MkdirAll(name string, perm fs.FileMode) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !fs.ValidPath(path.Clean(name)) {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrInvalid}
	}
	n := c.root
	var sofar string
	for base := range strings.SplitSeq(path.Clean(name), "/") {
		if base == "." {
			continue
		}
		sofar = path.Join(sofar, base)
		next := n.live[base]
		if next == nil {
			ignored, err := c.begin(Event{Op: OpMkdir, Name: sofar})
			if err != nil || ignored {
				return err
			}
			if err := c.inner.MkdirAll(sofar, perm); err != nil {
				return err
			}
			next = newDir(perm)
			c.change(part{n, base, next})
		}
		if !next.isDir() {
			return c.inner.MkdirAll(name, perm) // it knows the error
		}
		n = next
	}
	return c.crashedErr()
}

// Rename replaces newname by oldname in one step.
func (c *FS) Rename(oldname, newname string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ignored, err := c.begin(Event{Op: OpRename, Name: oldname, NewName: newname}); err != nil || ignored {
		return err
	}
	from, oldBase, err := c.parent("rename", oldname)
	if err != nil {
		return err
	}
	to, newBase, err := c.parent("rename", newname)
	if err != nil {
		return err
	}
	if err := c.inner.Rename(oldname, newname); err != nil {
		return err
	}
	if from != to || oldBase != newBase {
		c.change(part{to, newBase, from.live[oldBase]}, part{from, oldBase, nil})
	}
	return nil
}

// Remove deletes a file or an empty directory.
func (c *FS) Remove(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ignored, err := c.begin(Event{Op: OpRemove, Name: name}); err != nil || ignored {
		return err
	}
	parent, base, err := c.parent("remove", name)
	if err != nil {
		return err
	}
	if err := c.inner.Remove(name); err != nil {
		return err
	}
	c.change(part{parent, base, nil})
	return nil
}

// ReadDir lists a directory.
func (c *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.begin(Event{Op: OpReadDir, Name: name}); err != nil {
		return nil, err
	}
	return c.inner.ReadDir(name)
}

// SyncDir makes the names of a directory durable.
func (c *FS) SyncDir(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ignored, err := c.begin(Event{Op: OpSyncDir, Name: name}); err != nil || ignored {
		return err
	}
	n, err := c.dir("sync", name)
	if err != nil {
		return err
	}
	c.syncDir(n)
	return nil
}

// SyncAll makes everything durable. It counts as one operation.
func (c *FS) SyncAll() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ignored, err := c.begin(Event{Op: OpSyncAll, Name: "."}); err != nil || ignored {
		return err
	}
	for _, ch := range c.pending {
		for _, p := range ch.parts {
			p.dir.durable = maps.Clone(p.dir.live)
		}
	}
	c.pending = nil
	return c.root.syncTree()
}

// Lock takes the writer's lock of the inner file layer.
func (c *FS) Lock(name string) (io.Closer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	parent, base, err := c.parent("lock", name)
	if err != nil {
		return nil, err
	}
	op := OpOpen
	if parent.live[base] == nil {
		op = OpCreate
	}
	if _, err := c.begin(Event{Op: op, Name: name}); err != nil {
		return nil, err
	}
	l, err := c.inner.Lock(name)
	if err == nil && parent.live[base] == nil {
		n, err := c.loadFile(name, 0o640)
		if err != nil {
			return nil, err
		}
		c.change(part{parent, base, n})
	}
	return l, err
}

// parent gives the directory of name and the last part of it. The caller holds mu.
func (c *FS) parent(op, name string) (*node, string, error) {
	clean := path.Clean(name)
	if !fs.ValidPath(clean) || clean == "." {
		return nil, "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	dir, err := c.dir(op, path.Dir(clean))
	return dir, path.Base(clean), err
}

// dir gives the directory called name. The caller holds mu.
func (c *FS) dir(op, name string) (*node, error) {
	n := c.root
	for base := range strings.SplitSeq(path.Clean(name), "/") {
		if base == "." {
			continue
		}
		if n = n.live[base]; n == nil {
			return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
	}
	if !n.isDir() {
		return nil, &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("not a directory: %w", fs.ErrInvalid)}
	}
	return n, nil
}
