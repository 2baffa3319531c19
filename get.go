package rocketstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"
	"sync"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// GetStatus is the outcome of a Get, with the names that the Java store has for them.
type GetStatus int

// The outcomes.
const (
	Found               GetStatus = iota // records were found
	NoMatchedMessage                     // none of those looked at passed the filter; go on at Next
	MessageWasRemoving                   // the records at this offset are no longer in the log; go on at Next
	NoMatchedLogicQueue                  // there is no such queue
	NoMessageInQueue                     // the queue is empty
	OffsetTooSmall                       // Next is the smallest offset
	OffsetOverflowOne                    // the offset is the end of the queue: wait for the next message
	OffsetOverflowBadly                  // the offset is beyond the end; Next is the end
)

// String is the name that the Java store uses.
func (s GetStatus) String() string {
	return [...]string{
		"FOUND", "NO_MATCHED_MESSAGE", "MESSAGE_WAS_REMOVING", "NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE",
		"OFFSET_TOO_SMALL", "OFFSET_OVERFLOW_ONE", "OFFSET_OVERFLOW_BADLY",
	}[s]
}

// GetRequest asks for records of one queue.
type GetRequest struct {
	Topic   string
	QueueID int32
	Offset  int64 // queue offset of the first one wanted
	// Max is how many records to give at most. Default 32.
	Max int
	// MaxBytes ends the answer after the record that reaches it. Default 256 KiB.
	MaxBytes int
	// Filter chooses by tags code; nil: all. A code is a hash, so the caller compares the tag itself.
	Filter func(tagsCode int64) bool
	// Trust leaves out checks of what is read: the CRC of bodies, or all. Default commitlog.TrustNothing.
	Trust commitlog.Trust
}

// GetResult is the answer to a [GetRequest].
type GetResult struct {
	Status   GetStatus
	Next     int64 // the queue offset to go on at
	Min, Max int64 // of the queue
	// Records lie in the mapped log and are valid until Release. Under commitlog.TrustAll they have only PhysicalOffset and Size.
	Records []commitlog.Record
	// Offsets are the records' queue offsets in the queue asked; in a light queue they differ from Record.QueueOffset. They
	// too are valid until Release.
	Offsets []int64

	views []mappedfile.View // a later one may be a part of an earlier one
	size  int               // bytes of the records
	spare *spare            // where the slices go on Release
}

// Raw is a record's bytes as they lie in the log, valid until Release.
func (r *GetResult) Raw(i int) []byte { return r.views[i].Bytes()[:r.Records[i].Size] }

// Release gives the records' memory back. Call it once for each result of Get, and use no copy of the result afterwards.
func (r *GetResult) Release() {
	for i := range r.views {
		r.views[i].Release()
	}
	if used := r.spare; used != nil {
		clear(r.views)
		clear(r.Records)
		used.records, used.offsets, used.views = r.Records[:0], r.Offsets[:0], r.views[:0]
		used.pool.Put(used)
	}
	r.views, r.Records, r.Offsets, r.spare = nil, nil, nil, nil
}

// spare holds the slices of a result between two Gets.
type spare struct {
	pool    *sync.Pool
	records []commitlog.Record
	offsets []int64
	views   []mappedfile.View
	choice  choice // empty but while records are collected
}

// maxScan bounds how many units one Get looks at when the filter or a gap passes them over. Java counts 16 000 bytes, units of 20.
const maxScan = 800

// Get reads records of a queue from an offset on. What is damaged is never served: when the first record is, the error is a
// [*mappedfile.CorruptError] and Next the offset behind it. Gets from Next on until there is no more see every message whose
// put returned before the last call; a single one may find the newest not yet in the queue, and give fewer than Max.
func (s *Store) Get(ctx context.Context, req GetRequest) (GetResult, error) {
	if s.closed.Load() {
		return GetResult{}, ErrClosed
	}
	if req.Max <= 0 {
		req.Max = 32
	}
	if req.MaxBytes <= 0 {
		req.MaxBytes = 256 << 10
	}
	q := s.queues.Lookup(req.Topic, req.QueueID)
	if _, end := bounds(q); req.Offset >= end && !s.opts.ReadOnly {
		if err := s.current(ctx); err != nil {
			return GetResult{}, err
		}
		q = s.queues.Lookup(req.Topic, req.QueueID)
	}
	res := GetResult{Next: req.Offset}
	res.Min, res.Max = bounds(q)
	switch {
	case q == nil:
		res.Status, res.Next = NoMatchedLogicQueue, 0
	case res.Max == 0:
		res.Status, res.Next = NoMessageInQueue, 0
	case req.Offset < res.Min:
		res.Status, res.Next = OffsetTooSmall, res.Min
	case req.Offset == res.Max:
		res.Status = OffsetOverflowOne
	case req.Offset > res.Max:
		res.Status, res.Next = OffsetOverflowBadly, res.Max
	default:
		res.spare = s.spares.Get().(*spare)
		res.Records, res.Offsets, res.views = res.spare.records, res.spare.offsets, res.spare.views
		err := s.collect(q, &req, &res)
		if len(res.Records) == 0 { // so nothing but results with records has to be released
			s.spares.Put(res.spare)
			res.Records, res.Offsets, res.views, res.spare = nil, nil, nil, nil
		}
		return res, err
	}
	return res, nil
}

func bounds(q *consumequeue.Queue) (first, end int64) {
	if q == nil {
		return 0, 0
	}
	return q.Bounds()
}

// manyUnits is how many units are read at a time, and how many records at most.
const manyUnits = 64

// collect fills a result from the units of a queue.
func (s *Store) collect(q *consumequeue.Queue, req *GetRequest, res *GetResult) error {
	res.Status = NoMatchedMessage
	units := &res.spare.choice.room
	for most := max(maxScan, req.Max); most > 0; {
		want := min(manyUnits, most)
		if req.Filter == nil {
			want = min(want, req.Max-len(res.Records))
		}
		n, err := q.Read(res.Next, units[:want])
		if err != nil {
			return res.overtaken(q, err)
		}
		if n == 0 {
			return nil
		}
		most -= n
		if more, err := s.take(q, req, res, units[:n]); err != nil || !more {
			return err
		}
	}
	return nil
}

// take adds the records of units, the first of which is at res.Next, and says whether there is room for more. Meanwhile
// res.Records may be longer than res.Offsets: those behind were read ahead and not yet looked at.
func (s *Store) take(q *consumequeue.Queue, req *GetRequest, res *GetResult, units []consumequeue.Unit) (bool, error) {
	c := &res.spare.choice
	c.begin(units, req.Filter)
	defer func() {
		c.end()
		res.dropAhead()
	}()
	for i := range units {
		at := res.Next
		if !c.wants(i) {
			res.Next++
			continue
		}
		if len(res.Offsets) == len(res.Records) {
			s.readAhead(c, i, req, res)
		}
		err := s.check(q, at, &units[i], req.Trust, res)
		switch {
		case errors.Is(err, mappedfile.ErrOutOfRange):
			if len(res.Offsets) == 0 {
				res.Status = MessageWasRemoving
			}
			res.Next++
			continue
		case err != nil:
			if len(res.Offsets) > 0 {
				return false, nil // the next Get begins here and tells
			}
			res.Next++
			return false, err
		}
		res.Status, res.Next = Found, at+1
		res.Offsets = append(res.Offsets, at)
		if res.size += int(units[i].Size); len(res.Offsets) >= req.Max || res.size >= req.MaxBytes {
			return false, nil
		}
	}
	return true, nil
}

// check looks at the record of a unit: the first that was read ahead, or it is read now, for the reason why it was not.
func (s *Store) check(q *consumequeue.Queue, at int64, u *consumequeue.Unit, trust commitlog.Trust, res *GetResult) error {
	if n := len(res.Offsets); n < len(res.Records) {
		if trust == commitlog.TrustAll {
			return nil
		}
		return s.ofQueue(q, at, u, &res.Records[n])
	}
	r, v, err := s.recordOf(q, at, u)
	if err == nil {
		res.Records, res.views = append(res.Records, r), append(res.views, v)
	}
	return err
}

// readAhead reads the records of the units from number i on that are wanted, as many as there is room for and up to the first that cannot be read.
func (s *Store) readAhead(c *choice, i int, req *GetRequest, res *GetResult) {
	n, size := 0, res.size
	for ; i < len(c.units) && len(res.Records)+n < req.Max && size < req.MaxBytes; i++ {
		u := &c.units[i]
		if !c.wants(i) {
			continue
		}
		if !u.Valid() {
			break
		}
		c.places[n] = commitlog.Place{Offset: u.PhysicalOffset, Size: u.Size}
		n++
		size += int(u.Size)
	}
	res.Records, res.views = s.log.ReadMany(c.places[:n], req.Trust, res.Records, res.views)
}

// dropAhead gives back the records that were read ahead and are not in the answer.
func (r *GetResult) dropAhead() {
	n := len(r.Offsets)
	if n == len(r.Records) {
		return
	}
	for _, v := range r.views[n:] {
		v.Release()
	}
	clear(r.Records[n:])
	clear(r.views[n:])
	r.Records, r.views = r.Records[:n], r.views[:n]
}

// choice says which units of a run are wanted.
type choice struct {
	room   [manyUnits]consumequeue.Unit
	places [manyUnits]commitlog.Place
	units  []consumequeue.Unit // in room
	filter func(tagsCode int64) bool
	asked  int    // of how many units the filter was asked, of each once
	wanted uint64 // a bit for each of them, as many as manyUnits
}

func (c *choice) begin(units []consumequeue.Unit, filter func(int64) bool) {
	c.units, c.filter, c.asked, c.wanted = units, filter, 0, 0
}

// wants says whether the unit with a number is wanted.
func (c *choice) wants(i int) bool {
	for ; c.asked <= i; c.asked++ {
		if u := &c.units[c.asked]; !u.IsFiller() && (c.filter == nil || c.filter(u.TagsCode)) {
			c.wanted |= 1 << c.asked
		}
	}
	return c.wanted>>i&1 != 0
}

func (c *choice) end() { c.units, c.filter = nil, nil }

// overtaken turns the error of a unit that was deleted since the minimum was looked at into what a Get at its offset gives.
func (r *GetResult) overtaken(q *consumequeue.Queue, err error) error {
	first, _ := q.Bounds()
	if !errors.Is(err, mappedfile.ErrOutOfRange) || r.Next >= first {
		return err
	}
	if len(r.Records) == 0 {
		r.Status, r.Next, r.Min = OffsetTooSmall, first, first
	}
	return nil
}

// Messages yields the records of a queue from an offset on, to its end at that time. A record's slices are valid until the
// next one. Queue offsets whose records are gone are passed over; a damaged record yields its error, and the rest follows.
func (s *Store) Messages(topic string, queueID int32, from int64) iter.Seq2[commitlog.Record, error] {
	return func(yield func(commitlog.Record, error) bool) {
		if err := s.readable(context.Background()); err != nil {
			yield(commitlog.Record{}, err)
			return
		}
		q := s.queues.Lookup(topic, queueID)
		first, end := bounds(q)
		for at := max(from, first); at < end; at++ {
			u, err := q.Get(at)
			if err == nil && u.IsFiller() || errors.Is(err, mappedfile.ErrOutOfRange) {
				continue
			}
			var r commitlog.Record
			var v mappedfile.View
			if err == nil {
				r, v, err = s.recordOf(q, at, &u)
			}
			if !yieldRecord(r, v, err, yield) {
				return
			}
		}
	}
}

// recordOf reads the record that a queue's unit points to. A unit that is damaged, or another queue's, may point to the record
// of a message that is not of this queue: that is an error that names the unit.
func (s *Store) recordOf(q *consumequeue.Queue, at int64, u *consumequeue.Unit) (commitlog.Record, mappedfile.View, error) {
	if !u.Valid() {
		return commitlog.Record{}, mappedfile.View{}, s.wrongUnit(q, at, "it points to %d and is of %d bytes", u.PhysicalOffset, u.Size)
	}
	r, v, err := s.log.Read(u.PhysicalOffset)
	if _, end := s.log.Bounds(); err != nil && u.PhysicalOffset >= end {
		return r, v, s.wrongUnit(q, at, "it points to %d, the log ends at %d", u.PhysicalOffset, end)
	}
	if err == nil {
		err = s.ofQueue(q, at, u, &r)
	}
	if err != nil {
		v.Release()
		return commitlog.Record{}, mappedfile.View{}, err
	}
	return r, v, nil
}

// ofQueue checks that a record which a unit points to is of the queue.
func (s *Store) ofQueue(q *consumequeue.Queue, at int64, u *consumequeue.Unit, r *commitlog.Record) error {
	light := strings.HasPrefix(q.Topic(), recovery.LightQueuePrefix) // which holds records of other topics, at places of its own
	if r.Size != u.Size || string(r.Topic) != q.Topic() && !light {
		return s.wrongUnit(q, at, "the record at %d that it points to is of topic %q and of %d bytes, not %d", u.PhysicalOffset, r.Topic, r.Size, u.Size)
	}
	if r.QueueOffset != at && !light { // put where there was room, or the record's own place has it too
		if own, err := q.Get(r.QueueOffset); err == nil && own.PhysicalOffset == u.PhysicalOffset && r.QueueID == q.ID() {
			return s.wrongUnit(q, at, "the record at %d that it points to has place %d", u.PhysicalOffset, r.QueueOffset)
		}
	}
	return nil
}

func (s *Store) wrongUnit(q *consumequeue.Queue, at int64, format string, args ...any) error {
	offset := at * consumequeue.UnitSize
	inFile := offset % s.queues.SegmentSize()
	return &mappedfile.CorruptError{
		File: path.Join(q.Dir(), mappedfile.SegmentName(offset-inFile)), Offset: inFile,
		Err: fmt.Errorf("unit %d: "+format, append([]any{at}, args...)...),
	}
}

// yieldRecord hands a record over that was read, unless it is gone.
func yieldRecord(r commitlog.Record, v mappedfile.View, err error, yield func(commitlog.Record, error) bool) bool {
	if errors.Is(err, mappedfile.ErrOutOfRange) {
		return true
	}
	if err != nil {
		return yield(commitlog.Record{}, err)
	}
	defer v.Release()
	return yield(r, nil)
}

// readable waits until what was put before the call can be read.
func (s *Store) readable(ctx context.Context) error {
	if s.opts.ReadOnly {
		if s.closed.Load() {
			return ErrClosed
		}
		return nil
	}
	return s.current(ctx)
}
