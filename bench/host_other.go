//go:build !linux

package bench

import (
	"errors"
	"os"
)

// canDrop says whether files can be taken out of the page cache.
const canDrop = false

func dropCache(*os.File) error { return errors.ErrUnsupported }

func (h *Host) describe(string) {}
