package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// unitWalk is a walk over one run of files that hold units of a fixed size: a consume queue, a batch queue, the state
// table, the redo log. U is what the format's scan yields.
type unitWalk[U any] struct {
	dir    *Dir
	of     string // what the units belong to, for texts
	size   int64  // bytes of a unit
	scan   func(file string, base int64, r io.ReaderAt, size int64) iter.Seq2[U, error]
	report func(Finding)
	// many and yieldMany, if set, are in place of scan, for many units at a time; errors of reading go to yield all the same.
	many      func(file string, base int64, r io.ReaderAt, size int64, n int) iter.Seq2[[]U, error]
	yieldMany func(place, []U) bool
	// yield gets each unit with its number by its place, or an error of reading. False: no more is wanted.
	yield func(place, U, error) bool
	// open is a stretch without a unit, zeros or impossible ones, whose end is not known yet.
	open *Finding
}

// place is where a unit lies.
type place struct {
	index  int64 // number of the unit in the run
	file   string
	offset int64 // bytes from the start of file
}

// errStop says that the caller of an iterator wants no more.
var errStop = errors.New("stop")

// walk says whether the caller wants more.
func (w *unitWalk[U]) walk(ctx context.Context, segs []Segment) bool {
	for _, seg := range segs {
		err := ctx.Err()
		if err == nil {
			err = w.segment(ctx, seg)
		}
		var none U
		if errors.Is(err, errStop) || err != nil && !w.yield(place{}, none, err) || ctx.Err() != nil {
			return false
		}
	}
	if w.open != nil && w.open.Kind == BadUnit {
		w.close()
	}
	return true
}

// segment walks one file.
func (w *unitWalk[U]) segment(ctx context.Context, seg Segment) error {
	f, err := w.dir.open(seg.File)
	if err != nil {
		return err
	}
	defer f.close()
	for pos := int64(0); seg.Length-pos >= w.size; {
		if pos, err = w.units(ctx, f, seg, pos); err != nil {
			find, ok := corruption(err, BadUnit)
			if !ok {
				return err
			}
			find.Offset = pos
			w.impossible(find, (seg.Start+pos)/w.size)
			pos += w.size
			continue
		}
		if pos, err = w.zeros(f, seg, pos); err != nil {
			return err
		}
	}
	return nil
}

// units gives the units from pos on, up to the first that is zero or impossible, and the position behind them.
func (w *unitWalk[U]) units(ctx context.Context, f *file, seg Segment, pos int64) (int64, error) {
	rest := seg.Length - pos
	at := place{(seg.Start + pos) / w.size, seg.File, pos}
	if w.many != nil {
		return w.unitsAtOnce(ctx, f, seg, at)
	}
	n := 0
	for u, err := range w.scan(seg.File, seg.Start+pos, io.NewSectionReader(f, pos, rest), rest) {
		if err != nil {
			return at.offset, err
		}
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return at.offset, ctx.Err()
		}
		w.follows(at.index)
		if !w.yield(at, u, nil) {
			return at.offset, errStop
		}
		at.index++
		at.offset += w.size
	}
	return at.offset, ctx.Err()
}

// unitsAtOnce is units for many at a time.
func (w *unitWalk[U]) unitsAtOnce(ctx context.Context, f *file, seg Segment, at place) (int64, error) {
	rest := seg.Length - at.offset
	for many, err := range w.many(seg.File, seg.Start+at.offset, io.NewSectionReader(f, at.offset, rest), rest, 512) {
		if err != nil && len(many) > 0 {
			many = many[:len(many)-1] // the last is the impossible one
		}
		if len(many) > 0 {
			w.follows(at.index)
			if !w.yieldMany(at, many) {
				return at.offset, errStop
			}
			at.index += int64(len(many))
			at.offset += int64(len(many)) * w.size
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return at.offset, err
		}
	}
	return at.offset, ctx.Err()
}

// zeros deals with zeros at pos and gives the position of the next unit, or the end of the file.
func (w *unitWalk[U]) zeros(f *file, seg Segment, pos int64) (int64, error) {
	if seg.Length-pos < w.size {
		return seg.Length, nil
	}
	if w.open == nil || w.open.Kind != Zeros {
		w.follows((seg.Start + pos) / w.size)
		w.open = &Finding{
			Kind: Zeros, Severity: Error, File: seg.File, Offset: pos, From: (seg.Start + pos) / w.size,
			Text: "zeros where units should be",
		}
	}
	at, err := nextByte(f, pos, seg.Length)
	return min(at-(at-pos)%w.size, seg.Length), err
}

// impossible notes a unit that cannot be one, together with its neighbours of that sort.
func (w *unitWalk[U]) impossible(f Finding, index int64) {
	if w.open != nil && w.open.Kind == BadUnit && w.open.To == index {
		w.open.To++
		return
	}
	w.follows(index)
	f.From, f.To = index, index+1
	w.open = &f
}

// follows notes that the run goes on at an index, so that the open stretch ends there.
func (w *unitWalk[U]) follows(index int64) {
	if w.open == nil {
		return
	}
	if w.open.Kind == Zeros {
		w.open.To = index
	}
	w.close()
}

// close reports the open stretch, which now has its end.
func (w *unitWalk[U]) close() {
	if w.open.To-w.open.From == 1 {
		w.open.Text += fmt.Sprintf("; unit %d of %s is passed over", w.open.From, w.of)
	} else {
		w.open.Text += fmt.Sprintf("; units %d to %d of %s are passed over", w.open.From, w.open.To-1, w.of)
	}
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
