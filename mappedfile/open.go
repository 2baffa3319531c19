package mappedfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
)

// Open reads the names and lengths of the files in dir, which may be missing: that is an empty queue. Nothing is
// created, repaired or mapped. Names that are no segment's are a [Notice]; so are gaps between segments and a last
// segment that is too short (or one that has only all-zero files behind it). A name that is no multiple of the segment
// size, a file that is too long and a short one in the middle are a [CorruptError] that names the file and both sizes.
// The end is the end of the last file (of the short one), until SetEnd.
func Open(fsys FS, dir string, o *Options) (*Queue, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	q := &Queue{fsys: fsys, dir: path.Clean(dir), opts: opts}
	q.bg = newBackground(q)
	q.stage.done.L = &q.mu
	entries, err := fsys.ReadDir(q.dir)
	if isNotExist(err) {
		return q, nil
	}
	if err != nil {
		return nil, err
	}
	q.dirExists = true
	segs, err := q.load(entries)
	if err != nil {
		return nil, err
	}
	q.segs.Store(&segs)
	end, err := q.checkLengths(segs)
	if err != nil {
		return nil, err
	}
	q.noteGaps(segs)
	q.setPositions(end, end)
	return q, nil
}

// load makes segments of the directory's entries, which are sorted by name and so by offset.
func (q *Queue) load(entries []fs.DirEntry) ([]*segment, error) {
	segs := make([]*segment, 0, len(entries))
	for _, e := range entries {
		name := path.Join(q.dir, e.Name())
		start, ok := ParseSegmentName(e.Name())
		if ok && !e.Type().IsRegular() {
			// Passing over it would turn the bytes behind a link into a gap, and stand in the way of a segment to come.
			return nil, &CorruptError{File: name, Err: fmt.Errorf("%w but %s", errNotRegular, KindOf(e.Type()))}
		}
		if !ok {
			q.notices = append(q.notices, Notice{Kind: ForeignFile, File: name, Text: "not a segment, left alone: " + name})
			continue
		}
		info, err := e.Info()
		if isNotExist(err) {
			continue // deleted by the program that writes here, since the directory was listed
		}
		if err != nil {
			return nil, err
		}
		if start%q.opts.SegmentSize != 0 || start > math.MaxInt64-q.opts.SegmentSize {
			return nil, &CorruptError{File: name, Err: fmt.Errorf(
				"a file of %d bytes that starts at %d does not fit segments of %d bytes", info.Size(), start, q.opts.SegmentSize)}
		}
		s := &segment{q: q, start: start, name: name, modTime: info.ModTime()}
		s.length.Store(info.Size())
		segs = append(segs, s)
	}
	return segs, nil
}

// checkLengths looks for segments of a wrong length and gives the end of the data as far as lengths tell.
func (q *Queue) checkLengths(segs []*segment) (end int64, err error) {
	short := -1
	for i, s := range segs {
		length := s.length.Load()
		switch {
		case length == q.opts.SegmentSize:
			end = s.end()
		case length > q.opts.SegmentSize:
			return 0, q.wrongLength(s)
		case short < 0:
			short = i
		}
		if short >= 0 && i > short {
			zero, err := q.isZero(s)
			if err != nil {
				return 0, err
			}
			if !zero {
				return 0, q.wrongLength(segs[short])
			}
		}
	}
	if short < 0 {
		return end, nil
	}
	for _, s := range segs[short:] {
		q.noteShort(s)
	}
	return segs[short].start + segs[short].length.Load(), nil
}

func (q *Queue) wrongLength(s *segment) error {
	return &CorruptError{File: s.name, Offset: min(s.length.Load(), q.opts.SegmentSize), Err: fmt.Errorf(
		"the file has %d bytes where segments have %d", s.length.Load(), q.opts.SegmentSize)}
}

func (q *Queue) noteShort(s *segment) {
	length := s.length.Load()
	n := Notice{Kind: ShortSegment, File: s.name, From: s.start + length, To: s.end()}
	switch length {
	case q.opts.SegmentSize:
		return
	case 0:
		n.Kind, n.Text = EmptySegment, "empty segment "+s.name
	default:
		n.Text = fmt.Sprintf("short segment %s: %d of %d bytes", s.name, length, q.opts.SegmentSize)
	}
	q.notices = append(q.notices, n)
}

func (q *Queue) noteGaps(segs []*segment) {
	for i := 1; i < len(segs); i++ {
		a, b := segs[i-1], segs[i]
		if a.end() < b.start {
			q.notices = append(q.notices, Notice{Kind: Gap, File: b.name, From: a.end(), To: b.start, Text: fmt.Sprintf(
				"gap of %d bytes between %s and %s", b.start-a.end(), a.name, b.name)})
		}
	}
}

// isZero says whether the whole file is zero.
func (q *Queue) isZero(s *segment) (bool, error) {
	f, err := q.fsys.OpenFile(s.name, 0, 0)
	if err != nil {
		return false, err
	}
	lo, _, err := findNonZero(f, s.name, 0, s.length.Load())
	return lo < 0, errors.Join(err, f.Close())
}

// dataSeeker is what a [File] has that can skip holes: NextData gives the offset of the next byte at or after off that
// may be other than zero, false when there is none.
type dataSeeker interface{ NextData(off int64) (int64, bool) }

const scanChunk = 64 << 10

// errNotRegular is what speaks against a folder, link or device in the place of a segment.
var errNotRegular = errors.New("has the name of a segment, but is no regular file")

// findNonZero gives the chunks of [from, to) of the file of that name that hold the first and the last byte that is not zero: [lo, hi),
// lo < 0 if all is zero. The file may be shorter.
//
// It looks through a mapping of its own without reading ahead. Zeros that were read ahead are in memory, where they count as
// data; so a look by reads brought in all that was reserved, a GiB at a time.
func findNonZero(f File, name string, from, to int64) (lo, hi int64, err error) {
	lo, hi = -1, -1
	size, err := f.Size()
	if to = min(to, size); err != nil || from >= to {
		return lo, hi, err
	}
	m, err := f.Map(to, ReadOnly)
	if err != nil {
		return lo, hi, err
	}
	defer func() { err = errors.Join(err, m.Unmap()) }()
	_ = m.Advise(0, int(to), Random) // without it, it only takes longer
	s, skips := f.(dataSeeker)
	err = Guard(name, func() error {
		for off := from; off < to; {
			if skips {
				next, more := s.NextData(off)
				if off = max(off, next); !more || off >= to {
					return nil
				}
			}
			end := min(off-off%scanChunk+scanChunk, to)
			_ = m.Advise(int(off), int(end-off), WillNeed) // else each page is waited for by itself
			if !AllZero(m.Bytes()[off:end]) {
				if lo < 0 {
					lo = off
				}
				hi = end
			}
			off = end
		}
		return nil
	})
	return lo, hi, err
}

// AllZero says whether b holds nothing but zeros. It compares b with itself, moved by one, which is many times faster than a
// loop over the bytes.
func AllZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}
