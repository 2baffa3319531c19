package properties

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// SaveFile replaces a file such that after a power cut it is whole, old or new: it writes aside, syncs, keeps the old content as
// FILE.bak, as the original does, and gives the new one its name. The file keeps its permissions, and a link what it points to.
func SaveFile(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	mode := os.FileMode(0o640)
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path, dir = target, filepath.Dir(target)
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
	}
	if old, err := os.ReadFile(path); err == nil && len(old) > 0 {
		if err := ReplaceFile(path+".bak", old, mode); err != nil {
			return err
		}
	}
	if err := ReplaceFile(path, content, mode); err != nil {
		return err
	}
	return syncDir(dir)
}

// ReplaceFile writes a file aside, syncs it and gives it its name, so that a crash at any moment leaves one that is whole. The name
// itself is durable when the directory is synced.
func ReplaceFile(path string, content []byte, mode os.FileMode) error {
	aside := path + ".tmp"
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
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
