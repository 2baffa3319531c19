package consumequeue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// errUnit says that the bytes of a unit cannot be one.
var errUnit = errors.New("impossible queue unit")

// Entry is one unit that [Scan] found.
type Entry struct {
	Index int64 // queue offset by its place in the file
	Unit
}

// Scan yields the units of one file of a queue in order: size bytes of r, whose first byte is byte base of the queue (what
// the file's name says). Fillers are units too. A unit of zeros ends it: nothing was written from there on. At a unit that
// is impossible it yields a [*mappedfile.CorruptError] that names file and stops; an error of reading is yielded as it is.
func Scan(file string, base int64, r io.ReaderAt, size int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		next := base / UnitSize
		for many, err := range ScanMany(file, base, r, size, scanMany) {
			for i, e := range many {
				var bad error
				if i == len(many)-1 {
					bad = err
				}
				if !yield(e, bad) {
					return
				}
				next = e.Index + 1
			}
			if len(many) == 0 {
				yield(Entry{Index: next}, err)
			}
		}
	}
}

// scanMany is how many units Scan decodes at a time.
const scanMany = 64

// ScanMany is Scan for those who go through millions of units: it yields up to n at a time, which are valid until the next
// ones. The error is that of the last of them, or, when there are none, one of reading; it ends the scan.
func ScanMany(file string, base int64, r io.ReaderAt, size int64, n int) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		w := window{file: file, src: r, size: size}
		many := make([]Entry, 0, max(n, 1))
		for pos := int64(0); pos < size; {
			b, err := w.unit(pos, UnitSize)
			if err != nil {
				if len(many) == 0 || yield(many, nil) {
					yield(nil, err)
				}
				return
			}
			if b == nil {
				break
			}
			for b = w.buf[pos-w.at:]; len(b) >= UnitSize; b = b[UnitSize:] {
				e := Entry{Index: (base + pos) / UnitSize, Unit: decode(b)}
				if e.Unit == (Unit{}) {
					break // unit says so again
				}
				if !e.Valid() {
					yield(append(many, e), w.corrupt(pos, fmt.Errorf("%w: offset %d, size %d", errUnit, e.PhysicalOffset, e.Size)))
					return
				}
				if many = append(many, e); len(many) == cap(many) {
					if !yield(many, nil) {
						return
					}
					many = many[:0]
				}
				pos += UnitSize
			}
		}
		if len(many) > 0 {
			yield(many, nil)
		}
	}
}

// BatchEntry is one unit that [ScanBatch] found.
type BatchEntry struct {
	Index int64 // number of the unit in the queue, which is not its queue offset
	BatchUnit
}

// ScanBatch yields the units of one file of a batch queue; all else is as with [Scan].
func ScanBatch(file string, base int64, r io.ReaderAt, size int64) iter.Seq2[BatchEntry, error] {
	return func(yield func(BatchEntry, error) bool) {
		w := window{file: file, src: r, size: size}
		for pos := int64(0); pos < size; pos += BatchUnitSize {
			e := BatchEntry{Index: (base + pos) / BatchUnitSize}
			b, err := w.unit(pos, BatchUnitSize)
			if err == nil && b == nil {
				return
			}
			if err == nil {
				e.BatchUnit, err = DecodeBatch(b)
			}
			if err == nil && !e.Valid() {
				err = w.corrupt(pos, fmt.Errorf("%w: offset %d, size %d, base offset %d, batch size %d",
					errUnit, e.PhysicalOffset, e.Size, e.BaseOffset, e.BatchSize))
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// ExtEntry is one unit, or the end mark, that [ScanExt] found.
type ExtEntry struct {
	Offset int64 // byte in the queue's extension files; [ExtAddress] makes it the tags code of the queue's unit
	End    bool  // the mark (size -1) that says that the next unit lies in the next file; ExtUnit is zero then
	ExtUnit
}

// ScanExt yields the units of one extension file in order, and last the end mark if there is one: size bytes of r, whose
// first byte is byte base of the queue's extension files. A size of 0 ends it: nothing was written from there on. Errors
// are as with [Scan]. The bitmap is valid until the next unit.
func ScanExt(file string, base int64, r io.ReaderAt, size int64) iter.Seq2[ExtEntry, error] {
	return func(yield func(ExtEntry, error) bool) {
		w := window{file: file, src: r, size: size}
		for pos := int64(0); size-pos >= 2; {
			e := ExtEntry{Offset: base + pos}
			b, err := w.bytes(pos, 2)
			if err != nil {
				yield(e, err)
				return
			}
			length := int16(binary.BigEndian.Uint16(b))
			switch length {
			case 0:
				return
			case -1:
				e.End = true
				yield(e, nil)
				return
			}
			if b, err = w.bytes(pos, min(size-pos, max(int64(length), ExtUnitMin))); err == nil {
				if e.ExtUnit, err = DecodeExt(b); err != nil {
					err = w.corrupt(pos, err)
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
			pos += int64(e.Size)
		}
	}
}

// windowSize is what a scan reads at a time: some thousand units.
const windowSize = 1 << 16

// window reads a file piece by piece for the scans.
type window struct {
	file string
	src  io.ReaderAt
	size int64 // of the file; positions beyond are not asked for

	buf []byte // bytes of the file from at on
	at  int64
}

// unit gives the n bytes at pos, nil when all of them are zero. What the file has of a unit that does not fit any more
// is damage unless it is zero.
func (w *window) unit(pos, n int64) ([]byte, error) {
	left := w.size - pos
	b, err := w.bytes(pos, min(n, left))
	switch {
	case err != nil:
		return nil, err
	case mappedfile.AllZero(b):
		return nil, nil
	case left < n:
		return nil, w.corrupt(pos, fmt.Errorf("%w: a unit of %d bytes, cut after %d", errShort, n, left))
	}
	return b, nil
}

// bytes gives n bytes at pos, reading on when they are not in the window.
func (w *window) bytes(pos, n int64) ([]byte, error) {
	if i := pos - w.at; i >= 0 && i+n <= int64(len(w.buf)) {
		return w.buf[i : i+n], nil
	}
	want := min(max(n, windowSize), w.size-pos)
	if int64(cap(w.buf)) < want {
		w.buf = make([]byte, want)
	}
	w.buf, w.at = w.buf[:want], pos
	got, err := w.src.ReadAt(w.buf, pos)
	if w.buf = w.buf[:got]; int64(got) >= n {
		return w.buf[:n], nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return nil, w.corrupt(pos+int64(got), fmt.Errorf("%w: the file should have %d, it ends here", errShort, w.size))
	}
	return nil, fmt.Errorf("read %s: %w", w.file, err)
}

func (w *window) corrupt(pos int64, err error) error {
	return &mappedfile.CorruptError{File: w.file, Offset: pos, Err: err}
}
