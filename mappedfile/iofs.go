package mappedfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
)

// IOFS reads a store directory out of any file system of package io/fs: os.DirFS, a zip archive, an embedded image.
// Whatever would change it is [ErrReadOnly]. Files that cannot be read at an offset are read as a whole on first use;
// Map copies into the heap.
func IOFS(fsys fs.FS) FS { return ioFS{fsys} }

type ioFS struct{ fs fs.FS }

func (d ioFS) OpenFile(name string, flag int, _ fs.FileMode) (File, error) {
	if flag != os.O_RDONLY {
		return nil, refuse("open", name)
	}
	f, err := d.fs.Open(path.Clean(name))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if info.IsDir() {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: name, Err: errors.New("is a directory")}, f.Close())
	}
	r := &ioFile{name: name, size: info.Size(), f: f}
	r.at, _ = f.(io.ReaderAt)
	return r, nil
}

func (d ioFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(d.fs, path.Clean(name)) }

func (d ioFS) MkdirAll(name string, _ fs.FileMode) error { return refuse("mkdir", name) }
func (d ioFS) Rename(name, _ string) error               { return refuse("rename", name) }
func (d ioFS) Remove(name string) error                  { return refuse("remove", name) }
func (d ioFS) SyncDir(name string) error                 { return refuse("sync", name) }
func (d ioFS) Lock(name string) (io.Closer, error)       { return nil, refuse("lock", name) }

type ioFile struct {
	name string
	size int64

	mu sync.Mutex // guards reading the whole file
	f  fs.File
	at io.ReaderAt
}

func (f *ioFile) Name() string         { return f.name }
func (f *ioFile) Size() (int64, error) { return f.size, nil }
func (f *ioFile) Close() error         { return f.f.Close() }

func (f *ioFile) ReadAt(b []byte, off int64) (int, error) {
	at, err := f.readerAt()
	if err != nil {
		return 0, err
	}
	return at.ReadAt(b, off)
}

func (f *ioFile) readerAt() (io.ReaderAt, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil {
		b, err := io.ReadAll(f.f) // grows with what is there, not with what the archive claims
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.name, err)
		}
		f.at = bytes.NewReader(b)
	}
	return f.at, nil
}

func (f *ioFile) Map(size int64, access Access) (Mapping, error) {
	if access != ReadOnly {
		return nil, refuse("map", f.name)
	}
	if size <= 0 || size > f.size || int64(int(size)) != size {
		return nil, &fs.PathError{Op: "map", Path: f.name, Err: fmt.Errorf("cannot map %d of %d bytes", size, f.size)}
	}
	at, err := f.readerAt()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, io.NewSectionReader(at, 0, size), size); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.name, err)
	}
	return &heapMapping{b.Bytes()}, nil
}

func (f *ioFile) WriteAt([]byte, int64) (int, error) { return 0, refuse("write", f.name) }
func (f *ioFile) Allocate(int64, int64) error        { return refuse("allocate", f.name) }
func (f *ioFile) Truncate(int64) error               { return refuse("truncate", f.name) }
func (f *ioFile) Sync() error                        { return refuse("sync", f.name) }

type heapMapping struct{ b []byte }

func (m *heapMapping) Bytes() []byte                 { return m.b }
func (m *heapMapping) SyncRange(int, int) error      { return ErrReadOnly }
func (m *heapMapping) Advise(int, int, Advice) error { return nil }
func (m *heapMapping) Unmap() error                  { m.b = nil; return nil }
