package inspect

import (
	"errors"
	"math"
	"os"
	"syscall"
)

const seekData = 3 // SEEK_DATA of lseek(2)

// nextData is the first position from pos on that does not lie in a hole of a sparse file; known is false when the file
// system does not tell. Bytes in a hole read as zero.
func nextData(f *file, pos int64) (off int64, known bool) {
	s, ok := f.closer.(*os.File)
	if !ok {
		return 0, false
	}
	off, err := s.Seek(pos, seekData)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return math.MaxInt64, true // no data behind pos
	case err != nil || off < pos:
		return 0, false
	}
	return off, true
}
