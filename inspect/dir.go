package inspect

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// Names inside a store directory.
const (
	commitLogDir   = recovery.CommitLogDir
	queueDir       = recovery.QueueDir
	extDir         = recovery.ExtensionDir
	batchQueueDir  = recovery.BatchQueueDir
	indexDir       = recovery.IndexDir
	transactionDir = "transaction"
	configDir      = "config"
)

// ErrNoStore says that a directory holds nothing that a store has.
var ErrNoStore = errors.New("not a store directory: none of commitlog, consumequeue, index, transaction, checkpoint and config is there")

// Dir is a store directory that is looked at. It holds nothing open between calls.
type Dir struct {
	fsys fs.FS

	// lineOf finds on first use which line of RocketMQ wrote the store.
	lineOf func() (*recovery.Identity, error)
	// keepsStates finds on first use whether the store has, or should have, a state table, though its folder is not there.
	keepsStates func() bool
	// followed, if not nil, is told of each symbolic link that leads somewhere.
	followed func(name string)
}

// Open looks whether fsys, rooted at the store directory, is a store at all. It returns [ErrNoStore] or the error of
// reading the directory. There is nothing to close.
func Open(fsys fs.FS) (*Dir, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if slices.Contains([]string{commitLogDir, queueDir, extDir, batchQueueDir, indexDir, transactionDir, recovery.CheckpointFile, configDir}, e.Name()) {
			d := &Dir{fsys: fsys}
			d.lineOf, d.keepsStates = sync.OnceValues(d.findLine), sync.OnceValue(d.findKeepsStates)
			return d, nil
		}
	}
	return nil, ErrNoStore
}

// Clean says whether the store was stopped in order: there is no file abort. Else a broker is working on it, or was killed.
func (d *Dir) Clean() bool { return !d.exists(recovery.AbortFile) }

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
			if behind, err := fs.Stat(d.fsys, path.Join(dir, n.Name())); err == nil {
				info = behind // else it leads nowhere, or in a circle
				if d.followed != nil {
					d.followed(path.Join(dir, n.Name()))
				}
			}
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

// notRegular says what stands in the place of a file.
func notRegular(info fs.FileInfo) string {
	switch {
	case info.IsDir():
		return "no regular file, but a folder"
	case info.Mode().Type() == fs.ModeSymlink:
		return "no regular file, but a link that leads to none"
	}
	return "no regular file"
}

// exists says whether there is something of that name.
func (d *Dir) exists(name string) bool {
	_, err := fs.Stat(d.fsys, name)
	return err == nil
}

// file is an open file that can be read at any place.
type file struct {
	io.ReaderAt
	closer io.Closer
	size   int64
}

// close closes the file. What fails then does not matter: it was only read.
func (f *file) close() { _ = f.closer.Close() }

// open opens a regular file. It never blocks on pipes and devices: those are an error.
func (d *Dir) open(name string) (*file, error) {
	info, err := fs.Stat(d.fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular(name)
	}
	f, err := d.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	if r, ok := f.(io.ReaderAt); ok {
		return &file{r, f, info.Size()}, nil
	}
	s := &streamReader{open: func() (fs.File, error) { return d.fsys.Open(name) }, f: f, size: info.Size()}
	return &file{s, s, info.Size()}, nil
}

// mapped is the directory as the module's own file layer.
func (d *Dir) mapped() mappedfile.FS { return readFS{mappedfile.IOFS(d.fsys), d} }

func errNotRegular(name string) error { return fmt.Errorf("%s: not a regular file", name) }

// readFS is the store directory for packages that want the module's own file layer. Unlike that of mappedfile.IOFS its
// files are read with bounded memory.
type readFS struct {
	mappedfile.FS
	dir *Dir
}

// OpenFile opens a file for reading.
func (r readFS) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	info, err := fs.Stat(r.dir.fsys, name)
	if err == nil && !info.Mode().IsRegular() {
		return nil, errNotRegular(name)
	}
	f, err := r.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	open, err := r.dir.open(name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return readFile{f, open}, nil
}

// readFile reads through its second half.
type readFile struct {
	mappedfile.File
	open *file
}

// ReadAt implements io.ReaderAt.
func (f readFile) ReadAt(b []byte, off int64) (int, error) { return f.open.ReadAt(b, off) }

// Close implements io.Closer.
func (f readFile) Close() error { return errors.Join(f.File.Close(), f.open.closer.Close()) }

// patientFS takes what cannot be read for what is not there, so that the rest can be looked at.
type patientFS struct{ mappedfile.FS }

// OpenFile opens a file for reading.
func (p patientFS) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	f, err := p.FS.OpenFile(name, flag, perm)
	return f, notThere(name, err)
}

// ReadDir lists a folder.
func (p patientFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := p.FS.ReadDir(name)
	return entries, notThere(name, err)
}

func notThere(name string, err error) error {
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return err
}
