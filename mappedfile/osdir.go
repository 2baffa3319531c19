package mappedfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/edsrzf/mmap-go"
)

// DirOptions configure [OpenDir]. Nil means the defaults.
type DirOptions struct {
	// ReadOnly refuses everything that would change the directory with [ErrReadOnly], and does not create it.
	ReadOnly bool
	// DirMode is the mode of the directory if it is made. Default 0750.
	DirMode fs.FileMode
}

// OpenDir gives the operating system's files below dir, which is made if it is missing (not when reading only). No name
// can leave it, not by a symbolic link either. The result is an io.Closer too; files stay usable after its Close.
func OpenDir(dir string, o *DirOptions) (FS, error) {
	var opts DirOptions
	if o != nil {
		opts = *o
	}
	if opts.DirMode == 0 {
		opts.DirMode = 0o750
	}
	if !opts.ReadOnly {
		if err := makeRoot(dir, opts.DirMode); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &osFS{root: root, readOnly: opts.ReadOnly}, nil
}

// makeRoot makes dir and makes its name durable.
func makeRoot(dir string, mode fs.FileMode) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(filepath.Clean(dir)))
	if err != nil {
		return err
	}
	return errors.Join(syncDir(parent), parent.Close())
}

type osFS struct {
	root     *os.Root
	readOnly bool
}

func (d *osFS) Close() error { return d.root.Close() }

func (d *osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	if d.readOnly && flag != os.O_RDONLY {
		return nil, refuse("open", name)
	}
	f, err := d.openRegular(name, flag, perm)
	if err == nil && flag&(os.O_RDWR|os.O_WRONLY) != 0 {
		if info, bad := f.Stat(); bad == nil && links(info) > 1 {
			f, err = d.unshare(name, f, flag)
		}
	}
	if err != nil {
		return nil, err
	}
	return &osFile{File: f, name: name}, nil
}

// openRegular opens a file, and nothing else that may stand in its place: that is a [CorruptError]. It never waits, as
// opening a named pipe would.
func (d *osFS) openRegular(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := d.root.OpenFile(filepath.FromSlash(name), flag|noWait, perm)
	if err != nil {
		return nil, d.located(name, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &CorruptError{File: name, Err: fmt.Errorf("is no regular file but %s", KindOf(info.Mode()))}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// KindOf says in a word or two what a mode is that of.
func KindOf(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "a file"
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// located puts the store's directory into an error about one of its names; what stands in the way of a name is a
// [CorruptError].
func (d *osFS) located(name string, err error) error {
	for _, wrong := range []error{syscall.ELOOP, syscall.ENXIO, syscall.EISDIR, syscall.ENOTDIR} {
		if errors.Is(err, wrong) {
			return &CorruptError{File: name, Err: fmt.Errorf("cannot be opened: %w", wrong)}
		}
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: filepath.Join(d.root.Name(), name), Err: e.Err}
	}
	return err
}

// openFolder opens a directory.
func (d *osFS) openFolder(name string) (*os.File, error) {
	f, err := d.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|onlyFolder, 0)
	if err != nil {
		return nil, d.located(name, err)
	}
	return f, nil
}

func (d *osFS) MkdirAll(name string, perm fs.FileMode) error {
	if d.readOnly {
		return refuse("mkdir", name)
	}
	if err := d.root.MkdirAll(filepath.FromSlash(name), perm); err != nil {
		return d.located(name, err)
	}
	return nil
}

func (d *osFS) Rename(oldname, newname string) error {
	if d.readOnly {
		return refuse("rename", oldname)
	}
	return d.root.Rename(filepath.FromSlash(oldname), filepath.FromSlash(newname))
}

func (d *osFS) Remove(name string) error {
	if d.readOnly {
		return refuse("remove", name)
	}
	if err := d.root.Remove(filepath.FromSlash(name)); err != nil {
		return d.located(name, err)
	}
	return nil
}

func (d *osFS) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := d.openFolder(name)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, errors.Join(err, f.Close())
}

func (d *osFS) SyncDir(name string) error {
	if d.readOnly {
		return refuse("sync", name)
	}
	f, err := d.openFolder(name)
	if err != nil {
		return err
	}
	return errors.Join(syncDir(f), f.Close())
}

// SyncAll makes everything on the directory's file system durable, where the system can.
func (d *osFS) SyncAll() error {
	if d.readOnly {
		return refuse("sync", ".")
	}
	f, err := d.openFolder(".")
	if err != nil {
		return err
	}
	return errors.Join(syncFileSystem(f), f.Close())
}

func (d *osFS) Lock(name string) (io.Closer, error) {
	if d.readOnly {
		return nil, refuse("lock", name)
	}
	f, err := d.openRegular(name, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", filepath.Join(d.root.Name(), name), err), f.Close())
	}
	return f, nil
}

func refuse(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: ErrReadOnly} }

type osFile struct {
	*os.File
	name string
}

func (f *osFile) Name() string { return f.name }

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *osFile) Allocate(off, n int64) error {
	if err := allocate(f.File, off, n); err != nil {
		return &fs.PathError{Op: "allocate", Path: f.name, Err: err}
	}
	return nil
}

func (f *osFile) Sync() error { return syncFile(f.File) }

// StartSync sends n bytes from off on to the device and waits for nothing, where the system has that; else it is Sync.
func (f *osFile) StartSync(off, n int64) error { return startSync(f.File, off, n) }

func (f *osFile) NextData(off int64) (int64, bool) { return nextData(f.File, off) }

func (f *osFile) Map(size int64, access Access) (Mapping, error) {
	have, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size <= 0 || size > have || int64(int(size)) != size {
		return nil, &fs.PathError{Op: "map", Path: f.name, Err: fmt.Errorf("cannot map %d of %d bytes", size, have)}
	}
	prot := mmap.RDONLY
	if access == ReadWrite {
		prot = mmap.RDWR
	}
	m, err := mmap.MapRegion(f.File, int(size), prot, 0, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "map", Path: f.name, Err: err}
	}
	return &osMapping{m: m, name: f.name}, nil
}

type osMapping struct {
	m    mmap.MMap
	name string
}

func (m *osMapping) Bytes() []byte { return m.m }

func (m *osMapping) SyncRange(off, n int) error {
	if n <= 0 {
		return nil
	}
	page := os.Getpagesize()
	lo := off / page * page
	if err := msync(m.m, lo, min((off+n+page-1)/page*page, len(m.m))); err != nil {
		return &fs.PathError{Op: "msync", Path: m.name, Err: err}
	}
	return nil
}

func (m *osMapping) Advise(off, n int, a Advice) error {
	page := os.Getpagesize()
	lo, hi := off/page*page, min((off+n+page-1)/page*page, len(m.m))
	if lo >= hi {
		return nil
	}
	if err := advise(m.m[lo:hi], a); err != nil {
		return &fs.PathError{Op: "madvise", Path: m.name, Err: err}
	}
	return nil
}

func (m *osMapping) Unmap() error {
	if m.m == nil {
		return nil
	}
	return m.m.Unmap()
}
