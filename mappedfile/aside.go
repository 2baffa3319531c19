package mappedfile

import (
	"errors"
	"io/fs"
	"strings"
)

// asidePrefix begins the names, in the root of the store, of files that are being made.
const asidePrefix = "rocketstore.new."

// asideName is where a file is made before it gets its name. It is not in the file's own directory, where RocketMQ takes
// every name for that of a segment.
func asideName(name string) string { return asidePrefix + strings.ReplaceAll(name, "/", ".") }

// RemoveAside removes files that a killed process was making. Only the writer may call it.
func RemoveAside(fsys FS) error {
	entries, err := fsys.ReadDir(".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), asidePrefix) && e.Type().IsRegular() {
			if err := fsys.Remove(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}
