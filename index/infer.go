package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/rocketstore/rocketstore/mappedfile"
)

var errSize = errors.New("no index file has this size")

// InferShape finds the shape of an index file from its bytes: size bytes of r. It is the one whose entry 1 and last entry
// hold the offsets that the header states, and whose slots and chains agree with the entries. Most is decided by at most one
// pass over the file; the memory and the number of candidates looked at closely are bounded.
//
// Ok is false when the file does not tell: it holds no entry, or its header is damaged. The shape is then the default one if
// the size fits it, and zero if not. The error is a [*mappedfile.CorruptError] that names file when no shape has this size, or
// the error of reading.
func InferShape(file string, r io.ReaderAt, size int64) (s Shape, ok bool, err error) {
	if _, fits := shapeOf(smallestSlots(size), size); !fits {
		return Shape{}, false, &mappedfile.CorruptError{File: file, Err: fmt.Errorf("%w: %d bytes", errSize, size)}
	}
	usual := Shape{DefaultSlots, DefaultEntries}
	if usual.Size() == size {
		s = usual
	}
	var raw [HeaderSize]byte
	if err := readFull(r, raw[:], 0); err != nil {
		return Shape{}, false, fmt.Errorf("%s: %w", file, err)
	}
	p := prober{r: r, size: size, head: decodeHeader(raw[:])}
	if n := int64(p.head.IndexCount); n < 2 || n*EntrySize > size {
		return s, false, nil
	}
	found, ok := p.search(s)
	if p.err != nil {
		return Shape{}, false, fmt.Errorf("%s: %w", file, p.err)
	}
	if ok {
		s = found
	}
	return s, ok, nil
}

// smallestSlots is the smallest slot count with which a whole number of entries fills a file of that size.
func smallestSlots(size int64) int64 {
	for slots := int64(1); slots <= EntrySize/SlotSize; slots++ {
		if (size-HeaderSize-slots*SlotSize)%EntrySize == 0 {
			return slots
		}
	}
	return 0
}

// InferDir finds the shape of the index files in a directory: that of the newest file that tells. The size of that file
// contradicts no other: [Open] compares. Ok is false when no file tells, and the shape is zero then unless the newest file has
// the default size. A missing directory is an empty one. Errors are those of [InferShape] and of reading; a file that has an
// impossible size or cannot be read is passed over while another one tells.
func InferDir(fsys mappedfile.FS, dir string) (s Shape, ok bool, err error) {
	l, err := list(fsys, dir)
	if err != nil {
		return Shape{}, false, err
	}
	var guess Shape
	var failed error
	for _, name := range slices.Backward(l.names) {
		s, ok, err := inferFile(fsys, path.Join(dir, name))
		switch {
		case ok:
			return s, true, nil
		case err != nil:
			failed = errors.Join(failed, err)
		case guess == Shape{}:
			guess = s
		}
	}
	return guess, false, failed
}

func inferFile(fsys mappedfile.FS, name string) (s Shape, ok bool, err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return Shape{}, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil || size == 0 {
		return Shape{}, false, err
	}
	return InferShape(name, f, size)
}

// prober tries shapes on one file. The first error of reading is kept in err; what is read after it is zero.
type prober struct {
	r    io.ReaderAt
	size int64
	head Header
	err  error
}

const (
	// probeWindow is what a search reads at a time, a multiple of what lies between two candidates.
	probeWindow = 1 << 14 * EntrySize
	// maxProbes bounds how many candidates a search looks at closely; a real file has a handful.
	maxProbes = 1 << 16
	// samples is how many entries must agree with the slots.
	samples = 64
)

// search tries usual first, then every place where entry 1 may lie. Such places are 20 bytes apart, since what is behind the
// slots is a whole number of entries.
func (p *prober) search(usual Shape) (Shape, bool) {
	if usual.Slots != 0 && p.first(p.entry(usual, 1)) && p.fits(usual) {
		return usual, true
	}
	last := p.size - int64(p.head.Keys())*EntrySize
	window := make([]byte, min(probeWindow, p.size/EntrySize*EntrySize))
	probes := 0
	for at := HeaderSize + smallestSlots(p.size)*SlotSize + EntrySize; at <= last && p.err == nil; {
		b := window[:min(int64(len(window)), p.size-at)]
		p.err = errors.Join(p.err, readFull(p.r, b, at))
		for ; len(b) >= EntrySize && at <= last && p.err == nil; at, b = at+EntrySize, b[EntrySize:] {
			s, possible := shapeOf((at-EntrySize-HeaderSize)/SlotSize, p.size)
			if !possible || !p.first(decodeEntry(b)) {
				continue
			}
			if probes++; probes > maxProbes {
				return Shape{}, false
			}
			if p.fits(s) {
				return s, true
			}
		}
	}
	return Shape{}, false
}

// first says whether e may be entry 1. A hash of 0 is not believed, since a run of zeros would have it.
func (p *prober) first(e Entry) bool {
	return e.KeyHash != 0 && e.PhysicalOffset == p.head.BeginOffset && e.TimeDiff >= 0 && e.Previous == 0
}

// fits says whether the entries of shape s agree with the header and with the slots.
func (p *prober) fits(s Shape) bool {
	if p.head.Check(s) != nil {
		return false
	}
	n := p.head.Keys()
	if e := p.entry(s, n); e.PhysicalOffset != p.head.EndOffset || p.slot(s, e.KeyHash) != n {
		return false
	}
	count := min(n, samples)
	for i := range count {
		number := 1 + int32(int64(i)*int64(n)/int64(count))
		e := p.entry(s, number)
		if e.Check(number) != nil || e.PhysicalOffset < p.head.BeginOffset || e.PhysicalOffset > p.head.EndOffset {
			return false
		}
		if newest := p.slot(s, e.KeyHash); newest < number || newest > n {
			return false
		}
		if e.Previous != 0 && Slot(p.entry(s, e.Previous).KeyHash, s.Slots) != Slot(e.KeyHash, s.Slots) {
			return false
		}
	}
	return p.err == nil
}

// entry reads an entry of a file of shape s, slot the value of the slot of a hash.
func (p *prober) entry(s Shape, number int32) Entry {
	var b [EntrySize]byte
	p.read(b[:], s.entryPos(number))
	return decodeEntry(b[:])
}

func (p *prober) slot(s Shape, hash int32) int32 {
	var b [SlotSize]byte
	p.read(b[:], s.slotPos(Slot(hash, s.Slots)))
	return int32(binary.BigEndian.Uint32(b[:]))
}

func (p *prober) read(b []byte, off int64) {
	if p.err == nil {
		p.err = readFull(p.r, b, off)
	}
}

// readFull reads len(b) bytes from off on.
func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	switch {
	case n == len(b):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}
