package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// markDirty enters the queue in the list of those to sync.
func (q *Queue) markDirty() {
	if q.dirty.Load() || q.dirty.Swap(true) {
		return
	}
	t := q.table
	t.dirtyMu.Lock()
	t.dirty = append(t.dirty, q)
	t.dirtyMu.Unlock()
}

// Sync makes units durable: of each queue that was written, when at least that many 4096-byte pages of it are not (or a
// file is full); 0 means everything (R-E-046: every second 2 pages, every minute all). It looks only at queues that were
// written since they were synced. A failure does not keep the other queues from being synced; it is final, so the queue
// that failed fails again with every later Sync.
func (t *Table) Sync(leastPages int) error {
	t.syncMu.Lock()
	defer t.syncMu.Unlock()
	t.dirtyMu.Lock()
	todo := t.dirty
	t.dirty, t.spare = t.spare[:0], nil
	t.dirtyMu.Unlock()

	var first error
	again := todo[:0]
	for _, q := range todo {
		q.dirty.Store(false) // before the sync: what is written from here on marks it anew
		least := leastPages
		if q.patched.Swap(false) {
			least = 0 // Flushed and Written do not tell whether there is more to sync
		}
		err := q.Sync(least)
		if q.removed.Load() {
			continue
		}
		if first == nil {
			first = err
		}
		if (err != nil || q.segs.Flushed() < q.segs.Written()) && !q.dirty.Swap(true) {
			again = append(again, q)
		}
	}
	t.dirtyMu.Lock()
	t.dirty = append(t.dirty, again...)
	t.dirtyMu.Unlock()
	clear(todo)
	t.spare = todo
	return first
}

// Close closes all queues. It does not sync. A second call does nothing.
func (t *Table) Close() error {
	return t.end((*Queue).close)
}

// Abandon closes all queues as a crash would: nothing is synced and nothing tidied up.
func (t *Table) Abandon() error {
	return t.end(func(q *Queue) error { return q.segs.Abandon() })
}

func (t *Table) end(end func(*Queue) error) error {
	var errs []error
	for q := range t.All() {
		if err := end(q); err != nil {
			errs = append(errs, fmt.Errorf("close queue %s/%d: %w", q.topic, q.id, err))
		}
	}
	return errors.Join(errs...)
}

// close closes the queue's files. Using the queue afterwards gives [mappedfile.ErrClosed].
func (q *Queue) close() error { return q.segs.Close() }

// Remove takes a queue out of the table, closes it and deletes its files and its folder, and that of the topic when it is
// empty then. Foreign files in these folders stay, and the folders with them.
func (t *Table) Remove(q *Queue) error {
	if t.opts.ReadOnly {
		return fmt.Errorf("remove queue %s/%d: %w", q.topic, q.id, mappedfile.ErrReadOnly)
	}
	t.mu.Lock()
	if t.topics[q.topic][q.id] == q {
		t.order.Delete(q)
		if delete(t.topics[q.topic], q.id); len(t.topics[q.topic]) == 0 {
			delete(t.topics, q.topic)
		}
	}
	q.removed.Store(true) // under the lock: who finds the queue without it finds it before this
	t.mu.Unlock()
	if err := q.segs.Destroy(); err != nil {
		return fmt.Errorf("remove queue %s/%d: %w", q.topic, q.id, err)
	}
	for _, dir := range []string{q.dir, path.Dir(q.dir)} {
		if gone, err := t.removeIfEmpty(dir); err != nil || !gone {
			return err
		}
	}
	return nil
}

// removeIfEmpty removes a folder without entries and says whether it is gone. Either way what was removed is durable then.
func (t *Table) removeIfEmpty(dir string) (bool, error) {
	entries, err := t.fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("list %s: %w", dir, err)
	}
	if len(entries) > 0 {
		return false, t.fsys.SyncDir(dir)
	}
	if err := t.fsys.Remove(dir); err != nil {
		return false, fmt.Errorf("remove %s: %w", dir, err)
	}
	return true, t.fsys.SyncDir(path.Dir(dir))
}
