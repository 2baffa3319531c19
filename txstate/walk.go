package txstate

import (
	"cmp"
	"errors"
	"fmt"
	"iter"

	"github.com/google/btree"

	"github.com/rocketstore/rocketstore/mappedfile"
)

const (
	// loadStep is how many records are looked at for open ones while the lock is held, well under a millisecond.
	loadStep = 1 << 16
	// batch is how many records are copied out under the lock for an iteration.
	batch = 64
)

// All yields the open transactions from a number on, in order: the records whose state is prepared. It holds no lock
// while the caller works, and costs what is open, save that records which were there when the table was opened are looked
// at once, as far as the iteration comes. A record that is resolved meanwhile may or may not be yielded. One that cannot be
// read is yielded with the error, and the walk goes on.
func (t *Table) All(from int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var numbers [batch]int64
		var found [batch]result
		for {
			n, more, err := t.openFrom(from, numbers[:0], found[:0])
			if err != nil {
				yield(Entry{Number: from}, err)
				return
			}
			for _, f := range found[:n] {
				if !yield(f.Entry, f.err) {
					return
				}
				from = f.Number + 1
			}
			if !more {
				return
			}
		}
	}
}

// result is a record that was read, or why not.
type result struct {
	Entry
	err error
}

// openFrom copies the next open records into found, looking at unknown records if it has to, and says whether there may
// be more.
func (t *Table) openFrom(from int64, numbers []int64, found []result) (n int, more bool, err error) {
	t.mu.RLock()
	numbers = t.set.collect(from, numbers)
	known := t.set.all()
	found = t.readAll(numbers, found)
	t.mu.RUnlock()
	if len(numbers) == 0 && !known {
		return 0, true, t.load()
	}
	return len(found), len(numbers) > 0 || !known, nil
}

// readAll reads the records of ascending numbers, borrowing each file once; mu is held.
func (t *Table) readAll(numbers []int64, found []result) []result {
	for len(numbers) > 0 {
		first := numbers[0]
		v, err := t.q.ViewFrom(first * RecordSize)
		n := 0
		if err == nil {
			err = mappedfile.Guard(v.File(), func() error {
				for b := v.Bytes(); n < len(numbers); n++ {
					at := (numbers[n] - first) * RecordSize
					if at+RecordSize > int64(len(b)) {
						break
					}
					f := result{Entry: Entry{numbers[n], decode(b[at:])}}
					if !f.possible() {
						f.err = t.corrupt(v.File(), f.Number, f.Record)
					}
					found = append(found, f)
				}
				return nil
			})
			v.Release()
		}
		if n == 0 || err != nil {
			err = readFailed(numbers[n], cmp.Or(err, mappedfile.ErrOutOfRange))
			found = append(found, result{Entry{Number: numbers[n]}, err})
			n++
		}
		numbers = numbers[n:]
	}
	return found
}

// Len is how many transactions are open. The first call looks at the records that no other method has looked at.
func (t *Table) Len() (int, error) {
	for {
		t.mu.RLock()
		n, known := t.set.numbers.Len(), t.set.all()
		t.mu.RUnlock()
		if known {
			return n, nil
		}
		if err := t.load(); err != nil {
			return 0, err
		}
	}
}

// FirstOpen is the number of the first open transaction, and false when none is open. It looks at unknown records as far
// as it has to.
func (t *Table) FirstOpen() (number int64, ok bool, err error) {
	for {
		t.mu.RLock()
		n, ok := t.set.numbers.Min()
		known := t.set.all()
		ok = ok && (known || n < t.set.loaded)
		t.mu.RUnlock()
		if ok || known {
			return n, ok, nil
		}
		if err := t.load(); err != nil {
			return 0, false, err
		}
	}
}

// FindByOffset gives the number of the open transaction whose prepared message lies at a commit log offset, the lowest if
// there are several; [ErrNotFound] when none does. The first call costs what is open, the others O(log n). It is for an
// answer that carries a number from before the table was renumbered (R-B-68).
func (t *Table) FindByOffset(commitOffset int64) (number int64, err error) {
	if _, err := t.Len(); err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.set.places == nil {
		t.set.places = btree.NewG(degree, place.less)
		t.set.numbers.Ascend(func(n int64) bool {
			r, readErr := t.read(n)
			if readErr == nil {
				t.set.places.ReplaceOrInsert(place{r.CommitOffset, n})
			}
			return true
		})
	}
	number = -1
	t.set.places.AscendGreaterOrEqual(place{commitOffset, 0}, func(p place) bool {
		if p.commitOffset == commitOffset {
			number = p.number
		}
		return false
	})
	if number < 0 {
		return 0, fmt.Errorf("open transaction of the message at %d: %w", commitOffset, ErrNotFound)
	}
	return number, nil
}

// Records yields all records from a number on, in order, resolved ones and fillers too. It holds no lock while the caller
// works. A record that cannot be believed is yielded with a [*mappedfile.CorruptError], and the walk goes on.
func (t *Table) Records(from int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var found [batch]result
		for from = max(from, 0); ; {
			next, n, err := t.recordsFrom(from, found[:0])
			if err != nil {
				yield(Entry{Number: from}, err)
				return
			}
			for _, f := range found[:n] {
				if !yield(f.Entry, f.err) {
					return
				}
			}
			if next == from {
				return
			}
			from = next
		}
	}
}

// recordsFrom copies up to a batch of records from a number on into found. It gives the number to go on from, which is
// from itself at the end.
func (t *Table) recordsFrom(from int64, found []result) (next int64, n int, err error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	from, v, err := t.viewFrom(from)
	if err != nil || from >= t.next() {
		return from, 0, err
	}
	defer v.Release()
	err = mappedfile.Guard(v.File(), func() error {
		for b := v.Bytes(); len(b) >= RecordSize && len(found) < cap(found); b = b[RecordSize:] {
			number := from + int64(len(found))
			f := result{Entry: Entry{number, decode(b)}}
			if !f.possible() {
				f.err = t.corrupt(v.File(), number, f.Record)
			}
			found = append(found, f)
		}
		return nil
	})
	return from + int64(len(found)), len(found), err
}

// viewFrom borrows the records from the first number at or behind from that is in a file; mu is held. At the end the
// number is that of Next and the view is empty.
func (t *Table) viewFrom(from int64) (int64, mappedfile.View, error) {
	for from = max(from, t.first()); from < t.next(); {
		v, err := t.q.ViewFrom(from * RecordSize)
		if err == nil && len(v.Bytes()) >= RecordSize {
			return from, v, nil
		}
		if v.Release(); err != nil && !errors.Is(err, mappedfile.ErrOutOfRange) {
			return from, mappedfile.View{}, err
		}
		from = t.behindGap(from)
	}
	return t.next(), mappedfile.View{}, nil
}

// behindGap is the first number of the next file behind a number that no file holds.
func (t *Table) behindGap(number int64) int64 {
	for _, s := range t.q.Segments() {
		if first := s.Start / RecordSize; first > number {
			return first
		}
	}
	return t.next()
}

// load looks at the next unknown records for open ones.
func (t *Table) load() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.set.all() {
		return nil
	}
	return t.loadLocked()
}

// loadLocked is load; mu is held and there are unknown records.
func (t *Table) loadLocked() error {
	from, v, err := t.viewFrom(t.set.loaded)
	if err != nil {
		return fmt.Errorf("look for open transactions: %w", err)
	}
	if from >= t.set.tail {
		t.set.loaded = t.set.tail
		return nil
	}
	defer v.Release()
	before := t.set.damaged
	n := min(int64(len(v.Bytes()))/RecordSize, loadStep, t.set.tail-from)
	err = mappedfile.Guard(v.File(), func() error {
		t.look(from, v.Bytes()[:n*RecordSize])
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for open transactions: %w", err)
	}
	t.set.loaded = from + n
	if bad := t.set.damaged - before; bad > 0 {
		t.opts.Logger.Warn("transaction records that cannot be believed", "file", v.File(), "records", bad)
	}
	return nil
}

// look adds the open ones among the records b, the first of which has the number from.
func (t *Table) look(from int64, b []byte) {
	for i := int64(0); len(b) >= RecordSize; i, b = i+1, b[RecordSize:] {
		r := decode(b)
		if !r.possible() {
			t.set.damaged++
		} else if r.State == Prepared {
			t.set.add(from+i, r.CommitOffset)
		}
	}
}
