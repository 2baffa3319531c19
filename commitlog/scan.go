package commitlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// Ending says why a [Scanner] stopped.
type Ending int

// The endings.
const (
	// EndOfSegment: fewer bytes are left than a blank's header has.
	EndOfSegment Ending = iota
	// EndBlank: a blank fills the rest; the log goes on in the next segment.
	EndBlank
	// EndZeros: zeros where a record would start; nothing was written here, or it was lost.
	EndZeros
	// EndDamage: bytes that cannot be believed; Err says which and why.
	EndDamage
)

// windowSize is what a Scanner over a file reads at a time.
const windowSize = 256 << 10

// Scanner walks the records of one segment in order. It is the only parser of commit log bytes: recovery, reading and
// forensics all use it. It never writes and allocates only its window.
//
//	for s.Next() {
//		use(s.Record())
//	}
//	if s.Ending() == commitlog.EndDamage { report(s.Err()) }
type Scanner struct {
	// CheckCRC makes a wrong body CRC damage. The record is whole then: Record gives it and Resume goes on behind it.
	CheckCRC bool
	// CheckTorn makes a record damage whose topic or properties, which no checksum covers, have zeros from one border of
	// 512 bytes in the file to the next: what a power cut leaves of a sector that was not written. It is for what was written
	// before an unclean stop; elsewhere a property may hold zeros.
	CheckTorn bool

	file string
	base int64 // physical offset of the segment's first byte
	src  io.ReaderAt
	size int64 // bytes of the segment to look at
	step int64 // bytes to read from src at a time

	win    []byte // bytes of the segment from winAt on
	winAt  int64
	pos    int64 // where the current record starts, in the segment
	next   int64 // where the next one does
	rec    Record
	ending Ending
	err    error
}

// NewScanner scans size bytes of r, a segment whose first byte has physical offset base. File names it in errors.
func NewScanner(file string, base int64, r io.ReaderAt, size int64) *Scanner {
	return &Scanner{CheckCRC: true, file: file, base: base, src: r, size: size, step: windowSize}
}

// NewBytesScanner scans a segment that is in memory.
func NewBytesScanner(file string, base int64, b []byte) *Scanner {
	return &Scanner{CheckCRC: true, file: file, base: base, size: int64(len(b)), win: b}
}

// reset makes the scanner start over on bytes that are in memory and lie at position at of their segment.
func (s *Scanner) reset(file string, base, at int64, b []byte) {
	*s = Scanner{file: file, base: base, size: at + int64(len(b)), win: b, winAt: at, next: at, pos: at}
}

// SeekTo makes physicalOffset the place of the next record.
func (s *Scanner) SeekTo(physicalOffset int64) { s.next, s.err = physicalOffset-s.base, nil }

// Record is the current record. Its slices are valid until the next call of Next or Resume.
func (s *Scanner) Record() *Record { return &s.rec }

// Offset is the physical offset of the current record or, after Next gave false, of the place where the scan stopped.
func (s *Scanner) Offset() int64 { return s.base + s.pos }

// Ending says why Next gave false.
func (s *Scanner) Ending() Ending { return s.ending }

// Err is the [*mappedfile.CorruptError] of the damage, or the error of reading; else nil.
func (s *Scanner) Err() error { return s.err }

// Next moves to the next record and says whether there is one that can be believed.
func (s *Scanner) Next() bool { return s.take(&s.rec) }

// take is Next with room for the record, which is zero where its bytes cannot be decoded.
func (s *Scanner) take(rec *Record) bool {
	s.pos = s.next
	if s.err = nil; s.size-s.pos < BlankSize {
		s.ending = EndOfSegment
		return false
	}
	b, err := s.bytes(s.pos, BlankSize)
	if err != nil {
		return s.stop(err)
	}
	switch size, magic := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[posMagic:]); {
	case magic == MagicBlank:
		s.ending = EndBlank
		return false
	case magic == 0 && size == 0:
		s.ending = EndZeros
		return false
	}
	var wrongBody error
	if b, err = s.record(); err == nil {
		wrongBody, err = rec.decodeChecked(b, s.CheckCRC)
	}
	if err != nil {
		*rec = Record{}
		return s.stop(err)
	}
	if rec.PhysicalOffset != s.Offset() {
		return s.stop(fmt.Errorf("%w: says %d, lies at %d", ErrPlace, rec.PhysicalOffset, s.Offset()))
	}
	s.next = s.pos + int64(rec.Size)
	if wrongBody != nil {
		return s.stop(wrongBody)
	}
	if s.CheckTorn {
		if err := rec.checkTorn(s.pos); err != nil {
			return s.stop(err)
		}
	}
	return true
}

// stop notes damage at the current position.
func (s *Scanner) stop(err error) bool {
	s.ending = EndDamage
	s.err = err
	for _, wrong := range []error{ErrMagic, ErrSize, ErrPlace, ErrCRC, ErrTorn} {
		if errors.Is(err, wrong) {
			s.err = &mappedfile.CorruptError{File: s.file, Offset: s.pos, Err: err}
		}
	}
	return false
}

// Resume goes on behind damage or zeros: behind the record when only its CRC was wrong or a sector missing, else at the next place where a
// record lies that says it lies there. It says whether Next should be called again. When reading fails on the way it does not;
// Err is that error then.
func (s *Scanner) Resume() bool {
	if errors.Is(s.err, ErrCRC) || errors.Is(s.err, ErrTorn) {
		return true
	}
	for from := s.pos + 1; ; {
		at, ok, err := s.findMagic(from)
		if ok && err == nil {
			if ok, err = s.plausible(at); ok {
				s.next = at
				return true
			}
			from, ok = at+1, true
		}
		if err != nil {
			s.ending, s.err = EndDamage, err
			return false
		}
		if !ok {
			return false
		}
	}
}

// plausible says whether a whole record that states its own position starts at pos.
func (s *Scanner) plausible(pos int64) (bool, error) {
	b, err := s.bytes(pos, min(posSysFlag, s.size-pos))
	if err != nil || len(b) < posSysFlag || int64(binary.BigEndian.Uint64(b[posPhysicalOffset:])) != s.base+pos {
		return false, unread(err)
	}
	keep := s.pos
	s.pos = pos
	b, err = s.record()
	if err == nil {
		_, err = Decode(b)
	}
	s.pos = keep
	return err == nil, unread(err)
}

// unread is err when it is one of reading, and not of what was read.
func unread(err error) error {
	for _, wrong := range []error{ErrMagic, ErrSize, ErrPlace, ErrCRC, ErrTorn} {
		if errors.Is(err, wrong) {
			return nil
		}
	}
	return err
}

// findMagic gives the first position from from on whose record would have the magic of a version there.
func (s *Scanner) findMagic(from int64) (int64, bool, error) {
	for at := from; at+MinRecordSize <= s.size; {
		b, err := s.rest(at)
		if err != nil {
			return 0, false, unread(err)
		}
		for i := posMagic; ; i++ {
			k := bytes.Index(b[i:], []byte{0xDA, 0xA3, 0x20})
			if k < 0 {
				break
			}
			if i += k; i+3 < len(b) && (b[i+3] == byte(MagicV1&0xFF) || b[i+3] == byte(MagicV2&0xFF)) {
				return at + int64(i) - posMagic, true, nil
			}
		}
		at += int64(len(b)) - (BlankSize - 1)
	}
	return 0, false, nil
}

// record is the bytes of the record at pos as its size field has it, once that size agrees with the body length: so a
// damaged size never makes the window huge.
func (s *Scanner) record() ([]byte, error) {
	left := s.size - s.pos
	if at := s.pos - s.winAt; at >= 0 && at+MinRecordSize <= int64(len(s.win)) { // mostly all of it is in the window
		b := s.win[at:]
		if n := int64(int32(binary.BigEndian.Uint32(b))); n >= MinRecordSize && n <= int64(len(b)) {
			return b[:n], nil
		}
	}
	if left < MinRecordSize {
		return s.bytes(s.pos, left)
	}
	const headSize = MinRecordSize - 3 + 2*ipv6Extra
	b, err := s.bytes(s.pos, min(headSize, left))
	if err != nil {
		return nil, err
	}
	size, magic := int64(int32(binary.BigEndian.Uint32(b))), binary.BigEndian.Uint32(b[posMagic:])
	if size < MinRecordSize || size > left || magic != MagicV1 && magic != MagicV2 {
		return b, nil // Decode says why
	}
	if s.src != nil {
		if err := checkBodyLength(b, size); err != nil {
			return nil, err
		}
	}
	return s.bytes(s.pos, size)
}

func checkBodyLength(head []byte, size int64) error {
	at := MinRecordSize - 7
	flags := binary.BigEndian.Uint32(head[posSysFlag:])
	for bit := uint32(16); bit <= 32; bit <<= 1 {
		if flags&bit != 0 {
			at += ipv6Extra
		}
	}
	if at+4 > len(head) {
		return fmt.Errorf("%w: size %d", ErrSize, size)
	}
	body := int64(int32(binary.BigEndian.Uint32(head[at:])))
	const most = 2 + 2 + 2*(1<<15) // two lengths, topic and properties
	if rest := size - int64(at) - 4 - body; body < 0 || rest < 3 || rest > most {
		return fmt.Errorf("%w: size %d, body length %d", ErrSize, size, body)
	}
	return nil
}

// rest gives what the window holds from position pos on, at least a record's first eight bytes. So a search reads each
// byte of a segment once, however many places it has to try.
func (s *Scanner) rest(pos int64) ([]byte, error) {
	if at := pos - s.winAt; at >= 0 && at+BlankSize <= int64(len(s.win)) {
		return s.win[at:], nil
	}
	return s.bytes(pos, min(max(s.step, BlankSize), s.size-pos))
}

// bytes gives n bytes at position pos of the segment, reading a new window when they are not in the present one.
func (s *Scanner) bytes(pos, n int64) ([]byte, error) {
	if at := pos - s.winAt; at >= 0 && at+n <= int64(len(s.win)) {
		return s.win[at : at+n], nil
	}
	if s.src == nil {
		return nil, io.ErrUnexpectedEOF
	}
	want := min(max(n, s.step), s.size-pos)
	if int64(cap(s.win)) < want {
		s.win = make([]byte, want)
	}
	s.win, s.winAt = s.win[:want], pos
	got, err := s.src.ReadAt(s.win, pos)
	if s.win = s.win[:got]; int64(got) >= n {
		return s.win[:n], nil
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: the file ends %d bytes too early", ErrSize, n-int64(got))
	}
	return nil, err
}

// Scan yields the records of one segment in order: size bytes of r, whose first byte has physical offset base. At bytes
// that cannot be believed it yields a [*mappedfile.CorruptError] and stops. A blank or zeros end it without an error. The
// record's slices are valid until the next one.
func Scan(file string, base int64, r io.ReaderAt, size int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		s := NewScanner(file, base, r, size)
		for s.Next() {
			if !yield(s.rec, nil) {
				return
			}
		}
		if s.err != nil {
			yield(s.rec, s.err)
		}
	}
}
