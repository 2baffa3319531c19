package txstate

import (
	"fmt"
	"slices"
	"sort"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// recoverFiles is how many files from the end a walk for the end looks at, as 3.1 does.
const recoverFiles = 3

// FindEnd says where the written records end: the number behind the last one. It looks at the files, not at what was
// appended, and changes nothing.
//
// Thorough is for recovery: it walks the records of the last three files as 3.1 does and ends at the first that cannot be
// believed (R-B-53); zeros cannot. Else it searches the last file that has a record by halves for the first empty slot,
// and walks only when what it finds cannot be believed.
func (t *Table) FindEnd(thorough bool) (int64, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	segments := t.q.Segments()
	if len(segments) == 0 {
		return 0, nil
	}
	if !thorough {
		end, ok, err := t.searchEnd(segments)
		if err != nil || ok {
			return end, err
		}
	}
	walk := segments[max(0, len(segments)-recoverFiles):]
	end := walk[0].Start / RecordSize
	for _, s := range walk {
		n, whole, err := t.walkEnd(s)
		if end = s.Start/RecordSize + n; err != nil || !whole {
			return end, err
		}
	}
	return end, nil
}

// walkEnd counts the records of a file up to the first that cannot be believed. Whole: all can.
func (t *Table) walkEnd(s mappedfile.SegmentInfo) (n int64, whole bool, err error) {
	v, err := t.q.ViewSegment(s.Start)
	if err != nil {
		return 0, false, fmt.Errorf("look for the end of the transaction records: %w", err)
	}
	defer v.Release()
	err = mappedfile.Guard(v.File(), func() error {
		b := v.Bytes()
		for ; len(b) >= RecordSize && decode(b).possible(); b = b[RecordSize:] {
			n++
		}
		return nil
	})
	return n, n == t.opts.SegmentSize/RecordSize, err
}

// searchEnd looks for the first empty slot behind the last record by halves. Ok says whether the record before it can be
// believed, or none is there.
func (t *Table) searchEnd(segments []mappedfile.SegmentInfo) (end int64, ok bool, err error) {
	for _, s := range slices.Backward(segments) {
		n, ok, err := t.searchFile(s)
		if err != nil || n > 0 {
			return s.Start/RecordSize + n, ok, err
		}
	}
	return segments[0].Start / RecordSize, true, nil
}

func (t *Table) searchFile(s mappedfile.SegmentInfo) (n int64, ok bool, err error) {
	v, err := t.q.ViewSegment(s.Start)
	if err != nil {
		return 0, false, fmt.Errorf("look for the end of the transaction records: %w", err)
	}
	defer v.Release()
	err = mappedfile.Guard(v.File(), func() error {
		b := v.Bytes()
		n = int64(sort.Search(len(b)/RecordSize, func(i int) bool {
			return string(b[i*RecordSize:][:RecordSize]) == string(zeroRecord[:])
		}))
		ok = n > 0 && decode(b[(n-1)*RecordSize:]).possible()
		return nil
	})
	return n, ok, err
}

// Repair makes files of a wrong length, which a crash left, whole again: a short last one is extended with zeros, an empty
// one removed. It says what it did.
func (t *Table) Repair() ([]mappedfile.Notice, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.q.Repair()
}

// TruncateAfter ends the table at a number: that record and those behind it are gone, from the disk too, and it is made
// durable. A number at or behind Next removes only what lies there unclaimed. One at or before the first leaves no file,
// and the table then begins at the number.
func (t *Table) TruncateAfter(number int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.truncate(number)
}

// RemoveAll deletes all files, also those that lie behind the end, so that the table can be made anew from number 0 or
// where Begin says.
func (t *Table) RemoveAll() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.truncate(0); err != nil {
		return err
	}
	return t.begin(0)
}

func (t *Table) truncate(number int64) error {
	number = max(0, min(number, t.next()))
	first := t.first()
	if number <= first {
		if err := t.q.TruncateAfter(0); err != nil {
			return fmt.Errorf("remove all transaction records: %w", err)
		}
		return t.begin(number)
	}
	if err := t.q.TruncateAfter(t.inFiles(number * RecordSize)); err != nil {
		return fmt.Errorf("remove transaction records from %d on: %w", number, err)
	}
	t.set.dropFrom(number)
	return nil
}

// inFiles moves an offset that lies in a gap between two files to the end of the first.
func (t *Table) inFiles(off int64) int64 {
	end := int64(0)
	for _, s := range t.q.Segments() {
		if s.Start <= off {
			end = s.Start + s.Length
		}
	}
	return min(off, end)
}

// DeleteBefore deletes the files whose messages the commit log does not have any more, because it now begins at
// logStart: those whose last record's message lies below it, oldest first, never the last file (R-B-61). A file that has
// an open transaction whose message is still there stays, and so do those behind it (R-B-62). It gives the names.
func (t *Table) DeleteBefore(logStart int64) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cut, err := t.cutBefore(logStart)
	if err != nil || cut < 0 {
		return nil, err
	}
	names, err := t.q.DeleteBefore(cut)
	if n := t.set.dropBelow(t.first()); n > 0 {
		t.opts.Logger.Warn("open transactions went with their messages", "records", n, "files", len(names))
	}
	if err != nil {
		return names, fmt.Errorf("delete transaction records before %d: %w", cut/RecordSize, err)
	}
	return names, nil
}

// DeletableBefore lists the files that [Table.DeleteBefore] deletes.
func (t *Table) DeletableBefore(logStart int64) ([]mappedfile.SegmentInfo, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cut, err := t.cutBefore(logStart)
	return slices.DeleteFunc(t.q.Segments(), func(s mappedfile.SegmentInfo) bool { return s.Start >= cut }), err
}

// cutBefore gives the offset behind the last file that can go, -1 when none can.
func (t *Table) cutBefore(logStart int64) (int64, error) {
	segments := t.q.Segments()
	cut := int64(-1)
	for _, s := range segments[:max(0, len(segments)-1)] {
		last, ok, err := t.lastOf(s)
		if err != nil || last.CommitOffset >= logStart {
			return cut, err
		}
		if !ok {
			continue // nothing to go by: it goes only together with a later one
		}
		end := s.Start + t.opts.SegmentSize
		needed, err := t.needed(s.Start/RecordSize, end/RecordSize, logStart)
		if err != nil || needed {
			return cut, err
		}
		cut = end
	}
	return cut, nil
}

// lastOf is the last record of a file that can be believed, and false when none can.
func (t *Table) lastOf(s mappedfile.SegmentInfo) (r Record, ok bool, err error) {
	v, err := t.q.ViewSegment(s.Start)
	if err != nil {
		return Record{}, false, fmt.Errorf("read %s: %w", s.Name, err)
	}
	defer v.Release()
	err = mappedfile.Guard(v.File(), func() error {
		b := v.Bytes()
		for end := len(b) / RecordSize * RecordSize; end > 0 && !ok; end -= RecordSize {
			r = decode(b[end-RecordSize:])
			ok = r.possible()
		}
		return nil
	})
	if !ok {
		r = Record{}
	}
	return r, ok, err
}

// needed says whether an open record from first to before end has a message at or behind logStart. That can be only
// where offsets do not ascend with numbers, as in a table whose conflicting numbers were given anew (R-B-67).
func (t *Table) needed(first, end, logStart int64) (needed bool, err error) {
	for !t.set.all() && t.set.loaded < end {
		if err := t.loadLocked(); err != nil {
			return false, err
		}
	}
	t.set.numbers.AscendRange(first, end, func(n int64) bool {
		var r Record
		r, err = t.read(n)
		needed = err == nil && r.CommitOffset >= logStart
		return err == nil && !needed
	})
	return needed, err
}
