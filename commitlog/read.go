package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"

	"github.com/rocketstore/rocketstore/internal/prefetch"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// Read is the record at a physical offset, together with the view that its slices lie in: release that when done with
// them. Whatever fails magic, lengths, place or CRC is a [*mappedfile.CorruptError]; an offset outside of the log gives
// mappedfile.ErrOutOfRange.
func (l *Log) Read(offset int64) (Record, mappedfile.View, error) {
	v, err := l.queue.ViewFrom(offset)
	if err != nil {
		return Record{}, mappedfile.View{}, err
	}
	r, err := l.decode(v, offset)
	if err != nil {
		v.Release()
		return Record{}, mappedfile.View{}, err
	}
	return r, v, nil
}

// Place is where a record lies, as a consume queue says it.
type Place struct {
	Offset int64
	Size   int32 // bytes; it may be wrong
}

// Trust is what a reader believes of records without a look.
type Trust int

// The degrees of trust.
const (
	// TrustNothing: lengths, place and the body's CRC are checked.
	TrustNothing Trust = iota
	// TrustBodies leaves out the CRC: a body that was damaged is served as it is.
	TrustBodies
	// TrustAll leaves the log's bytes alone, as the Java store does: a record is where and as long as its place says, and
	// nothing of it is decoded but PhysicalOffset and Size. Whatever lies there is served.
	TrustAll
)

// ReadMany is [Log.Read] for several records, with trust in them. It appends them to records, and to views what their slices
// lie in, up to the first that cannot be read: Read says why. A view may be one that lies in an earlier one of the
// same call, so keep or release them from a place on.
func (l *Log) ReadMany(places []Place, trust Trust, records []Record, views []mappedfile.View) ([]Record, []mappedfile.View) {
	first, before := len(views), len(records)
	views = l.viewMany(places, views)
	n := len(views) - first
	records = slices.Grow(records, n)[:before+n]
	good := 0
	if trust == TrustAll {
		good = believe(places[:n], records[before:], views[first:])
	} else {
		_ = mappedfile.Guard("", func() error {
			l.judgeMany(places[:n], trust, records[before:], views[first:], &good)
			return nil
		})
	}
	for _, v := range views[first+good:] {
		v.Release()
	}
	clear(views[first+good:])
	clear(records[before+good:])
	return records[:before+good], views[:first+good]
}

// viewMany appends a view from each place on, up to the first that there is none of. Those in one segment are parts of one.
func (l *Log) viewMany(places []Place, views []mappedfile.View) []mappedfile.View {
	var run mappedfile.View
	start := int64(0) // of run
	for _, p := range places {
		if at := p.Offset - start; at >= 0 && at < int64(len(run.Bytes())) {
			views = append(views, run.From(int(at)))
			continue
		}
		v, err := l.queue.ViewFrom(p.Offset)
		if err != nil {
			break
		}
		views = append(views, v)
		run, start = v, p.Offset
	}
	return views
}

// believe makes the records of what their places say, and gives the number of those that the log is long enough for.
func believe(places []Place, records []Record, views []mappedfile.View) int {
	for i, p := range places {
		if p.Size < MinRecordSize || int(p.Size) > len(views[i].Bytes()) {
			return i
		}
		records[i] = Record{Size: p.Size, PhysicalOffset: p.Offset}
	}
	return len(places)
}

// fetchAhead is how many bytes of the records that come next are asked for while one is checked, at most as many of one record:
// the rest of a long one is read in one direction, which the processor sees by itself.
const fetchAhead = 4 << 10

// pagesAhead is how many records ahead the first byte is loaded, so that the processor knows the page when the rest is asked for:
// it drops what it is asked for in pages that it does not know.
const pagesAhead = 8

// judgeMany decodes records up to the first that cannot be believed, and counts them in good. The records of a queue lie some
// KiB from each other, so the memory of those that come next is asked for before it is read.
func (l *Log) judgeMany(places []Place, trust Trust, records []Record, views []mappedfile.View, good *int) {
	check := trust == TrustNothing && !l.opts.TrustCRC
	var loaded byte
	for _, v := range views[:min(pagesAhead, len(views))] {
		loaded |= first(v.Bytes())
	}
	asked, ahead := 0, 0 // records asked for; bytes of those that were not checked yet
	for i := range views {
		if next := i + pagesAhead; next < len(views) {
			loaded |= first(views[next].Bytes())
		}
		for ; asked < len(views) && (asked <= i || ahead < fetchAhead); asked++ {
			ahead += fetch(views[asked].Bytes(), places[asked].Size, check)
		}
		if judge(&records[i], views[i].Bytes(), places[i].Offset, check) != nil {
			break
		}
		*good++
		ahead -= fetchedOf(views[i].Bytes(), places[i].Size)
	}
	runtime.KeepAlive(loaded)
}

func first(b []byte) byte {
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

// fetchedOf is how many bytes are asked for of a record of a size, which may be wrong, that lies at the start of b.
func fetchedOf(b []byte, size int32) int { return max(0, min(len(b), int(size), fetchAhead)) }

// fetch asks for the bytes of a record, or only for its ends, where all but the body is, and gives their number.
func fetch(b []byte, size int32, body bool) int {
	const ends = 128
	n := fetchedOf(b, size)
	if !body && n > 2*ends {
		prefetch.Bytes(b[:ends])
		if whole := int(size); whole <= len(b) {
			prefetch.Bytes(b[whole-ends : whole])
		}
		return n
	}
	prefetch.Bytes(b[:n])
	return n
}

func (l *Log) decode(v mappedfile.View, offset int64) (r Record, err error) {
	fault := mappedfile.Guard(v.File(), func() error {
		err = judge(&r, v.Bytes(), offset, !l.opts.TrustCRC)
		return nil
	})
	if fault != nil {
		return Record{}, fault
	}
	if err != nil {
		return Record{}, &mappedfile.CorruptError{File: v.File(), Offset: offset % l.opts.SegmentSize, Err: err}
	}
	return r, nil
}

// judge decodes the record at the start of b into r and says why it is not one that can be believed at offset; check says
// whether its body's CRC counts.
func judge(r *Record, b []byte, offset int64, check bool) error {
	wrongBody, err := r.decodeChecked(b, check)
	if err != nil {
		return err
	}
	if r.PhysicalOffset != offset {
		return fmt.Errorf("%w: says %d, lies at %d", ErrPlace, r.PhysicalOffset, offset)
	}
	return wrongBody
}

// Header is what [Log.Peek] reads of a record without its variable parts.
type Header struct {
	Size           int32
	QueueID        int32
	QueueOffset    int64
	SysFlag        message.SysFlag
	StoreTimestamp int64
	// PreparedTransactionOffset is 0 in a record that is too short to have it.
	PreparedTransactionOffset int64
}

// preparedBehindStoreTime is how far behind the store time the prepared offset lies: the time itself, an IPv4 host and port,
// and the count of reconsumes.
const preparedBehindStoreTime = 8 + 8 + 4

// Peek reads the fixed fields of the record at offset, which must say that it lies there. It checks no CRC.
func (l *Log) Peek(offset int64) (Header, error) {
	v, err := l.queue.ViewFrom(offset)
	if err != nil {
		return Header{}, err
	}
	defer v.Release()
	var h Header
	var bad bool
	err = mappedfile.Guard(v.File(), func() error {
		b := v.Bytes()
		if len(b) < MinRecordSize {
			bad = true
			return nil
		}
		magic := binary.BigEndian.Uint32(b[posMagic:])
		bad = magic != MagicV1 && magic != MagicV2 || int64(binary.BigEndian.Uint64(b[posPhysicalOffset:])) != offset
		h.Size = int32(binary.BigEndian.Uint32(b))
		h.QueueID = int32(binary.BigEndian.Uint32(b[12:]))
		h.QueueOffset = int64(binary.BigEndian.Uint64(b[posQueueOffset:]))
		h.SysFlag = message.SysFlag(binary.BigEndian.Uint32(b[posSysFlag:]))
		at := storeTimePosition(b)
		h.StoreTimestamp = int64(binary.BigEndian.Uint64(b[at:]))
		if at += preparedBehindStoreTime; h.SysFlag.Has(message.FlagStoreHostIPv6) {
			at += ipv6Extra
		}
		if len(b) >= at+8 {
			h.PreparedTransactionOffset = int64(binary.BigEndian.Uint64(b[at:]))
		}
		return nil
	})
	if err == nil && bad {
		err = &mappedfile.CorruptError{File: v.File(), Offset: offset % l.opts.SegmentSize, Err: ErrPlace}
	}
	return h, err
}

// Reader reads a log forward from a record's start, across segments, while others append. It is for one goroutine; Close
// releases what it holds.
type Reader struct {
	log  *Log
	scan Scanner
	view mappedfile.View
	at   int64 // where the next record starts
	end  int64 // of the bytes in view
	held bool
	one  [1]Record // of Next
	// TrustCRC leaves out the check of bodies, for records that were checked before.
	TrustCRC bool
	// TrustOwn leaves it out for what this process has appended, as long as all of it was made here and none came by [Log.AppendRaw].
	TrustOwn bool
	// Gap is called when the log goes on behind a hole between segments; nil: holes are passed over in silence.
	Gap func(from, to int64)
}

// NewReader makes a reader that starts at offset.
func (l *Log) NewReader(offset int64) *Reader {
	return &Reader{log: l, at: offset}
}

// Offset is where the next record starts, or where the log ends.
func (r *Reader) Offset() int64 { return r.at }

// SeekTo makes offset, a record's start, the next place to read.
func (r *Reader) SeekTo(offset int64) {
	r.drop()
	r.at = offset
}

// Next gives the next record, valid until the next call; nil at the end of the log. It can be called again when the log
// has grown. Bytes that cannot be believed are a [*mappedfile.CorruptError], and the reader then stays where it is.
func (r *Reader) Next() (*Record, error) {
	n, err := r.Read(r.one[:])
	if n == 0 {
		return nil, err
	}
	return &r.one[0], nil
}

// Read is [Reader.Next] for as many records as dst has room for and the log has now, or fewer. It gives their number, 0 at the end of
// the log or with an error. They are valid until the next call; [Reader.Guard] is for those who touch their slices.
func (r *Reader) Read(dst []Record) (n int, err error) {
	for {
		if !r.held || r.at >= r.end {
			if more, err := r.fill(); err != nil || !more {
				return 0, err
			}
		}
		fault := r.Guard(func() error {
			for n < len(dst) && r.scan.take(&dst[n]) {
				n++
			}
			return nil
		})
		if n > 0 {
			r.at = dst[n-1].PhysicalOffset + int64(dst[n-1].Size)
		}
		r.scan.next = r.at - r.scan.base // the scan goes on behind a record that has a wrong CRC only
		if n > 0 {
			return n, nil // what stopped it is met again by the next call
		}
		if fault != nil {
			return 0, fault
		}
		more, err := r.pass()
		if err != nil || !more {
			return 0, err
		}
	}
}

// Guard runs f, which may touch what the slices of the records at hand point to: a fault in the mapping is an error that matches
// [mappedfile.ErrFault] then.
func (r *Reader) Guard(f func() error) error { return mappedfile.Guard(r.view.File(), f) }

// pass goes on where the scan stopped without a record: at a blank, at the end of what is there, at damage.
func (r *Reader) pass() (bool, error) {
	size := r.log.opts.SegmentSize
	segmentEnd := r.at - r.at%size + size
	_, logEnd := r.log.Bounds()
	switch r.scan.Ending() {
	case EndBlank:
		r.at = segmentEnd
		return r.at < logEnd, nil
	case EndOfSegment:
		if r.end == segmentEnd {
			r.at = segmentEnd
			return r.at < logEnd, nil
		}
	case EndDamage:
		if r.end == segmentEnd || r.end < logEnd || !errors.Is(r.scan.Err(), ErrSize) {
			return false, r.scan.Err()
		}
	case EndZeros:
		return false, &mappedfile.CorruptError{File: r.view.File(), Offset: r.at % size, Err: fmt.Errorf("%w: zeros", ErrMagic)}
	}
	// A replica's feed was cut inside a record; the rest comes later.
	r.drop()
	return false, nil
}

// fill takes the bytes from the reader's place on, as far as they go in one segment.
func (r *Reader) fill() (bool, error) {
	r.drop()
	start, end := r.log.Bounds()
	if r.at >= end {
		return false, nil
	}
	v, err := r.log.queue.ViewFrom(r.at)
	if errors.Is(err, mappedfile.ErrOutOfRange) {
		next, ok := r.nextSegment()
		if !ok || r.at < start {
			return false, err
		}
		if r.Gap != nil {
			r.Gap(r.at, next)
		}
		if r.at = next; r.at >= end {
			return false, nil // the log goes on behind the gap
		}
		v, err = r.log.queue.ViewFrom(r.at)
	}
	if err != nil {
		return false, err
	}
	r.view, r.held = v, true
	b := v.Bytes()
	r.end = r.at + int64(len(b))
	segment := r.at - r.at%r.log.opts.SegmentSize
	r.scan.reset(v.File(), segment, r.at-segment, b)
	r.scan.CheckCRC = !r.TrustCRC && !r.log.opts.TrustCRC && (!r.TrustOwn || r.log.foreign.Load())
	return true, nil
}

func (r *Reader) nextSegment() (int64, bool) {
	for _, s := range r.log.queue.Segments() {
		if s.Start >= r.at {
			return s.Start, true
		}
	}
	return 0, false
}

func (r *Reader) drop() {
	if r.held {
		r.view.Release()
		r.view, r.held = mappedfile.View{}, false
	}
}

// Close releases the reader's hold on the log.
func (r *Reader) Close() { r.drop() }

// Records yields the records from offset on to the end that the log has when it gets there. A record's slices are valid
// until the next one. It ends with the error at bytes that cannot be believed.
func (l *Log) Records(offset int64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		r := l.NewReader(offset)
		defer r.Close()
		for {
			rec, err := r.Next()
			if rec == nil && err == nil {
				return
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}
