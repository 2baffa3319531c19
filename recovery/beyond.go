package recovery

import (
	"bytes"
	"context"
	"fmt"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// Beyond tells what lies behind the place where the log stops being readable.
type Beyond struct {
	Records, Bytes int64 // whole records that are not left over from an earlier cut
	First, Last    int64 // their physical offsets
	Stale          int64 // records left over from an earlier cut
	NotZero        bool  // there is anything but zeros
	End            int64 // behind the last byte that is not zero, or behind the last record
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
	end, err := w.log.Queue().NonZeroEnd(start, offset)
	if err != nil || end == offset {
		return err
	}
	v, err := w.log.Queue().ViewSegment(start)
	if err != nil {
		return err
	}
	defer v.Release()
	return mappedfile.Guard(v.File(), func() error {
		b := v.Bytes()
		w.beyond.NotZero = true
		w.beyond.End = max(w.beyond.End, end)
		s := commitlog.NewBytesScanner(v.File(), start, b)
		s.CheckTorn = w.unclean
		s.SeekTo(offset)
		for {
			for s.Next() {
				w.meet(s.Record())
			}
			honest := s.Ending() == commitlog.EndBlank && w.honest(b, start, s.Offset())
			if honest || s.Ending() == commitlog.EndOfSegment || !s.Resume() {
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
