package mappedfile

import (
	"fmt"
	"path"
)

// Clear removes all segments, the oldest first, and the directory when nothing else is in it, durably. The queue is empty
// then and begins at off, as after [Queue.Begin]; views stay valid. It is for one goroutine as DeleteBefore is. A queue with
// segments made ahead cannot be cleared; what is there after a failure is found again by the next Open.
func (q *Queue) Clear(off int64) error {
	q.syncMu.Lock()
	defer q.syncMu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.writable(); err != nil {
		return err
	}
	if off < 0 || q.opts.Ahead {
		return fmt.Errorf("%w: %s cannot be cleared to %d", ErrOutOfRange, q.dir, off)
	}
	for _, s := range q.list() {
		q.remove(s)
		if err := q.removeFile(s, ErrOutOfRange); err != nil {
			return q.fail(fmt.Errorf("clear %s: %w", q.dir, err))
		}
	}
	q.setPositions(off, off)
	if err := q.removeDir(); err != nil {
		return q.fail(fmt.Errorf("clear %s: %w", q.dir, err))
	}
	return nil
}

// removeDir removes the directory unless something is in it. The caller holds mu, and there is no segment.
func (q *Queue) removeDir() error {
	entries, err := q.fsys.ReadDir(q.dir)
	if isNotExist(err) {
		q.dirExists = false
		return nil
	}
	if err != nil || len(entries) > 0 {
		return err
	}
	if err := q.fsys.Remove(q.dir); err != nil {
		return err
	}
	q.dirExists = false
	return q.fsys.SyncDir(path.Dir(q.dir))
}
