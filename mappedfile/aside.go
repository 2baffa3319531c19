package mappedfile

import (
	"errors"
	"hash/fnv"
	"io/fs"
	"strconv"
	"strings"
)

// asidePrefix begins the names, in the root of the store, of files that are being made.
const asidePrefix = "rocketstore.new."

// asideName is where a file is made before it gets its name. It is not in the file's own directory, where RocketMQ takes
// every name for that of a segment.
func asideName(name string) string {
	const longest = 200 // a name may have 255 bytes
	flat := strings.ReplaceAll(name, "/", ".")
	if len(flat) > longest {
		h := fnv.New64a()
		_, _ = h.Write([]byte(name))
		flat = strconv.FormatUint(h.Sum64(), 16)
	}
	return asidePrefix + flat
}

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
