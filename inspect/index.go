package inspect

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"path"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/message"
)

// IndexFile is one index file. Its methods may be called until the next step of the iteration that gave it.
type IndexFile struct {
	File string // path inside the store directory
	Size int64  // bytes
	// Header is as on disk, believable or not.
	index.Header
	// Shape is how the file is laid out. Known says whether the file tells it; else it is that of its neighbours, the
	// default one, or, when all its entries are zero anyway, none.
	Shape index.Shape
	Known bool

	report func(Finding)
	dump   *index.Dump // nil when there is no shape
	open   *file
}

// IndexFiles walks the index files by name, which is by time. What cannot be believed is reported; such a file is given
// all the same when its header can be read. The number of slots of a file is the one that makes its chains agree.
//
// An error means that a file could not be read; the walk can go on with the next one. It ends when ctx does.
func (d *Dir) IndexFiles(ctx context.Context, report func(Finding)) iter.Seq2[*IndexFile, error] {
	return func(yield func(*IndexFile, error) bool) {
		names, err := d.indexNames(report)
		if err != nil {
			yield(nil, err)
			return
		}
		neighbour := d.indexShape()
		for _, n := range names {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			x, err := d.openIndex(path.Join(indexDir, n.name), neighbour, report)
			if x == nil && err == nil {
				continue // reported
			}
			more := yield(x, err)
			if x != nil {
				neighbour = x.Shape
				x.open.close()
			}
			if !more {
				return
			}
		}
	}
}

// indexShape is what any index file tells of the shape that they have in common, zero when none does.
func (d *Dir) indexShape() index.Shape {
	s, known, err := index.InferDir(d.mapped(), indexDir)
	if !known || err != nil {
		return index.Shape{}
	}
	return s
}

// indexNames lists the index files and reports the other names there, and files of another size than the rest.
func (d *Dir) indexNames(report func(Finding)) ([]entry, error) {
	entries, err := d.list(indexDir)
	if err != nil {
		return nil, err
	}
	var names []entry
	var sizes []Segment
	for _, e := range entries {
		name := path.Join(indexDir, e.name)
		switch {
		case !isIndexName(e.name):
			report(foreign(name, "a name of 17 digits is expected here"))
		case !e.info.Mode().IsRegular():
			report(foreign(name, notRegular(e.info)))
		default:
			names = append(names, e)
			sizes = append(sizes, Segment{File: name, Length: e.info.Size()})
		}
	}
	size := inferSize(sizes)
	for _, s := range sizes {
		if s.Length != size {
			report(Finding{
				Kind: WrongSize, Severity: Error, File: s.File,
				Text: fmt.Sprintf("%d bytes, %d expected as in the other index files", s.Length, size),
			})
		}
	}
	return names, nil
}

func isIndexName(name string) bool {
	digits := 0
	for _, c := range name {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	return len(name) == 17 && digits == 17
}

// openIndex opens an index file and finds its shape. It gives nil and no error for a file that is no index file at all,
// which it has reported then.
func (d *Dir) openIndex(name string, neighbour index.Shape, report func(Finding)) (*IndexFile, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, err
	}
	x, err := newIndexFile(name, f, neighbour, report)
	if x == nil || err != nil {
		f.close()
		if find, ok := corruption(err, BadIndex); ok {
			report(find)
			return nil, nil
		}
		return nil, err
	}
	return x, nil
}

func newIndexFile(name string, f *file, neighbour index.Shape, report func(Finding)) (*IndexFile, error) {
	shape, known, err := index.InferShape(name, f, f.size)
	if err != nil {
		return nil, err
	}
	if !known && neighbour.Size() == f.size {
		shape = neighbour
	}
	x := &IndexFile{File: name, Size: f.size, Shape: shape, Known: known, report: report, open: f}
	if shape.Slots == 0 {
		return x, x.readHeader()
	}
	if x.dump, err = index.ScanFile(name, f, f.size, shape.Slots); err != nil {
		return nil, err
	}
	x.Header = x.dump.Header
	if err := x.Check(shape); err != nil {
		report(Finding{Kind: BadIndex, Severity: Error, File: name, Text: err.Error()})
	}
	return x, nil
}

// readHeader is for a file whose shape is not known, so that there is no Dump of it.
func (x *IndexFile) readHeader() error {
	var b [index.HeaderSize]byte
	if _, err := x.open.ReadAt(b[:], 0); err != nil {
		return err
	}
	var err error
	if x.Header, err = index.DecodeHeader(b[:]); err != nil {
		return err
	}
	if x.Keys() > 0 {
		x.report(Finding{
			Kind: BadIndex, Severity: Error, File: x.File,
			Text: fmt.Sprintf("no number of slots makes the chains of its %d entries agree", x.Keys()),
		})
	}
	return nil
}

// Slots yields the slots in use in order. Values that cannot be an entry are reported, and given as they are.
func (x *IndexFile) Slots() iter.Seq2[index.SlotValue, error] {
	return func(yield func(index.SlotValue, error) bool) {
		if x.dump == nil {
			return
		}
		for v, err := range x.dump.Slots() {
			if !yield(v, x.sift(err)) {
				return
			}
		}
	}
}

// Entries yields the entries in the order in which they were put. What cannot be believed is reported, and given as it is.
func (x *IndexFile) Entries() iter.Seq2[index.Numbered, error] {
	return func(yield func(index.Numbered, error) bool) {
		if x.dump == nil {
			return
		}
		for e, err := range x.dump.Entries() {
			if e.Number == 0 {
				yield(e, err)
				return
			}
			if !yield(e, x.sift(err)) {
				return
			}
		}
	}
}

// entryBatches is Entries for those who go through millions: up to n at a time, valid until the next. The error is one of reading.
func (x *IndexFile) entryBatches(n int) iter.Seq2[[]index.Numbered, error] {
	return func(yield func([]index.Numbered, error) bool) {
		if x.dump == nil {
			return
		}
		for batch, err := range x.dump.EntryBatches(n) {
			if !yield(batch, x.sift(err)) {
				return
			}
		}
	}
}

// sift reports damage and passes other errors on.
func (x *IndexFile) sift(err error) error {
	if err == nil {
		return nil
	}
	if find, ok := corruption(err, BadIndex); ok {
		x.report(find)
		return nil
	}
	return err
}

// chain yields the physical offsets of the entries with that key hash, newest first, signed and absolute hash alike. A
// chain only goes to smaller numbers, so it ends; where it breaks that is reported.
func (x *IndexFile) chain(hash int32) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		if x.dump == nil {
			return
		}
		number, err := x.newest(index.Slot(hash, x.Shape.Slots))
		for number > 0 && err == nil {
			var e index.Entry
			if e, err = x.entry(number); err != nil {
				break
			}
			if (e.KeyHash == hash || e.KeyHash == message.AbsHash(hash)) && !yield(e.PhysicalOffset, nil) {
				return
			}
			if bad := e.Check(number); bad != nil {
				x.report(Finding{Kind: BadIndex, Severity: Error, File: x.File, Offset: x.entryPos(number), Text: bad.Error()})
				return
			}
			number = e.Previous
		}
		if err != nil {
			yield(0, fmt.Errorf("%s: %w", x.File, err))
		}
	}
}

// newest is the number of the newest entry of a slot's chain, 0 for none. One that the file has no room for is reported
// and counts as none.
func (x *IndexFile) newest(slot int32) (int32, error) {
	var b [index.SlotSize]byte
	pos := index.HeaderSize + int64(slot)*index.SlotSize
	if _, err := x.open.ReadAt(b[:], pos); err != nil {
		return 0, err
	}
	n := int32(binary.BigEndian.Uint32(b[:]))
	if n < 0 || n >= x.Shape.Entries {
		x.report(Finding{
			Kind: BadIndex, Severity: Error, File: x.File, Offset: pos,
			Text: fmt.Sprintf("slot %d begins with entry %d, the file has room for %d", slot, n, x.Shape.Entries-1),
		})
		return 0, nil
	}
	return n, nil
}

// entry reads an entry that the file has room for.
func (x *IndexFile) entry(number int32) (index.Entry, error) {
	var b [index.EntrySize]byte
	if _, err := x.open.ReadAt(b[:], x.entryPos(number)); err != nil {
		return index.Entry{}, err
	}
	return index.DecodeEntry(b[:])
}

// entryPos is where an entry starts in the file.
func (x *IndexFile) entryPos(number int32) int64 {
	return index.HeaderSize + int64(x.Shape.Slots)*index.SlotSize + int64(number)*index.EntrySize
}
