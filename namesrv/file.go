package namesrv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// saveFile replaces a file such that after a power cut it is whole, old or new: it writes aside, syncs, keeps the old content as
// .bak, renames, and syncs the directory.
func saveFile(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	if old, err := os.ReadFile(path); err == nil && len(old) > 0 {
		if err := replaceFile(path+".bak", old); err != nil {
			return err
		}
	}
	if err := replaceFile(path, content); err != nil {
		return err
	}
	return syncDir(dir)
}

func replaceFile(path string, content []byte) error {
	aside := path + ".tmp"
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(aside, path)
}

func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // where directories cannot be synced
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// loadFile reads a file through parse. Where the file is missing or parse refuses it, the .bak stands in, and damage
// says why; damage is nil otherwise. Neither file: nothing is parsed. Both damaged, or not to be read: an error.
func loadFile(path string, parse func(content []byte) error) (damage, err error) {
	err = readInto(path, parse)
	if err == nil {
		return nil, nil
	}
	bakErr := readInto(path+".bak", parse)
	switch {
	case bakErr == nil:
		return err, nil
	case errors.Is(err, fs.ErrNotExist) && errors.Is(bakErr, fs.ErrNotExist):
		return nil, nil
	case errors.Is(bakErr, fs.ErrNotExist):
		return nil, err
	}
	return nil, errors.Join(err, bakErr)
}

func readInto(path string, parse func(content []byte) error) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := parse(b); err != nil {
		return &fs.PathError{Op: "parse", Path: path, Err: err}
	}
	return nil
}
