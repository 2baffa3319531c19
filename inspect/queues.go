package inspect

import (
	"context"
	"iter"

	"github.com/rocketstore/rocketstore/consumequeue"
)

// QueueUnit is one unit of a consume queue, raw as on disk.
type QueueUnit struct {
	Topic   string
	QueueID int32
	// Index is the number of the unit by its place. In a consume queue that is the queue offset; in a batch queue it is
	// not, see Batch.BaseOffset.
	Index int64
	consumequeue.Unit
	// Batch is the whole unit when it is one of a batch queue, else nil.
	Batch *consumequeue.BatchUnit

	File   string // path inside the store directory
	Offset int64  // of the unit in File, bytes
}

// Queues walks the units of the consume queues and of the batch queues, by topic and queue id: all that are on disk,
// fillers included, as well as units left over behind the end of the log. Units that are zero are none; zeros with units
// behind them are reported and passed over, as are units that cannot be one.
//
// An error means that a file could not be read; the walk can go on with the next one. It ends when ctx does.
func (d *Dir) Queues(ctx context.Context, q QueueFilter, report func(Finding)) iter.Seq2[QueueUnit, error] {
	return func(yield func(QueueUnit, error) bool) {
		queues, _, err := d.queueTree(queueDir, q, report)
		if err != nil && !yield(QueueUnit{}, err) {
			return
		}
		for _, files := range queues {
			if !d.walkQueue(ctx, files, report, yield) {
				return
			}
		}
		d.batchQueues(ctx, q, report, yield)
	}
}

// batchQueues is the part of Queues about batch queues.
func (d *Dir) batchQueues(ctx context.Context, q QueueFilter, report func(Finding), yield func(QueueUnit, error) bool) {
	queues, _, err := d.queueTree(batchQueueDir, q, report)
	if err != nil && !yield(QueueUnit{}, err) {
		return
	}
	for _, files := range queues {
		if !d.walkBatchQueue(ctx, files, report, yield) {
			return
		}
	}
}

// walkQueue walks the units of one consume queue and says whether the caller wants more.
func (d *Dir) walkQueue(ctx context.Context, files QueueFiles, report func(Finding), yield func(QueueUnit, error) bool) bool {
	w := unitWalk[consumequeue.Entry]{
		dir: d, of: files.name(), size: consumequeue.UnitSize, scan: consumequeue.Scan, report: report,
		yield: func(at place, e consumequeue.Entry, err error) bool {
			return yield(QueueUnit{files.Topic, files.QueueID, at.index, e.Unit, nil, at.file, at.offset}, err)
		},
	}
	return w.walk(ctx, files.Segments)
}

// walkBatchQueue is walkQueue for a batch queue.
func (d *Dir) walkBatchQueue(ctx context.Context, files QueueFiles, report func(Finding), yield func(QueueUnit, error) bool) bool {
	w := unitWalk[consumequeue.BatchEntry]{
		dir: d, of: files.name(), size: consumequeue.BatchUnitSize, scan: consumequeue.ScanBatch, report: report,
		yield: func(at place, e consumequeue.BatchEntry, err error) bool {
			b := e.BatchUnit
			u := consumequeue.Unit{PhysicalOffset: b.PhysicalOffset, Size: b.Size, TagsCode: b.TagsCode}
			return yield(QueueUnit{files.Topic, files.QueueID, at.index, u, &b, at.file, at.offset}, err)
		},
	}
	return w.walk(ctx, files.Segments)
}

// ExtUnit is one unit of a queue's extension, or the end mark of one of its files.
type ExtUnit struct {
	Topic                 string
	QueueID               int32
	consumequeue.ExtEntry        // the bitmap is valid until the next step of the iteration
	File                  string // path inside the store directory
}

// Extensions walks the units of the queues' extensions (consumequeue_ext), by topic and queue id. What cannot be believed
// is reported and ends its file, since the units have no fixed size.
//
// An error means that a file could not be read; the walk can go on with the next one. It ends when ctx does.
func (d *Dir) Extensions(ctx context.Context, q QueueFilter, report func(Finding)) iter.Seq2[ExtUnit, error] {
	return func(yield func(ExtUnit, error) bool) {
		queues, _, err := d.queueTree(extDir, q, report)
		if err != nil && !yield(ExtUnit{}, err) {
			return
		}
		for _, files := range queues {
			for _, seg := range files.Segments {
				if err := ctx.Err(); err != nil {
					yield(ExtUnit{}, err)
					return
				}
				if !d.extFile(files, seg, report, yield) {
					return
				}
			}
		}
	}
}

func (d *Dir) extFile(q QueueFiles, seg Segment, report func(Finding), yield func(ExtUnit, error) bool) bool {
	f, err := d.open(seg.File)
	if err != nil {
		return yield(ExtUnit{}, err)
	}
	defer f.close()
	for e, err := range consumequeue.ScanExt(seg.File, seg.Start, f, seg.Length) {
		if find, ok := corruption(err, BadUnit); ok {
			find.Text += "; nothing behind it in this file is read"
			report(find)
			return true
		}
		if !yield(ExtUnit{q.Topic, q.QueueID, e, seg.File}, err) {
			return false
		}
	}
	return true
}
