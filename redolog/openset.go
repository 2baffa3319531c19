package redolog

import (
	"cmp"
	"iter"
	"slices"
)

// compactFrom is the least length at which an OpenSet drops what is resolved.
const compactFrom = 4096

// OpenSet folds units into the set of open transactions: a prepared message's unit adds its offset, a resolving unit
// removes the one that it names (R-B-50). It needs 16 bytes for each open one and is fast when units come in log order,
// as they do; any order is allowed. The zero value is an empty set. It belongs to one goroutine.
type OpenSet struct {
	// offsets ascend by their plain value; a resolved one is kept as its complement, which is negative, until the next
	// compaction.
	offsets  []int64
	resolved int
	near     int                // where the last search ended
	stray    map[int64]struct{} // those that came out of order
}

// plain undoes the complement.
func plain(v int64) int64 { return v ^ v>>63 }

// Apply takes in the next unit.
func (s *OpenSet) Apply(u Unit) {
	if prepared, ok := u.Resolves(); ok {
		s.remove(prepared)
	} else if u.PhysicalOffset >= 0 {
		s.add(u.PhysicalOffset)
	}
}

func (s *OpenSet) add(offset int64) {
	if n := len(s.offsets); n == 0 || plain(s.offsets[n-1]) < offset {
		s.offsets = append(s.offsets, offset)
		return
	}
	if i, ok := s.find(offset); !ok {
		if s.stray == nil {
			s.stray = map[int64]struct{}{}
		}
		s.stray[offset] = struct{}{}
	} else if s.offsets[i] < 0 {
		s.offsets[i] = offset
		s.resolved--
	}
}

func (s *OpenSet) remove(offset int64) {
	i, ok := s.find(offset)
	switch {
	case !ok:
		delete(s.stray, offset)
	case s.offsets[i] >= 0:
		s.offsets[i] = ^offset
		if s.resolved++; s.resolved > len(s.offsets)/2 && len(s.offsets) >= compactFrom {
			s.compact()
		}
	}
}

// find looks for an offset, by steps that double, from where the last one was found: what ends one after the other was
// mostly prepared not far apart. If it is not there, the index is where it would be.
func (s *OpenSet) find(offset int64) (int, bool) {
	n := len(s.offsets)
	if n == 0 {
		return 0, false
	}
	lo := min(s.near, n-1)
	hi := lo + 1
	for step := 1; hi < n && plain(s.offsets[hi]) <= offset; step *= 2 {
		lo, hi = hi, min(n, hi+step)
	}
	for step := 1; lo > 0 && plain(s.offsets[lo]) > offset; step *= 2 {
		hi, lo = lo, max(0, lo-step)
	}
	i, ok := slices.BinarySearchFunc(s.offsets[lo:hi], offset, func(v, want int64) int { return cmp.Compare(plain(v), want) })
	s.near = lo + i
	return lo + i, ok
}

// compact drops what is resolved.
func (s *OpenSet) compact() {
	s.offsets = slices.DeleteFunc(s.offsets, func(v int64) bool { return v < 0 })
	s.resolved = 0
}

// Len is how many transactions are open.
func (s *OpenSet) Len() int { return len(s.offsets) - s.resolved + len(s.stray) }

// Has says whether the transaction of the message that was prepared at a commit log offset is open.
func (s *OpenSet) Has(preparedOffset int64) bool {
	if i, ok := s.find(preparedOffset); ok {
		return s.offsets[i] >= 0
	}
	_, ok := s.stray[preparedOffset]
	return ok
}

// All yields the commit log offsets of the prepared messages that are open, in ascending order.
func (s *OpenSet) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		s.settle()
		for _, v := range s.offsets {
			if !yield(v) {
				return
			}
		}
	}
}

// settle puts all open ones into offsets.
func (s *OpenSet) settle() {
	s.compact()
	if len(s.stray) == 0 {
		return
	}
	for v := range s.stray {
		s.offsets = append(s.offsets, v)
	}
	s.stray = nil
	slices.Sort(s.offsets)
}

// OpenSet folds the whole log, and gives the first error with what it has got until then.
func (l *Log) OpenSet() (*OpenSet, error) {
	s := new(OpenSet)
	for e, err := range l.Replay(0) {
		if err != nil {
			return s, err
		}
		s.Apply(e.Unit)
	}
	return s, nil
}
