package mappedfile

import "sync"

// stage holds bytes that were appended and are not in the file yet. All of them belong to one segment.
// Guarded by Queue.mu.
type stage struct {
	seg  *segment
	off  int64  // where b starts
	b    []byte // not longer than Options.StageSize
	idle []byte // the other buffer
	// busy is set while Commit writes the bytes before off without holding mu; done is signalled when that ends.
	busy bool
	done sync.Cond
}

// reset says that nothing is staged and the next byte is for off.
func (st *stage) reset(off int64) {
	st.wait()
	st.seg, st.off, st.b = nil, off, st.b[:0]
}

// wait waits for the end of a Commit that is writing.
func (st *stage) wait() {
	for st.busy {
		st.done.Wait()
	}
}

// overwrite puts that part of b, meant for off, into the staged bytes which lies there, and gives back the rest.
// Bytes that Commit is just writing are waited for.
func (st *stage) overwrite(b []byte, off int64) []byte {
	st.wait()
	if end := off + int64(len(b)); end > st.off {
		from := max(off, st.off)
		copy(st.b[from-st.off:end-st.off], b[from-off:])
		b = b[:from-off]
	}
	return b
}

// stageBytes holds b back, writing out what was there when there is no room. The caller holds mu.
func (q *Queue) stageBytes(s *segment, b []byte, off int64) error {
	st := &q.stage
	if st.b == nil {
		st.b, st.idle = make([]byte, 0, q.opts.StageSize), make([]byte, 0, q.opts.StageSize)
	}
	// Blocks first: committing must not find the disk full.
	h, err := s.acquireToWrite()
	if err != nil {
		return err
	}
	err = s.reserve(h.file, off-s.start, len(b))
	h.release()
	if err != nil {
		return err
	}
	if st.seg != s || len(st.b)+len(b) > q.opts.StageSize {
		if err := q.commitLocked(); err != nil {
			return err
		}
		st.seg, st.off = s, off
	}
	if len(b) > q.opts.StageSize {
		if err := q.write(s, b, off-s.start, 0); err != nil {
			return err
		}
		st.off = off + int64(len(b))
		q.written.Store(st.off)
		q.committedTo(st.off)
		return nil
	}
	st.b = append(st.b, b...)
	return nil
}

// Commit writes what [Staged] holds back to the file, so that readers see it. In the other modes it does nothing. An
// error is kept like that of a failed sync.
func (q *Queue) Commit() error {
	if q.opts.Mode != Staged {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.writable(); err != nil {
		return err
	}
	st := &q.stage
	st.wait()
	if err := q.failure(); err != nil { // of the Commit that was waited for, which may have had bytes of the caller
		return err
	}
	if len(st.b) == 0 {
		return nil
	}
	// Appending goes on into the other buffer while this one is written.
	s, b, off := st.seg, st.b, st.off
	st.b, st.idle = st.idle[:0], nil
	st.off += int64(len(b))
	st.busy = true
	q.mu.Unlock()
	err := q.writeStaged(s, b, off)
	q.mu.Lock()
	if err == nil {
		q.committedTo(off + int64(len(b)))
	} else {
		err = q.fail(err)
	}
	st.idle = b[:0]
	st.busy = false
	st.done.Broadcast()
	return err
}

// commitLocked writes out all staged bytes while holding mu.
func (q *Queue) commitLocked() error {
	st := &q.stage
	st.wait()
	if err := q.failure(); err != nil {
		return err
	}
	if len(st.b) == 0 {
		return nil
	}
	if err := q.writeStaged(st.seg, st.b, st.off); err != nil {
		return q.fail(err)
	}
	st.off += int64(len(st.b))
	st.b = st.b[:0]
	q.committedTo(st.off)
	return nil
}

// committedTo says that readers see all before off.
func (q *Queue) committedTo(off int64) {
	q.committed.Store(off)
	if q.opts.Committed != nil {
		q.opts.Committed()
	}
}

func (q *Queue) writeStaged(s *segment, b []byte, off int64) error {
	h, err := s.acquireToWrite()
	if err != nil {
		return err
	}
	defer h.release()
	_, err = h.file.WriteAt(b, off-s.start)
	return err
}
