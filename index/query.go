package index

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Hit is an entry whose hash is that of the key in question. Only its record tells whether the key is the same.
type Hit struct {
	File   string // path of the index file
	Number int32  // of the entry in it
	Entry
}

const (
	// batchSteps and batchHits bound how long a query holds off a put.
	batchSteps = 256
	batchHits  = 64
)

// Query yields the entries of a key, newest first, that may be of messages stored from begin to end (ms, both included). It
// never passes over one that is, as far as a file's times can be believed within an hour; but an entry's time is in seconds
// and its key a hash, so the caller compares each hit with its record. Files outside of the range are passed over, newer
// ones too (R-E-054). Files written by any line answer, as the signed and the absolute hash are both tried.
//
// What is damaged comes as a [*mappedfile.CorruptError] with a zero Hit: a header once a file, and a broken chain, which
// ends the search of that file. The next file is searched then. A chain goes to ever smaller numbers, so a query ends.
// Other errors: [mappedfile.ErrFault], [mappedfile.ErrClosed], and errors of reading.
//
// The index may be written and closed meanwhile. No lock is held while the caller has a hit.
func (x *Index) Query(topic, key string, begin, end int64) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		x.mu.RLock()
		files, closed := slices.Clone(x.files), x.closed
		x.mu.RUnlock()
		if closed {
			yield(Hit{}, fmt.Errorf("index: %w", mappedfile.ErrClosed))
			return
		}
		hash := KeyHash(topic, key)
		q := search{
			x: x, begin: begin, end: end,
			signed: rules{signedHash: true}.stored(hash), absolute: rules{}.stored(hash), slot: Slot(hash, x.shape.Slots),
		}
		for _, f := range slices.Backward(files) {
			q.f, q.next, q.started = f, 0, false
			for more := true; more; {
				var err error
				more, err = q.batch()
				for _, h := range q.hits {
					if !yield(h, nil) {
						return
					}
				}
				if err != nil && !yield(Hit{}, err) || errors.Is(err, mappedfile.ErrClosed) {
					return
				}
			}
		}
	}
}

// search walks the chain of one key through one file after the other.
type search struct {
	x                *Index
	begin, end       int64
	signed, absolute int32 // the two forms of the hash
	slot             int32

	f       *file
	head    Header // of f
	damaged error  // of f
	started bool
	next    int32 // number of the entry to look at next, 0: none
	hits    []Hit
	buf     [HeaderSize]byte
}

// batch takes some steps along the chain under the lock, and gives false at its end. After an error that is not the end, the
// header was damaged and is gone by.
func (q *search) batch() (more bool, err error) {
	q.x.mu.RLock()
	defer q.x.mu.RUnlock()
	q.hits = q.hits[:0]
	if q.f.gone {
		if q.x.closed {
			err = fmt.Errorf("index: %w", mappedfile.ErrClosed)
		}
		return false, err
	}
	err = mappedfile.Guard(q.f.path, func() error {
		if !q.started {
			return q.start()
		}
		return q.walk()
	})
	return q.next > 0, err
}

// start finds the newest entry of the chain. The slot is read before the header: another process that puts meanwhile moves
// the header last, so no entry that the slot names is out of range.
func (q *search) start() error {
	q.started = true
	pos := q.f.shape.slotPos(q.slot)
	b, err := q.f.at(pos, SlotSize, q.buf[:])
	if err != nil {
		return err
	}
	newest := int32(binary.BigEndian.Uint32(b))
	q.head, q.damaged = q.f.head, q.f.damaged
	if q.x.opts.ReadOnly {
		if q.head, q.damaged, err = q.f.readHeader(); err != nil {
			return err
		}
	}
	// The entry that the header is about to count is whole: its slot was set after it.
	last := min(q.head.IndexCount, q.f.shape.Entries-1)
	if q.damaged != nil {
		last = q.f.shape.Entries - 1 // as far as the chain goes
	} else if !q.head.overlaps(q.begin, q.end) {
		return nil
	}
	if newest < 0 || newest > last {
		return cmp.Or(q.damaged, q.f.corrupt(pos, fmt.Errorf("%w: slot %d begins with entry %d of %d", errChain, q.slot, newest, last)))
	}
	q.next = newest
	return q.damaged
}

// walk looks at the next entries of the chain.
func (q *search) walk() error {
	for range batchSteps {
		number, pos := q.next, q.f.shape.entryPos(q.next)
		b, err := q.f.at(pos, EntrySize, q.buf[:])
		q.next = 0
		if err != nil {
			return err
		}
		e := decodeEntry(b)
		if err := e.Check(number); err != nil {
			return q.f.corrupt(pos, err)
		}
		if e.KeyHash == q.signed || e.KeyHash == q.absolute {
			if q.damaged != nil || q.head.mayMatch(number, e, q.begin, q.end) {
				q.hits = append(q.hits, Hit{q.f.path, number, e})
			}
		}
		if q.next = e.Previous; q.next == 0 || len(q.hits) >= batchHits {
			return nil
		}
	}
	return nil
}
