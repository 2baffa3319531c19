package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// CheckPlaces refuses a directory in which something stands in the place of a file or folder of a store that is none: a folder
// named checkpoint, say, or a named pipe. It would be met in the middle of a recovery, or at the end of the store's life. Files
// are those besides the ones of the storage formats, by their paths in the store. The error is a [*mappedfile.CorruptError].
// A symbolic link inside the store is as good as what it leads to, but for index files.
func CheckPlaces(fsys mappedfile.FS, files ...string) error {
	files = append(files, CheckpointFile, AbortFile, LockFile)
	for _, dir := range []string{".", "config", IndexDir} {
		entries, err := fsys.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := checkPlace(fsys, path.Join(dir, e.Name()), e.Type(), files); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkPlace(fsys mappedfile.FS, name string, kind fs.FileMode, files []string) error {
	folders := []string{CommitLogDir, QueueDir, IndexDir, "config", path.Dir(StateTableDir), LostAndFound}
	isFolder := slices.Contains(folders, name)
	isFile := slices.Contains(files, strings.TrimSuffix(strings.TrimSuffix(name, ".bak"), ".tmp")) // beside a file of config/ these are written
	dir, base := path.Split(name)
	_, isIndex := index.ParseFileName(base)
	isIndex = isIndex && dir == IndexDir+"/"
	switch {
	case kind&fs.ModeSymlink != 0 && (isFolder || isFile):
		return checkLink(fsys, name, isFolder)
	case isFolder && !kind.IsDir():
		return &mappedfile.CorruptError{File: name, Err: fmt.Errorf("is no folder but %s", mappedfile.KindOf(kind))}
	case (isFile || isIndex) && !kind.IsRegular():
		return &mappedfile.CorruptError{File: name, Err: fmt.Errorf("is no regular file but %s", mappedfile.KindOf(kind))}
	}
	return nil
}

// checkLink looks at what a symbolic link leads to. It may be nothing yet.
func checkLink(fsys mappedfile.FS, name string, folder bool) (err error) {
	if folder {
		_, err = fsys.ReadDir(name)
	} else if f, opened := fsys.OpenFile(name, os.O_RDONLY, 0); opened == nil {
		return f.Close()
	} else {
		err = opened
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
