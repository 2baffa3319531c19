package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// logFile is one commit log file that is being scanned.
type logFile struct {
	seg Segment
	f   *file
	s   *commitlog.Scanner
}

func (d *Dir) openLog(seg Segment) (*logFile, error) {
	f, err := d.open(seg.File)
	if err != nil {
		return nil, err
	}
	return &logFile{seg, f, commitlog.NewScanner(seg.File, seg.Start, f, seg.Length)}, nil
}

// pos is where the scanner stands, in bytes from the start of the file.
func (l *logFile) pos() int64 { return l.s.Offset() - l.seg.Start }

// seekFrom lets the scan begin at a physical offset if a record starts there, else at the start of the file, since only
// a walk finds the next record.
func (l *logFile) seekFrom(off int64) {
	if off <= l.seg.Start {
		return
	}
	l.s.SeekTo(off)
	if !l.s.Next() {
		off = l.seg.Start
	}
	l.s.SeekTo(off)
}

// resume looks for the next record behind the place where the scanner stopped. It does not read holes of sparse files.
func (l *logFile) resume() bool {
	if l.s.Ending() != commitlog.EndZeros {
		return l.s.Resume()
	}
	data, known := nextData(l.f, l.pos())
	switch {
	case known && data >= l.seg.Length:
		return false
	case known && data-commitlog.BlankSize > l.pos():
		// The first bytes of a record may be zeros that lie in the hole.
		at := l.seg.Start + data - commitlog.BlankSize
		if l.s.SeekTo(at); l.s.Next() || errors.Is(l.s.Err(), commitlog.ErrCRC) {
			l.s.SeekTo(at)
			return true
		}
	}
	return l.s.Resume()
}

// checkBlank compares the length that the blank at the present place states with what is left of the file.
func (l *logFile) checkBlank() (Finding, bool) {
	var b [commitlog.BlankSize]byte
	if _, err := l.f.ReadAt(b[:], l.pos()); err != nil {
		return Finding{}, false
	}
	says, left := int64(int32(binary.BigEndian.Uint32(b[:]))), l.seg.Length-l.pos()
	return Finding{
		Kind: BadBlank, Severity: Warning, File: l.seg.File, Offset: l.pos(),
		Text: fmt.Sprintf("it says %d, %d bytes are left", says, left),
	}, says != left
}

// finding is the damage at which the scanner stopped; an error if it was no damage but reading failed.
func (l *logFile) finding() (Finding, error) {
	err := l.s.Err()
	corrupt, ok := errors.AsType[*mappedfile.CorruptError](err)
	if !ok {
		return Finding{}, fmt.Errorf("%s: %w", l.seg.File, err)
	}
	f := Finding{Severity: Error, File: l.seg.File, Offset: corrupt.Offset, From: l.s.Offset(), Text: corrupt.Err.Error()}
	switch {
	case errors.Is(err, commitlog.ErrCRC):
		f.Kind = BadCRC
	case errors.Is(err, commitlog.ErrPlace):
		f.Kind = BadPlace
	case errors.Is(err, commitlog.ErrSize):
		f.Kind = BadSize
	default:
		f.Kind = BadMagic
	}
	return f, nil
}

// hasPropertyCRC says whether a CRC of the whole record is its last property.
func hasPropertyCRC(r *commitlog.Record) bool {
	at := len(r.Properties) - commitlog.PropertyCRCSize
	return at >= 0 && string(r.Properties[at:at+len(message.PropertyCRC32)]) == message.PropertyCRC32
}

// checkPropertyCRC checks the present record against the CRC in its last property, if it has that.
func (l *logFile) checkPropertyCRC() (Finding, bool) {
	r := l.s.Record()
	if !hasPropertyCRC(r) {
		return Finding{}, false
	}
	stored, computed, ok := commitlog.PropertyCRC(r.AppendTo(nil))
	return Finding{
		Kind: BadCRC, Severity: Error, File: l.seg.File, Offset: l.pos(), From: l.s.Offset(),
		Text: fmt.Sprintf("CRC of the record does not match its property: %08x computed, %08x stored", computed, stored),
	}, ok && stored != computed
}

// maxTorn bounds the size of a record that torn reads.
const maxTorn = 16 << 20

// torn gives what can be read of a record that is all there by its size and states its own place, but whose body does
// not match its CRC and whose lengths do not add up: what a crash leaves that wrote a record's pages in part.
func (l *logFile) torn() (commitlog.Record, bool) {
	var head [commitlog.BlankSize]byte
	if _, err := l.f.ReadAt(head[:], l.pos()); err != nil {
		return commitlog.Record{}, false
	}
	r, err := commitlog.Decode(head[:]) // too short, but it tells size and magic
	size := int64(r.Size)
	if !errors.Is(err, commitlog.ErrSize) || size < commitlog.MinRecordSize || size > min(l.seg.Length-l.pos(), maxTorn) {
		return commitlog.Record{}, false
	}
	b := make([]byte, size)
	if _, err := l.f.ReadAt(b, l.pos()); err != nil {
		return commitlog.Record{}, false
	}
	r, err = commitlog.Decode(b)
	return r, errors.Is(err, commitlog.ErrSize) && r.PhysicalOffset == l.s.Offset() && r.CheckBody() != nil
}

// RecordAt gives the record that starts at a physical offset, or false when none does. Damage there is reported; a record
// that only fails its CRC is given with Damaged set.
func (d *Dir) RecordAt(off int64, report func(Finding)) (LogRecord, bool, error) {
	segs, err := d.segmentsIn(commitLogDir, func(Finding) {})
	if err != nil {
		return LogRecord{}, false, err
	}
	for _, seg := range segs {
		if off < seg.Start || off >= seg.End() {
			continue
		}
		return d.recordIn(seg, off, report)
	}
	return LogRecord{}, false, nil
}

func (d *Dir) recordIn(seg Segment, off int64, report func(Finding)) (LogRecord, bool, error) {
	l, err := d.openLog(seg)
	if err != nil {
		return LogRecord{}, false, err
	}
	defer l.f.close()
	return l.recordAt(off, report)
}

// recordAt gives the record at a physical offset in the file. Its slices are valid until the next call.
func (l *logFile) recordAt(off int64, report func(Finding)) (LogRecord, bool, error) {
	l.s.SeekTo(off)
	if l.s.Next() {
		r := LogRecord{File: l.seg.File, Record: *l.s.Record()}
		if f, bad := l.checkPropertyCRC(); bad {
			r.Damaged = DamagedCRC
			report(f)
		}
		return r, true, nil
	}
	if l.s.Ending() != commitlog.EndDamage {
		return LogRecord{}, false, nil
	}
	f, err := l.finding()
	if err != nil {
		return LogRecord{}, false, err
	}
	r, ok := *l.s.Record(), f.Kind == BadCRC
	if !ok {
		r, ok = l.torn()
	}
	if !ok {
		return LogRecord{}, false, nil // most offsets are inside a record, so this is no finding
	}
	report(f)
	return LogRecord{File: l.seg.File, Record: r, Damaged: DamagedCRC}, true, nil
}
