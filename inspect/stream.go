package inspect

import (
	"errors"
	"io"
	"io/fs"
	"sync"
)

// keepBack is how many bytes behind the read position a streamReader still has. It is more than a scan's window, since
// the next window starts at the record that did not fit into the last one.
const keepBack = 4 << 20

// streamReader reads at any place of a file that can only be read from its start on, such as one in a zip archive. Going
// back by up to keepBack bytes is free; further back the file is opened again.
type streamReader struct {
	mu   sync.Mutex
	open func() (fs.File, error)
	f    fs.File
	size int64
	pos  int64 // bytes read of f so far
	back []byte
	err  error // of reading; what came before it is not believed any more
}

// ReadAt implements io.ReaderAt.
func (s *streamReader) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.readAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
		return 0, err
	}
	return n, err
}

func (s *streamReader) readAt(p []byte, off int64) (int, error) {
	if off < s.pos-int64(len(s.back)) {
		if err := s.rewind(); err != nil {
			return 0, err
		}
	}
	if err := s.skipTo(off); err != nil {
		return 0, err
	}
	n := 0
	if off < s.pos {
		n = copy(p, s.back[int64(len(s.back))-(s.pos-off):])
	}
	for n < len(p) {
		got, err := s.read(p[n:])
		n += got
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// rewind starts at the beginning again.
func (s *streamReader) rewind() error {
	f, err := s.open()
	if err != nil {
		return err
	}
	err = s.f.Close()
	s.f, s.pos, s.back = f, 0, s.back[:0]
	return err
}

// skipTo reads on until off has been passed.
func (s *streamReader) skipTo(off int64) error {
	var buf [32 << 10]byte
	for s.pos < off {
		if _, err := s.read(buf[:min(int64(len(buf)), off-s.pos)]); err != nil {
			return err
		}
	}
	return nil
}

// read reads on and remembers what it read.
func (s *streamReader) read(p []byte) (int, error) {
	n, err := s.f.Read(p)
	s.pos += int64(n)
	if len(s.back)+n > 2*keepBack {
		keep := s.back[max(len(s.back)-keepBack, 0):]
		s.back = s.back[:copy(s.back, keep)]
	}
	s.back = append(s.back, p[:n]...)
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil // the next call says so again
	}
	if err == nil && n > 0 && s.pos == s.size {
		err = s.atEnd()
	}
	return n, err
}

// atEnd reads on behind the last byte, since an archive says only there that what it gave was wrong.
func (s *streamReader) atEnd() error {
	var more [1]byte
	if _, err := s.f.Read(more[:]); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Close implements io.Closer.
func (s *streamReader) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.f.Close()
}
