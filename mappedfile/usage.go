package mappedfile

import (
	"errors"
	"fmt"
)

// Usage says how full the file system that holds a store is.
type Usage struct {
	Used  int64 // bytes that are taken
	Total int64 // bytes that are taken or that an ordinary user can still take; less than the size of the device, as in df
}

// Ratio is the part that is taken, from 0 to 1. It is 0 when the total is not known.
func (u Usage) Ratio() float64 {
	if u.Total <= 0 {
		return 0
	}
	return float64(u.Used) / float64(u.Total)
}

// DiskUsage asks the file layer how full its file system is. A layer that can tell has a method Usage() (Usage, error), as
// that of [OpenDir] has on Linux; of others the error is errors.ErrUnsupported.
func DiskUsage(fsys FS) (Usage, error) {
	s, ok := fsys.(interface{ Usage() (Usage, error) })
	if !ok {
		return Usage{}, errors.ErrUnsupported
	}
	u, err := s.Usage()
	if err == nil && u.Total <= 0 {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return Usage{}, fmt.Errorf("disk usage: %w", err)
	}
	return u, nil
}

// Usage says how full the file system of the directory is.
func (d *osFS) Usage() (u Usage, err error) {
	f, err := d.root.Open(".")
	if err != nil {
		return Usage{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return fileSystemUsage(f)
}
