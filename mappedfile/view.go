package mappedfile

import (
	"errors"
	"fmt"
	"io"
)

// View is a piece of a mapping, lent out. As long as it is not released the bytes stay mapped, whatever happens to the
// segment: eviction, deletion, truncation (which makes them zero), Close. Release each view exactly once; the zero View
// may be released too. It is a value and costs no allocation.
type View struct {
	b []byte
	h *handle
}

// Bytes are the bytes. They must not be written, nor touched after Release. Copy what must outlive it.
func (v View) Bytes() []byte { return v.b }

// Release gives the bytes back. The last view of a segment that is gone unmaps it.
func (v View) Release() {
	if v.h != nil {
		v.h.release()
	}
}

// From is the part of v from byte n on. It holds nothing itself: it is valid as long as v is not released, has no File, and its
// own Release does nothing. Many pieces of one segment cost one view so.
func (v View) From(n int) View { return View{b: v.b[n:]} }

// File is the path of the file that the bytes are in.
func (v View) File() string {
	if v.h == nil {
		return ""
	}
	return v.h.seg.name
}

// View lends n bytes from off on. They must lie in one segment and before the end of Bounds, else ErrOutOfRange, which
// a gap is too. Errors of opening and mapping the file come as they are.
func (q *Queue) View(off int64, n int) (View, error) {
	end := q.committed.Load()
	if n < 0 || off > end || int64(n) > end-off {
		return View{}, q.outOfRange(off, n)
	}
	s := q.find(off)
	if s == nil {
		if n == 0 && off == end {
			return View{}, nil
		}
		return View{}, q.outOfRange(off, n)
	}
	return q.view(s, off-s.start, int64(n))
}

// ViewFrom lends all bytes from off to the end of its segment or to the end of Bounds, whichever comes first. At the
// end of Bounds that is an empty view, not an error.
func (q *Queue) ViewFrom(off int64) (View, error) {
	end := q.committed.Load()
	if off == end {
		return View{}, nil
	}
	s := q.find(off)
	if s == nil || off > end {
		return View{}, q.outOfRange(off, 0)
	}
	return q.view(s, off-s.start, min(s.length.Load(), end-s.start)-(off-s.start))
}

// ViewSegment lends the whole file that starts at start, as long as it is on disk, whatever Bounds say: recovery looks
// behind the end. ErrOutOfRange when there is no such file.
func (q *Queue) ViewSegment(start int64) (View, error) {
	s := q.find(start)
	if s == nil || s.start != start {
		return View{}, q.outOfRange(start, 0)
	}
	return q.view(s, 0, s.length.Load())
}

// NonZeroEnd is the offset behind the last byte of the file that starts at start which is not zero, from off on; off when
// there is none. It skips holes and blocks that were never written, so that the rest of a new segment costs nothing.
// ErrOutOfRange when there is no such file.
func (q *Queue) NonZeroEnd(start, off int64) (int64, error) {
	s := q.find(start)
	if s == nil || s.start != start {
		return 0, q.outOfRange(start, 0)
	}
	if off-start >= s.length.Load() {
		return off, nil // an empty file cannot be mapped
	}
	h, err := s.acquire()
	if err != nil {
		return 0, err
	}
	defer h.release()
	_, end, err := findNonZero(h.file, s.name, off-start, s.length.Load())
	if err != nil || end < 0 {
		return off, err
	}
	// The last chunk that holds something; it is read again to find its last byte.
	from := max(off-start, end-scanChunk)
	b := make([]byte, end-from)
	n, err := h.file.ReadAt(b, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return off, err
	}
	for n > 0 && b[n-1] == 0 {
		n--
	}
	return start + from + int64(n), nil
}

func (q *Queue) view(s *segment, pos, n int64) (View, error) {
	if q.closed.Load() {
		return View{}, ErrClosed
	}
	if pos < 0 || n < 0 || pos+n > s.length.Load() {
		return View{}, q.outOfRange(s.start+pos, int(n))
	}
	if n == 0 {
		return View{}, nil
	}
	h, err := s.acquire()
	if err != nil {
		return View{}, err
	}
	if pos+n > int64(len(h.bytes)) {
		h.release()
		return View{}, q.outOfRange(s.start+pos, int(n))
	}
	return View{b: h.bytes[pos : pos+n : pos+n], h: h}, nil
}

func (q *Queue) outOfRange(off int64, n int) error {
	start, end := q.Bounds()
	return fmt.Errorf("%w: %d bytes at %d of %s, which has %d to %d", ErrOutOfRange, n, off, q.dir, start, end)
}
