package recovery

import (
	"errors"
	"fmt"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
)

// queueNeeds gives the place from which the log must be replayed so that a queue lacks nothing, and why; "" for nothing. What
// the walk saw the replay compares unit by unit. Before it only the ends of files are looked at: a file that is missing, of
// another queue, or in another's place shows there.
func (p *planner) queueNeeds(q *consumequeue.Queue) (int64, string) {
	k := queueKey{q.Topic(), q.ID()}
	if p.headMissing(q) {
		return p.d.LogStart, fmt.Sprintf("first files of queue %v may be missing", k)
	}
	found, err := p.foundEnd(q)
	if err != nil {
		return p.d.LogStart, fmt.Sprintf("the end of queue %v cannot be read", k)
	}
	if hole, _ := p.holeBetweenFiles(q); hole >= 0 {
		return p.lackFrom(q, hole), fmt.Sprintf("files of queue %v are missing", k)
	}
	if p.foreignUnits(q, found) {
		return p.d.LogStart, fmt.Sprintf("queue %v has files that are not its own", k)
	}
	sp := p.w.queues[k]
	if sp == nil {
		return p.idleNeeds(q, found)
	}
	if sp.first == 0 || sp.firstPhysical <= p.d.LogStart {
		return 0, ""
	}
	if from, lacks := p.lacks(q, min(found, sp.first), sp.first); lacks {
		return from, fmt.Sprintf("first record that queue %v may lack", k)
	}
	return 0, ""
}

// idleNeeds is queueNeeds for a queue of which the walk saw no record: it must end with a unit that is right, and nothing may
// lie behind that but what the log has no longer.
func (p *planner) idleNeeds(q *consumequeue.Queue, found int64) (int64, string) {
	why := fmt.Sprintf("queue %v/%d does not end as the log says", q.Topic(), q.ID())
	end, err := p.goodEnd(q, found)
	if first, _ := q.Bounds(); err != nil || found <= first && p.hasFolder(q) || p.shortQueues()[q.Dir()] {
		return p.d.LogStart, why
	}
	for at := end; at < found; at++ {
		if u, err := q.Get(at); err != nil || !u.Valid() || u.PhysicalOffset < p.w.end {
			return p.endOf(q, end), why
		}
	}
	if end == found && end > 0 && end*consumequeue.UnitSize%p.Queues.SegmentSize() == 0 {
		return p.d.LogStart, fmt.Sprintf("queue %v/%d ends with a full file, another may be missing", q.Topic(), q.ID())
	}
	// Behind what cannot be a unit there may be good ones.
	if last, err := q.FindEnd(false); err == nil && last > found {
		if u, err := q.Get(last - 1); err == nil && !u.IsFiller() && p.judge(q, last-1, u) == unitRight {
			return p.endOf(q, end), why
		}
	}
	return 0, ""
}

// hasFolder says whether there is the folder of a queue. One that was never written to, or whose files retention removed with
// all its records, has none.
func (p *planner) hasFolder(q *consumequeue.Queue) bool {
	if len(q.Segments()) > 0 {
		return true
	}
	_, err := p.FS.ReadDir(q.Dir())
	return err == nil
}

// endOf is where the record of the last unit before a queue offset ends, if it is known, else where the log begins.
func (p *planner) endOf(q *consumequeue.Queue, end int64) int64 {
	if u, err := q.Get(end - 1); err == nil && !u.IsFiller() && p.judge(q, end-1, u) == unitRight {
		return u.End()
	}
	return p.d.LogStart
}

// foundEnd is [consumequeue.Queue.FindEnd], once for each queue.
func (p *planner) foundEnd(q *consumequeue.Queue) (int64, error) {
	if end, ok := p.ends[q]; ok {
		return end, nil
	}
	end, err := q.FindEnd(p.Unclean)
	if err == nil {
		p.ends[q] = end
	}
	return end, err
}

// headMissing says whether files before the first one of a queue are missing, as far as its units tell: as long as the
// record of the first unit is there, retention has deleted no file behind it, but those before it only if all their records
// are gone. A walk from the log's first record on has the last word.
func (p *planner) headMissing(q *consumequeue.Queue) bool {
	files := q.Segments()
	if len(files) == 0 || files[0].Start == 0 {
		return false
	}
	u, err := q.Get(files[0].Start / consumequeue.UnitSize)
	return err == nil && !u.IsFiller() && u.PhysicalOffset > p.d.LogStart
}

// headGone says whether files before the first one of a queue are missing whose records the walk saw, and whether those that
// are there have a right unit. No checksum covers the queue offset of the first record, so there must have been room in the
// log for as many as are missing; unless not one unit of the queue is right.
func (p *planner) headGone(q *consumequeue.Queue, sp *span, found int64) (gone, right bool, err error) {
	first, _ := q.Bounds()
	if sp == nil || sp.first >= first || found <= first {
		return false, false, nil
	}
	end, err := p.goodEnd(q, found)
	if err != nil || end == first {
		return err == nil, false, err
	}
	u, err := q.Get(first)
	return err == nil && u.Valid() && !u.IsFiller() && believable(first-sp.first, sp.firstPhysical, u.PhysicalOffset), true, err
}

// holeBetweenFiles gives the queue offset at which files are missing between those there are, though the log may have their
// records, and the one at which they go on; -1 for none.
func (p *planner) holeBetweenFiles(q *consumequeue.Queue) (from, to int64) {
	files := q.Segments()
	for i := 1; i < len(files); i++ {
		from, to = (files[i-1].Start+p.Queues.SegmentSize())/consumequeue.UnitSize, files[i].Start/consumequeue.UnitSize
		if from >= to {
			continue
		}
		if u, err := q.Get(to); err != nil || u.IsFiller() || u.PhysicalOffset > p.d.LogStart {
			return from, to
		}
	}
	return -1, -1
}

// lackFrom is where the first record lies that a queue may lack, when it lacks those from a queue offset on.
func (p *planner) lackFrom(q *consumequeue.Queue, at int64) int64 {
	if from, lacks := p.lacks(q, at, at); lacks {
		return from
	}
	return p.endOf(q, at)
}

// foreignUnits says whether a file of a queue begins or ends with a unit that is wrong, though not about what the log has not.
func (p *planner) foreignUnits(q *consumequeue.Queue, found int64) bool {
	files := q.Segments()
	wrong := func(at int64) bool {
		u, err := q.Get(at)
		return err == nil && at < found && u.PhysicalOffset < p.w.end && p.judge(q, at, u) == unitWrong
	}
	for i := 1; i < len(files); i++ {
		border := files[i].Start / consumequeue.UnitSize
		if wrong(border) || files[i-1].Start+p.Queues.SegmentSize() == files[i].Start && wrong(border-1) {
			return true
		}
	}
	return false
}

// planVoids finds the units whose places no record of the log has, though it has one of the place before and one of a place
// behind: their records were written over.
func (p *planner) planVoids(pl *queuePlan) error {
	q := pl.queue
	sp := p.w.queues[queueKey{q.Topic(), q.ID()}]
	if sp == nil || pl.anew {
		return nil
	}
	first, _ := q.Bounds()
	for _, run := range sp.missing {
		for at := max(run[0], first); at < min(run[1], pl.end); at++ {
			u, err := q.Get(at)
			if err != nil {
				return err
			}
			if p.isVoid(u) {
				pl.voids = append(pl.voids, at)
			}
		}
	}
	if len(pl.voids) > 0 {
		p.d.warn(Warning{Kind: KindHole, File: q.Dir(), Offset: pl.voids[0] * consumequeue.UnitSize, Text: voidUnits(pl.voids,
			"points to no record of its own, and the log has none for its place; it becomes a filler",
			"point to no record of theirs, and the log has none for these places; they become fillers")})
	}
	return nil
}

// isVoid says whether a unit points to no record, though it is within the log. One whose record says another place, topic or
// queue stays: no checksum covers what it says.
func (p *Parts) isVoid(u consumequeue.Unit) bool {
	if !u.Valid() {
		return true
	}
	_, v, err := p.Log.Read(u.PhysicalOffset)
	if err == nil {
		v.Release()
	}
	return errors.Is(err, commitlog.ErrMagic) || errors.Is(err, commitlog.ErrPlace)
}

// fillVoids makes fillers of the units of planVoids, unless the replay has found a record for them.
func (r *runner) fillVoids() error {
	for _, pl := range r.d.queues {
		for _, at := range pl.voids {
			u, err := pl.queue.Get(at)
			if err == nil && r.isVoid(u) {
				err = pl.queue.Set(at, consumequeue.Filler())
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// keepEnds makes queues that were made again end at least where they ended before, so that no queue offset is given out
// twice whose record is lost.
func (r *runner) keepEnds() error {
	for _, pl := range r.d.queues {
		if pl.keepEnd == 0 {
			continue
		}
		q, err := r.Queues.Ensure(pl.queue.Topic(), pl.queue.ID())
		if err != nil {
			return err
		}
		if _, end := q.Bounds(); end < pl.keepEnd {
			if err := q.Append(pl.keepEnd-1, consumequeue.Filler()); err != nil {
				return err
			}
		}
	}
	return nil
}

// forgetCheckpoint says in the checkpoint that nothing is known to be durable. A recovery that is cut off would else leave
// queues that end too early without a sign of it, when their records lie before what the checkpoint vouches for.
func (r *runner) forgetCheckpoint() error {
	c := r.Checkpoint
	if !r.d.early || c.Physic == 0 && c.Logics == 0 {
		return nil
	}
	c.Physic, c.Logics = 0, 0
	return WriteCheckpoint(r.FS, c, filePerm)
}
