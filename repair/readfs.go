package repair

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// readFS lets package inspect, which reads through io/fs, look at the directory that is repaired.
type readFS struct{ mappedfile.FS }

// Open implements fs.FS.
func (r readFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, err := r.OpenFile(name, os.O_RDONLY, 0)
	if err == nil {
		size, err := f.Size()
		if err == nil {
			return &readFile{File: f, info: fileInfo{path.Base(name), size}}, nil
		}
		err = errors.Join(err, f.Close())
		if _, listed := r.ReadDir(name); listed != nil {
			return nil, err
		}
	}
	if _, listed := r.ReadDir(name); listed != nil {
		return nil, err
	}
	return folder{path.Base(name)}, nil
}

// ReadDir implements fs.ReadDirFS.
func (r readFS) ReadDir(name string) ([]fs.DirEntry, error) { return r.FS.ReadDir(name) }

// Stat implements fs.StatFS: what a folder says of an entry, links followed by opening it.
func (r readFS) Stat(name string) (fs.FileInfo, error) {
	if name != "." {
		entries, err := r.FS.ReadDir(path.Dir(name))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Name() == path.Base(name) && e.Type() != fs.ModeSymlink {
				return e.Info()
			}
		}
	}
	f, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	return info, errors.Join(err, f.Close())
}

// readFile is an open file.
type readFile struct {
	mappedfile.File
	info fileInfo
	pos  int64
}

// Stat implements fs.File.
func (f *readFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// Read implements fs.File.
func (f *readFile) Read(b []byte) (int, error) {
	n, err := f.ReadAt(b, f.pos)
	f.pos += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// folder is an open directory; its entries come from readFS.
type folder struct{ name string }

// Stat implements fs.File.
func (d folder) Stat() (fs.FileInfo, error) { return folderInfo{fileInfo{name: d.name}}, nil }

// Read implements fs.File.
func (d folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}

// Close implements fs.File.
func (d folder) Close() error { return nil }

// fileInfo describes a regular file.
type fileInfo struct {
	name string
	size int64
}

// Name implements fs.FileInfo.
func (i fileInfo) Name() string { return i.name }

// Size implements fs.FileInfo.
func (i fileInfo) Size() int64 { return i.size }

// Mode implements fs.FileInfo.
func (i fileInfo) Mode() fs.FileMode { return 0o444 }

// ModTime implements fs.FileInfo; the file layer does not tell it.
func (i fileInfo) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (i fileInfo) IsDir() bool { return false }

// Sys implements fs.FileInfo.
func (i fileInfo) Sys() any { return nil }

// folderInfo describes a directory.
type folderInfo struct{ fileInfo }

// Mode implements fs.FileInfo.
func (i folderInfo) Mode() fs.FileMode { return fs.ModeDir | 0o555 }

// IsDir implements fs.FileInfo.
func (i folderInfo) IsDir() bool { return true }
