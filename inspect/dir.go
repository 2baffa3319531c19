package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
)

// Names inside a store directory.
const (
	commitLogDir  = "commitlog"
	queueDir      = "consumequeue"
	extDir        = "consumequeue_ext"
	batchQueueDir = "batchconsumequeue"
	indexDir      = "index"
	stateTableDir = "transaction/statetable"
	redoLogDir    = "transaction/redolog"
	checkpointOf  = "checkpoint"
	abortFile     = "abort"
	configDir     = "config"
)

// ErrNoStore says that a directory holds nothing that a store has.
var ErrNoStore = errors.New("not a store directory: none of commitlog, consumequeue, index, transaction, checkpoint and config is there")

// Dir is a store directory that is looked at. It holds nothing open between calls.
type Dir struct {
	fsys fs.FS

	// Whether the store is one of 3.1 decides how properties are read; found on first use.
	lineOnce sync.Once
	line31   bool
}

// Open looks whether fsys, rooted at the store directory, is a store at all. It returns [ErrNoStore] or the error of
// reading the directory. There is nothing to close.
func Open(fsys fs.FS) (*Dir, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if slices.Contains([]string{commitLogDir, queueDir, extDir, batchQueueDir, indexDir, "transaction", checkpointOf, configDir}, e.Name()) {
			return &Dir{fsys: fsys}, nil
		}
	}
	return nil, ErrNoStore
}

// entry is one name in a folder, links followed.
type entry struct {
	name string
	info fs.FileInfo
}

// list gives the entries of a folder by name; none when the folder is not there. An entry that goes away meanwhile is
// left out.
func (d *Dir) list(dir string) ([]entry, error) {
	names, err := fs.ReadDir(d.fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(names))
	for _, n := range names {
		info, err := n.Info()
		if err == nil && info.Mode().Type() == fs.ModeSymlink {
			info, err = fs.Stat(d.fsys, path.Join(dir, n.Name()))
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			entries = append(entries, entry{n.Name(), info})
		}
	}
	return entries, nil
}

// exists says whether there is something of that name.
func (d *Dir) exists(name string) bool {
	_, err := fs.Stat(d.fsys, name)
	return err == nil
}

// readSmall reads at most limit bytes of a file. The error matches fs.ErrNotExist when there is none.
func (d *Dir) readSmall(name string, limit int64) ([]byte, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, min(limit, f.size))
	n, err := f.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

// file is an open file that can be read at any place.
type file struct {
	io.ReaderAt
	io.Closer
	size int64
}

// open opens a regular file. It never blocks on pipes and devices: those are an error.
func (d *Dir) open(name string) (*file, error) {
	info, err := fs.Stat(d.fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	f, err := d.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	if r, ok := f.(io.ReaderAt); ok {
		return &file{r, f, info.Size()}, nil
	}
	s := &streamReader{open: func() (fs.File, error) { return d.fsys.Open(name) }, f: f}
	return &file{s, s, info.Size()}, nil
}
