package redolog

import (
	"errors"
	"fmt"
	"iter"
	"path"
	"sync"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// batch is how many units are copied out under the lock for an iteration.
const batch = 512

// Log is the redo log of one store. Its methods may be called from many goroutines: appending and cutting wait for one
// another, reading waits only for them.
// Lock order: mu before any lock of package mappedfile.
type Log struct {
	opts Options
	dir  string
	q    *mappedfile.Queue

	// mu is held for writing by what changes bytes or the end, for reading by what reads units, because cutting zeroes
	// bytes that a reader may have borrowed.
	mu      sync.RWMutex
	last    Unit           // guarded by mu: the last unit, if has
	has     bool           // guarded by mu
	scratch [UnitSize]byte // guarded by mu: a unit on its way to the queue
}

// Open opens the log in dir, usually [Dir]; a missing directory is an empty log, and nothing is created before the first
// append. It does not recover: it ends the log where the written units seem to end (FindEnd(false)) and leaves what lies
// behind. Who is going to append calls Repair and then TruncateFrom with the end of the commit log first.
//
// A file whose name or length contradicts Options.SegmentSize is a [*mappedfile.CorruptError].
func Open(fsys mappedfile.FS, dir string, o *Options) (*Log, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	q, err := mappedfile.Open(fsys, dir, opts.queue())
	if err != nil {
		return nil, err
	}
	l := &Log{opts: opts, dir: dir, q: q}
	if err := l.settle(); err != nil {
		return nil, errors.Join(err, q.Abandon())
	}
	return l, nil
}

// settle ends the log where the files do and reads the last unit.
func (l *Log) settle() error {
	if len(l.q.Segments()) == 0 {
		return nil
	}
	end, err := l.FindEnd(false)
	if err != nil {
		return err
	}
	if err := l.q.SetEnd(end * UnitSize); err != nil {
		return err
	}
	return l.readLast()
}

// readLast reads the last unit; mu is held, or nobody else has the log yet.
func (l *Log) readLast() error {
	l.last, l.has = Unit{}, false
	start, end := l.q.Bounds()
	if start == end {
		return nil
	}
	u, err := l.read(end/UnitSize - 1)
	if err == nil {
		l.last, l.has = u, true
	}
	return err
}

// Notices are what opening found: foreign files, short and empty files, gaps between files.
func (l *Log) Notices() []mappedfile.Notice { return l.q.Notices() }

// Segments lists the files.
func (l *Log) Segments() []mappedfile.SegmentInfo { return l.q.Segments() }

// SegmentSize is the length of a file in bytes.
func (l *Log) SegmentSize() int64 { return l.opts.SegmentSize }

// Bounds gives the index of the first unit and the one behind the last.
func (l *Log) Bounds() (first, next int64) {
	start, end := l.q.Bounds()
	return start / UnitSize, end / UnitSize
}

// Last is the last unit, and false when the log is empty.
func (l *Log) Last() (Unit, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.last, l.has
}

// Append puts a unit at the end. Units come in commit log order: one whose offset is not above the last one's is there
// already and is skipped (R-B-24), and appended is false.
func (l *Log) Append(u Unit) (appended bool, err error) {
	if err := u.check(); err != nil {
		return false, fmt.Errorf("append to the redo log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.has && u.PhysicalOffset <= l.last.PhysicalOffset {
		return false, nil
	}
	if _, err := l.q.Append(u.AppendTo(l.scratch[:0])); err != nil {
		return false, fmt.Errorf("append to the redo log: %w", err)
	}
	l.last, l.has = u, true
	return true, nil
}

// Get reads the unit at an index. Errors: [mappedfile.ErrOutOfRange]; a [*mappedfile.CorruptError] for one that cannot be
// believed, which is given all the same; those of reading.
func (l *Log) Get(index int64) (Unit, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.read(index)
}

// Find gives the unit of the message at a commit log offset, in O(log n); ok is false when there is none. A recovery uses
// it to see whether a unit that Append skips is the right one: a power cut may leave a torn unit that can be believed.
func (l *Log) Find(physicalOffset int64) (e Entry, ok bool, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	index, err := l.search(physicalOffset)
	if _, next := l.Bounds(); err != nil || index >= next {
		return Entry{}, false, err
	}
	u, err := l.read(index)
	if err != nil {
		return Entry{}, false, err
	}
	return Entry{index, u}, u.PhysicalOffset == physicalOffset, nil
}

// read is Get; mu is held.
func (l *Log) read(index int64) (Unit, error) {
	if first, next := l.Bounds(); index < first || index >= next {
		return Unit{}, fmt.Errorf("redo log unit %d: %w", index, mappedfile.ErrOutOfRange)
	}
	v, err := l.q.View(index*UnitSize, UnitSize)
	if err != nil {
		return Unit{}, fmt.Errorf("redo log unit %d: %w", index, err)
	}
	defer v.Release()
	var u Unit
	if err := mappedfile.Guard(v.File(), func() error { u = decode(v.Bytes()); return nil }); err != nil {
		return Unit{}, fmt.Errorf("redo log unit %d: %w", index, err)
	}
	if u.possible() {
		return u, nil
	}
	return u, l.corrupt(v.File(), index, u)
}

// corrupt is the error for a unit that cannot be believed.
func (l *Log) corrupt(file string, index int64, u Unit) error {
	return &mappedfile.CorruptError{
		File: file, Offset: index * UnitSize % l.opts.SegmentSize,
		Err: fmt.Errorf("redo log unit %d: %w", index, u.check()),
	}
}

// Replay yields all units from an index on, in order. It holds no lock while the caller works. A unit that cannot be
// believed is yielded with a [*mappedfile.CorruptError], and the walk goes on.
func (l *Log) Replay(from int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		buf := make([]Entry, 0, batch)
		for {
			found, next, err := l.unitsFrom(from, buf)
			if err != nil {
				yield(Entry{Index: next}, err)
				return
			}
			for _, e := range found {
				var err error
				if !e.possible() {
					at := e.Index * UnitSize
					err = l.corrupt(path.Join(l.dir, mappedfile.SegmentName(at-at%l.opts.SegmentSize)), e.Index, e.Unit)
				}
				if !yield(e, err) {
					return
				}
			}
			if len(found) == 0 {
				return
			}
			from = next
		}
	}
}

// unitsFrom copies units from an index on into buf, whatever they hold, up to the end of a file. It gives the index to go
// on from; at the end there are none.
func (l *Log) unitsFrom(from int64, buf []Entry) (found []Entry, next int64, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	first, end := l.Bounds()
	for from = max(from, first); from < end; {
		v, err := l.q.ViewFrom(from * UnitSize)
		if err != nil {
			if !errors.Is(err, mappedfile.ErrOutOfRange) {
				return nil, from, fmt.Errorf("redo log unit %d: %w", from, err)
			}
			from = l.behindGap(from, end)
			continue
		}
		found = buf[:0]
		err = mappedfile.Guard(v.File(), func() error {
			for b := v.Bytes(); len(b) >= UnitSize && len(found) < cap(buf); b = b[UnitSize:] {
				found = append(found, Entry{from + int64(len(found)), decode(b)})
			}
			return nil
		})
		v.Release()
		if err != nil {
			return nil, from, fmt.Errorf("redo log unit %d: %w", from, err)
		}
		if len(found) > 0 {
			return found, from + int64(len(found)), nil
		}
		from = l.behindGap(from, end)
	}
	return nil, end, nil
}

// behindGap is the first index of the next file behind an index that no file holds.
func (l *Log) behindGap(index, end int64) int64 {
	for _, s := range l.q.Segments() {
		if first := s.Start / UnitSize; first > index {
			return first
		}
	}
	return end
}

// Sync makes what was written durable once at least leastPages pages of 4096 bytes are dirty; 0: anything. It does not
// hold up appends. The first failure is final: it is returned by all later Sync and Append calls.
func (l *Log) Sync(leastPages int) error { return l.q.Sync(leastPages) }

// Close closes the files. It does not sync. Twice is fine.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.q.Close()
}

// Abandon closes like a crash: it releases memory, syncs nothing and removes nothing.
func (l *Log) Abandon() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.q.Abandon()
}
