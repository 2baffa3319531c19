package inspect

import (
	"iter"
	"math"
	"slices"
)

// followWindow is how many items a follower looks ahead.
const followWindow = 256

// follower goes through a run of items that point into the commit log, in step with a walk over the log: index entries, redo
// units, units of a batch queue. They lie in log order, save for damage. It holds at most followWindow items.
type follower[T any] struct {
	next    func() ([]T, error, bool)
	stop    func()
	pointer func(*T) int64 // physical offset
	odd     func(T) error  // gets each item that no record took, in order
	// mark says whether an item whose pointer is math.MaxInt64 points to nothing and only stands between others; odd gets it in its turn. Nil: none does.
	mark func(*T) bool
	// ahead, if not nil, sees each batch of items when it is read. They are looked at one by one later.
	ahead  func([]T)
	window []T     // a part of buf
	buf    []T     // has room for one batch behind a whole window
	at     []int64 // the pointers of the window's items, a part of atBuf: BenchmarkCheck gains by not asking for them again
	atBuf  []int64
	used   int   // items of buf that are not zero
	low    int64 // the least pointer in the window; valid when not stale
	stale  bool
	// dropped counts the items that are done with.
	dropped int64
	ended   bool
	err     error
}

func follow[T any](seq iter.Seq2[T, error], pointer func(*T) int64, odd func(T) error) *follower[T] {
	return followBatches(batches(seq), pointer, odd)
}

// followBatches is follow of what comes up to followWindow items at a time, each batch valid until the next.
func followBatches[T any](seq iter.Seq2[[]T, error], pointer func(*T) int64, odd func(T) error) *follower[T] {
	f := &follower[T]{pointer: pointer, odd: odd}
	f.next, f.stop = iter.Pull2(seq)
	return f
}

// batches yields the items of seq up to followWindow at a time, since each step of iter.Pull2 costs more than an item. A
// batch is valid until the next.
func batches[T any](seq iter.Seq2[T, error]) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		batch := make([]T, 0, followWindow)
		for item, err := range seq {
			if err == nil {
				batch = append(batch, item)
			}
			if len(batch) == followWindow || err != nil && len(batch) > 0 {
				if !yield(batch, nil) {
					return
				}
				batch = batch[:0]
			}
			if err != nil && !yield(nil, err) {
				return
			}
		}
		if len(batch) > 0 {
			yield(batch, nil)
		}
	}
}

// fill reads on until the window is full.
func (f *follower[T]) fill() error {
	if f.ended || len(f.window) >= followWindow {
		return nil
	}
	if f.buf == nil {
		f.buf, f.atBuf = make([]T, 2*followWindow), make([]int64, 2*followWindow)
	}
	n := copy(f.buf, f.window)
	clear(f.buf[n:max(n, f.used)]) // what was dropped is let go
	f.window, f.at = f.buf[:n], f.atBuf[:copy(f.atBuf, f.at)]
	for !f.ended && len(f.window) < followWindow {
		batch, err, ok := f.next()
		if !ok {
			f.ended = true
			break
		}
		if f.ahead != nil {
			f.ahead(batch)
		}
		f.window, f.stale = append(f.window, batch...), true
		for i := range batch {
			f.at = append(f.at, f.pointer(&batch[i]))
		}
		f.used = len(f.window)
		if err != nil {
			return err
		}
	}
	return nil
}

// ready says whether there is an item in the window, and the first points somewhere.
func (f *follower[T]) ready() bool {
	return len(f.window) > 0 && (f.at[0] != math.MaxInt64 || f.mark == nil || !f.mark(&f.window[0]))
}

// front is the next item that points somewhere, nil when there is none. It is valid until the next call.
func (f *follower[T]) front() (item *T, err error) {
	for !f.ready() {
		if len(f.window) == 0 {
			err = f.fill()
		} else {
			err = f.pass() // a mark
		}
		if err != nil || len(f.window) == 0 && f.ended {
			return nil, err
		}
	}
	return &f.window[0], nil
}

// drop takes the first item off.
func (f *follower[T]) drop() {
	f.window, f.at, f.stale, f.dropped = f.window[1:], f.at[1:], true, f.dropped+1
}

// take gives the items that point to off, up to the first other one, to each; those before them are odd. It says whether
// there were any.
func (f *follower[T]) take(off int64, each func(*T)) (bool, error) {
	if len(f.at) > 1 && f.at[0] == off && f.at[1] > off && f.at[1] != math.MaxInt64 { // one item, as nearly always
		each(&f.window[0])
		f.drop()
		return true, nil
	}
	item, err := f.front()
	// Items that point before off are of no record that is still to come.
	for err == nil && item != nil && f.at[0] < off {
		if err = f.pass(); err == nil {
			item, err = f.front()
		}
	}
	if item == nil || err != nil {
		return false, err
	}
	if f.at[0] != off {
		if !f.skipTo(off) {
			return false, f.err
		}
		item = &f.window[0]
	}
	for err == nil && item != nil && f.at[0] == off {
		each(item)
		f.drop()
		item, err = f.front()
	}
	return true, err
}

// skipTo passes over items that point elsewhere if one further on in the window points to off.
func (f *follower[T]) skipTo(off int64) bool {
	if f.err = f.fill(); f.err != nil {
		return false
	}
	if f.stale {
		f.low, f.stale = slices.Min(f.at), false
	}
	if f.low > off {
		return false
	}
	for range slices.Index(f.at, off) { // -1 is none
		if f.err = f.pass(); f.err != nil {
			return false
		}
	}
	return len(f.at) > 0 && f.at[0] == off
}

// pass gives the first item to odd.
func (f *follower[T]) pass() error {
	item := f.window[0]
	f.drop()
	return f.odd(item)
}

// rest gives all that is left to odd.
func (f *follower[T]) rest() error {
	for {
		item, err := f.front()
		if err != nil || item == nil {
			return err
		}
		if err := f.pass(); err != nil {
			return err
		}
	}
}
