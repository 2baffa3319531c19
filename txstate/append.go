package txstate

import "fmt"

// fillBlock is how many bytes of filler are written at a time, whole records.
const fillBlock = 4096 * RecordSize

// Begin makes number that of the first record of an empty table. The first file is the one that holds the number, so its
// slots before it are filled when the first record comes. It is an error when the table has records.
func (t *Table) Begin(number int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begin(number)
}

// begin is Begin; mu is held.
func (t *Table) begin(number int64) error {
	if number < 0 || number > maxNumber {
		return notFound(number)
	}
	if !t.empty() {
		return fmt.Errorf("begin at transaction record %d: the table has records %d to %d", number, t.first(), t.next()-1)
	}
	perFile := t.opts.SegmentSize / RecordSize
	if start := number / perFile * t.opts.SegmentSize; t.q.Written() != start {
		err := t.q.TruncateAfter(0) // a file without a record
		if err == nil {
			err = t.q.Begin(start)
		}
		if err != nil {
			return fmt.Errorf("begin at transaction record %d: %w", number, err)
		}
	}
	t.begun = number
	t.set.reset(number, number)
	return nil
}

// Append puts a record under its number, which is what the prepared message stores as its queue offset.
//
// At Next it is appended. Below Next the same record is there already, in any later state, or nothing is written and the
// error is a [*MismatchError]. Above Next the slots between are filled with [Filler] made from the record before them, or
// from r where there is none; more than Options.MaxFill of them are an [ErrGap]. An empty table begins with the file that
// holds the number.
//
// A number whose file is deleted is [ErrNotFound]. A file that cannot be made leaves the table as it was, apart from
// slots that were filled (R-B-10).
func (t *Table) Append(number int64, r Record) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("append transaction record %d: %w", number, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if number < 0 || number > maxNumber {
		return notFound(number)
	}
	if !t.empty() && number < t.next() {
		return t.confirm(number, r)
	}
	if t.empty() && number != t.begun {
		if err := t.begin(number); err != nil {
			return err
		}
	}
	if t.q.Written() != number*RecordSize {
		if err := t.fillGap(number, r); err != nil {
			return err
		}
	}
	return t.put(number, r)
}

// put appends at the end.
func (t *Table) put(number int64, r Record) error {
	if _, err := t.q.Append(r.AppendTo(t.scratch[:0])); err != nil {
		return fmt.Errorf("append transaction record %d: %w", number, err)
	}
	if r.State == Prepared {
		t.set.add(number, r.CommitOffset)
	}
	return nil
}

// confirm says whether the record under a number that is taken is r. What was prepared may have been resolved since.
func (t *Table) confirm(number int64, r Record) error {
	have, err := t.read(number)
	if err != nil {
		return err
	}
	same := have
	if r.State == Prepared {
		same.State = Prepared
	}
	if same != r {
		return &MismatchError{Number: number, Have: have, Want: r}
	}
	return nil
}

// fillGap fills the slots from the end to number, whose record will be r.
func (t *Table) fillGap(number int64, r Record) error {
	near, next := r, t.q.Written()/RecordSize
	if !t.empty() {
		if missing := number - next; missing > t.opts.MaxFill {
			return fmt.Errorf("append transaction record %d: %w: %d of them", number, ErrGap, missing)
		}
		if last, err := t.read(next - 1); err == nil {
			near = last
		}
	}
	return t.fill(number, Filler(near))
}

// Fill fills the slots from Next to before number with one record, which must not be a prepared one. Numbers that are
// taken stay as they are. An empty table begins with the file that holds the number.
func (t *Table) Fill(number int64, filler Record) error {
	if err := filler.check(); err != nil {
		return fmt.Errorf("fill transaction records: %w", err)
	}
	if filler.State == Prepared {
		return fmt.Errorf("fill transaction records: %w: a filler is not %v", errState, Prepared)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.empty() && number != t.begun {
		if err := t.begin(number); err != nil {
			return err
		}
	}
	if number > maxNumber {
		return notFound(number)
	}
	return t.fill(number, filler)
}

// fill is Fill; mu is held.
func (t *Table) fill(number int64, filler Record) error {
	at, end := t.q.Written(), number*RecordSize
	if at >= end {
		return nil
	}
	var block []byte
	for range min(fillBlock, end-at) / RecordSize {
		block = filler.AppendTo(block)
	}
	for at < end {
		inFile := t.opts.SegmentSize - at%t.opts.SegmentSize
		n := min(int64(len(block)), end-at, inFile)
		if _, err := t.q.Append(block[:n]); err != nil {
			return fmt.Errorf("fill transaction record %d: %w", at/RecordSize, err)
		}
		at += n
		t.filled += n / RecordSize
	}
	return nil
}

// Update resolves a prepared record: it writes the 4 bytes of the state, and only when the record is the message's and
// the group's. The first decision wins: a record that is resolved already is left as it is, and resolved is true, also
// when to differs (R-B-13 to R-B-17). Errors: [ErrNotFound], [ErrOtherMessage], [ErrOtherGroup], a
// [*mappedfile.CorruptError].
func (t *Table) Update(number, commitOffset int64, groupHash int32, to State) (resolved bool, err error) {
	if to != Committed && to != RolledBack {
		return false, fmt.Errorf("resolve transaction record %d: %w: %v", number, errState, to)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.read(number)
	switch {
	case err != nil:
		return false, err
	case r.CommitOffset != commitOffset:
		return false, fmt.Errorf("transaction record %d: %w: commit log offset %d, want %d", number, ErrOtherMessage,
			r.CommitOffset, commitOffset)
	case r.GroupHash != groupHash:
		return false, fmt.Errorf("transaction record %d: %w: hash %d, want %d", number, ErrOtherGroup, r.GroupHash, groupHash)
	case r.State != Prepared:
		return true, nil
	}
	b := Record{State: to}.AppendTo(t.scratch[:0])
	if err := t.q.WriteAt(b[statePos:], number*RecordSize+statePos); err != nil {
		return false, fmt.Errorf("resolve transaction record %d: %w", number, err)
	}
	t.set.remove(number, commitOffset)
	return false, nil
}
