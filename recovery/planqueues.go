package recovery

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"

	"github.com/cespare/xxhash/v2"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// verdict is what a unit is worth when compared with the log.
type verdict int

const (
	unitRight verdict = iota // a record lies there that says it belongs here
	unitGone                 // its record is no longer in the log: deleted, or in a gap
	unitWrong
)

// judge compares the unit at a place of a queue with the record that it points to.
func (p *planner) judge(q *consumequeue.Queue, at int64, u consumequeue.Unit) verdict {
	if u.IsFiller() {
		return unitGone
	}
	if !u.Valid() || p.w != nil && u.PhysicalOffset >= p.w.end {
		return unitWrong
	}
	if slices.ContainsFunc(p.d.holes, func(h hole) bool { return h.from <= u.PhysicalOffset && u.End() <= h.to }) {
		return unitGone
	}
	r, v, err := p.Log.Read(u.PhysicalOffset)
	if errors.Is(err, mappedfile.ErrOutOfRange) {
		if _, end := p.Log.Bounds(); u.PhysicalOffset < end {
			return unitGone
		}
		return unitWrong
	}
	if err != nil {
		return unitWrong
	}
	defer v.Release()
	found := unitWrong
	_ = p.Derive.Units(&r, func(pl Placement) error {
		if pl.Unit.Size == u.Size && pl.QueueOffset == at && pl.QueueID == q.ID() && string(pl.Topic) == q.Topic() {
			found = unitRight
		}
		return nil
	})
	return found
}

// goodEnd goes back from a queue offset to the end of what agrees with the log.
func (p *planner) goodEnd(q *consumequeue.Queue, from int64) (int64, error) {
	first, end := q.Bounds()
	for at := min(from, end); at > first; at-- {
		u, err := q.Get(at - 1)
		if errors.Is(err, mappedfile.ErrOutOfRange) { // between two files
			at = max(first, min(at-1, fileEndBefore(q, at))) + 1
			continue
		}
		if err != nil {
			return 0, err
		}
		if p.judge(q, at-1, u) != unitWrong {
			return at, nil
		}
	}
	return first, nil
}

// fileEndBefore is the queue offset behind the last file of a queue that ends before one in a gap, 0 for none.
func fileEndBefore(q *consumequeue.Queue, at int64) int64 {
	for _, f := range slices.Backward(q.Segments()) {
		if f.Start < (at-1)*consumequeue.UnitSize {
			return (f.Start + f.Length) / consumequeue.UnitSize
		}
	}
	return 0
}

// fileStartBehind is the queue offset at which the first file of a queue begins behind one in a gap.
func fileStartBehind(q *consumequeue.Queue, at int64) int64 {
	for _, f := range q.Segments() {
		if start := f.Start / consumequeue.UnitSize; start > at {
			return start
		}
	}
	return at
}

// needs gives the place from which the log must be replayed so that no structure lacks a record, and why; it is start or
// less. The walk began at start.
func (p *planner) needs(start int64) (int64, string) {
	need, reason := start, ""
	lower := func(offset int64, why string) {
		if offset = max(offset, p.d.LogStart); offset < need {
			need, reason = offset, why
		}
	}
	if limit := p.Checkpoint.Min(p.Derive.Dialect); p.Unclean && p.w.last >= 0 && limit > p.w.lastTime {
		lower(p.d.LogStart, fmt.Sprintf("the checkpoint (%d) is later than the last record (%d), so it proves nothing", limit, p.w.lastTime))
	}
	for _, k := range p.w.sortedQueues() {
		sp := p.w.queues[k]
		if sp.first > 0 && sp.firstPhysical > p.d.LogStart && p.Queues.Lookup(k.topic, k.id) == nil {
			lower(p.d.LogStart, fmt.Sprintf("queue %v is missing", k))
		}
	}
	for q := range p.Queues.All() {
		if from, why := p.queueNeeds(q); why != "" {
			lower(from, why)
		}
	}
	if from, why := p.indexNeeds(start); from >= 0 {
		lower(from, why)
	}
	if why := p.redoNeeds(); why != "" {
		lower(p.d.LogStart, why)
	}
	return need, reason
}

// redoNeeds says why the redo log has to be made again from the whole log, "" when it has not: the units of what lies before
// the walk cannot be made again by it.
func (p *planner) redoNeeds() string {
	if p.Tx == nil {
		return ""
	}
	first, _ := p.Tx.Redo.Bounds()
	switch {
	case p.Hint != nil && p.w.redo.good < p.Hint.RedoEnd:
		return fmt.Sprintf("the redo log has %d good units, %d were durable at our last checkpoint", p.w.redo.good, p.Hint.RedoEnd)
	case p.w.redo.wrong >= 0:
		return fmt.Sprintf("unit %d of the redo log is not its record's, or the one before it is missing", p.w.redo.wrong)
	case first > 0:
		// Retention takes a file only when the records of all its units are gone, and so of those before it.
		for e, err := range p.Tx.Redo.Replay(first) {
			if err == nil && e.PhysicalOffset > p.d.LogStart {
				return fmt.Sprintf("the first file of the redo log begins with the record at %d, and the log has earlier ones", e.PhysicalOffset)
			}
			break
		}
	}
	return ""
}

// lacks says whether a queue that has units up to found may lack some before offset, and from which record on.
func (p *planner) lacks(q *consumequeue.Queue, found, offset int64) (int64, bool) {
	if u, err := q.Get(offset - 1); found == offset && err == nil && !u.IsFiller() && p.judge(q, offset-1, u) != unitWrong {
		return 0, false
	}
	end, err := p.goodEnd(q, found)
	if err != nil {
		return p.d.LogStart, true
	}
	if u, err := q.Get(end - 1); err == nil && !u.IsFiller() {
		return u.PhysicalOffset + int64(u.Size), true
	}
	return p.d.LogStart, true
}

// planQueues decides where each queue is cut before the replay fills in what is missing.
func (p *planner) planQueues() error {
	short := p.shortQueues()
	for q := range p.Queues.All() {
		found, err := p.foundEnd(q)
		if err != nil {
			return err
		}
		if err := q.SetMax(found); err != nil {
			return err
		}
		pl := queuePlan{queue: q}
		if pl.end, err = p.queueEnd(q, found); err != nil {
			return err
		}
		pl.readable = pl.end
		if pl.end < found {
			p.d.warn(Warning{Kind: KindStaleUnits, File: q.Dir(), From: pl.end, To: found, Text: rangeSays(
				"unit", pl.end, found-1, "fits", "fit") + " no record of the log; cut"})
		}
		if err := p.planMissingFiles(&pl, found); err != nil {
			return err
		}
		if err := p.planVoids(&pl); err != nil {
			return err
		}
		pl.cut = pl.end < found || p.Unclean || q.Untidy() || short[q.Dir()]
		p.d.queues = append(p.d.queues, pl)
	}
	for _, k := range p.w.sortedQueues() {
		if p.Queues.Lookup(k.topic, k.id) == nil && !p.Unclean && consumequeue.CheckName(k.topic, k.id) == nil {
			p.d.warn(Warning{Kind: KindQueueGone, File: path.Join(QueueDir, k.String()), Text: "the queue is missing; made again from the log"})
		}
	}
	return nil
}

// shortQueues are the folders of queues whose last file is not whole.
func (p *planner) shortQueues() map[string]bool {
	short := make(map[string]bool)
	for _, n := range p.Queues.Notices() {
		if n.Kind == mappedfile.ShortSegment || n.Kind == mappedfile.EmptySegment {
			short[path.Dir(n.File)] = true
		}
	}
	return short
}

// placesTaken refuses a store in which a file stands in the place of a queue's folder: its messages could be in no queue.
func (p *planner) placesTaken() {
	taken := make(map[string]bool)
	for _, n := range p.Queues.Notices() {
		if n.Kind == mappedfile.ForeignFile {
			taken[n.File] = true
		}
	}
	if len(taken) == 0 || p.d.Refused != nil {
		return
	}
	for _, k := range p.w.sortedQueues() {
		for _, name := range []string{path.Join(QueueDir, k.topic), path.Join(QueueDir, k.String())} {
			if taken[name] && p.Queues.Lookup(k.topic, k.id) == nil {
				p.d.Refused = &RefusedError{Kind: KindPlaceTaken, File: name, Text: fmt.Sprintf(
					"it is no folder, but the place of queue %v, of which the log has messages; nothing was changed: move it away", k)}
				return
			}
		}
	}
}

// queueEnd is where a queue is cut before the replay: behind the last record that the walk saw of it, or where it agrees with
// the log. Units that are missing there the replay adds.
func (p *planner) queueEnd(q *consumequeue.Queue, found int64) (int64, error) {
	sp := p.w.queues[queueKey{q.Topic(), q.ID()}]
	if sp == nil {
		return p.goodEnd(q, found)
	}
	if found <= sp.last && !p.Unclean {
		p.d.warn(Warning{Kind: KindQueueBehind, File: q.Dir(), Text: fmt.Sprintf(
			"the queue ends at %d, the log has records up to %d; made again", found, sp.last)})
	}
	first, _ := q.Bounds()
	return p.overGaps(q, max(first, min(found, sp.last+1)), found), nil
}

// planMissingFiles decides about a queue of which files are missing whose records the log has: it is made again from there.
func (p *planner) planMissingFiles(pl *queuePlan, found int64) error {
	q := pl.queue
	sp := p.w.queues[queueKey{q.Topic(), q.ID()}]
	first, _ := q.Bounds()
	gone, right, err := p.headGone(q, sp, found)
	if err != nil {
		return err
	}
	from, to := p.holeBetweenFiles(q)
	switch {
	case gone:
		if pl.anew = true; right {
			pl.keepEnd = pl.end
		}
		pl.end = first
		p.d.warn(Warning{Kind: KindQueueFileGone, File: q.Dir(), Text: fmt.Sprintf(
			"the first file of the queue begins at %d, the log has records from %d on; the queue is made again", first, sp.first)})
	case sp != nil && sp.first < first && found > first:
		p.d.warn(Warning{Kind: KindQueueFileGone, File: q.Dir(), Text: fmt.Sprintf(
			"the first file of the queue begins at %d, the first record of the log says %d, which cannot be; it stays as it is", first, sp.first)})
	case sp != nil && from >= 0 && from < pl.end:
		pl.keepEnd, pl.end = pl.end, from
		p.d.warn(Warning{Kind: KindQueueFileGone, File: q.Dir(), Text: fmt.Sprintf(
			"%s in no file; the queue is made again from %d on", rangeSays("unit", from, to-1, "is", "are"), from)})
	}
	return nil
}

// overGaps goes on from the end of what the log still has of a queue over the units whose records lay in gaps of the log, or
// in damage that is passed over, and over the fillers that stand for such, so that their queue offsets are not given out again.
func (p *planner) overGaps(q *consumequeue.Queue, end, found int64) int64 {
	gaps, last := p.gaps(), int64(0)
	for _, h := range p.d.holes {
		gaps = append(gaps, Gap{h.from, h.to})
	}
	if u, err := q.Get(end - 1); err == nil && u.Valid() && !u.IsFiller() {
		last = u.End()
	}
	for ; end < found; end++ {
		u, err := q.Get(end)
		inGap := func(g Gap) bool { return g.From <= u.PhysicalOffset && u.End() <= g.To }
		if err == nil && u.IsFiller() {
			continue
		}
		if err != nil || !u.Valid() || u.PhysicalOffset < last || !slices.ContainsFunc(gaps, inGap) {
			break
		}
		last = u.End()
	}
	return end
}

// lost finds the queue offsets whose records lie in gaps of the log.
func (p *planner) lost() error {
	gaps := p.gaps()
	p.d.Gaps = gaps
	for _, g := range gaps {
		for _, q := range p.d.queues {
			if err := p.lostOf(q, g); err != nil {
				return err
			}
		}
	}
	for _, h := range p.d.holes {
		for _, q := range p.d.queues {
			if err := p.lostOf(q, Gap{h.from, h.to}); err != nil {
				return err
			}
		}
	}
	return nil
}

// gaps are the holes between the log's segments.
func (p *planner) gaps() []Gap {
	var gaps []Gap
	segments := p.Log.Queue().Segments()
	for i := 1; i < len(segments); i++ {
		if end := segments[i-1].Start + p.Log.SegmentSize(); segments[i].Start != end {
			gaps = append(gaps, Gap{From: end, To: segments[i].Start})
		}
	}
	return gaps
}

func (p *planner) lostOf(pl queuePlan, g Gap) error {
	q := pl.queue
	first, _ := q.Bounds()
	end := max(first, pl.end)
	var failed error
	search := func(bound int64) int64 {
		return first + int64(sort.Search(int(end-first), func(i int) bool {
			u, err := q.Get(first + int64(i))
			if errors.Is(err, mappedfile.ErrOutOfRange) { // between two files: the one behind tells
				u, err = q.Get(fileStartBehind(q, first+int64(i)))
			}
			if err != nil {
				failed = err
				return true
			}
			return !u.IsFiller() && u.PhysicalOffset >= bound
		}))
	}
	from, next := search(g.From), search(g.To)
	if failed != nil || from == next {
		return failed
	}
	p.d.Lost = append(p.d.Lost, Lost{Topic: q.Topic(), QueueID: q.ID(), From: from, To: next - 1, NextReadable: next})
	p.d.warn(Warning{Kind: KindLost, File: q.Dir(), From: g.From, To: g.To, Text: fmt.Sprintf(
		"%s between %d and %d; the next one that can be read is %d",
		rangeSays("queue offset", from, next-1, "is lost: its record lay", "are lost: their records lay"), g.From, g.To, next)})
	return nil
}

// Fingerprint is a hash of where the files of every queue begin, and with what, and where queues, index and transactions end: two equal ones
// mean that nothing was added to or taken from any of them. It is for our own note of a clean stop, not part of the format.
func Fingerprint(queues *consumequeue.Table, x *index.Index, tx *Transactions) uint64 {
	h := xxhash.New()
	var b []byte
	for q := range queues.All() {
		files := q.Segments()
		if len(files) == 0 {
			continue // named, but never written, or removed with its records
		}
		_, end := q.Bounds()
		b = b[:0]
		for _, f := range files {
			if f.Start < end { // not made ahead
				b = binary.BigEndian.AppendUint64(b, uint64(f.Start))
			}
		}
		b = append(b, q.Topic()...)
		b = append(b, 0)
		b = binary.BigEndian.AppendUint32(b, uint32(q.ID()))
		b = binary.BigEndian.AppendUint64(b, uint64(end))
		if u, err := q.Get(end - 1); err == nil { // also when its record is gone: the minimum is known only later
			b = u.AppendTo(b)
		}
		for _, f := range files { // no two files have changed places
			if u, err := q.Get(f.Start / consumequeue.UnitSize); err == nil {
				b = u.AppendTo(b)
			}
		}
		_, _ = h.Write(b)
	}
	if x != nil {
		for _, f := range x.Files() {
			b = append(b[:0], f.Name...)
			_, _ = h.Write(f.Header.AppendTo(b))
		}
	}
	if tx != nil {
		first, next := tx.States.Bounds()
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b[:0], uint64(first)), uint64(next))
		if last, err := tx.States.Get(next - 1); err == nil {
			b = last.AppendTo(b)
		}
		first, next = tx.Redo.Bounds()
		b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, uint64(first)), uint64(next))
		if last, ok := tx.Redo.Last(); ok {
			b = last.AppendTo(b)
		}
		_, _ = h.Write(b)
	}
	return h.Sum64()
}
