package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/cespare/xxhash/v2"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// reserveStep is how far ahead of writing the blocks of entries are reserved, in bytes. The header and all slots are reserved
// at once, since entries fall on slots at random.
const reserveStep = 1 << 20

// file is one index file of an [Index]. Index.mu guards it, except that a sync works on h and m under Index.syncMu alone.
type file struct {
	name  string // 17 digits
	path  string // with the directory
	shape Shape
	h     mappedfile.File
	m     mappedfile.Mapping // nil in an index for reading
	b     []byte             // of m

	// head is what the file's header says, with an IndexCount of at least 1; while writing it is the truth that the file follows.
	head    Header
	damaged error // the header cannot be believed: the file is read as far as that goes and never written
	gone    bool  // closed or dropped

	reserved           int64 // up to here entries have blocks; 0: nor have header and slots
	dirty              bool  // something was written since the last sync
	dirtyFrom, dirtyTo int64 // and these bytes of entries were
	durable            bool  // full and synced as such

	// Of the first summed entries, for the next mark; Index.syncMu guards both.
	sum    xxhash.Digest
	summed int32
}

// openFile opens a file that is there. A size other than that of the shape is a [*mappedfile.CorruptError] that names both; an
// empty file gives nil.
func openFile(fsys mappedfile.FS, f *file, readOnly bool) (*file, error) {
	flag := os.O_RDWR
	if readOnly {
		flag = os.O_RDONLY
	}
	h, err := fsys.OpenFile(f.path, flag, 0)
	if err != nil {
		return nil, err
	}
	f.h = h
	size, err := h.Size()
	if err == nil && size == 0 {
		return nil, h.Close()
	}
	if want := f.shape.Size(); err == nil && size != want {
		err = f.corrupt(0, fmt.Errorf("%w: %d bytes, where %d slots and %d entries make %d", errSize, size, f.shape.Slots, f.shape.Entries, want))
	}
	if err == nil {
		f.head, f.damaged, err = f.readHeader()
	}
	if err == nil && !readOnly {
		err = f.mapAll()
	}
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return f, nil
}

// readHeader reads the header and judges it: damaged says why it cannot be believed.
func (f *file) readHeader() (h Header, damaged, err error) {
	var raw [HeaderSize]byte
	if err := readFull(f.h, raw[:], 0); err != nil {
		return h, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	h = decodeHeader(raw[:])
	if err := h.Check(f.shape); err != nil {
		damaged = f.corrupt(0, err)
	}
	h.IndexCount = h.next()
	return h, damaged, nil
}

func (f *file) mapAll() (err error) {
	if f.m, err = f.h.Map(f.shape.Size(), mappedfile.ReadWrite); err != nil {
		return fmt.Errorf("map %s: %w", f.path, err)
	}
	f.b = f.m.Bytes()
	return nil
}

func (f *file) corrupt(off int64, err error) error {
	return &mappedfile.CorruptError{File: f.path, Offset: off, Err: err}
}

// full says whether no entry fits any more, as Java counts.
func (f *file) full() bool { return f.head.IndexCount >= f.shape.Entries }

// at gives n bytes of the file, in buf unless it is mapped. The caller guards against faults.
func (f *file) at(off int64, n int, buf []byte) ([]byte, error) {
	if f.b != nil {
		return f.b[off : off+int64(n)], nil
	}
	err := readFull(f.h, buf[:n], off)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = f.corrupt(off, fmt.Errorf("%w: the file ends before %d", errShort, off+int64(n)))
	}
	return buf[:n], err
}

// slot is the value of a slot of a mapped file, entry an entry.
func (f *file) slot(slot int32) int32 {
	return int32(binary.BigEndian.Uint32(f.b[f.shape.slotPos(slot):]))
}

func (f *file) entry(number int32) Entry { return decodeEntry(f.b[f.shape.entryPos(number):]) }

// reserve makes sure that the next entry can be written: a full disk is an error here, and nothing was written then.
func (f *file) reserve() error {
	at := f.shape.entryPos(f.head.IndexCount)
	if at+EntrySize <= f.reserved {
		return nil
	}
	if f.reserved == 0 {
		if err := f.h.Allocate(0, f.shape.entryPos(1)); err != nil {
			return fmt.Errorf("reserve %s: %w", f.path, err)
		}
	}
	at = max(at, f.reserved)
	n := min(reserveStep, f.shape.Size()-at)
	if err := f.h.Allocate(at, n); err != nil {
		return fmt.Errorf("reserve %s: %w", f.path, err)
	}
	f.reserved = at + n
	return nil
}

// fit is how many entries can be written before the file is full or more blocks must be reserved.
func (f *file) fit() int {
	n := f.head.IndexCount
	return int(min(int64(f.shape.Entries-n), (f.reserved-f.shape.entryPos(n))/EntrySize))
}

// touch reads the slots of hashes, for which the processor does not wait before it goes on.
func (f *file) touch(hashes []int32) (all int32) {
	for _, hash := range hashes {
		all |= f.slot(Slot(hash, f.shape.Slots))
	}
	return all
}

// put writes the next entry: itself, then its slot, then the header, so that whoever reads meanwhile never meets what is not
// there yet. There is room, and the blocks are reserved.
func (f *file) put(r rules, hash int32, k *Hashed) {
	n, slot := f.head.IndexCount, Slot(hash, f.shape.Slots)
	previous, pos := f.previous(slot, n), f.shape.entryPos(n)
	e := Entry{hash, k.PhysicalOffset, r.timeDiff(k.StoreTimestamp, f.head.BeginTimestamp), previous}
	e.put(f.b[pos:])
	binary.BigEndian.PutUint32(f.b[f.shape.slotPos(slot):], uint32(n))
	h := f.head
	if n <= 1 {
		h.BeginOffset, h.BeginTimestamp = k.PhysicalOffset, k.StoreTimestamp
	}
	if r.countsAll || previous == 0 {
		h.SlotCount++
	}
	h.IndexCount++
	h.EndOffset, h.EndTimestamp = k.PhysicalOffset, k.StoreTimestamp
	h.put(f.b)
	f.head = h
	if !f.dirty || f.dirtyTo == 0 {
		f.dirtyFrom = pos
	}
	f.dirty, f.dirtyTo = true, pos+EntrySize
}

// previous is the entry before n in the chain of a slot, n being the next to be written. Like Java it takes a value that is out
// of range for none. A slot that already holds n is from a put that a kill cut off before the header: the same entry is
// about to be written again, and Java would close it to a circle of one and lose the chain.
func (f *file) previous(slot, n int32) int32 {
	switch old := f.slot(slot); {
	case old <= 0 || old > n:
		return 0
	case old < n:
		return old
	}
	if e := f.entry(n); Slot(e.KeyHash, f.shape.Slots) == slot && e.Check(n) == nil {
		return e.Previous
	}
	return 0
}

// close ends the use of the file. It does not sync.
func (f *file) close() error {
	if f.gone {
		return nil
	}
	f.gone, f.b = true, nil
	var err error
	if f.m != nil {
		err = f.m.Unmap()
	}
	return errors.Join(err, f.h.Close())
}
