package inspect

import (
	"errors"
	"io"
)

// nextByte is the position of the first byte from pos on that is not zero, size when there is none before size. It does
// not read holes of sparse files.
func nextByte(f *file, pos, size int64) (int64, error) {
	var buf [16 << 10]byte
	for pos < size {
		if data, known := nextData(f, pos); known {
			pos = min(data, size)
		}
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-pos)], pos)
		for i, c := range buf[:n] {
			if c != 0 {
				return pos + int64(i), nil
			}
		}
		pos += int64(n)
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return size, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return size, nil
}
