package recovery

import (
	"encoding/binary"
	"fmt"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// hidden are whole records that lie behind a blank, where no reader looks for them.
type hidden struct {
	file    string
	blank   int64 // physical offset of the blank
	records int64
	queues  map[queueKey]*span
	after   map[queueKey]int64 // the queue offset of the first record of a later segment
}

// honest says whether the blank at a physical offset is what a writer fills a segment with: it states how much is left of the
// file. Else, and when it hides records that were in the log, it is damage. b is the segment's bytes from start on.
func (w *walk) honest(b []byte, start, offset int64) bool {
	at := offset - start
	return int64(binary.BigEndian.Uint32(b[at:])) == w.log.SegmentSize()-at && !w.badBlanks[offset]
}

// lookBehindBlank looks for whole records behind the blank that ends a segment's records. They are damage when the blank is
// no honest one; else it may be one of the original, which after a cut of its own leaves what was cut and goes on in the next
// segment.
func (w *walk) lookBehindBlank(p *part, file string, b []byte, start, offset int64) {
	if rest := b[offset-start+commitlog.BlankSize:]; notZero(rest) == 0 {
		return
	}
	found := &hidden{file: file, blank: offset, queues: make(map[queueKey]*span), after: make(map[queueKey]int64)}
	behind := commitlog.NewBytesScanner(file, start, b)
	behind.CheckTorn = w.unclean
	behind.SeekTo(offset)
	behind.Next()
	for behind.Resume() {
		for behind.Next() {
			found.add(w.derive, behind.Record(), p.lastTime)
		}
	}
	if found.records == 0 {
		return
	}
	if !w.honest(b, start, offset) {
		p.end, p.goesOn = offset, false
		p.stop = &mappedfile.CorruptError{File: file, Offset: offset - start, Err: fmt.Errorf(
			"%w: a blank of %d bytes where %d are left of the file, with records behind it",
			commitlog.ErrSize, binary.BigEndian.Uint32(b[offset-start:]), start+w.log.SegmentSize()-offset)}
		return
	}
	p.hidden = found
}

// add takes a record, unless it is older than the last one before the blank.
func (h *hidden) add(d *Deriver, r *commitlog.Record, lastTime int64) {
	if r.StoreTimestamp < lastTime {
		return
	}
	h.records++
	_ = d.Units(r, func(at Placement) error {
		k := queueKey{string(at.Topic), at.QueueID}
		if sp := h.queues[k]; sp == nil {
			h.queues[k] = &span{first: at.QueueOffset, last: at.QueueOffset}
		} else {
			sp.first, sp.last = min(sp.first, at.QueueOffset), max(sp.last, at.QueueOffset)
		}
		return nil
	})
}

// meet looks at the queues of a later segment.
func (h *hidden) meet(queues map[queueKey]*span) {
	for k := range h.queues {
		if sp := queues[k]; sp != nil {
			if _, met := h.after[k]; !met {
				h.after[k] = sp.first
			}
		}
	}
}

// stale says whether the log gives all the places of queues that the hidden ones claim to records behind them.
func (h *hidden) stale() bool {
	for k, sp := range h.queues {
		if next, met := h.after[k]; !met || next > sp.first {
			return false
		}
	}
	return true
}

// counted says whether a queue goes on behind the hidden records with the queue offset that follows theirs: so they were in
// the log when it was written, and what hides them is damage.
func (h *hidden) counted() bool {
	for k, sp := range h.queues {
		if next, met := h.after[k]; met && next == sp.last+1 {
			return true
		}
	}
	return false
}

// markBlanks notes the blanks that are damage for the next walk, and says whether there are any that this one took for
// honest.
func (p *planner) markBlanks() bool {
	found := false
	for _, h := range p.w.hidden {
		if h.counted() {
			p.badBlanks[h.blank] = true
			found = true
		}
	}
	return found
}

// warnOfHidden tells of records behind a blank that nothing shows to be left over from an earlier cut.
func (p *planner) warnOfHidden() {
	for _, h := range p.w.hidden {
		if h.blank >= p.w.end || h.stale() {
			continue
		}
		at := h.blank % p.Log.SegmentSize()
		p.d.warn(Warning{
			Kind: KindHidden, File: h.file, Offset: at, From: h.blank, To: h.blank - at + p.Log.SegmentSize(),
			Text: fmt.Sprintf("%d whole records lie behind the blank at %d, which ends this file; they are left there, in no queue", h.records, h.blank),
		})
	}
}
