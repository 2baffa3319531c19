package mappedfile

import (
	"errors"
	"io"
	"os"
)

// allocateByWriting makes sure of blocks where no system call does: blocks that read as zeros are written with zeros.
// It is called for a range before anything is written there through a mapping, so it overwrites nothing.
func allocateByWriting(f *os.File, off, n int64) error {
	buf, zeros := make([]byte, PageSize), make([]byte, PageSize)
	for end := off + n; off < end; {
		size := min(end-off, PageSize-off%PageSize)
		got, err := f.ReadAt(buf[:size], off)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if AllZero(buf[:got]) {
			if _, err := f.WriteAt(zeros[:size], off); err != nil {
				return err
			}
		} else if int64(got) < size {
			if _, err := f.WriteAt(zeros[:size-int64(got)], off+int64(got)); err != nil {
				return err
			}
		}
		off += size
	}
	return nil
}
