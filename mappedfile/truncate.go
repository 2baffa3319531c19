package mappedfile

import (
	"errors"
	"fmt"
	"os"
	"slices"
)

// zeroByWriting is how many stale bytes are overwritten with zeros rather than cut off.
const zeroByWriting = 1 << 20

// TruncateAfter cuts the queue at off for good: segments that start at off or behind are removed, the newest first, but
// one that starts at off and follows a gap stays, empty, since only its name tells where the queue goes on;
// bytes of the last one behind off become zero on disk where they are not; all that is left is made durable and all
// positions are off. With off at or before the start (or an empty queue) nothing is left and the queue begins at off.
// ErrOutOfRange behind the last file's end or in a gap. Any other failure is kept like that of a failed sync, since it is
// not known what the disk holds.
func (q *Queue) TruncateAfter(off int64) error {
	q.syncMu.Lock()
	defer q.syncMu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.writable(); err != nil {
		return err
	}
	segs := q.list()
	if off < 0 || len(segs) > 0 && off > segs[0].start && !q.holds(off) {
		return fmt.Errorf("%w: truncate %s at %d", ErrOutOfRange, q.dir, off)
	}
	if q.opts.Mode == Staged {
		if err := q.commitLocked(); err != nil {
			return err
		}
	}
	q.setPositions(off, min(q.flushed.Load(), off)) // readers first
	if err := q.cut(off); err != nil {
		return q.fail(fmt.Errorf("truncate %s at %d: %w", q.dir, off, err))
	}
	if len(q.list()) == 0 {
		q.flushed.Store(off)
		return nil
	}
	return q.syncTo(off)
}

func (q *Queue) cut(off int64) error {
	defer q.bg.hold()()
	if ahead := q.bg.takeAny(); ahead != nil {
		if err := q.removeFile(ahead, ErrOutOfRange); err != nil {
			return err
		}
	}
	for i, s := range slices.Backward(q.list()) {
		if s.start < off || s.start == off && i > 0 && q.list()[i-1].end() != off {
			break
		}
		q.remove(s)
		if err := q.removeFile(s, ErrOutOfRange); err != nil {
			return err
		}
	}
	s := q.find(off)
	if s == nil {
		return nil
	}
	return q.zeroBehind(s, off-s.start)
}

// zeroBehind makes the bytes of s from pos on zero, on disk too.
func (q *Queue) zeroBehind(s *segment, pos int64) (err error) {
	s.openMu.Lock() // no new mapping meanwhile
	defer s.openMu.Unlock()
	f, err := q.fsys.OpenFile(s.name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	length := s.length.Load()
	lo, hi, err := findNonZero(f, s.name, pos, length)
	if err != nil || lo < 0 {
		return err
	}
	if hi-lo > zeroByWriting {
		s.drop()
		if s.handles.Load() == 0 { // nobody has it mapped, so it may be cut
			return q.cutAndGrow(s, f, pos, length)
		}
	}
	if err := writeZeros(f, lo, hi, nil); err != nil {
		return err
	}
	return f.Sync()
}

func (q *Queue) cutAndGrow(s *segment, f File, pos, length int64) error {
	if err := errors.Join(f.Truncate(pos), f.Truncate(length)); err != nil {
		return err
	}
	clear(s.reserved)
	if s.whole {
		if err := f.Allocate(0, length); err != nil {
			return err
		}
	}
	if q.opts.Reserve == ReserveZero {
		if err := writeZeros(f, pos, length, nil); err != nil {
			return err
		}
	}
	return f.Sync()
}

// DeleteBefore removes the segments that lie wholly before off, the oldest first, but never the one with the end, and
// gives their names. Each name's removal is made durable before the next. Views of them stay valid. A file that cannot be
// removed is no longer part of the queue, and is found again by the next Open.
func (q *Queue) DeleteBefore(off int64) (names []string, err error) {
	q.syncMu.Lock()
	defer q.syncMu.Unlock()
	for {
		q.mu.Lock()
		if err := q.writable(); err != nil {
			q.mu.Unlock()
			return names, err
		}
		segs := q.list()
		if len(segs) < 2 || segs[0].end() > off || segs[1].start >= q.committed.Load() {
			q.mu.Unlock()
			return names, nil
		}
		s := segs[0]
		q.remove(s)
		q.mu.Unlock()
		if err := q.removeFile(s, ErrOutOfRange); err != nil {
			return names, err
		}
		names = append(names, s.name)
	}
}

// Repair mends what Open gave notice of as [ShortSegment] and [EmptySegment]: empty files at the end are removed, other
// short ones are made as long as they should be with zeros, and that is made durable. It gives what it did.
func (q *Queue) Repair() ([]Notice, error) {
	q.syncMu.Lock()
	defer q.syncMu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.writable(); err != nil {
		return nil, err
	}
	var done []Notice
	segs := q.list()
	last := len(segs) - 1
	for ; last >= 0 && segs[last].length.Load() == 0; last-- {
		s := segs[last]
		q.remove(s)
		if err := q.removeFile(s, ErrOutOfRange); err != nil {
			return done, q.fail(err)
		}
		done = append(done, Notice{Kind: EmptySegment, File: s.name, From: s.start, To: s.end(), Text: "removed empty " + s.name})
	}
	for _, s := range segs[:last+1] {
		length := s.length.Load()
		if length == q.opts.SegmentSize {
			continue
		}
		if err := q.lengthen(s); err != nil {
			return done, q.fail(err)
		}
		done = append(done, Notice{Kind: ShortSegment, File: s.name, From: s.start + length, To: s.end(), Text: fmt.Sprintf(
			"extended %s from %d to %d bytes with zeros", s.name, length, q.opts.SegmentSize)})
	}
	if len(done) == 0 {
		return nil, nil
	}
	if err := q.syncDir(); err != nil {
		return done, q.fail(err)
	}
	return done, nil
}

func (q *Queue) lengthen(s *segment) (err error) {
	s.openMu.Lock()
	defer s.openMu.Unlock()
	s.drop() // it is mapped too short
	f, err := q.fsys.OpenFile(s.name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Truncate(q.opts.SegmentSize); err != nil {
		return err
	}
	if q.opts.Reserve != ReserveStep {
		if err := f.Allocate(0, q.opts.SegmentSize); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	s.length.Store(q.opts.SegmentSize)
	return nil
}
