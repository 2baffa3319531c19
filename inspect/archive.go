package inspect

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// ErrNoArchive says that a file is neither a zip archive nor a tar archive.
var ErrNoArchive = errors.New("neither a zip archive nor a tar archive")

// OpenArchive is the files of a zip or tar archive of size bytes, for [Open]. A tar archive that is not compressed is read once
// from its start to its end, headers only, to know where its files lie; its files and those of a zip archive that are
// stored are then read at any place. Compressed files of a zip archive are read from their start. When an archive holds
// one folder only, and no store, the folder is given.
//
// Memory: some hundred bytes for each file of the archive.
func OpenArchive(r io.ReaderAt, size int64) (fs.FS, error) {
	a := &archive{entries: map[string]*archived{".": {name: ".", dir: true}}}
	var magic [4]byte
	if _, err := r.ReadAt(magic[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if packer := packed(magic[:]); packer != "" {
		return nil, fmt.Errorf("%w, but a file that %s compressed: decompress it first, a member cannot be read in its place there", ErrNoArchive, packer)
	}
	var err error
	if bytes.HasPrefix(magic[:], []byte("PK")) {
		err = a.zip(r, size)
	} else {
		err = a.tar(r, size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoArchive, err)
	}
	if root := a.entries["."]; len(root.children) == 1 && root.children[0].dir {
		if _, err := Open(a); errors.Is(err, ErrNoStore) {
			return fs.Sub(a, root.children[0].name)
		}
	}
	return a, nil
}

// packed names the program that made a compressed file, by its first bytes, "" when it is none.
func packed(magic []byte) string {
	for _, p := range []struct{ name, begins string }{
		{"gzip", "\x1f\x8b"}, {"bzip2", "BZh"}, {"xz", "\xfd7zX"}, {"zstd", "\x28\xb5\x2f\xfd"}, {"lz4", "\x04\x22\x4d\x18"},
	} {
		if bytes.HasPrefix(magic, []byte(p.begins)) {
			return p.name
		}
	}
	return ""
}

// archive is the files of an archive as a file system.
type archive struct{ entries map[string]*archived }

// archived is one file or folder of an archive, and what fs.FileInfo and fs.DirEntry say of it.
type archived struct {
	name     string // whole path
	dir      bool
	size     int64
	modified time.Time
	open     func() (fs.File, error)
	children []*archived
}

// add puts a file or folder into the tree, with the folders above it. The last one of a name counts.
func (a *archive) add(e *archived) {
	e.name = path.Clean(strings.TrimPrefix(e.name, "/"))
	if !fs.ValidPath(e.name) || e.name == "." {
		return
	}
	if old := a.entries[e.name]; old != nil {
		if old.dir == e.dir {
			e.children = old.children
			*old = *e
		}
		return
	}
	parent := path.Dir(e.name)
	if a.entries[parent] == nil {
		a.add(&archived{name: parent, dir: true, modified: e.modified})
	}
	if up := a.entries[parent]; up != nil && up.dir {
		up.children = append(up.children, e)
		a.entries[e.name] = e
	}
}

// zip indexes a zip archive.
func (a *archive) zip(r io.ReaderAt, size int64) error {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return err
	}
	for _, f := range z.File {
		e := &archived{name: f.Name, dir: f.FileInfo().IsDir(), size: int64(f.UncompressedSize64), modified: f.Modified}
		switch mode := f.Mode(); {
		case !mode.IsRegular() && !mode.IsDir():
			continue
		case f.Method == zip.Store && f.CompressedSize64 == f.UncompressedSize64:
			at, err := f.DataOffset()
			if err != nil || at < 0 || e.size < 0 || at > size-e.size {
				return fmt.Errorf("%s: it does not lie in the archive", f.Name)
			}
			e.open = e.section(r, at)
		default:
			e.open = func() (fs.File, error) {
				body, err := f.Open()
				return archivedStream{body, e}, err
			}
		}
		a.add(e)
	}
	return nil
}

// tar indexes a tar archive.
func (a *archive) tar(r io.ReaderAt, size int64) error {
	s := io.NewSectionReader(r, 0, size)
	t := tar.NewReader(s)
	for n := 0; ; n++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) && n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
		e := &archived{name: h.Name, size: h.Size, modified: h.ModTime}
		switch {
		case h.Typeflag == tar.TypeDir:
			e.dir, e.size = true, 0
		case h.Typeflag == tar.TypeGNUSparse || h.PAXRecords["GNU.sparse.major"] != "" || h.PAXRecords["GNU.sparse.map"] != "":
			return fmt.Errorf("%s: stored with holes; make the archive without --sparse", h.Name)
		case h.Typeflag != tar.TypeReg:
			continue
		}
		at, err := s.Seek(0, io.SeekCurrent)
		if err != nil || e.size < 0 || at > size-e.size {
			return fmt.Errorf("%s: the archive ends in it", h.Name)
		}
		e.open = e.section(r, at)
		a.add(e)
	}
}

// section opens a file that lies in the archive as it is.
func (e *archived) section(r io.ReaderAt, at int64) func() (fs.File, error) {
	return func() (fs.File, error) { return archivedFile{io.NewSectionReader(r, at, e.size), e}, nil }
}

// Open implements fs.FS.
func (a *archive) Open(name string) (fs.File, error) {
	e := a.entries[name]
	switch {
	case !fs.ValidPath(name):
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	case e == nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case e.dir:
		return &archivedDir{e: e}, nil
	}
	return e.open()
}

// Stat implements fs.StatFS.
func (a *archive) Stat(name string) (fs.FileInfo, error) {
	if e := a.entries[name]; e != nil && fs.ValidPath(name) {
		return e, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// Name, Size, Mode, ModTime, IsDir and Sys implement fs.FileInfo.
func (e *archived) Name() string       { return path.Base(e.name) }
func (e *archived) Size() int64        { return e.size }
func (e *archived) ModTime() time.Time { return e.modified }
func (e *archived) IsDir() bool        { return e.dir }
func (e *archived) Sys() any           { return nil }
func (e *archived) Mode() fs.FileMode {
	if e.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// Type and Info implement fs.DirEntry.
func (e *archived) Type() fs.FileMode          { return e.Mode().Type() }
func (e *archived) Info() (fs.FileInfo, error) { return e, nil }

// archivedFile is an open file that can be read at any place.
type archivedFile struct {
	*io.SectionReader
	e *archived
}

func (f archivedFile) Stat() (fs.FileInfo, error) { return f.e, nil }
func (f archivedFile) Close() error               { return nil }

// archivedStream is an open file that is read from its start.
type archivedStream struct {
	io.ReadCloser
	e *archived
}

func (f archivedStream) Stat() (fs.FileInfo, error) { return f.e, nil }

// archivedDir is an open folder.
type archivedDir struct {
	e    *archived
	read int
}

func (d *archivedDir) Stat() (fs.FileInfo, error) { return d.e, nil }
func (d *archivedDir) Close() error               { return nil }
func (d *archivedDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.e.name, Err: errors.New("is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (d *archivedDir) ReadDir(n int) ([]fs.DirEntry, error) {
	sorted := slices.SortedFunc(slices.Values(d.e.children), func(a, b *archived) int { return strings.Compare(a.name, b.name) })
	rest := sorted[min(d.read, len(sorted)):]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	d.read += len(rest)
	entries := make([]fs.DirEntry, len(rest))
	for i, e := range rest {
		entries[i] = e
	}
	return entries, nil
}
