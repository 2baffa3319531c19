package index

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Mark says how much of the last file there was at some time, and proves it. Nothing in an index file tells a torn one from a
// whole one; who keeps a mark elsewhere need not make that file again after an unclean stop ([Index.Prove]). All files before it
// were full then.
type Mark struct {
	File   string // its name, 17 digits
	Header Header // IndexCount is at least 2
	Sum    uint64 // xxhash64 of the entries that the header counts, 20 bytes each
	// State is that of the hash before the last few entries, as xxhash.Digest marshals it: from there the next mark goes on.
	State []byte
}

// stateStep is how many entries are a whole number of the hash's blocks of 32 bytes: a state behind so many keeps no bytes.
const stateStep = 8

// inState is how many of a header's entries are in the state of its mark.
func inState(h Header) int32 { return h.Keys() - h.Keys()%stateStep }

// Mark gives the mark of the last file; nil when there is none, when it has no entries or its header is damaged, or when it is
// full, of which [Index.FullThrough] tells. What it says is durable as soon as a [Index.Sync] that began later has succeeded.
// It reads the entries that were put since the last call, without holding up puts, all of them at the first.
func (x *Index) Mark() (*Mark, error) {
	x.syncMu.Lock()
	defer x.syncMu.Unlock()
	f, h := x.marked()
	if f == nil {
		return nil, nil
	}
	if f.summed == 0 {
		f.sum.Reset()
	}
	m := &Mark{File: f.name, Header: h}
	err := mappedfile.Guard(f.path, func() (err error) {
		steps := inState(h)
		_, _ = f.sum.Write(f.b[f.shape.entryPos(f.summed+1):f.shape.entryPos(steps+1)]) // never fails
		f.summed = steps
		all := f.sum
		_, _ = all.Write(f.b[f.shape.entryPos(steps+1):f.shape.entryPos(h.IndexCount)])
		m.Sum = all.Sum64()
		m.State, err = f.sum.MarshalBinary()
		return err
	})
	if err != nil {
		f.summed = 0 // what was added is not known
		return nil, err
	}
	return m, nil
}

// marked is the file that a mark can be made of, and its header; nil: there is none.
func (x *Index) marked() (*file, Header) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.writable() != nil || len(x.files) == 0 {
		return nil, Header{}
	}
	f := x.files[len(x.files)-1]
	if f.damaged != nil || f.full() || f.head.Keys() == 0 {
		return nil, Header{}
	}
	return f, f.head
}

// Resume takes over the state of a mark that is known to be of the last file as it is, so that the next [Index.Mark] reads only
// what is put from now on. A mark that is not is passed over. It is called before anything is put.
func (x *Index) Resume(m *Mark) {
	x.syncMu.Lock()
	defer x.syncMu.Unlock()
	f, h := x.marked()
	if f != nil && m != nil && f.name == m.File && h == m.Header {
		f.resume(m)
	}
}

// resume takes over the state of a mark of the file.
func (f *file) resume(m *Mark) {
	f.summed = 0
	if f.sum.UnmarshalBinary(m.State) == nil {
		f.summed = inState(m.Header)
	}
}

// Proof is a mark that was found to hold.
type Proof struct {
	Mark
	// Changed: the file has something else than the mark in its header, its slots, or behind its entries, so that [Index.TakeUp]
	// will change it.
	Changed bool

	slots []int32 // the newest entry of each
}

// Prove says whether the entries of a mark are what they were: nil if not, also when the file is gone, or not of that
// shape, or its header is damaged. An error is one of reading. It changes nothing and takes 4 bytes of memory a slot, which the
// proof keeps.
func (x *Index) Prove(m *Mark) (*Proof, error) {
	x.mu.RLock()
	i := slices.IndexFunc(x.files, func(f *file) bool { return m != nil && f.name == m.File })
	if i < 0 || x.files[i].damaged != nil {
		x.mu.RUnlock()
		return nil, nil
	}
	f := x.files[i]
	have := f.head
	x.mu.RUnlock()
	h := m.Header
	if h.Check(f.shape) != nil || h.Keys() == 0 || have.IndexCount < h.IndexCount {
		return nil, nil
	}
	d, err := ScanFile(f.path, f.h, f.shape.Size(), f.shape.Slots)
	if err != nil {
		return nil, err
	}
	d.Header = h
	p := &Proof{Mark: *m, Changed: have != h, slots: make([]int32, f.shape.Slots)}
	sum, last, err := p.readEntries(d)
	if err != nil || sum != m.Sum || last != h.EndOffset {
		return nil, err
	}
	return p, p.compare(d)
}

// readEntries gives the hash of the entries and the offset of the last one, and makes the slots from them.
func (p *Proof) readEntries(d *Dump) (sum uint64, last int64, err error) {
	var digest xxhash.Digest
	digest.Reset()
	number := int32(0)
	err = d.windows(d.Shape.entryPos(1), d.Shape.entryPos(d.Header.IndexCount), func(_ int64, b []byte) bool {
		_, _ = digest.Write(b) // never fails
		for ; len(b) > 0; b = b[EntrySize:] {
			number++
			e := decodeEntry(b)
			p.slots[Slot(e.KeyHash, d.Shape.Slots)] = number
			last = e.PhysicalOffset
		}
		return true
	})
	return digest.Sum64(), last, err
}

// compare finds out whether slots, or what lies behind the entries, are not as they should be.
func (p *Proof) compare(d *Dump) error {
	if p.Changed {
		return nil
	}
	slots := p.slots
	err := d.windows(HeaderSize, d.Shape.entryPos(0), func(_ int64, b []byte) bool {
		for ; len(b) > 0 && !p.Changed; b, slots = b[SlotSize:], slots[1:] {
			p.Changed = int32(binary.BigEndian.Uint32(b)) != slots[0]
		}
		return !p.Changed
	})
	if err != nil || p.Changed {
		return err
	}
	from := d.Shape.entryPos(d.Header.IndexCount)
	return d.windows(from, min(from+reserveStep, d.Shape.Size()), func(_ int64, b []byte) bool {
		p.Changed = !mappedfile.AllZero(b)
		return !p.Changed
	})
}

// TakeUp makes the index end where a proof says, which must be of the last file: what is behind its entries goes, and the slots
// are made again from them. Puts go on from there, the next [Index.Sync] makes it durable. Errors are those of [Index.Put].
func (x *Index) TakeUp(p *Proof) error {
	x.syncMu.Lock()
	defer x.syncMu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.writable(); err != nil {
		return err
	}
	if n := len(x.files); n == 0 || x.files[n-1].name != p.File {
		return fmt.Errorf("%w: a proof of %s, which is not the last file", errHeader, p.File)
	}
	f := x.files[len(x.files)-1]
	f.head = p.Header
	if err := f.reserve(); err != nil {
		return err
	}
	if err := mappedfile.Guard(f.path, func() error { return f.takeUp(p) }); err != nil {
		return x.fail(err)
	}
	return nil
}

// takeUp changes what is not as the proof has it.
func (f *file) takeUp(p *Proof) error {
	f.dirty, f.dirtyFrom = true, f.shape.entryPos(p.Header.IndexCount)
	f.dirtyTo = f.dirtyFrom
	for from := f.dirtyFrom; from < f.shape.Size(); {
		b := f.b[from:min(from+reserveStep, f.shape.Size())]
		if mappedfile.AllZero(b) {
			break
		}
		from += int64(len(b))
		f.dirtyTo = from
		for page := range slices.Chunk(b, mappedfile.PageSize) {
			if !mappedfile.AllZero(page) { // others may lie in a hole
				clear(page)
			}
		}
	}
	for slot, number := range p.slots {
		if f.slot(int32(slot)) != number {
			binary.BigEndian.PutUint32(f.b[f.shape.slotPos(int32(slot)):], uint32(number))
		}
	}
	p.Header.put(f.b)
	f.resume(&p.Mark)
	return nil
}
