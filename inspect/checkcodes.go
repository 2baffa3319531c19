package inspect

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// delayRule is what the units of one level of the delay topic have in common.
type delayRule struct {
	known bool
	delay int64 // ms
}

// slack is by how much, in ms, a time that 3.1 took before it stored a record may differ from the record's.
const slack = 1000

// longestDelay bounds a delay that can be meant, ms.
const longestDelay = int64(400 * 24 * time.Hour / time.Millisecond)

// tagsCode compares the third field of a unit whose other fields are right.
func (c *checkQueues) tagsCode(r *LogRecord, q *queueCheck, p recovery.Placement, u consumequeue.Unit) error {
	switch {
	case u.TagsCode == p.Unit.TagsCode:
		return nil
	case consumequeue.IsExtAddress(u.TagsCode):
		return c.extension(r, q, p, u)
	}
	delayed := string(p.Topic) == recovery.ScheduleTopic && message.Lookup(r.Properties, message.PropertyDelay) != nil
	f := Finding{
		Kind: WrongUnit, Severity: Error, Expected: fmt.Sprintf("tags code %d", p.Unit.TagsCode), Found: fmt.Sprintf("tags code %d", u.TagsCode),
		Text: fmt.Sprintf("unit %d of %s has another tags code than its record at %d", p.QueueOffset, q.name(), r.PhysicalOffset),
	}
	switch {
	case delayed && c.dueAt(r, q, p, u.TagsCode):
		return nil
	case delayed:
		f.Kind = WrongTime
		f.Expected, f.Found = "delivery at "+timeText(p.Unit.TagsCode), "delivery at "+timeText(u.TagsCode)
		f.Text = fmt.Sprintf("unit %d of %s: its record at %d was stored at %s", p.QueueOffset, q.name(), r.PhysicalOffset, timeText(r.StoreTimestamp))
	}
	f = c.atUnit(q, p.QueueOffset, f)
	f.Offset += 12
	c.report(f)
	return nil
}

// dueAt says whether a delayed message can be due at t. Where the levels are not known, those of the store may differ from
// the usual ones: what the first unit of a level says is then right for all, if it is a whole number of seconds.
func (c *checkQueues) dueAt(r *LogRecord, q *queueCheck, p recovery.Placement, t int64) bool {
	near := int64(0)
	if c.rules.HasStateTable {
		near = slack
	}
	within := func(diff int64) bool { return -near <= diff && diff <= near }
	delay := t - r.StoreTimestamp
	switch {
	case within(t - p.Unit.TagsCode):
		return true
	case c.o.DelayLevels != "" || delay < -near || delay > longestDelay:
		return false
	case near == 0 && delay%1000 != 0:
		return false
	case !q.delays.known:
		q.delays = delayRule{true, delay}
		return true
	}
	return within(delay - q.delays.delay)
}

// extension compares the extension unit that a unit points to.
func (c *checkQueues) extension(r *LogRecord, q *queueCheck, p recovery.Placement, u consumequeue.Unit) error {
	if q.ext.dir == nil {
		segs, err := c.dir.segmentsIn(path.Join(extDir, q.Topic, strconv.Itoa(int(q.QueueID))), func(Finding) {})
		if err != nil {
			return err
		}
		q.ext = unitFile{dir: c.dir, segs: segs}
	}
	at := consumequeue.ExtOffset(u.TagsCode)
	e, err := q.ext.extUnit(at)
	if err != nil {
		return err
	}
	if e.Size == 0 {
		f := c.atUnit(q, p.QueueOffset, Finding{
			Kind: WrongExt, Severity: Error, Expected: "the address of an extension unit", Found: "address " + strconv.FormatInt(at, 10),
			Text: fmt.Sprintf("unit %d of %s: no extension unit is there", p.QueueOffset, q.name()),
		})
		f.Offset += 12
		c.report(f)
		return nil
	}
	if e.TagsCode == p.Unit.TagsCode && e.StoreTime == r.StoreTimestamp {
		return nil
	}
	f := Finding{
		Kind: WrongExt, Severity: Error, Expected: fmt.Sprintf("tags code %d, store time %d", p.Unit.TagsCode, r.StoreTimestamp),
		Found: fmt.Sprintf("tags code %d, store time %d", e.TagsCode, e.StoreTime),
		Text:  fmt.Sprintf("it is that of unit %d of %s, whose record lies at %d", p.QueueOffset, q.name(), r.PhysicalOffset),
	}
	if n, ok := segmentOf(q.ext.segs, at); ok {
		f.File, f.Offset = q.ext.segs[n].File, at-q.ext.segs[n].Start
	}
	c.report(f)
	return nil
}

// followBatch goes through the units of a batch queue.
func (c *checkQueues) followBatch(files QueueFiles) *follower[QueueUnit] {
	seq := func(yield func(QueueUnit, error) bool) {
		w := unitWalk[consumequeue.BatchEntry]{
			dir: c.dir, of: files.name(), size: consumequeue.BatchUnitSize, scan: consumequeue.ScanBatch, report: func(Finding) {},
			yield: func(at place, e consumequeue.BatchEntry, err error) bool {
				b := e.BatchUnit
				return yield(QueueUnit{Topic: files.Topic, QueueID: files.QueueID, Index: at.index, Batch: &b, File: at.file, Offset: at.offset}, err)
			},
		}
		w.walk(context.Background(), files.Segments)
	}
	return follow(seq, func(u *QueueUnit) int64 { return u.Batch.PhysicalOffset }, c.oddBatch)
}

// batchOf is the unit that a record has in its batch queue.
func batchOf(r *LogRecord, tagsCode int64) consumequeue.BatchUnit {
	n, err := strconv.ParseInt(string(message.Lookup(r.Properties, "INNER_NUM")), 10, 16)
	if err != nil {
		n = 1
	}
	return consumequeue.BatchUnit{
		PhysicalOffset: r.PhysicalOffset, Size: r.Size, TagsCode: tagsCode, StoreTime: r.StoreTimestamp,
		BaseOffset: r.QueueOffset, BatchSize: int16(n), CompactedOffset: -1,
	}
}

// batchRecord compares the unit of a record in a batch queue.
func (c *checkQueues) batchRecord(q *queueCheck, r *LogRecord) error {
	if q == nil || q.batch == nil {
		c.noQueue(r, recovery.Placement{Topic: r.Topic, QueueID: r.QueueID, QueueOffset: r.QueueOffset})
		return nil
	}
	want := batchOf(r, int64(message.HashMore(0, message.Lookup(r.Properties, message.PropertyTags))))
	q.logged, q.logEnd = true, max(q.logEnd, r.QueueOffset+int64(want.BatchSize))
	ok, err := q.batch.take(r.PhysicalOffset, func(u *QueueUnit) {
		have := *u.Batch
		have.CompactedOffset, have.Reserved = want.CompactedOffset, want.Reserved
		if have != want {
			c.report(Finding{
				Kind: WrongUnit, Severity: Error, File: u.File, Offset: u.Offset, Expected: batchText(want), Found: batchText(have),
				Text: fmt.Sprintf("unit %d of batch queue %s is not that of its record at %d", u.Index, q.name(), r.PhysicalOffset),
			})
		}
	})
	if ok || err != nil {
		return err
	}
	if r.QueueOffset >= q.end {
		q.late = q.late.add(r, r.QueueOffset)
		return nil
	}
	f := Finding{
		Kind: MissingUnits, Severity: Error, File: q.Dir, From: r.QueueOffset, To: r.QueueOffset + int64(want.BatchSize), Expected: batchText(want),
		Text: fmt.Sprintf("the record at %d has no unit in batch queue %s", r.PhysicalOffset, q.name()),
	}
	if next, err := q.batch.front(); next != nil && err == nil {
		f.File, f.Offset = next.File, next.Offset
	}
	c.report(f)
	return nil
}

// oddBatch looks at a unit of a batch queue that no record took.
func (c *checkQueues) oddBatch(u QueueUnit) error {
	at := u.Batch.PhysicalOffset
	if c.postpone(at, func() error { return c.oddBatch(u) }) {
		return nil
	}
	f := Finding{Kind: WrongUnit, Severity: Error, File: u.File, Offset: u.Offset, Found: batchText(*u.Batch)}
	rec, err := c.recordAt(at)
	switch {
	case err != nil || at < c.s.LogStart:
		return err
	case rec != nil && string(rec.Topic) == u.Topic && rec.QueueID == u.QueueID && rec.QueueOffset == u.Batch.BaseOffset && rec.Size == u.Batch.Size:
		return nil
	case c.inDamage(at):
		f.Kind, f.Severity, f.Text = UnitOfDamage, Info, fmt.Sprintf("points to %d, where the log is damaged", at)
	case at >= c.s.LogEnd && rec == nil:
		f.Kind, f.Severity, f.Text = UnitBeyond, Warning, fmt.Sprintf("points to %d, behind the end of the log", at)
	default:
		f.Text = fmt.Sprintf("unit %d of batch queue %s/%d points to %d, where no record of it starts", u.Index, u.Topic, u.QueueID, at)
	}
	c.report(f)
	return nil
}

func unitText(u consumequeue.Unit) string {
	if u.IsFiller() {
		return "a filler"
	}
	return fmt.Sprintf("record at %d of %d bytes, tags code %d", u.PhysicalOffset, u.Size, u.TagsCode)
}

func batchText(u consumequeue.BatchUnit) string {
	return fmt.Sprintf("record at %d of %d bytes, tags code %d, stored at %d, queue offsets from %d, %d messages",
		u.PhysicalOffset, u.Size, u.TagsCode, u.StoreTime, u.BaseOffset, u.BatchSize)
}

// timeText is a time in ms for people, in UTC, and the number.
func timeText(ms int64) string {
	if ms < 0 || ms > 253402300799999 {
		return strconv.FormatInt(ms, 10)
	}
	return fmt.Sprintf("%s (%d)", time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z"), ms)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// countText is a number and what it counts.
func countText(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + many
}
