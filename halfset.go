package rocketstore

import (
	"cmp"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/google/btree"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/message"
)

const (
	btreeDegree = 32
	opTag       = "d"
	// opBucket is how many op messages share one note of the greatest number that they name.
	opBucket = 256
)

// half is a half message.
type half struct {
	OpenTransaction
	key   string // of the transaction: its copies share it
	first int64  // queue offset of the first copy, where a copy tells it; else -1
	born  int64  // ms, the producer's clock
	// immunity is for how long after its birth the producer does not want to be asked, ms; -1: it does not say.
	immunity int64
}

// newHalf is the half message that was stored.
func newHalf(res PutResult, m *message.Message) half {
	h := half{OpenTransaction: OpenTransaction{
		Number: res.QueueOffset, PhysicalOffset: res.PhysicalOffset, Size: int32(res.Size), StoreTimestamp: res.StoreTimestamp,
	}, born: cmp.Or(m.BornTimestamp, res.StoreTimestamp)}
	h.describe(string(m.Properties))
	return h
}

// halfOf is the half message of a record.
func halfOf(r *commitlog.Record) half {
	h := half{OpenTransaction: OpenTransaction{
		Number: r.QueueOffset, PhysicalOffset: r.PhysicalOffset, Size: r.Size, StoreTimestamp: r.StoreTimestamp,
	}, born: r.BornTimestamp}
	h.describe(string(r.Properties))
	return h
}

// age counts from the birth, ms; a producer whose clock is ahead is given the time of the store instead.
func (h *half) age(now int64) int64 {
	if now < h.born {
		return now - h.StoreTimestamp
	}
	return now - h.born
}

// describe fills in what the properties say. Copies of a message without a UNIQ_KEY are known by the number of the first.
func (h *half) describe(properties string) {
	group, unique := "", ""
	h.first, h.immunity = -1, -1
	for name, value := range message.Properties(properties).All() {
		switch name {
		case message.PropertyProducerGroup:
			group = value
		case message.PropertyUniqueKey:
			unique = value
		case message.PropertyTransactionCheckTimes:
			h.Checks = int(max(0, min(parseOffset(value), math.MaxInt32)))
		case message.PropertyPreparedQueueOffset:
			h.first = parseOffset(value)
		case message.PropertyCheckImmunityTime:
			if h.immunity = parseOffset(value); h.immunity > 0 {
				h.immunity = min(h.immunity, math.MaxInt32) * 1000
			}
		}
	}
	if h.first >= h.Number { // no copy lies before its first
		h.first = -1
	}
	h.GroupHash = message.HashString(group)
	if unique != "" {
		h.key = unique + "\x00" + group
		return
	}
	n := h.first
	if n < 0 {
		n = h.Number
	}
	h.key = "\x00" + strconv.FormatInt(n, 10) // no unique key begins so
}

// parseOffset reads a number of a property or an op message; -1 for what is none.
func parseOffset(s string) int64 {
	if s == "" { // for most messages; an error would cost memory
		return -1
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// opNumbers gives the half queue offsets that an op message names: one, or in 5.x several with a comma behind each.
func opNumbers(r *commitlog.Record) []int64 {
	if string(message.Lookup(r.Properties, message.PropertyTags)) != opTag {
		return nil
	}
	var numbers []int64
	for word := range strings.SplitSeq(string(r.Body), ",") {
		if n := parseOffset(word); n >= 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// halfSet folds the half and the op topic into the set of open transactions (protocol.md 16): open is every half message
// from the stored progress on that no op message names, nor names as the first one that it is a copy of, and that has no
// later copy. What the engine itself writes is noted at once; the units of the two topics follow in order, and those that
// are known already are passed over.
type halfSet struct {
	mu       sync.Mutex // guards all below
	loaded   bool       // everything that lay in the topics was read once
	open     *btree.BTreeG[*half]
	byKey    map[string]*half
	byAt     map[int64]*half // by physical offset
	byFirst  map[int64]*half
	ends     map[int64]PutResult // by number: commits whose op message could not be written
	readHalf int64               // next queue offset of the half topic to read
	readOps  int64               // next one of the op topic
	ownHalf  map[int64]struct{}  // queue offsets from readHalf on that are noted
	ownOps   map[int64]int64     // queue offsets from readOps on that are noted, and what they name
	buckets  []bucket            // of the op messages before readOps, from the progress on
}

// bucket is a run of op messages.
type bucket struct{ from, greatest int64 }

// halfProgress is up to where, by queue offset, the two topics are finished.
type halfProgress struct{ half, op int64 }

func newHalfSet(halves, ops int64) *halfSet {
	return &halfSet{
		open:  btree.NewG(btreeDegree, func(a, b *half) bool { return a.Number < b.Number }),
		byKey: make(map[string]*half), byAt: make(map[int64]*half), byFirst: make(map[int64]*half), ends: make(map[int64]PutResult),
		readHalf: halves, readOps: ops, ownHalf: make(map[int64]struct{}), ownOps: make(map[int64]int64),
	}
}

// put notes a half message that was just stored.
func (s *halfSet) put(h half) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.Number < s.readHalf {
		return // it was read meanwhile
	}
	s.ownHalf[h.Number] = struct{}{}
	s.add(&h)
}

// read notes what was read of a half message, nil for one that is gone.
func (s *halfSet) read(at int64, h *half) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readHalf = at + 1
	if _, known := s.ownHalf[at]; known { // noted while it was read
		delete(s.ownHalf, at)
	} else if h != nil {
		s.add(h)
	}
}

// nextHalf gives the next half message before end that has to be read.
func (s *halfSet) nextHalf(end int64) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ; s.readHalf < end; s.readHalf++ {
		if _, known := s.ownHalf[s.readHalf]; !known {
			return s.readHalf, true
		}
		delete(s.ownHalf, s.readHalf)
	}
	return 0, false
}

// add takes up a half message; an older copy of it is no longer open. The caller holds mu.
func (s *halfSet) add(h *half) {
	if other, ok := s.byKey[h.key]; ok {
		if other.Number > h.Number {
			return
		}
		s.remove(other)
	}
	s.open.ReplaceOrInsert(h)
	s.byKey[h.key], s.byAt[h.PhysicalOffset] = h, h
	if h.first >= 0 {
		s.byFirst[h.first] = h
	}
}

// remove takes out a half message. The caller holds mu.
func (s *halfSet) remove(h *half) {
	s.open.Delete(h)
	delete(s.byAt, h.PhysicalOffset)
	delete(s.ends, h.Number)
	if s.byKey[h.key] == h {
		delete(s.byKey, h.key)
	}
	if s.byFirst[h.first] == h {
		delete(s.byFirst, h.first)
	}
}

// settle takes out what an op message at a physical offset ends, and gives the greatest number that this concerns. Half
// messages behind it cannot be meant. The caller holds mu.
func (s *halfSet) settle(number, op int64) int64 {
	greatest := number
	if h, ok := s.open.Get(&half{OpenTransaction: OpenTransaction{Number: number}}); ok && h.PhysicalOffset < op {
		s.remove(h)
	}
	if h, ok := s.byFirst[number]; ok && h.PhysicalOffset < op {
		s.remove(h)
		greatest = max(greatest, h.Number)
	}
	return greatest
}

// op notes an op message that was just stored.
func (s *halfSet) op(res PutResult, number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, greatest := res.QueueOffset, s.settle(number, res.PhysicalOffset)
	if at >= s.readOps {
		s.ownOps[at] = greatest
	}
}

// readOp notes the numbers that the op message at a physical offset names.
func (s *halfSet) readOp(at int64, numbers []int64, op int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	greatest := int64(-1)
	for _, n := range numbers {
		greatest = max(greatest, s.settle(n, op))
	}
	delete(s.ownOps, at)
	s.passOp(at, greatest)
}

// nextOp gives the next op message before end that has to be read.
func (s *halfSet) nextOp(end int64) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.readOps < end {
		greatest, known := s.ownOps[s.readOps]
		if !known {
			return s.readOps, true
		}
		delete(s.ownOps, s.readOps)
		s.passOp(s.readOps, greatest)
	}
	return 0, false
}

// passOp keeps what the progress has to know of the op message at readOps. The caller holds mu.
func (s *halfSet) passOp(at, greatest int64) {
	s.readOps = at + 1
	if n := len(s.buckets); n == 0 || at-s.buckets[n-1].from >= opBucket {
		s.buckets = append(s.buckets, bucket{at, greatest})
	} else {
		s.buckets[n-1].greatest = max(s.buckets[n-1].greatest, greatest)
	}
}

// progress gives how far the two topics are finished: before it every half message is ended or has a later copy, and no
// op message names one behind it.
func (s *halfSet) progress() halfProgress {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := halfProgress{s.readHalf, s.readOps}
	if h, ok := s.open.Min(); ok {
		p.half = min(p.half, h.Number)
	}
	for len(s.buckets) > 0 && s.buckets[0].greatest < p.half {
		s.buckets = s.buckets[1:]
	}
	if len(s.buckets) > 0 {
		p.op = s.buckets[0].from
	}
	return p
}

// end is the number behind the last half message that is known.
func (s *halfSet) end() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.open.Max(); ok {
		return max(s.readHalf, h.Number+1)
	}
	return s.readHalf
}

// find gives the open copy of the transaction that a half message belongs to.
func (s *halfSet) find(named half) (half, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, ok := s.byAt[named.PhysicalOffset]; ok {
		return *h, true
	}
	if h, ok := s.byKey[named.key]; ok && h.Number > named.Number {
		return *h, true
	}
	return half{}, false
}

// from gives the first open half message at or behind a number.
func (s *halfSet) from(number int64) (h half, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open.AscendGreaterOrEqual(&half{OpenTransaction: OpenTransaction{Number: number}}, func(found *half) bool {
		h, ok = *found, true
		return false
	})
	return h, ok
}

// all yields the open half messages by number. It holds no lock while the caller works.
func (s *halfSet) all() iter.Seq[half] {
	return func(yield func(half) bool) {
		for h, ok := s.from(0); ok; h, ok = s.from(h.Number + 1) {
			if !yield(h) {
				return
			}
		}
	}
}

// commit remembers a commit until its op message is written.
func (s *halfSet) commit(number int64, res PutResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[number] = res
}

// committed gives the commit of an open half message that has no op message yet.
func (s *halfSet) committed(number int64) (PutResult, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	res, ok := s.ends[number]
	return res, ok
}

func (s *halfSet) setLoaded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loaded = true
}

func (s *halfSet) isLoaded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loaded
}
