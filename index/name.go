package index

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// NameLength is the number of digits in the name of an index file.
const NameLength = 17

const (
	nameLayout = "20060102150405.000"
	nameDot    = 14 // where the layout's dot is, which the name has not
)

// FileName is the name of an index file that was made at t, milliseconds since 1970: yyyyMMddHHmmssSSS in UTC. (Java takes the
// local time.) Times outside of the years 0 to 9999 are moved to the nearest one that has a name.
func FileName(t int64) string {
	first, last := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC)
	t = min(max(t, first.UnixMilli()), last.UnixMilli())
	s := time.UnixMilli(t).UTC().Format(nameLayout)
	return s[:nameDot] + s[nameDot+1:]
}

// ParseFileName gives the time that an index file's name states, as if it were UTC, and false for a name that is none.
func ParseFileName(name string) (int64, bool) {
	if len(name) != NameLength {
		return 0, false
	}
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return 0, false
		}
	}
	t, err := time.Parse(nameLayout, name[:nameDot]+"."+name[nameDot:])
	return t.UnixMilli(), err == nil
}

// nextName is the name of a new file whose first message was stored at t: greater than every name that there is.
func nextName(t int64, newest string) (string, error) {
	name := FileName(t)
	if name > newest {
		return name, nil
	}
	was, ok := ParseFileName(newest)
	if name = FileName(was + 1); !ok || name <= newest {
		return "", fmt.Errorf("no name for an index file comes after %q", newest)
	}
	return name, nil
}

// listing is what a directory of index files holds.
type listing struct {
	names   []string // of index files, oldest first
	foreign []string // of all else
}

// list reads the directory. A missing one is empty.
func list(fsys mappedfile.FS, dir string) (listing, error) {
	var l listing
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return l, err
	}
	for _, e := range entries {
		if _, ok := ParseFileName(e.Name()); ok && e.Type().IsRegular() {
			l.names = append(l.names, e.Name())
		} else {
			l.foreign = append(l.foreign, e.Name())
		}
	}
	return l, nil
}
