package txstate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// windowSize is what a scan reads at a time, whole records.
const windowSize = 4096 * RecordSize

// Entry is a record and its number in the table.
type Entry struct {
	// Number is the record's place: (file start + position) / 24.
	Number int64
	Record
}

// zeroRecord is what a slot holds that was never written.
var zeroRecord [RecordSize]byte

// Scan yields the records of one segment in file order: size bytes of r, whose first byte is at byte base of the table,
// as the file's name says. At the first record that cannot be believed it yields a [*mappedfile.CorruptError] and stops;
// zeros where a record would start end the data. It reads in windows of 96 KiB, writes nothing and repairs nothing.
func Scan(file string, base int64, r io.ReaderAt, size int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		win := make([]byte, max(0, min(windowSize, size)))
		for at := int64(0); at < size; at += int64(len(win)) {
			win = win[:min(int64(cap(win)), size-at)]
			n, err := r.ReadAt(win, at)
			if n == len(win) {
				err = nil
			} else {
				win = win[:n-n%RecordSize]
				err = cmp.Or(err, io.ErrUnexpectedEOF)
			}
			if !scanWindow(file, base, at, win, yield) {
				return
			}
			if err != nil {
				yield(Entry{Number: (base + at + int64(len(win))) / RecordSize}, readError(file, at+int64(len(win)), err))
				return
			}
		}
	}
}

// readError makes the end of the file before the size that the caller gave a [*mappedfile.CorruptError].
func readError(file string, at int64, err error) error {
	if errors.Is(err, io.EOF) {
		return &mappedfile.CorruptError{File: file, Offset: at, Err: io.ErrUnexpectedEOF}
	}
	return fmt.Errorf("read %s: %w", file, err)
}

// scanWindow yields the records of the window that starts at position at of the file, and says whether to go on.
func scanWindow(file string, base, at int64, win []byte, yield func(Entry, error) bool) bool {
	for pos := 0; pos < len(win); pos += RecordSize {
		b := win[pos:min(pos+RecordSize, len(win))]
		if string(b) == string(zeroRecord[:len(b)]) {
			return false
		}
		e := Entry{Number: (base + at + int64(pos)) / RecordSize}
		var err error
		if e.Record, err = Decode(b); err != nil {
			err = &mappedfile.CorruptError{File: file, Offset: at + int64(pos), Err: err}
		}
		if !yield(e, err) || err != nil {
			return false
		}
	}
	return true
}
