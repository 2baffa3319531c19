package config

import (
	"io"
	"io/fs"
)

// FS is what this package needs of a file layer; mappedfile.FS has it. F is its kind of file.
type FS[F File] interface {
	OpenFile(name string, flag int, perm fs.FileMode) (F, error)
	MkdirAll(name string, perm fs.FileMode) error
	Rename(oldname, newname string) error
	SyncDir(name string) error
}

// File is what this package needs of an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Truncate(size int64) error
	Sync() error
}
