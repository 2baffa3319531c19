package txstate

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// maxNumber is the greatest number that a record may have: the end of its file still is an offset.
const maxNumber = math.MaxInt64/RecordSize - 1<<32

// Table is the state table of one store. Its methods may be called from many goroutines: appending, resolving and cutting
// wait for one another, reading waits only for the moment in which one of them changes bytes.
// Lock order: mu before any lock of package mappedfile.
type Table struct {
	opts Options
	q    *mappedfile.Queue

	// mu is held for writing by what changes bytes, the end or the set; for reading by what reads records, because they
	// change in place.
	mu      sync.RWMutex
	set     openSet          // guarded by mu
	begun   int64            // guarded by mu: the number of the first record of a table that has none yet
	scratch [RecordSize]byte // guarded by mu: a record on its way to the queue
	filled  int64            // guarded by mu
}

// Stats are counters of a [Table] since it was opened.
type Stats struct {
	Filled  int64 // slots without a message that were filled
	Damaged int64 // records that were met while looking for open ones and cannot be believed
}

// Open opens the table in dir, usually [Dir]; a missing directory is an empty table, and nothing is created before the
// first append. It does not recover: it ends the table where the written records seem to end (FindEnd(false)) and leaves
// what lies behind. Who is going to append calls Repair and TruncateAfter(Next()) first.
//
// A file whose name or length contradicts Options.SegmentSize is a [*mappedfile.CorruptError].
func Open(fsys mappedfile.FS, dir string, o *Options) (*Table, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	q, err := mappedfile.Open(fsys, dir, opts.queue())
	if err != nil {
		return nil, err
	}
	t := &Table{opts: opts, q: q}
	t.begun, err = t.FindEnd(false)
	if err == nil && len(q.Segments()) > 0 {
		err = q.SetEnd(t.begun * RecordSize)
	}
	if err != nil {
		return nil, errors.Join(err, q.Abandon())
	}
	t.set.reset(t.first(), t.next())
	return t, nil
}

// Notices are what opening found: foreign files, short and empty files, gaps between files.
func (t *Table) Notices() []mappedfile.Notice { return t.q.Notices() }

// Segments lists the files.
func (t *Table) Segments() []mappedfile.SegmentInfo { return t.q.Segments() }

// SegmentSize is the length of a file in bytes.
func (t *Table) SegmentSize() int64 { return t.opts.SegmentSize }

// Bounds gives the number of the first record and the one behind the last. The first records of a file may be fillers.
func (t *Table) Bounds() (first, next int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.first(), t.next()
}

// Next is the number behind the last record. The numbers of prepared messages are handed out ahead of it, when they are
// appended to the commit log.
func (t *Table) Next() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.next()
}

// empty says whether the table has no record; mu is held.
func (t *Table) empty() bool {
	first, end := t.q.Bounds()
	return first == end
}

func (t *Table) first() int64 {
	if t.empty() {
		return t.begun
	}
	first, _ := t.q.Bounds()
	return first / RecordSize
}

func (t *Table) next() int64 {
	if t.empty() {
		return t.begun
	}
	return t.q.Written() / RecordSize
}

// Get reads the record of a number. Errors: [ErrNotFound]; a [*mappedfile.CorruptError] for one that cannot be believed,
// which is given all the same; those of reading.
func (t *Table) Get(number int64) (Record, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.read(number)
}

// read is Get; mu is held.
func (t *Table) read(number int64) (Record, error) {
	if number < 0 || number > maxNumber {
		return Record{}, notFound(number)
	}
	v, err := t.q.View(number*RecordSize, RecordSize)
	if err != nil {
		return Record{}, readFailed(number, err)
	}
	defer v.Release()
	var r Record
	if err := mappedfile.Guard(v.File(), func() error { r = decode(v.Bytes()); return nil }); err != nil {
		return Record{}, readFailed(number, err)
	}
	if r.possible() {
		return r, nil
	}
	return r, t.corrupt(v.File(), number, r)
}

// corrupt is the error for a record that cannot be believed.
func (t *Table) corrupt(file string, number int64, r Record) error {
	return &mappedfile.CorruptError{
		File: file, Offset: number * RecordSize % t.opts.SegmentSize,
		Err: fmt.Errorf("transaction record %d: %w", number, r.check()),
	}
}

// notFound is ErrNotFound for a number.
func notFound(number int64) error {
	return fmt.Errorf("transaction record %d: %w", number, ErrNotFound)
}

// readFailed is the error of a record that could not be read.
func readFailed(number int64, err error) error {
	if errors.Is(err, mappedfile.ErrOutOfRange) {
		return notFound(number)
	}
	return fmt.Errorf("transaction record %d: %w", number, err)
}

// Sync makes what was written durable once at least leastPages pages of 4096 bytes are dirty; 0: anything. It does not
// hold up appends or updates. The first failure is final: it is returned by all later Sync and Append calls.
func (t *Table) Sync(leastPages int) error { return t.q.Sync(leastPages) }

// Stats gives the counters.
func (t *Table) Stats() Stats {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return Stats{Filled: t.filled, Damaged: t.set.damaged}
}

// Close closes the files. It does not sync. Twice is fine.
func (t *Table) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.q.Close()
}

// Abandon closes like a crash: it releases memory, syncs nothing and removes nothing.
func (t *Table) Abandon() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.q.Abandon()
}
