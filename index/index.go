package index

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"sync"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// DamagedHeader is the kind of a [mappedfile.Notice] about an index file whose header cannot be believed.
const DamagedHeader = "damaged header"

// Index is the key index of one store: the files of one directory. One goroutine may put while any number query and another
// one syncs.
//
// Lock order: syncMu before mu.
type Index struct {
	fsys  mappedfile.FS
	dir   string
	opts  Options
	shape Shape
	rules rules

	syncMu sync.Mutex // held by whoever syncs, or unmaps files that a sync may be working on

	mu      sync.RWMutex
	files   []*file             // guarded by mu, oldest first
	hashes  []int32             // guarded by mu: of the record that is put
	empty   []string            // guarded by mu: names of files of length 0, which are no part of the index
	newest  string              // guarded by mu: the greatest name there is or was
	notices []mappedfile.Notice // set by Open
	failed  error               // guarded by mu: the first failed sync or fault; nothing is written after it
	closed  bool                // guarded by mu
	dropped dropped             // guarded by mu
}

// dropped is where the index has to be made again from.
type dropped struct {
	any  bool
	from int64 // physical offset
}

// Open opens the index files in dir; a missing directory is an empty index. It changes nothing and repairs nothing. What is
// strange but no obstacle is a notice: a name that is none of an index file ([mappedfile.ForeignFile]), a file of length 0
// ([mappedfile.EmptySegment]), a header that cannot be believed ([DamagedHeader]). A file whose size is not that of the shape
// is a [*mappedfile.CorruptError] that names it and both sizes.
func Open(fsys mappedfile.FS, dir string, o *Options) (*Index, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	x := &Index{
		fsys: fsys, dir: dir, opts: opts, shape: Shape{opts.Slots, opts.Entries}, rules: rulesOf(opts.Dialect),
	}
	l, err := list(fsys, dir)
	if err != nil {
		return nil, err
	}
	for _, name := range l.foreign {
		x.notice(mappedfile.ForeignFile, name, "not the name of an index file")
	}
	for _, name := range l.names {
		if err := x.openOne(name); err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	return x, nil
}

// openOne opens one file of the listing.
func (x *Index) openOne(name string) error {
	f, err := openFile(x.fsys, &file{name: name, path: path.Join(x.dir, name), shape: x.shape}, x.opts.ReadOnly)
	if err != nil {
		return err
	}
	x.newest = name
	if f == nil {
		x.empty = append(x.empty, name)
		x.notice(mappedfile.EmptySegment, name, "index file of length 0")
		return nil
	}
	if f.damaged != nil {
		x.notice(DamagedHeader, name, f.damaged.Error())
	}
	x.files = append(x.files, f)
	return nil
}

func (x *Index) notice(kind, name, text string) {
	x.notices = append(x.notices, mappedfile.Notice{Kind: kind, File: path.Join(x.dir, name), Text: text})
}

// Notices are what [Open] found strange.
func (x *Index) Notices() []mappedfile.Notice { return slices.Clone(x.notices) }

// Shape is the shape of all files.
func (x *Index) Shape() Shape { return x.shape }

// FileInfo is what one index file says of itself.
type FileInfo struct {
	Name   string // 17 digits
	Header Header // IndexCount is at least 1
	Shape
	Damaged error // why the header cannot be believed, a [*mappedfile.CorruptError]; nil: it can
}

// Files lists the files, oldest first. Files of length 0 are not among them. In an index for reading the headers are those
// at the time of [Open].
func (x *Index) Files() []FileInfo {
	x.mu.RLock()
	defer x.mu.RUnlock()
	infos := make([]FileInfo, 0, len(x.files))
	for _, f := range x.files {
		infos = append(infos, FileInfo{f.name, f.head, f.shape, f.damaged})
	}
	return infos
}

// EndOffset is the greatest physical offset that any file has an entry for, as far as the headers can be believed; -1 when
// there is none. Records before it are indexed; of the one that starts there all keys may be or only the first
// few, and putting it again adds what is missing.
func (x *Index) EndOffset() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	end := int64(-1)
	for _, f := range x.files {
		if f.damaged == nil && f.head.Keys() > 0 {
			end = max(end, f.head.EndOffset)
		}
	}
	return end
}

// Check compares every file with itself ([Dump.Check]) and yields what contradicts. Nothing may be put meanwhile.
func (x *Index) Check() iter.Seq[error] {
	return func(yield func(error) bool) {
		x.mu.RLock()
		files := slices.Clone(x.files)
		x.mu.RUnlock()
		for _, f := range files {
			d, err := ScanFile(f.path, f.h, f.shape.Size(), f.shape.Slots)
			if err != nil {
				if !yield(err) {
					return
				}
				continue
			}
			for err := range d.Check() {
				if !yield(err) {
					return
				}
			}
		}
	}
}

// writable says why nothing can be written: [mappedfile.ErrClosed], [mappedfile.ErrReadOnly], or what failed before.
func (x *Index) writable() error {
	switch {
	case x.closed:
		return fmt.Errorf("index: %w", mappedfile.ErrClosed)
	case x.opts.ReadOnly:
		return fmt.Errorf("index: %w", mappedfile.ErrReadOnly)
	}
	return x.failed
}

// fail keeps the first error after which nothing may be written any more, and gives it.
func (x *Index) fail(err error) error {
	if x.failed == nil {
		x.failed = err
	}
	return err
}

// Close ends the use of the files. It does not sync: who wants what was put to last calls [Index.Sync] first. A second call
// does nothing.
func (x *Index) Close() error {
	x.syncMu.Lock()
	defer x.syncMu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil
	}
	x.closed = true
	var errs []error
	for _, f := range x.files {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// Abandon is Close for simulated crashes: nothing is synced or removed.
func (x *Index) Abandon() error { return x.Close() }
