package inspect

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// maxOpenQueues bounds the queues whose files are open at a time.
const maxOpenQueues = 64

// checkQueues compares the consume queues with the log. Each record looks for its unit, and afterwards each unit that no
// record found is looked at.
type checkQueues struct {
	*checker
	byTopic map[string]map[int32]*queueCheck
	open    []*queueCheck // those whose files are open, the one used last at the end
	absent  map[string]map[int32]*absence
	unitEnd int64 // behind the last record that a unit points to
	notRead bool  // the queues are in RocksDB
}

// queueCheck is one queue that is compared.
type queueCheck struct {
	QueueFiles
	units      unitFile
	ext        unitFile
	first, end int64 // of the units on disk
	filled     int64 // first index that is no filler
	found      runs  // units that a record found, or that were reported
	batch      *follower[QueueUnit]
	logEnd     int64     // queue offset behind that of the last record in the log
	logged     bool      // there are records of the queue in the log
	late       *absence  // records behind the end
	blank      *absence  // records with a filler
	before     *absence  // records before the first file
	delays     delayRule // of the delay topic
}

// absence is a run of records without a unit.
type absence struct {
	file     string // of the first one's record
	offset   int64
	from, to int64 // queue offsets
	records  int64
}

func (a *absence) add(r *LogRecord, queueOffset int64) *absence {
	if a == nil {
		a = &absence{from: queueOffset, to: queueOffset + 1}
		a.file, a.offset = r.place()
	}
	a.from, a.to = min(a.from, queueOffset), max(a.to, queueOffset+1)
	a.records++
	return a
}

func newCheckQueues(c *checker) *checkQueues {
	return &checkQueues{checker: c, byTopic: make(map[string]map[int32]*queueCheck), absent: make(map[string]map[int32]*absence)}
}

// listQueues lists the queues and notes where their units end. It reports what a walk over the units alone shows.
func (c *checker) listQueues(ctx context.Context) error {
	for _, root := range []string{queueDir, batchQueueDir} {
		queues, _, err := c.dir.queueTree(root, QueueFilter{}, func(f Finding) {
			c.queues.notRead = c.queues.notRead || f.Kind == NotRead
		})
		if err != nil {
			if err := c.trouble(ctx, err); err != nil {
				return err
			}
			continue
		}
		for _, files := range queues {
			c.queues.add(files, root == batchQueueDir)
		}
	}
	for u, err := range c.dir.Queues(ctx, QueueFilter{}, c.report) {
		if err == nil && c.stopped {
			err = errStop
		}
		if err != nil {
			if err := c.trouble(ctx, err); err != nil {
				return err
			}
			continue
		}
		c.queues.unit(&u)
	}
	for _, err := range c.dir.Extensions(ctx, QueueFilter{}, c.report) {
		if err != nil {
			if err := c.trouble(ctx, err); err != nil {
				return err
			}
		}
		c.s.ExtUnits++
	}
	return ctx.Err()
}

// add takes up a queue.
func (c *checkQueues) add(files QueueFiles, batch bool) {
	ids := c.byTopic[files.Topic]
	if ids == nil {
		ids = make(map[int32]*queueCheck)
		c.byTopic[files.Topic] = ids
	}
	q := ids[files.QueueID]
	if q == nil {
		q = &queueCheck{QueueFiles: files, first: -1, filled: -1}
		q.units = unitFile{dir: c.dir, segs: files.Segments}
		ids[files.QueueID] = q
		c.s.Queues++
	}
	if batch {
		q.batch = c.followBatch(files)
	}
}

// unit notes a unit that is on disk.
func (c *checkQueues) unit(u *QueueUnit) {
	c.s.Units++
	q := c.byTopic[u.Topic][u.QueueID]
	if q == nil {
		return // new since the folders were listed
	}
	if !u.IsFiller() && u.Valid() {
		c.unitEnd = max(c.unitEnd, u.PhysicalOffset+int64(u.Size))
	}
	if u.Batch != nil {
		q.end = max(q.end, u.Batch.BaseOffset+int64(u.Batch.BatchSize))
		return
	}
	if q.first < 0 {
		q.first = u.Index
	}
	if q.filled < 0 && !u.IsFiller() {
		q.filled = u.Index
	}
	q.end = max(q.end, u.Index+1)
}

// record compares the units of a record.
func (c *checkQueues) record(r *LogRecord) error {
	if c.notRead {
		return nil
	}
	if q := c.byTopic[string(r.Topic)][r.QueueID]; r.SysFlag.Has(message.FlagInnerBatch) || q != nil && q.batch != nil {
		if !r.SysFlag.Queued() {
			return nil
		}
		return c.batchRecord(q, r)
	}
	return c.derive.Units(&r.Record, func(p recovery.Placement) error { return c.place(r, p) })
}

// place compares the unit that should be at a place.
func (c *checkQueues) place(r *LogRecord, p recovery.Placement) error {
	q := c.byTopic[string(p.Topic)][p.QueueID]
	if q == nil {
		c.noQueue(r, p)
		return nil
	}
	i := p.QueueOffset
	if i < 0 {
		return nil
	}
	q.logged, q.logEnd = true, max(q.logEnd, i+1)
	c.touch(q)
	u, ok, err := q.units.unit(i)
	if err == nil && (!ok || u == consumequeue.Unit{}) && i >= q.end {
		q.units.again()
		u, ok, err = q.units.unit(i)
	}
	if err != nil {
		return err
	}
	switch {
	case len(q.Segments) > 0 && i*consumequeue.UnitSize < q.Segments[0].Start:
		q.before = q.before.add(r, i)
	case !ok || u == consumequeue.Unit{}:
		if i >= q.end {
			q.late = q.late.add(r, i)
		} // else the walk over the units said so
	case q.found.has(i):
		c.twice(r, q, i)
	case u.PhysicalOffset == p.Unit.PhysicalOffset && u.Size == p.Unit.Size:
		q.found.add(i)
		return c.tagsCode(r, q, p, u)
	case u.IsFiller():
		q.found.add(i)
		q.blank = q.blank.add(r, i)
	default:
		return c.wrong(r, q, p, u)
	}
	return nil
}

// wrong deals with a unit that points elsewhere than to the record whose place it has.
func (c *checkQueues) wrong(r *LogRecord, q *queueCheck, p recovery.Placement, u consumequeue.Unit) error {
	owned, err := c.belongs(q, p.QueueOffset, u)
	if err != nil {
		return err
	}
	if owned {
		c.twice(r, q, p.QueueOffset)
		return nil
	}
	if !u.Valid() {
		return nil // the walk over the units said so
	}
	q.found.add(p.QueueOffset)
	c.report(c.atUnit(q, p.QueueOffset, Finding{
		Kind: WrongUnit, Severity: Error, Expected: unitText(p.Unit), Found: unitText(u),
		Text: fmt.Sprintf("unit %d of %s is not that of its record at %d", p.QueueOffset, q.name(), r.PhysicalOffset),
	}))
	return nil
}

// belongs says whether a unit is that of a record which lies where it points to.
func (c *checkQueues) belongs(q *queueCheck, index int64, u consumequeue.Unit) (bool, error) {
	rec, err := c.recordAt(u.PhysicalOffset)
	if rec == nil || err != nil {
		return false, err
	}
	found := false
	err = c.derive.Units(rec, func(p recovery.Placement) error {
		found = found || string(p.Topic) == q.Topic && p.QueueID == q.QueueID && p.QueueOffset == index && p.Unit.Size == u.Size
		return nil
	})
	return found, err
}

func (c *checkQueues) twice(r *LogRecord, q *queueCheck, index int64) {
	file, off := r.place()
	c.report(Finding{
		Kind: OffsetTwice, Severity: Warning, File: file, Offset: off, From: index, To: index + 1,
		Text: fmt.Sprintf("the record claims queue offset %d of %s, which another one has", index, q.name()),
	})
}

// noQueue notes a record whose queue has no files.
func (c *checkQueues) noQueue(r *LogRecord, p recovery.Placement) {
	ids := c.absent[string(p.Topic)]
	if ids == nil {
		ids = make(map[int32]*absence)
		c.absent[string(p.Topic)] = ids
	}
	if a := ids[p.QueueID]; a != nil || len(c.absent) <= maxFindings && len(ids) <= maxFindings {
		ids[p.QueueID] = a.add(r, p.QueueOffset)
	}
}

// touch keeps the number of open files small.
func (c *checkQueues) touch(q *queueCheck) {
	n := len(c.open)
	if n > 0 && c.open[n-1] == q {
		return
	}
	if i := slices.Index(c.open, q); i >= 0 {
		c.open = append(slices.Delete(c.open, i, i+1), q)
		return
	}
	if n >= maxOpenQueues {
		c.open[0].units.close()
		c.open[0].ext.close()
		c.open = slices.Delete(c.open, 0, 1)
	}
	c.open = append(c.open, q)
}

// atUnit completes a finding about a unit.
func (c *checkQueues) atUnit(q *queueCheck, index int64, f Finding) Finding {
	f.File, f.Offset = q.Dir, index*consumequeue.UnitSize
	if n, ok := segmentOf(q.Segments, f.Offset); ok {
		f.File, f.Offset = q.Segments[n].File, f.Offset-q.Segments[n].Start
	}
	return f
}

// finish looks at what the log left over.
func (c *checkQueues) finish(ctx context.Context) error {
	c.reportAbsent()
	for _, topic := range slices.Sorted(maps.Keys(c.byTopic)) {
		ids := c.byTopic[topic]
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			err := c.left(ctx, ids[id])
			ids[id].units.close()
			ids[id].ext.close()
			if err := c.trouble(ctx, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportAbsent reports the queues that have no files.
func (c *checkQueues) reportAbsent() {
	severity := c.late
	if !c.dir.exists(queueDir) && len(c.absent) > 0 {
		severity = Warning
	}
	for _, topic := range slices.Sorted(maps.Keys(c.absent)) {
		for _, id := range slices.Sorted(maps.Keys(c.absent[topic])) {
			a := c.absent[topic][id]
			c.report(Finding{
				Kind: MissingQueue, Severity: severity, File: path.Join(queueDir, topic, strconv.Itoa(int(id))), From: a.from, To: a.to,
				Text: fmt.Sprintf("%s of %s/%d in the log, no file; the first lies in %s at %d", countText(a.records, "record", "records"), topic, id, a.file, a.offset),
			})
		}
	}
}

// left looks at what the log left over of one queue.
func (c *checkQueues) left(ctx context.Context, q *queueCheck) error {
	if a := q.before; a != nil {
		c.report(c.atUnit(q, a.from, Finding{
			Kind: MissingUnits, Severity: Error, From: a.from, To: a.to,
			Text: fmt.Sprintf("%s of %s in the log, but the queue's files begin later; the first lies in %s at %d", countText(a.records, "record", "records"), q.name(), a.file, a.offset),
		}))
	}
	if a := q.blank; a != nil {
		c.report(c.atUnit(q, a.from, Finding{
			Kind: MissingUnits, Severity: Error, From: a.from, To: a.to, Found: "a filler",
			Text: fmt.Sprintf("%s of %s in the log with a filler in the place of a unit; the first lies in %s at %d", countText(a.records, "record", "records"), q.name(), a.file, a.offset),
		}))
	}
	if a := q.late; a != nil {
		c.report(c.atUnit(q, a.from, Finding{
			Kind: QueueBehind, Severity: c.queues.late, From: a.from, To: a.to,
			Text: fmt.Sprintf("%s of %s in the log behind the last unit; the first lies in %s at %d", countText(a.records, "record", "records"), q.name(), a.file, a.offset),
		}))
	}
	if q.batch != nil {
		return q.batch.rest()
	}
	next := max(q.first, 0)
	for _, r := range append(slices.Clone(q.found.list), run{q.end, q.end}) {
		for ; next < min(r.from, q.end); next++ {
			if ctx.Err() != nil || c.stopped {
				return errStop
			}
			if err := c.alone(q, next); err != nil {
				return err
			}
		}
		next = max(next, r.to)
	}
	return nil
}

// alone looks at a unit that no record found.
func (c *checkQueues) alone(q *queueCheck, index int64) error {
	u, ok, err := q.units.unit(index)
	if err != nil || !ok || u == (consumequeue.Unit{}) || !u.Valid() {
		return err
	}
	at := func(kind Kind, severity Severity, text string) {
		c.report(c.atUnit(q, index, Finding{Kind: kind, Severity: severity, Found: unitText(u), Text: fmt.Sprintf("unit %d of %s %s", index, q.name(), text)}))
	}
	switch {
	case u.IsFiller():
		if q.filled >= 0 && index > q.filled {
			at(Hole, Info, "is a filler: no record has that queue offset")
		}
		return nil
	case u.PhysicalOffset < c.s.LogStart:
		return nil // its record was removed
	}
	owned, err := c.belongs(q, index, u)
	switch {
	case err != nil || owned: // written meanwhile, or not kept in mind
	case c.inDamage(u.PhysicalOffset):
		at(UnitOfDamage, Info, fmt.Sprintf("points to %d, where the log is damaged", u.PhysicalOffset))
	case u.PhysicalOffset >= c.s.LogEnd:
		at(UnitBeyond, Warning, fmt.Sprintf("points to %d, the log ends at %d", u.PhysicalOffset, c.s.LogEnd))
	default:
		return c.stray(u, at)
	}
	return err
}

// stray says what is where a unit points to.
func (c *checkQueues) stray(u consumequeue.Unit, at func(Kind, Severity, string)) error {
	rec, err := c.recordAt(u.PhysicalOffset)
	switch {
	case err != nil:
	case rec == nil:
		at(WrongUnit, Error, fmt.Sprintf("points to %d, where no record starts", u.PhysicalOffset))
	default:
		at(WrongUnit, Error, fmt.Sprintf("points to the record at %d, which is queue offset %d of %s/%d and has %d bytes",
			u.PhysicalOffset, rec.QueueOffset, rec.Topic, rec.QueueID, rec.Size))
	}
	return err
}

func (c *checkQueues) close() {
	for _, ids := range c.byTopic {
		for _, q := range ids {
			q.units.close()
			q.ext.close()
			if q.batch != nil {
				q.batch.stop()
			}
		}
	}
}
