package repair

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// ErrOpened says that the store was changed since a repair was done. What was derived from the repaired log then does not fit what an
// undo brings back.
var ErrOpened = errors.New("the store was changed since this repair, as opening it for writing does, so queues, index and transactions would " +
	"not fit what the undo brings back: undo comes before recover")

// smallFile is up to which length the content of a file counts, bytes: the checkpoint and most files under config. Longer ones
// count with their length.
const smallFile = 64 << 10

// unopened returns an error that matches ErrOpened when the store is not as the repair left it. Times of files do not count, so
// that a copy of a store is like the store.
func (j *Journal) unopened(fsys mappedfile.FS) error {
	if j.State != Done || j.After == "" {
		return nil
	}
	now, err := fingerprint(fsys)
	if err != nil || now == j.After {
		return err
	}
	return fmt.Errorf("%s: %w", j.Dir(), ErrOpened)
}

// clearWay moves files that were made since into the journal's folder, where they stand in the way of those that an undo brings back.
func (j *Journal) clearWay(fsys mappedfile.FS) error {
	placed := map[string]bool{} // their way the undo itself clears
	for _, s := range j.Steps {
		placed[s.File] = placed[s.File] || s.Op == Place
	}
	for _, s := range j.Steps {
		if s.Op != Move || placed[s.File] {
			continue
		}
		aside, err := exists(fsys, s.To)
		if err != nil {
			return err
		}
		if !aside {
			continue
		}
		if err := rename(fsys, s.File, path.Join(j.Dir(), "later", s.File)); err != nil {
			return err
		}
	}
	return nil
}

// fingerprint is a hash of the names and lengths of all files of a store, and of what the small ones hold. Lost and found, the lock
// and files that begin with a dot do not count.
func fingerprint(fsys mappedfile.FS) (string, error) {
	h := fnv.New128a()
	err := fs.WalkDir(readFS{fsys}, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone meanwhile
			return nil
		case err != nil || name == ".":
			return err
		case name == recovery.LostAndFound, name == recovery.LockFile, strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !e.Type().IsRegular():
			return nil
		}
		if err := addFile(h, fsys, name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func addFile(h io.Writer, fsys mappedfile.FS, name string) (err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "%q %d\n", name, size)
	if size > smallFile {
		return nil
	}
	_, err = io.Copy(h, io.NewSectionReader(f, 0, size))
	return err
}
