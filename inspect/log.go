package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// DamagedCRC is [LogRecord.Damaged] of a record whose body does not match its CRC, or that as a whole does not match the
// CRC in its last property (__CRC32#, 5.2.0 and later).
const DamagedCRC = "crc"

// LogRecord is one record of the commit log.
type LogRecord struct {
	// File is the segment that holds it, "commitlog/<20 digits>".
	File string
	// Record's slices are valid until the next step of the iteration.
	commitlog.Record
	// Damaged is "" for a record that can be believed, else [DamagedCRC]. A damaged record is all there by its size, but
	// any of its fields may be wrong; where its lengths do not add up either, what could not be read is empty.
	Damaged string
}

// LogRange bounds a walk over the commit log. The zero value is the whole log.
type LogRange struct {
	// From is the physical offset from which on records are given; a record that starts before it is not.
	From int64
	// To is the physical offset from which on records are not given any more; 0: no bound.
	To int64
}

// Segments gives the files of the commit log in order and the size that they were made with, 0 when there is no file.
// What is wrong with names, lengths and neighbours is reported, names that are no segment's as well.
func (d *Dir) Segments(report func(Finding)) ([]Segment, int64, error) {
	segs, err := d.segmentsIn(commitLogDir, report)
	if err != nil {
		return nil, 0, err
	}
	size := inferSize(segs)
	checkRun(segs, size, d.unused, report)
	return segs, size, nil
}

// unused says whether a commit log file holds no record and no blank: it was made ahead, or never came to be used.
func (d *Dir) unused(seg Segment) bool {
	l, err := d.openLog(seg)
	if err != nil {
		return false
	}
	defer l.f.close()
	return !l.s.Next() && l.s.Ending() == commitlog.EndZeros && !l.resume()
}

// Log walks the records of the commit log in log order, over all files, and goes on behind damage: a record whose body
// CRC alone is wrong is given with Damaged set, everything that cannot be believed is reported as a [Finding], and the
// next record is looked for behind it. Records behind damage or behind zeros may be left over from before an earlier
// cut; they are given all the same. The end of the log is where only zeros are left.
//
// An error means that a file could not be read; the walk can go on with the next one. It ends when ctx does.
func (d *Dir) Log(ctx context.Context, r LogRange, report func(Finding)) iter.Seq2[LogRecord, error] {
	return func(yield func(LogRecord, error) bool) {
		var none LogRecord
		d.walkLog(ctx, r, report, func(r *LogRecord, err error) bool {
			if r == nil {
				r = &none
			}
			return yield(*r, err)
		})
	}
}

// walkLog is Log for those who go through millions of records: the record is the same variable each time, nil with an error.
func (d *Dir) walkLog(ctx context.Context, r LogRange, report func(Finding), yield func(*LogRecord, error) bool) {
	segs, _, err := d.Segments(report)
	if err != nil {
		yield(nil, err)
		return
	}
	if r.To <= 0 {
		r.To = math.MaxInt64
	}
	w := &logWalk{limits: r, report: report, yield: yield}
	for _, s := range segs {
		if s.End() <= r.From && s.Length > 0 {
			continue
		}
		if s.Start >= r.To {
			return
		}
		if !w.segment(ctx, d, s) {
			return
		}
	}
}

// logWalk is the state of one walk over the log.
type logWalk struct {
	limits LogRange
	report func(Finding)
	yield  func(*LogRecord, error) bool
	rec    LogRecord // what yield gets
	// open is a stretch without a record, zeros or damage, whose end is not known yet.
	open *Finding
}

// segment walks one file and says whether to go on.
func (w *logWalk) segment(ctx context.Context, d *Dir, seg Segment) bool {
	l, err := d.openLog(seg)
	if err != nil {
		return w.yield(nil, err)
	}
	defer l.f.close()
	l.seekFrom(w.limits.From)
	for n := 0; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			w.yield(nil, ctx.Err())
			return false
		}
		found := l.s.Next()
		switch {
		case l.s.Offset() >= w.limits.To:
			if found {
				w.follows(l.s.Offset())
			}
			return false
		case found:
			if !w.found(l) {
				return false
			}
		default:
			if more, ok := w.stopped(l); !ok || !more {
				return ok
			}
		}
	}
}

// found deals with the record at which the scanner stands.
func (w *logWalk) found(l *logFile) bool {
	if hasPropertyCRC(l.s.Record()) { // to make and clear a finding for each record takes time
		if f, bad := l.checkPropertyCRC(); bad {
			return w.badCRC(l, f)
		}
	}
	return w.record(l, l.s.Record(), "")
}

// badCRC reports a record that does not match one of its CRCs, and gives it.
func (w *logWalk) badCRC(l *logFile, f Finding) bool {
	w.follows(f.From)
	f.To = f.From + int64(l.s.Record().Size)
	w.open = &f
	w.close()
	return w.record(l, l.s.Record(), DamagedCRC)
}

// record gives one record to the caller.
func (w *logWalk) record(l *logFile, r *commitlog.Record, damaged string) bool {
	w.follows(l.s.Offset())
	if l.s.Offset() < w.limits.From {
		return true
	}
	w.rec.File, w.rec.Record, w.rec.Damaged = l.seg.File, *r, damaged
	return w.yield(&w.rec, nil)
}

// logGoesOn is how a finding says that records follow what was passed over.
const logGoesOn = "the log goes on at"

// follows notes that the log goes on at a physical offset, so that the open stretch ends there.
func (w *logWalk) follows(off int64) {
	if w.open == nil {
		return
	}
	f := w.open
	f.To = off
	f.Text += fmt.Sprintf("%d bytes passed over, %s %d", f.To-f.From, logGoesOn, f.To)
	w.close()
}

// close reports the open stretch, which now has its end.
func (w *logWalk) close() {
	if w.open.To > w.limits.From {
		w.report(*w.open)
	}
	w.open = nil
}

// stopped deals with the place where the scanner stopped. More says whether the scan goes on in this file, ok whether
// the walk goes on at all.
func (w *logWalk) stopped(l *logFile) (more, ok bool) {
	switch l.s.Ending() {
	case commitlog.EndBlank:
		w.follows(l.s.Offset())
		if f, bad := l.checkBlank(); bad {
			w.report(f)
		}
	case commitlog.EndZeros:
		if w.open == nil {
			w.open = &Finding{Kind: Zeros, Severity: Error, File: l.seg.File, Offset: l.pos(), From: l.s.Offset(), Text: "zeros; "}
		}
		if l.resume() {
			return true, true
		}
		return false, w.unread(l)
	case commitlog.EndDamage:
		return w.damage(l)
	case commitlog.EndOfSegment:
	}
	return false, true
}

// damage reports bytes that cannot be believed and looks for the next record.
func (w *logWalk) damage(l *logFile) (more, ok bool) {
	f, err := l.finding()
	if err != nil {
		return false, w.yield(nil, err)
	}
	if f.Kind == BadCRC {
		ok = w.badCRC(l, f)
		return ok && l.s.Resume(), ok
	}
	w.follows(f.From)
	if r, torn := l.torn(); torn {
		f.Text += "; " + r.CheckBody().Error()
		if !w.record(l, &r, DamagedCRC) {
			return false, false
		}
	}
	w.open = &f
	if l.resume() {
		f.Text += "; "
		return true, true
	}
	f.To = l.seg.End()
	f.Text += "; no record behind it in this file"
	w.close()
	return false, w.unread(l)
}

// unread gives the error of reading that ended a search for the next record, if one did, and says whether to go on.
func (w *logWalk) unread(l *logFile) bool {
	err := l.s.Err()
	if err == nil || errors.Is(err, mappedfile.ErrCorrupt) {
		return true
	}
	return w.yield(nil, fmt.Errorf("%s: %w", l.seg.File, err))
}
