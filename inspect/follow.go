package inspect

import (
	"iter"
	"math"
)

// followWindow is how many items a follower looks ahead.
const followWindow = 256

// follower goes through a run of items that point into the commit log, in step with a walk over the log: index entries, redo
// units, units of a batch queue. They lie in log order, save for damage. It holds at most followWindow items.
type follower[T any] struct {
	next    func() (T, error, bool)
	stop    func()
	pointer func(T) int64 // physical offset
	odd     func(T) error // gets each item that no record took, in order
	// mark says whether an item points to nothing and only stands between others; odd gets it in its turn. Nil: none does.
	mark   func(T) bool
	window []T
	low    int64 // the least pointer in the window; valid when not stale
	stale  bool
	ended  bool
	err    error
}

func follow[T any](seq iter.Seq2[T, error], pointer func(T) int64, odd func(T) error) *follower[T] {
	f := &follower[T]{pointer: pointer, odd: odd}
	f.next, f.stop = iter.Pull2(seq)
	return f
}

// fill reads on until the window is full.
func (f *follower[T]) fill() error {
	if f.ended || len(f.window) == followWindow {
		return nil
	}
	f.window = append(make([]T, 0, 2*followWindow), f.window...) // what was dropped is let go
	for !f.ended && len(f.window) < followWindow {
		item, err, ok := f.next()
		if !ok {
			f.ended = true
			break
		}
		if err != nil {
			return err
		}
		f.window, f.stale = append(f.window, item), true
	}
	return nil
}

// front is the next item that points somewhere, if there is one.
func (f *follower[T]) front() (item T, ok bool, err error) {
	for {
		if len(f.window) == 0 {
			err = f.fill()
		}
		if len(f.window) == 0 || err != nil {
			return item, false, err
		}
		if f.mark == nil || !f.mark(f.window[0]) {
			return f.window[0], true, nil
		}
		if err := f.pass(); err != nil {
			return item, false, err
		}
	}
}

// drop takes the first item off.
func (f *follower[T]) drop() { f.window, f.stale = f.window[1:], true }

// take gives the items that point to off, up to the first other one, to each; those before them are odd. It says whether
// there were any.
func (f *follower[T]) take(off int64, each func(T)) (bool, error) {
	// Items that point before off are of no record that is still to come.
	for {
		item, ok, err := f.front()
		if err != nil {
			return false, err
		}
		if !ok || f.pointer(item) >= off {
			break
		}
		if err := f.pass(); err != nil {
			return false, err
		}
	}
	if len(f.window) == 0 {
		return false, nil
	}
	if f.pointer(f.window[0]) != off && !f.skipTo(off) {
		return false, f.err
	}
	for {
		item, ok, err := f.front()
		if err != nil || !ok || f.pointer(item) != off {
			return true, err
		}
		each(item)
		f.drop()
	}
}

// skipTo passes over items that point elsewhere if one further on in the window points to off.
func (f *follower[T]) skipTo(off int64) bool {
	if f.err = f.fill(); f.err != nil {
		return false
	}
	if f.stale {
		f.low, f.stale = math.MaxInt64, false
		for _, item := range f.window {
			f.low = min(f.low, f.pointer(item))
		}
	}
	if f.low > off {
		return false
	}
	for i, item := range f.window {
		if f.pointer(item) != off {
			continue
		}
		for range i {
			if f.err = f.pass(); f.err != nil {
				return false
			}
		}
		return true
	}
	return false
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
		_, ok, err := f.front()
		if err != nil || !ok {
			return err
		}
		if err := f.pass(); err != nil {
			return err
		}
	}
}
