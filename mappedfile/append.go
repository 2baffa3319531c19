package mappedfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rocketstore/rocketstore/internal/prefetch"
)

// Append writes b at the end and gives the offset of its first byte. It makes the next segment when the end is at a
// border; b must fit into what is left of a segment, else ErrSegmentFull. After an error nothing is written and the
// end is where it was. A full disk matches syscall.ENOSPC, and a later call may succeed; a fault in the mapping is
// [ErrFault]. After a failed sync the error of that sync is returned.
func (q *Queue) Append(b []byte) (off int64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.writable(); err != nil {
		return 0, err
	}
	off = q.written.Load()
	if len(b) == 0 {
		return off, nil
	}
	if int64(len(b)) > q.Remaining() {
		return 0, ErrSegmentFull
	}
	if err := q.put(b, off); err != nil {
		return 0, err
	}
	q.advance(off + int64(len(b)))
	q.bg.nudge(off, off+int64(len(b)))
	return off, nil
}

// Fill writes b at the end and moves the end to the segment's end; between b and there nothing is written. ErrSegmentFull
// when b does not fit; the other errors are those of Append.
func (q *Queue) Fill(b []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.writable(); err != nil {
		return err
	}
	off, left := q.written.Load(), q.Remaining()
	if len(b) == 0 && left == q.opts.SegmentSize {
		return nil
	}
	if int64(len(b)) > left {
		return ErrSegmentFull
	}
	q.bg.pass(off + left) // or zeros come over what is written there later
	if len(b) > 0 {
		if err := q.put(b, off); err != nil {
			return err
		}
		q.advance(off + int64(len(b)))
	}
	if q.opts.Mode == Staged {
		if err := q.commitLocked(); err != nil {
			return err
		}
		q.stage.reset(off + left)
		q.written.Store(off + left)
		q.committed.Store(off + left)
		return nil
	}
	q.advance(off + left)
	return nil
}

// WriteAt overwrites bytes that were written before, in place and within one segment. The pages count as dirty until the
// next Sync. ErrOutOfRange outside of what is written; the other errors are those of Append.
func (q *Queue) WriteAt(b []byte, off int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.writable(); err != nil {
		return err
	}
	end, s := q.written.Load(), q.find(off)
	if s == nil || off+int64(len(b)) > min(end, s.end()) {
		return q.outOfRange(off, len(b))
	}
	if len(b) == 0 {
		return nil
	}
	if q.opts.Mode == Staged {
		if b = q.stage.overwrite(b, off); len(b) == 0 {
			return nil
		}
	}
	if err := q.write(s, b, off-s.start, 0); err != nil {
		return err
	}
	q.dirtyMu.Lock()
	s.dirty.add(off-s.start, len(b), q.opts.SegmentSize)
	q.anyDirty.Store(true)
	q.dirtyMu.Unlock()
	return nil
}

// put writes b at the end, where it fits, making the segment if there is none.
func (q *Queue) put(b []byte, off int64) error {
	s := q.find(off)
	if s == nil {
		var err error
		if s, err = q.roll(off - off%q.opts.SegmentSize); err != nil {
			return err
		}
	}
	if next := s.end(); q.bg != nil && q.asked != next {
		q.asked = next
		q.bg.request(next)
	}
	if s.length.Load() != q.opts.SegmentSize {
		return fmt.Errorf("append to %s before it is repaired: %w", q.dir, q.wrongLength(s))
	}
	q.bg.pass(off + int64(len(b)))
	if q.opts.Mode == Staged {
		return q.stageBytes(s, b, off)
	}
	return q.write(s, b, off-s.start, min(q.opts.HeadLast, len(b)))
}

// write puts b into the file now, after making sure of the blocks; of a mapped file, the first head bytes of it last.
func (q *Queue) write(s *segment, b []byte, pos int64, head int) error {
	if s.length.Load() < pos+int64(len(b)) {
		return q.wrongLength(s)
	}
	h, err := s.acquireToWrite()
	if err != nil {
		return err
	}
	defer h.release()
	if err := s.reserve(h.file, pos, len(b)); err != nil {
		return err
	}
	if q.opts.Mode != Mapped {
		_, err := h.file.WriteAt(b, pos)
		return err
	}
	err = copyGuarded(s.name, h.bytes[pos:], b, head)
	// The next append goes behind this one, and is most often as long.
	next := h.bytes[pos+int64(len(b)):]
	prefetch.Bytes(next[:min(len(next), len(b), mostPrefetched)])
	return err
}

// mostPrefetched bounds, in bytes, what is asked for ahead: a longer copy reads ahead by itself.
const mostPrefetched = 4 << 10

// roll brings the segment that starts at start into the list: the one made ahead, or a new one.
func (q *Queue) roll(start int64) (*segment, error) {
	// The names of all before it are made durable first, so that no power cut leaves a gap.
	if err := q.settle(); err != nil {
		return nil, err
	}
	s := q.bg.take(start)
	if s != nil {
		q.madeAhead.Add(1)
	} else {
		var err error
		if s, err = q.make(start, false); err != nil {
			return nil, err
		}
	}
	s.modTime = time.Now()
	q.insert(s)
	return s, nil
}

// make creates a segment's file at full length, reserves its blocks and maps it. With durable it also makes length and
// name durable; else the segment is remembered for settle. On failure nothing is left behind.
func (q *Queue) make(start int64, durable bool) (*segment, error) {
	s := &segment{q: q, start: start, name: q.pathOf(start), modTime: time.Now()}
	s.length.Store(q.opts.SegmentSize)
	newDir := !q.dirExists
	if newDir {
		if err := q.fsys.MkdirAll(q.dir, q.opts.DirMode); err != nil {
			return nil, err
		}
	}
	f, err := q.createFile(s)
	if err != nil {
		return nil, err
	}
	if durable {
		if err = f.Sync(); err == nil { // its failure harms nothing, the file is given up
			if err = q.syncDir(); err != nil {
				err = q.fail(err) // other names may be lost with it
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), q.fsys.Remove(s.name))
	}
	h, err := s.adopt(f, ReadWrite)
	if err != nil {
		return nil, errors.Join(err, q.fsys.Remove(s.name))
	}
	if q.opts.LockMemory {
		if err := h.m.Advise(0, len(h.bytes), Pin); err != nil {
			q.opts.Logger.Warn("locking a segment in memory", "file", s.name, "err", err)
		}
	}
	h.release()
	q.made.Add(1)
	if !durable {
		q.freshMu.Lock()
		q.newDirs = q.newDirs || newDir
		q.fresh = append(q.fresh, s)
		q.anyFresh.Store(true)
		q.freshMu.Unlock()
	}
	if newDir {
		q.dirExists = true
	}
	return s, nil
}

// createFile makes the file with its length and blocks, or takes an all-zero one that an earlier failure left. A new one gets
// its own name when it has its length: RocketMQ 4.x does not open a directory with a file of another length, as a kill in
// between would leave it.
func (q *Queue) createFile(s *segment) (File, error) {
	name := asideName(s.name)
	f, err := q.fsys.OpenFile(s.name, os.O_RDWR, 0)
	switch {
	case err == nil:
		name = s.name
	case errors.Is(err, fs.ErrNotExist):
		if f, err = q.fsys.OpenFile(name, os.O_RDWR|os.O_CREATE, q.opts.FileMode); err != nil {
			return nil, err
		}
		if size, err := f.Size(); err != nil || size > 0 { // left over, and nobody's
			if err := errors.Join(err, f.Truncate(0)); err != nil {
				return nil, errors.Join(err, f.Close())
			}
		}
	default:
		return nil, err
	}
	err = q.shape(s, f)
	if err == nil && name != s.name {
		err = q.fsys.Rename(name, s.name)
	}
	if err != nil {
		err = errors.Join(err, f.Close())
		if name != s.name {
			err = errors.Join(err, q.fsys.Remove(name))
		}
		return nil, err
	}
	return f, nil
}

func (q *Queue) shape(s *segment, f File) error {
	size, err := f.Size()
	if err != nil {
		return err
	}
	if size > 0 { // not in our list, so nobody's; but never take bytes that we do not know for zeros
		if lo, _, err := findNonZero(f, s.name, 0, size); err != nil || lo >= 0 {
			return errors.Join(err, &CorruptError{File: s.name, Offset: max(lo, 0), Err: errors.New("a file with content is in the way")})
		}
	}
	return q.fill(s, f)
}

// fill gives the file its length, and its blocks as the options say.
func (q *Queue) fill(s *segment, f File) error {
	if err := f.Truncate(q.opts.SegmentSize); err != nil {
		return err
	}
	if q.opts.Reserve == ReserveStep {
		return nil
	}
	if err := f.Allocate(0, q.opts.SegmentSize); err != nil {
		return fmt.Errorf("reserve blocks of %s: %w", s.name, err)
	}
	s.whole = true
	if q.opts.Reserve == ReserveZero {
		if err := writeZeros(f, 0, q.opts.SegmentSize, nil); err != nil {
			return err
		}
		return f.Sync()
	}
	return nil
}

// writeZeros writes zeros over [from, to) of f, as many at a time as zeros has; nil: it makes some.
func writeZeros(f File, from, to int64, zeros []byte) error {
	if zeros == nil {
		zeros = make([]byte, min(scanChunk, max(to-from, 0)))
	}
	for from < to {
		n, err := f.WriteAt(zeros[:min(int64(len(zeros)), to-from)], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}
