package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// unitKind is a tree of queues and how its files are read.
type unitKind struct {
	root string
	size int64 // bytes of a unit
	// scan gives the units of size bytes of r to emit, up to the first that is zero or impossible.
	scan func(file string, base int64, r io.ReaderAt, size int64, emit func(QueueUnit) bool) error
}

func unitKinds() []unitKind {
	return []unitKind{
		{queueDir, consumequeue.UnitSize, scanUnits},
		{batchQueueDir, consumequeue.BatchUnitSize, scanBatchUnits},
	}
}

// errStop says that the caller of an iterator wants no more.
var errStop = errors.New("stop")

func scanUnits(file string, base int64, r io.ReaderAt, size int64, emit func(QueueUnit) bool) error {
	for e, err := range consumequeue.Scan(file, base, r, size) {
		if err != nil {
			return err
		}
		if !emit(QueueUnit{Index: e.Index, Unit: e.Unit}) {
			return errStop
		}
	}
	return nil
}

func scanBatchUnits(file string, base int64, r io.ReaderAt, size int64, emit func(QueueUnit) bool) error {
	for e, err := range consumequeue.ScanBatch(file, base, r, size) {
		if err != nil {
			return err
		}
		b := e.BatchUnit
		u := consumequeue.Unit{PhysicalOffset: b.PhysicalOffset, Size: b.Size, TagsCode: b.TagsCode}
		if !emit(QueueUnit{Index: e.Index, Unit: u, Batch: &b}) {
			return errStop
		}
	}
	return nil
}

// queueWalk is the state of one walk over one queue.
type queueWalk struct {
	dir    *Dir
	queue  QueueFiles
	kind   unitKind
	report func(Finding)
	yield  func(QueueUnit, error) bool
	// open is a stretch without a unit, zeros or impossible ones, whose end is not known yet.
	open *Finding
}

// walk says whether the caller wants more.
func (w *queueWalk) walk(ctx context.Context) bool {
	for _, seg := range w.queue.Segments {
		err := w.segment(ctx, seg)
		if errors.Is(err, errStop) || err != nil && !w.yield(QueueUnit{}, err) {
			return false
		}
		if ctx.Err() != nil {
			return false
		}
	}
	if w.open != nil && w.open.Kind == BadUnit {
		w.close()
	}
	return true
}

// segment walks one file.
func (w *queueWalk) segment(ctx context.Context, seg Segment) error {
	f, err := w.dir.open(seg.File)
	if err != nil {
		return err
	}
	defer f.Close()
	for pos := int64(0); seg.Length-pos >= w.kind.size; {
		rest := seg.Length - pos
		err := w.kind.scan(seg.File, seg.Start+pos, io.NewSectionReader(f, pos, rest), rest, func(u QueueUnit) bool {
			u.Topic, u.QueueID, u.File, u.Offset = w.queue.Topic, w.queue.QueueID, seg.File, pos
			pos += w.kind.size
			w.follows(u.Index)
			return (u.Index%4096 != 0 || ctx.Err() == nil) && w.yield(u, nil)
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if find, ok := corruption(err, BadUnit); ok {
			find.Offset = pos
			w.impossible(find, (seg.Start+pos)/w.kind.size)
			pos += w.kind.size
			continue
		}
		if err != nil {
			return err
		}
		if pos, err = w.zeros(f, seg, pos); err != nil {
			return err
		}
	}
	return nil
}

// zeros deals with zeros at pos and gives the position of the next unit, or the end of the file.
func (w *queueWalk) zeros(f *file, seg Segment, pos int64) (int64, error) {
	if seg.Length-pos < w.kind.size {
		return seg.Length, nil
	}
	if w.open == nil || w.open.Kind != Zeros {
		w.follows((seg.Start + pos) / w.kind.size)
		w.open = &Finding{
			Kind: Zeros, Severity: Error, File: seg.File, Offset: pos, From: (seg.Start + pos) / w.kind.size,
			Text: "zeros where units should be",
		}
	}
	at, err := nextByte(f, pos, seg.Length)
	return min(at-(at-pos)%w.kind.size, seg.Length), err
}

// impossible notes a unit that cannot be one, together with its neighbours of that sort.
func (w *queueWalk) impossible(f Finding, index int64) {
	if w.open != nil && w.open.Kind == BadUnit && w.open.To == index {
		w.open.To++
		return
	}
	w.follows(index)
	f.From, f.To = index, index+1
	w.open = &f
}

// follows notes that the queue goes on at an index, so that the open stretch ends there.
func (w *queueWalk) follows(index int64) {
	if w.open == nil {
		return
	}
	if w.open.Kind == Zeros {
		w.open.To = index
	}
	w.close()
}

// close reports the open stretch, which now has its end.
func (w *queueWalk) close() {
	w.open.Text += fmt.Sprintf("; units %d to %d of %s/%d are passed over", w.open.From, w.open.To-1, w.queue.Topic, w.queue.QueueID)
	w.report(*w.open)
	w.open = nil
}

// corruption makes a finding of a CorruptError.
func corruption(err error, kind Kind) (Finding, bool) {
	c, ok := errors.AsType[*mappedfile.CorruptError](err)
	if !ok {
		return Finding{}, false
	}
	return Finding{Kind: kind, Severity: Error, File: c.File, Offset: c.Offset, Text: c.Err.Error()}, true
}
