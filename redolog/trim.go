package redolog

import (
	"fmt"
	"slices"
	"sort"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// recoverFiles is how many files from the end a walk for the end looks at, as 3.1 does.
const recoverFiles = 3

// FindEnd says where the written units end: the index behind the last one. It looks at the files, not at what was
// appended, and changes nothing.
//
// Thorough is for recovery: it walks the units of the last three files as 3.1 does and ends at the first that cannot be
// believed; zeros cannot. Else it searches the last file that has a unit by halves for the first empty slot, and walks
// only when what it finds cannot be believed.
func (l *Log) FindEnd(thorough bool) (int64, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	segments := l.q.Segments()
	if len(segments) == 0 {
		return 0, nil
	}
	if !thorough {
		end, ok, err := l.searchEnd(segments)
		if err != nil || ok {
			return end, err
		}
	}
	walk := segments[max(0, len(segments)-recoverFiles):]
	end := walk[0].Start / UnitSize
	for _, s := range walk {
		n := int64(0)
		err := l.inFile(s, func(b []byte) {
			for ; len(b) >= UnitSize && decode(b).possible(); b = b[UnitSize:] {
				n++
			}
		})
		if end = s.Start/UnitSize + n; err != nil || n < l.opts.SegmentSize/UnitSize {
			return end, err
		}
	}
	return end, nil
}

// searchEnd looks for the first empty slot behind the last unit by halves. Ok says whether the unit before it can be
// believed, or none is there.
func (l *Log) searchEnd(segments []mappedfile.SegmentInfo) (end int64, ok bool, err error) {
	for _, s := range slices.Backward(segments) {
		n := 0
		err := l.inFile(s, func(b []byte) {
			n = sort.Search(len(b)/UnitSize, func(i int) bool {
				return string(b[i*UnitSize:][:UnitSize]) == string(zeroUnit[:])
			})
			ok = n > 0 && decode(b[(n-1)*UnitSize:]).possible()
		})
		if err != nil || n > 0 {
			return s.Start/UnitSize + int64(n), ok, err
		}
	}
	return segments[0].Start / UnitSize, true, nil
}

// inFile runs f on the bytes of a file, as long as the file is.
func (l *Log) inFile(s mappedfile.SegmentInfo, f func(b []byte)) error {
	v, err := l.q.ViewSegment(s.Start)
	if err == nil {
		err = mappedfile.Guard(v.File(), func() error { f(v.Bytes()); return nil })
		v.Release()
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", s.Name, err)
	}
	return nil
}

// Repair makes files of a wrong length, which a crash left, whole again: a short last one is extended with zeros, an empty
// one removed. It says what it did.
func (l *Log) Repair() ([]mappedfile.Notice, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.q.Repair()
}

// TruncateAfter ends the log at an index: that unit and those behind it are gone, from the disk too, and it is made
// durable. An index at or behind the end removes only what lies there unclaimed.
func (l *Log) TruncateAfter(index int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.truncate(index)
}

// TruncateFrom removes the units whose messages lie at or behind physicalOffset, which is where the commit log was cut
// (R-B-54): else later units with lower offsets would be skipped as known. It removes what lies behind the end unclaimed
// as well, and gives how many units went.
func (l *Log) TruncateFrom(physicalOffset int64) (removed int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, next := l.Bounds()
	cut, err := l.search(physicalOffset)
	if err != nil {
		return 0, err
	}
	return next - cut, l.truncate(cut)
}

// RemoveAll deletes all files, also those that lie behind the end, so that the log can be made anew.
func (l *Log) RemoveAll() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.truncate(0)
}

// truncate is TruncateAfter; mu is held.
func (l *Log) truncate(index int64) error {
	first, next := l.Bounds()
	at := int64(0) // all files, so that the log starts again
	if index = min(index, next); index > first {
		at = l.inFiles(index * UnitSize)
	}
	if err := l.q.TruncateAfter(at); err != nil {
		return fmt.Errorf("remove redo log units from %d on: %w", at/UnitSize, err)
	}
	return l.readLast()
}

// inFiles moves an offset that lies in a gap between two files to the end of the first.
func (l *Log) inFiles(off int64) int64 {
	end := int64(0)
	for _, s := range l.q.Segments() {
		if s.Start <= off {
			end = s.Start + s.Length
		}
	}
	return min(off, end)
}

// search gives the index of the first unit whose message lies at or behind physicalOffset. Offsets ascend.
func (l *Log) search(physicalOffset int64) (int64, error) {
	first, next := l.Bounds()
	for _, s := range slices.Backward(l.q.Segments()) {
		start := s.Start / UnitSize
		if start >= next {
			continue
		}
		var n int64
		err := l.inFile(s, func(b []byte) {
			units := min(int64(len(b)/UnitSize), next-start)
			n = int64(sort.Search(int(units), func(i int) bool {
				return decode(b[i*UnitSize:]).PhysicalOffset >= physicalOffset
			}))
		})
		if err != nil || n > 0 {
			return start + n, err
		}
	}
	return first, nil
}

// DeleteBefore deletes the files whose messages the commit log does not have any more, because it now begins at
// logStart: those whose last unit's message lies below it, oldest first, never the last file (R-B-61). It gives the names.
func (l *Log) DeleteBefore(logStart int64) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	cut, err := l.cutBefore(logStart)
	if err != nil || cut < 0 {
		return nil, err
	}
	names, err := l.q.DeleteBefore(cut)
	if err != nil {
		return names, fmt.Errorf("delete redo log units before %d: %w", cut/UnitSize, err)
	}
	return names, nil
}

// DeletableBefore lists the files that [Log.DeleteBefore] deletes.
func (l *Log) DeletableBefore(logStart int64) ([]mappedfile.SegmentInfo, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	cut, err := l.cutBefore(logStart)
	return slices.DeleteFunc(l.q.Segments(), func(s mappedfile.SegmentInfo) bool { return s.Start >= cut }), err
}

// cutBefore gives the offset behind the last file that can go, -1 when none can; mu is held.
func (l *Log) cutBefore(logStart int64) (int64, error) {
	segments := l.q.Segments()
	cut := int64(-1)
	for _, s := range segments[:max(0, len(segments)-1)] {
		last := int64(-1)
		err := l.inFile(s, func(b []byte) {
			for end := len(b) / UnitSize * UnitSize; end > 0 && last < 0; end -= UnitSize {
				if u := decode(b[end-UnitSize:]); u.possible() {
					last = u.PhysicalOffset
				}
			}
		})
		if err != nil {
			return -1, err
		}
		if last >= logStart {
			break
		}
		if last >= 0 { // a file with nothing to go by goes only together with a later one
			cut = s.Start + l.opts.SegmentSize
		}
	}
	return cut, nil
}
