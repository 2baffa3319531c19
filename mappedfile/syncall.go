package mappedfile

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// errNoSyncAll says that the system has no call for it.
var errNoSyncAll = errors.New("no sync of a whole file system")

// SyncAll makes everything in the store directory durable: contents, lengths and names. After an unclean stop the files
// may hold what the process before wrote and never synced; recovery calls this before it vouches for what it read. A file
// layer that has a SyncAll of its own is asked first (on Linux one syncfs); else every file and directory is synced.
func SyncAll(fsys FS) error {
	if s, ok := fsys.(interface{ SyncAll() error }); ok {
		if err := s.SyncAll(); !errors.Is(err, errNoSyncAll) {
			return err
		}
	}
	return syncTree(fsys, ".")
}

func syncTree(fsys FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			err = syncTree(fsys, name)
		case e.Type().IsRegular():
			err = syncNamed(fsys, name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fsys.SyncDir(dir)
}

func syncNamed(fsys FS, name string) error {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
