//go:build !linux

package mappedfile

import (
	"errors"
	"os"
)

// fileSystemUsage has no portable form.
func fileSystemUsage(*os.File) (Usage, error) { return Usage{}, errors.ErrUnsupported }
