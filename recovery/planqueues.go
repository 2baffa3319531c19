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
		if err != nil {
			return 0, err
		}
		if p.judge(q, at-1, u) != unitWrong {
			return at, nil
		}
	}
	return first, nil
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
		if sp.first == 0 || sp.firstPhysical <= p.d.LogStart {
			continue
		}
		q := p.Queues.Lookup(k.topic, k.id)
		if q == nil {
			lower(p.d.LogStart, fmt.Sprintf("queue %v is missing", k))
			continue
		}
		if from, lacks := p.lacks(q, sp.first); lacks {
			lower(from, fmt.Sprintf("first record that queue %v may lack", k))
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
	case first > 0 && p.d.LogStart == 0:
		return "the first file of the redo log is gone, and nothing of the log is"
	}
	return ""
}

// lacks says whether a queue may lack units before offset, and from which record on.
func (p *planner) lacks(q *consumequeue.Queue, offset int64) (int64, bool) {
	if u, err := q.Get(offset - 1); err == nil && !u.IsFiller() && p.judge(q, offset-1, u) != unitWrong {
		return 0, false
	}
	end, err := p.goodEnd(q, offset)
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
		found, err := q.FindEnd(p.Unclean)
		if err != nil {
			return err
		}
		if err := q.SetMax(found); err != nil {
			return err
		}
		end, err := p.queueEnd(q, found)
		if err != nil {
			return err
		}
		if end < found {
			p.d.warn(Warning{Kind: KindStaleUnits, File: q.Dir(), From: end, To: found, Text: fmt.Sprintf(
				"units %d to %d fit no record of the log; cut", end, found-1)})
		}
		p.d.queues = append(p.d.queues, queuePlan{queue: q, end: end, cut: end < found || p.Unclean || q.Untidy() || short[q.Dir()]})
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
	if first, _ := q.Bounds(); sp.first < first && found > first {
		p.d.warn(Warning{Kind: KindQueueFileGone, File: q.Dir(), Text: fmt.Sprintf(
			"the first file of the queue begins at %d, the log has records from %d on, which are in no queue; without its folder the queue is made again whole", first, sp.first)})
	}
	if found <= sp.last && !p.Unclean {
		p.d.warn(Warning{Kind: KindQueueBehind, File: q.Dir(), Text: fmt.Sprintf(
			"the queue ends at %d, the log has records up to %d; made again", found, sp.last)})
	}
	return p.overGaps(q, min(found, sp.last+1), found), nil
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

// indexNeeds gives the place from which records must go into the index again, -1 for none. The walk began at start.
func (p *planner) indexNeeds(start int64) (int64, string) {
	if p.Index == nil {
		return -1, ""
	}
	files := p.Index.Files()
	keep := p.indexKeeps(files)
	switch {
	case keep < len(files):
		from := p.d.LogStart // not where the first file begins: the record before, without keys, has given it its name
		if keep > 0 {
			from = files[keep-1].Header.EndOffset
		}
		for _, f := range files[keep:] {
			if f.Damaged != nil {
				from = p.d.LogStart // what its header says may be anything
				break
			}
			from = min(from, f.Header.BeginOffset)
		}
		return max(from, p.d.LogStart), "begin of the index files that are made again"
	case keep > 0:
		last := files[keep-1].Header
		// Behind a full file there was another one, if there were more keys; some before the walk it has not seen. And between
		// the keys of one record a file may have become full.
		full := last.IndexCount >= files[keep-1].Entries
		if last.EndOffset < p.w.lastKeyed || full && (last.EndOffset < start || p.Unclean && last.EndOffset == p.w.lastKeyed) {
			return last.EndOffset, "last record that the index holds"
		}
	case p.w.last >= 0:
		return p.d.LogStart, "there is no index"
	}
	return -1, ""
}

// indexKeeps is how many index files stay, the oldest ones: after an unclean stop those that the checkpoint proves to be
// whole, and never one that knows records behind the end of the log.
func (p *planner) indexKeeps(files []index.FileInfo) int {
	keep := len(files)
	if p.Unclean {
		keep = index.Synced(files, p.Checkpoint.Index)
	}
	for i, f := range files[:keep] {
		if f.Damaged != nil || f.Header.EndOffset >= p.indexCut() {
			return i
		}
	}
	return keep
}

// indexCut is the physical offset from which on the index is not to be kept: the end of the log, or the first record with
// keys that an earlier loss of the original left between two files.
func (p *planner) indexCut() int64 {
	if p.w.unindexed >= 0 {
		return p.w.unindexed
	}
	return p.w.end
}

// planIndex notes from where on the index is made again.
func (p *planner) planIndex() {
	p.d.indexFrom = p.d.LogEnd
	if p.Index != nil {
		p.d.indexKeep = p.indexKeeps(p.Index.Files())
	}
	from, why := p.indexNeeds(p.d.Start)
	if from < 0 {
		return
	}
	p.d.indexFrom = max(from, p.d.LogStart)
	if !p.Unclean && p.w.lastKeyed >= 0 {
		p.d.warn(Warning{Kind: KindIndexRebuilt, File: IndexDir, From: p.d.indexFrom, To: p.d.LogEnd, Text: "index made again from the log: " + why})
	}
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
		"queue offsets %d to %d are lost: their records lay between %d and %d; the next one that can be read is %d", from, next-1, g.From, g.To, next)})
	return nil
}

// Fingerprint is a hash of where the files of every queue begin and where queues, index and transactions end: two equal ones
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
