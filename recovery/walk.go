package recovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// queueKey names a consume queue.
type queueKey struct {
	topic string
	id    int32
}

// span is what a walk saw of one queue.
type span struct {
	first, last           int64 // queue offsets
	firstPhysical         int64 // of the record at first
	seen                  int64 // units
	lowestOffset, repeats int64 // smallest queue offset, and how many came twice or backwards
}

// Beyond tells what lies behind the place where the log stops being readable.
type Beyond struct {
	Records, Bytes int64 // whole records that are not left over from an earlier cut
	First, Last    int64 // their physical offsets
	Stale          int64 // records left over from an earlier cut
	NotZero        bool  // there is anything but zeros
	End            int64 // behind the last byte that is not zero, or behind the last record
}

// walk is a pass over the log's records from a start on.
type walk struct {
	log    *commitlog.Log
	derive *Deriver

	queues    map[queueKey]*span
	records   int64
	bytes     int64
	lastTime  int64            // store time of the last record
	last      int64            // physical offset of the last record, -1 none
	lastKeyed int64            // physical offset of the last record with keys, -1 none
	index     []index.FileInfo // files that do not end before the record at hand
	unindexed int64            // physical offset of the first record with keys that lies between two index files, -1 none
	end       int64            // where the log ends
	gaps      []Gap
	redo      *redoCheck // nil: no redo log
	stop      error      // why the log ends there, when that is damage
	beyond    Beyond
	taken     func(p Placement, end int64) bool
	progress  func(done int64)
}

func newWalk(log *commitlog.Log, d *Deriver) *walk {
	return &walk{log: log, derive: d, queues: make(map[queueKey]*span), last: -1, lastKeyed: -1, unindexed: -1}
}

// run walks from start to the end of what can be read, and looks at what is behind it.
func (w *walk) run(ctx context.Context, start int64) error {
	segments := w.log.Queue().Segments()
	size := w.log.SegmentSize()
	w.end = start
	next := int64(-1) // where the segment after the last one walked should start
	for i, s := range segments {
		if s.Start+size <= start {
			continue
		}
		if next >= 0 && s.Start != next {
			w.gaps = append(w.gaps, Gap{From: next, To: s.Start})
		}
		next = s.Start + size
		goOn, err := w.segment(ctx, s.Start, max(start, s.Start))
		if err != nil {
			return err
		}
		if !goOn {
			return w.look(ctx, segments[i:])
		}
	}
	return nil
}

// segment walks one segment from offset on and says whether the log goes on in the next one.
func (w *walk) segment(ctx context.Context, start, offset int64) (bool, error) {
	v, err := w.log.Queue().ViewSegment(start)
	if err != nil {
		return false, err
	}
	defer v.Release()
	s := commitlog.NewBytesScanner(v.File(), start, v.Bytes())
	s.SeekTo(offset)
	err = mappedfile.Guard(v.File(), func() error {
		for s.Next() {
			w.visit(s.Record())
			if w.records%4096 == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
				if w.progress != nil {
					w.progress(w.bytes)
				}
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	whole := int64(len(v.Bytes())) == w.log.SegmentSize()
	switch end := s.Ending(); {
	case end == commitlog.EndBlank, end == commitlog.EndOfSegment && whole:
		w.end = start + w.log.SegmentSize()
		return true, nil
	case end == commitlog.EndDamage:
		if !errors.Is(s.Err(), mappedfile.ErrCorrupt) {
			return false, s.Err()
		}
		w.stop = s.Err()
	}
	w.end = s.Offset()
	return false, nil
}

// visit notes one good record.
func (w *walk) visit(r *commitlog.Record) {
	w.records++
	w.bytes += int64(r.Size)
	w.lastTime, w.last = r.StoreTimestamp, r.PhysicalOffset
	_ = w.derive.Units(r, func(p Placement) error {
		sp := w.queues[queueKey{string(p.Topic), p.QueueID}]
		if sp == nil {
			sp = &span{first: p.QueueOffset, last: p.QueueOffset - 1, firstPhysical: r.PhysicalOffset, lowestOffset: p.QueueOffset}
			w.queues[queueKey{string(p.Topic), p.QueueID}] = sp
		}
		if p.QueueOffset <= sp.last {
			sp.repeats++
		}
		sp.last = max(sp.last, p.QueueOffset)
		sp.lowestOffset = min(sp.lowestOffset, p.QueueOffset)
		sp.seen++
		return nil
	})
	if w.redo != nil {
		w.redo.meet(r)
	}
	if unique, keys := w.derive.Keys(r); len(unique)+len(keys) > 0 {
		w.lastKeyed = r.PhysicalOffset
		w.cover(r.PhysicalOffset)
	}
}

// cover notes a record with keys that lies between two index files, in neither.
func (w *walk) cover(offset int64) {
	for len(w.index) > 0 && w.index[0].Header.EndOffset < offset {
		w.index = w.index[1:]
	}
	if w.unindexed < 0 && len(w.index) > 0 && offset < w.index[0].Header.BeginOffset {
		w.unindexed = offset
	}
}

// look searches the rest of the segment where the log stopped, and all later ones, for whole records. A record counts
// unless its queue offset was taken before the stop or it is older than the last good record: such ones are left over
// from an earlier cut by the original, which never zeroes (design.md 4.3).
func (w *walk) look(ctx context.Context, rest []mappedfile.SegmentInfo) error {
	w.beyond = Beyond{First: -1, Last: -1, End: w.end}
	for _, s := range rest {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.lookAt(s.Start, max(w.end, s.Start)); err != nil {
			return err
		}
	}
	if w.stop == nil && w.beyond.Records > 0 {
		first := rest[0]
		w.stop = &mappedfile.CorruptError{
			File: first.Name, Offset: w.end - first.Start,
			Err: fmt.Errorf("%w: zeros, with records behind them", commitlog.ErrMagic),
		}
	}
	return nil
}

func (w *walk) lookAt(start, offset int64) error {
	v, err := w.log.Queue().ViewSegment(start)
	if err != nil {
		return err
	}
	defer v.Release()
	return mappedfile.Guard(v.File(), func() error {
		b := v.Bytes()
		n := notZero(b[min(offset-start, int64(len(b))):])
		if n == 0 {
			return nil
		}
		w.beyond.NotZero = true
		w.beyond.End = max(w.beyond.End, offset+int64(n))
		s := commitlog.NewBytesScanner(v.File(), start, b)
		s.SeekTo(offset)
		for {
			for s.Next() {
				w.meet(s.Record())
			}
			if s.Ending() == commitlog.EndBlank || s.Ending() == commitlog.EndOfSegment || !s.Resume() {
				return nil
			}
		}
	})
}

// meet judges a record behind the end.
func (w *walk) meet(r *commitlog.Record) {
	stale := r.StoreTimestamp < w.lastTime
	_ = w.derive.Units(r, func(p Placement) error {
		sp := w.queues[queueKey{string(p.Topic), p.QueueID}]
		if sp != nil && p.QueueOffset <= sp.last || sp == nil && w.taken != nil && w.taken(p, w.end) {
			stale = true
		}
		return nil
	})
	if stale {
		w.beyond.Stale++
		return
	}
	w.beyond.Records++
	w.beyond.Bytes += int64(r.Size)
	if w.beyond.First < 0 {
		w.beyond.First = r.PhysicalOffset
	}
	w.beyond.Last = r.PhysicalOffset
	w.beyond.End = max(w.beyond.End, r.PhysicalOffset+int64(r.Size))
}

// notZero is the length of b without the zeros at its end.
func notZero(b []byte) int {
	const block = 4096
	var zeros [block]byte
	for len(b) >= block && bytes.Equal(b[len(b)-block:], zeros[:]) {
		b = b[:len(b)-block]
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return len(b)
}

// sortedQueues gives the queues that the walk saw in a fixed order.
func (w *walk) sortedQueues() []queueKey {
	keys := make([]queueKey, 0, len(w.queues))
	for k := range w.queues {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b queueKey) int {
		if c := strings.Compare(a.topic, b.topic); c != 0 {
			return c
		}
		return int(a.id) - int(b.id)
	})
	return keys
}
