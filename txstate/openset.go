package txstate

import (
	"github.com/google/btree"
)

// degree of the trees: nodes of up to 127 items.
const degree = 64

// place is where the message of an open record lies.
type place struct{ commitOffset, number int64 }

func (p place) less(q place) bool {
	return p.commitOffset < q.commitOffset || p.commitOffset == q.commitOffset && p.number < q.number
}

// openSet holds the numbers of the prepared records. Those from loaded up to tail were there when the table was opened and
// have not been looked at; all others are known.
type openSet struct {
	numbers *btree.BTreeG[int64]
	// places is the same set by commit log offset, made when it is first asked for.
	places       *btree.BTreeG[place]
	loaded, tail int64
	damaged      int64
}

// reset empties the set of a table whose records from first up to next are not known.
func (s *openSet) reset(first, next int64) {
	s.numbers, s.places = btree.NewOrderedG[int64](degree), nil
	s.loaded, s.tail = first, next
}

func (s *openSet) add(number, commitOffset int64) {
	s.numbers.ReplaceOrInsert(number)
	if s.places != nil {
		s.places.ReplaceOrInsert(place{commitOffset, number})
	}
}

func (s *openSet) remove(number, commitOffset int64) {
	s.numbers.Delete(number)
	if s.places != nil {
		s.places.Delete(place{commitOffset, number})
	}
}

// dropBelow forgets the records below first, whose files are gone, and gives how many of them were open.
func (s *openSet) dropBelow(first int64) int {
	n := 0
	for v, ok := s.numbers.Min(); ok && v < first; v, ok = s.numbers.Min() {
		s.numbers.DeleteMin()
		n++
	}
	if n > 0 {
		s.places = nil
	}
	s.loaded = max(s.loaded, min(first, s.tail))
	return n
}

// dropFrom forgets the records from next on.
func (s *openSet) dropFrom(next int64) {
	for v, ok := s.numbers.Max(); ok && v >= next; v, ok = s.numbers.Max() {
		s.numbers.DeleteMax()
		s.places = nil
	}
	s.loaded, s.tail = min(s.loaded, next), min(s.tail, next)
}

// all says whether every record is known.
func (s *openSet) all() bool { return s.loaded >= s.tail }

// collect puts the open numbers from from on that come before any unknown record into dst.
func (s *openSet) collect(from int64, dst []int64) []int64 {
	s.numbers.AscendGreaterOrEqual(from, func(n int64) bool {
		if len(dst) == cap(dst) || n >= s.loaded && !s.all() {
			return false
		}
		dst = append(dst, n)
		return true
	})
	return dst
}
