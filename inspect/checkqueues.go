package inspect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore/commitlog"
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
	open    []*queueCheck // those whose files are open
	absent  map[string]map[int32]*absence
	unitEnd int64 // behind the last record that a unit points to
	notRead bool  // the queues are in RocksDB, or their folder cannot be listed
	// unread are the topics whose folders cannot be listed.
	unread map[string]bool
	// anyBatch says whether there is a batch queue.
	anyBatch bool
	tick     int64 // counts the uses of queues
	lately   [1024]*queueCheck
	present  *LogRecord
	derived  recovery.Derived               // from the present record
	each     func(recovery.Placement) error // compares a unit of the present record
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
	recordEnd  int64     // physical offset behind the last of them
	late       *absence  // records behind the end
	blank      *absence  // records with a filler
	before     *absence  // records before the first file
	delays     delayRule // of the delay topic
	used       int64     // the tick of the last use; 0: its files are not open
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
	q := &checkQueues{checker: c, byTopic: make(map[string]map[int32]*queueCheck), absent: make(map[string]map[int32]*absence)}
	q.each = func(p recovery.Placement) error { return q.place(q.present, p) }
	return q
}

// listQueues lists the queues and notes where their units end. It reports what a walk over the units alone shows.
func (c *checker) listQueues(ctx context.Context) error {
	for _, root := range []string{queueDir, batchQueueDir} {
		queues, _, err := c.dir.queueTree(root, QueueFilter{}, func(f Finding) {
			c.queues.notRead = c.queues.notRead || f.Kind == NotRead
		})
		if err != nil {
			c.queues.cannotList(err)
			if err := c.trouble(ctx, err); err != nil {
				return err
			}
		}
		for _, files := range queues {
			c.queues.add(files, root == batchQueueDir)
		}
	}
	if err := c.queues.walk(ctx); err != nil {
		return err
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

// cannotList notes which topics an error of listing the queues is about, so that nothing is said about their records.
func (c *checkQueues) cannotList(err error) {
	for _, err := range apart(err) {
		at, ok := errors.AsType[*fs.PathError](err)
		if !ok {
			c.notRead = true
			continue
		}
		parts := strings.Split(at.Path, "/")
		if len(parts) < 2 {
			c.notRead = c.notRead || !c.misplaced[at.Path]
			continue
		}
		if c.unread == nil {
			c.unread = make(map[string]bool)
		}
		c.unread[parts[1]] = true
	}
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
		q.batch, c.anyBatch = c.followBatch(files), true
	}
}

// record compares the units of a record, and gives the keys that it has in the index.
func (c *checkQueues) record(r *LogRecord) (unique, keys []byte, err error) {
	c.present = r
	x := &c.derived
	c.derive.Derive(&r.Record, x)
	switch {
	case c.notRead:
	case r.SysFlag.Has(message.FlagInnerBatch) || c.anyBatch && c.inBatchQueue(r):
		if r.SysFlag.Queued() {
			err = c.batchRecord(c.byTopic[string(r.Topic)][r.QueueID], r)
		}
	case x.Queued:
		if q := c.find(r.Topic, r.QueueID); q == nil || !c.next(q, r, x) {
			err = c.place(r, x.Own(&r.Record))
		}
		if err == nil {
			err = x.Light(&r.Record, c.each)
		}
	}
	return x.Unique, x.Keys, err
}

// inBatchQueue says whether a record's queue is one of batches.
func (c *checkQueues) inBatchQueue(r *LogRecord) bool {
	q := c.byTopic[string(r.Topic)][r.QueueID]
	return q != nil && q.batch != nil
}

// find is a queue, nil when it has no files. The small table in front of the two maps pays for itself: BenchmarkCheck.
func (c *checkQueues) find(topic []byte, id int32) *queueCheck {
	mix := uint32(id)*31 + uint32(len(topic))
	if len(topic) > 0 {
		mix += uint32(topic[len(topic)-1]) * 257
	}
	slot := &c.lately[mix%uint32(len(c.lately))]
	if q := *slot; q != nil && q.QueueID == id && q.Topic == string(topic) {
		return q
	}
	q := c.byTopic[string(topic)][id]
	*slot = q
	return q
}

// place compares the unit that should be at a place.
func (c *checkQueues) place(r *LogRecord, p recovery.Placement) error {
	q := c.find(p.Topic, p.QueueID)
	if q == nil {
		c.noQueue(r, p)
		return nil
	}
	i := p.QueueOffset
	if i < 0 {
		return nil
	}
	logged, logEnd, recordEnd := q.logged, q.logEnd, q.recordEnd
	q.logged, q.logEnd, q.recordEnd = true, max(q.logEnd, i+1), r.PhysicalOffset+int64(r.Size)
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
	case len(q.Segments) > 0 && unitPos(i) < q.Segments[0].Start:
		q.before = q.before.add(r, i)
	case !ok || u == consumequeue.Unit{}:
		switch {
		case i < q.end: // the walk over the units said so
		case logged && i-logEnd > (r.PhysicalOffset-recordEnd)/commitlog.MinRecordSize:
			q.logEnd = logEnd
			c.farOff(r, q, i, logEnd)
		default:
			q.late = q.late.add(r, i)
		}
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
	if c.unread[string(p.Topic)] {
		return
	}
	ids := c.absent[string(p.Topic)]
	if ids == nil {
		ids = make(map[int32]*absence)
		c.absent[string(p.Topic)] = ids
	}
	if a := ids[p.QueueID]; a != nil || len(c.absent) <= maxFindings && len(ids) <= maxFindings {
		ids[p.QueueID] = a.add(r, p.QueueOffset)
	}
}

// touch keeps the number of open files small: the queue that was not used for longest gives way.
func (c *checkQueues) touch(q *queueCheck) {
	c.tick++
	if q.used > 0 {
		q.used = c.tick
		return
	}
	q.used = c.tick
	if len(c.open) < maxOpenQueues {
		c.open = append(c.open, q)
		return
	}
	oldest := 0
	for i, o := range c.open {
		if o.used < c.open[oldest].used {
			oldest = i
		}
	}
	c.open[oldest].units.close()
	c.open[oldest].ext.close()
	c.open[oldest].used = 0
	c.open[oldest] = q
}

// unitPos is where in its queue a unit lies, in bytes. A damaged record may say any queue offset.
func unitPos(index int64) int64 {
	if index > math.MaxInt64/consumequeue.UnitSize {
		return math.MaxInt64
	}
	return max(index, 0) * consumequeue.UnitSize
}

// atUnit completes a finding about a unit.
func (c *checkQueues) atUnit(q *queueCheck, index int64, f Finding) Finding {
	f.File, f.Offset = q.Dir, unitPos(index)
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
	if !c.dir.exists(queueDir) && c.queuesWere() {
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

// queuesWere says whether something shows that there were queues before, so that they are lost: the index, or a checkpoint
// that vouches for them. A broker that was killed early has come to none of them.
func (c *checkQueues) queuesWere() bool {
	if c.vouched > 0 || !c.dir.exists(recovery.CheckpointFile) {
		return c.vouched > 0
	}
	p, damaged, err := recovery.ReadCheckpoint(c.dir.mapped())
	return err != nil || damaged != nil || p.Logics > 0
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
