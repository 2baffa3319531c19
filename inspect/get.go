package inspect

import (
	"context"
	"iter"

	"github.com/rocketstore/rocketstore/consumequeue"
)

// ByKey gives the records of a topic that have a key: a word of KEYS, or the unique key. It follows the index files and
// compares the record's own topic and keys, so that records whose key only has the same hash are left out. Where no index
// file leads to one, the whole log is read. Records come in log order; what is damaged on the way is reported.
//
// An error means that something could not be read; the caller can go on.
func (d *Dir) ByKey(ctx context.Context, topic, key string, report func(Finding)) iter.Seq2[LogRecord, error] {
	return d.Find(ctx, Filter{Topic: topic, Key: key}, FindOptions{}, report)
}

// ByID gives the record with an offset message id, or the records with a unique key (UNIQ_KEY). A topic, if not "", limits
// them. Without one all topics that have queues are tried in the index; then the log is read as in [Dir.ByKey].
func (d *Dir) ByID(ctx context.Context, id, topic string, report func(Finding)) iter.Seq2[LogRecord, error] {
	return d.Find(ctx, Filter{Topic: topic, ID: id}, FindOptions{}, report)
}

// maxHits bounds how many places the index may lead to before reading the whole log is the better way.
const maxHits = 1 << 20

// topics are the names of the folders of topics, those of batch queues as well.
func (d *Dir) topics() ([]string, error) {
	var names []string
	for _, root := range []string{queueDir, batchQueueDir} {
		entries, err := d.list(root)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.info.IsDir() {
				names = append(names, e.name)
			}
		}
	}
	return names, nil
}

// UnitAt reads the unit of a consume queue at a queue offset; false when the queue has no file with that place. A unit that
// is zero was never written.
func (d *Dir) UnitAt(topic string, queueID int32, queueOffset int64) (QueueUnit, bool, error) {
	u := QueueUnit{Topic: topic, QueueID: queueID, Index: queueOffset}
	queues, _, err := d.queueTree(queueDir, QueueFilter{Topic: topic, Queue: &queueID}, func(Finding) {})
	if err != nil || queueOffset < 0 || queueOffset > (1<<62)/consumequeue.UnitSize {
		return u, false, err
	}
	pos := queueOffset * consumequeue.UnitSize
	for _, q := range queues {
		n, ok := segmentOf(q.Segments, pos)
		if !ok || pos+consumequeue.UnitSize > q.Segments[n].End() {
			continue
		}
		f, err := d.open(q.Segments[n].File)
		if err != nil {
			return u, false, err
		}
		defer f.close()
		u.File, u.Offset = q.Segments[n].File, pos-q.Segments[n].Start
		var b [consumequeue.UnitSize]byte
		if _, err := f.ReadAt(b[:], u.Offset); err != nil {
			return u, false, err
		}
		u.Unit, err = consumequeue.Decode(b[:])
		return u, true, err
	}
	return u, false, nil
}

// ByPlace gives the record at an offset of a queue: the one that the queue's unit leads to, or, where that leads to none of
// the queue, the one that the log has for it. The log is read as far as o says.
func (d *Dir) ByPlace(ctx context.Context, topic string, queueID int32, queueOffset int64, o FindOptions, report func(Finding)) iter.Seq2[LogRecord, error] {
	return func(yield func(LogRecord, error) bool) {
		u, ok, err := d.UnitAt(topic, queueID, queueOffset)
		if err != nil && !yield(LogRecord{}, err) {
			return
		}
		if ok && u.Valid() {
			r, ok, err := d.RecordAt(u.PhysicalOffset, report)
			if err != nil || ok && string(r.Topic) == topic && r.QueueID == queueID && r.QueueOffset == queueOffset {
				yield(r, err)
				return
			}
		}
		if queueOffset < 0 {
			return
		}
		f := Filter{Topic: topic, Queue: &queueID, FromQueueOffset: queueOffset, ToQueueOffset: queueOffset + 1}
		d.newSearch(&f, o, report, yield).run(func(s *search) error { return s.byScan(ctx, o.MaxScan) })
	}
}

// FromTime gives the records that f takes and that were stored at a time (ms) or later. It begins to read at the last file of
// the log whose first record is older.
func (d *Dir) FromTime(ctx context.Context, ms int64, f Filter, report func(Finding)) iter.Seq2[LogRecord, error] {
	return func(yield func(LogRecord, error) bool) {
		segs, _, err := d.Segments(report)
		if err != nil {
			yield(LogRecord{}, err)
			return
		}
		r := LogRange{}
		for _, seg := range segs {
			first, ok, err := d.recordIn(seg, seg.Start, func(Finding) {})
			if err != nil || !ok || first.Damaged != "" {
				continue // the record before tells
			}
			if first.StoreTimestamp >= ms {
				break
			}
			r.From = seg.Start
		}
		f.Since = ms
		for r, err := range d.Log(ctx, r, report) {
			if (err != nil || d.Match(&f, &r)) && !yield(r, err) {
				return
			}
		}
	}
}
