package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// TailOptions steer [Dir.Tail].
type TailOptions struct {
	// From is the physical offset to begin at: one where a record starts, or behind the last one. Negative: behind the last
	// record that there is at the beginning.
	From int64
	// Wait waits, at the end of the log, for the time when to look again. An error ends the tail. Default: 200 ms.
	Wait func(context.Context) error
	// Patience is how many looks in a row bytes that are no record must be there, with a record behind them, to count as damage;
	// before that somebody may be writing them. Default 10.
	Patience int
}

// Tail gives the records of a log that is being written to as they come, without a consumer group, and without end: until ctx
// ends, Wait gives an error, or the caller wants no more. What is half written is waited for; damage is reported, and passed over
// once whole records lie behind it. When the log was cut, as after a restart of the broker, it goes on at the new end; when
// the files that come next were removed it goes on at the next one, and reports the gap.
//
// An error means that something could not be read; it goes on when the caller does.
func (d *Dir) Tail(ctx context.Context, o TailOptions, report func(Finding)) iter.Seq2[LogRecord, error] {
	if o.Wait == nil {
		o.Wait = waitAWhile
	}
	if o.Patience <= 0 {
		o.Patience = 10
	}
	return func(yield func(LogRecord, error) bool) {
		t := &tailer{dir: d, o: o, next: o.From, report: report, yield: yield}
		if o.From < 0 {
			segs, err := d.segmentsIn(commitLogDir, func(Finding) {})
			if err != nil {
				yield(LogRecord{}, err)
				return
			}
			if t.next = 0; len(segs) > 0 {
				t.next = d.dataEnd(segs)
			}
		}
		for {
			more, err := t.look(ctx)
			if err == nil && !more {
				err = o.Wait(ctx)
			}
			switch {
			case errors.Is(err, errStop):
				return
			case err != nil && ctx.Err() != nil:
				return
			case err != nil && !yield(LogRecord{}, err):
				return
			case err != nil:
				if o.Wait(ctx) != nil {
					return
				}
			}
		}
	}
}

// waitAWhile waits for 200 ms.
func waitAWhile(ctx context.Context) error {
	timer := time.NewTimer(200 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// tailer is one run of Tail.
type tailer struct {
	dir    *Dir
	o      TailOptions
	next   int64 // physical offset where the next record is expected
	waited int   // looks in a row that found no record there
	report func(Finding)
	yield  func(LogRecord, error) bool
}

// look gives the records that are there. More says whether to look again at once, in the next file.
func (t *tailer) look(ctx context.Context) (more bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	segs, err := t.dir.segmentsIn(commitLogDir, func(Finding) {})
	if err != nil || len(segs) == 0 {
		return false, err
	}
	n, ok := segmentOf(segs, t.next)
	switch {
	case !ok && n < len(segs): // what comes next begins later
		t.report(Finding{
			Kind: Gap, Severity: Warning, File: segs[n].File, From: t.next, To: segs[n].Start,
			Text: fmt.Sprintf("%d bytes were removed before they were read", segs[n].Start-t.next),
		})
		t.next = segs[n].Start
	case !ok && t.next > segs[len(segs)-1].End(): // the log was cut
		t.next = t.dir.dataEnd(segs)
		return false, nil
	case !ok:
		return false, nil // the next file is not there yet
	}
	l, err := t.dir.openLog(segs[n])
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer l.f.close()
	return t.file(ctx, l)
}

// file gives the records of one file from next on.
func (t *tailer) file(ctx context.Context, l *logFile) (more bool, err error) {
	l.s.SeekTo(t.next)
	for {
		for l.s.Next() {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			r := LogRecord{File: l.seg.File, Record: *l.s.Record()}
			if f, bad := l.checkPropertyCRC(); bad {
				r.Damaged = DamagedCRC
				t.report(f)
			}
			t.next, t.waited = r.PhysicalOffset+int64(r.Size), 0
			if !t.yield(r, nil) {
				return false, errStop
			}
		}
		switch l.s.Ending() {
		case commitlog.EndBlank, commitlog.EndOfSegment:
			t.next, t.waited = l.seg.End(), 0
			return true, nil
		}
		if err := l.s.Err(); err != nil && !errors.Is(err, mappedfile.ErrCorrupt) {
			return false, err
		}
		if t.waited++; t.waited < t.o.Patience || !t.passOver(l) {
			return false, nil
		}
	}
}

// passOver goes on behind bytes that are no record, if a record lies behind them, and reports them.
func (t *tailer) passOver(l *logFile) bool {
	f := Finding{Kind: Zeros, Severity: Error, File: l.seg.File, Offset: l.pos(), From: l.s.Offset(), Text: "zeros"}
	if l.s.Ending() == commitlog.EndDamage {
		var err error
		if f, err = l.finding(); err != nil {
			return false
		}
	}
	at := l.s.Offset()
	if !l.resume() {
		return false
	}
	if !l.s.Next() { // a record that is only damaged, at the end: it may still be written
		l.s.SeekTo(at)
		return false
	}
	f.To = l.s.Offset()
	f.Text += fmt.Sprintf("; %d bytes passed over, the log goes on at %d", f.To-f.From, f.To)
	t.report(f)
	l.s.SeekTo(f.To)
	t.next, t.waited = f.To, 0
	return true
}
