package mappedfile

import "fmt"

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
