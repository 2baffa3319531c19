package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Dump is an index file laid open for reading from the first byte to the last. It reads in windows and maps nothing, so that
// it can look at what a living process writes or at an image of a disk; nothing in it changes the file.
type Dump struct {
	File   string // as errors name it
	Shape  Shape
	Header Header // as it is on disk, believable or not

	r io.ReaderAt
}

// SlotValue is one slot in use.
type SlotValue struct {
	Slot   int32 // from 0 on
	Newest int32 // number of the newest entry of its chain
}

// Numbered is an entry and its number.
type Numbered struct {
	Number int32 // from 1 on
	Entry
}

// ScanFile reads the header of an index file of size bytes that has so many slots; its entries fill what is left. A size that
// this cannot be is a [*mappedfile.CorruptError] naming file. A header that cannot be believed is not an error here:
// [Header.Check] and [Dump.Check] say so.
func ScanFile(file string, r io.ReaderAt, size int64, slots int32) (*Dump, error) {
	s, ok := shapeOf(int64(slots), size)
	if !ok {
		return nil, &mappedfile.CorruptError{File: file, Err: fmt.Errorf("%w: %d bytes, %d slots", errSize, size, slots)}
	}
	d := &Dump{File: file, Shape: s, r: r}
	var raw [HeaderSize]byte
	if err := d.read(raw[:], 0); err != nil {
		return nil, err
	}
	d.Header = decodeHeader(raw[:])
	return d, nil
}

// read reads len(b) bytes at off. A file that ends too early is corrupt.
func (d *Dump) read(b []byte, off int64) error {
	err := readFull(d.r, b, off)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return d.corrupt(off, fmt.Errorf("%w: the file ends before %d", errShort, off+int64(len(b))))
	}
	return fmt.Errorf("%s: %w", d.File, err)
}

func (d *Dump) corrupt(off int64, err error) error {
	return &mappedfile.CorruptError{File: d.File, Offset: off, Err: err}
}

// dumpWindow is what a scan reads at a time, a multiple of both sizes.
const dumpWindow = 1 << 12 * EntrySize

// each calls f with the position and the bytes of every unit of some size between from and to, until f gives false. The
// bytes are valid until the next.
func (d *Dump) each(from, to, size int64, f func(at int64, b []byte) bool) error {
	return d.windows(from, to, func(at int64, b []byte) bool {
		for ; len(b) > 0; at, b = at+size, b[size:] {
			if !f(at, b[:size]) {
				return false
			}
		}
		return true
	})
}

// windows is each for many units at a time.
func (d *Dump) windows(from, to int64, f func(at int64, b []byte) bool) error {
	window := make([]byte, min(dumpWindow, max(to-from, 0)))
	for at := from; at < to; {
		b := window[:min(int64(len(window)), to-at)]
		if err := d.read(b, at); err != nil {
			return err
		}
		if !f(at, b) {
			return nil
		}
		at += int64(len(b))
	}
	return nil
}

// Slots yields the slots in use in order. A value that can be no entry of the file comes with a [*mappedfile.CorruptError],
// and the scan goes on. An error of reading ends it.
func (d *Dump) Slots() iter.Seq2[SlotValue, error] {
	return func(yield func(SlotValue, error) bool) {
		err := d.windows(HeaderSize, d.Shape.entryPos(0), func(at int64, b []byte) bool {
			for i := 0; i < len(b); i += SlotSize {
				v := SlotValue{int32((at - HeaderSize + int64(i)) / SlotSize), int32(binary.BigEndian.Uint32(b[i:]))}
				if v.Newest == 0 {
					continue // most are not in use
				}
				var err error
				if v.Newest < 0 || v.Newest > d.last() {
					err = d.corrupt(at+int64(i), fmt.Errorf("%w: slot %d begins with entry %d of %d", errChain, v.Slot, v.Newest, d.last()))
				}
				if !yield(v, err) {
					return false
				}
			}
			return true
		})
		if err != nil {
			yield(SlotValue{}, err)
		}
	}
}

// Entries yields the entries that the header counts, in the order in which they were put, as far as the file has room for
// them. One that cannot be believed comes with a [*mappedfile.CorruptError], and the scan goes on. An error of reading ends it.
func (d *Dump) Entries() iter.Seq2[Numbered, error] {
	return func(yield func(Numbered, error) bool) {
		for batch, err := range d.EntryBatches(entryBatch) {
			for i, e := range batch {
				var bad error
				if i == len(batch)-1 {
					bad = err
				}
				if !yield(e, bad) {
					return
				}
			}
			if len(batch) == 0 {
				yield(Numbered{}, err)
			}
		}
	}
}

// entryBatch is how many entries Entries decodes at a time.
const entryBatch = 64

// EntryBatches is Entries for those who go through millions: it yields up to n at a time. The error is that of the last
// entry of a batch, or, with an empty batch, one of reading. A batch is valid until the next.
func (d *Dump) EntryBatches(n int) iter.Seq2[[]Numbered, error] {
	return func(yield func([]Numbered, error) bool) {
		batch := make([]Numbered, 0, max(n, 1))
		number, last, from := int32(0), d.last(), d.Shape.entryPos(1)
		err := d.windows(from, from+int64(last)*EntrySize, func(at int64, b []byte) bool {
			for ; len(b) > 0; at, b = at+EntrySize, b[EntrySize:] {
				number++
				e := Numbered{number, decodeEntry(b)}
				err := e.Check(number)
				if err != nil {
					err = d.corrupt(at, err)
				}
				batch = append(batch, e)
				if err != nil || len(batch) == cap(batch) || number == last {
					if !yield(batch, err) {
						return false
					}
					batch = batch[:0]
				}
			}
			return true
		})
		if err != nil && (len(batch) == 0 || yield(batch, nil)) {
			yield(nil, err)
		}
	}
}

// last is the number of the last entry that the header counts and the file has room for.
func (d *Dump) last() int32 { return min(d.Header.Keys(), d.Shape.Entries-1) }
