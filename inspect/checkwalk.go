package inspect

import (
	"context"

	"github.com/rocketstore/rocketstore/consumequeue"
)

// walk goes over the units of all queues.
func (c *checkQueues) walk(ctx context.Context) error {
	for _, tree := range []string{queueDir, batchQueueDir} {
		queues, _, err := c.dir.queueTree(tree, QueueFilter{}, c.report)
		if err := c.trouble(ctx, err); err != nil {
			return err
		}
		for _, files := range queues {
			q := c.byTopic[files.Topic][files.QueueID]
			if q == nil { // new since the folders were listed
				continue
			}
			if err := c.walkUnits(ctx, q, files, tree == batchQueueDir); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// walkUnits goes over the units of one queue.
func (c *checkQueues) walkUnits(ctx context.Context, q *queueCheck, files QueueFiles, batch bool) error {
	var ended error
	note := func(err error) bool {
		if err == nil && c.stopped {
			err = errStop
		}
		if err != nil {
			ended = c.trouble(ctx, err)
			return false
		}
		c.s.Units++
		return true
	}
	if batch {
		c.dir.walkBatchQueue(ctx, files, c.report, func(u QueueUnit, err error) bool {
			if note(err) {
				if !u.IsFiller() && u.Valid() {
					c.unitEnd = max(c.unitEnd, u.End())
				}
				q.end = max(q.end, u.Batch.BaseOffset+int64(u.Batch.BatchSize))
			}
			return ended == nil
		})
		return ended
	}
	w := unitWalk[consumequeue.Entry]{
		dir: c.dir, of: files.name(), size: consumequeue.UnitSize, report: c.report,
		yield: func(_ place, _ consumequeue.Entry, err error) bool {
			if err != nil {
				note(err)
			}
			return ended == nil
		},
		many: consumequeue.ScanMany,
		yieldMany: func(at place, units []consumequeue.Entry) bool {
			if note(nil) {
				c.s.Units += int64(len(units)) - 1
				c.units(q, at.index, units)
			}
			return ended == nil
		},
	}
	w.walk(ctx, files.Segments)
	return ended
}

// units notes units that are on disk, the first of which has an index.
func (c *checkQueues) units(q *queueCheck, index int64, units []consumequeue.Entry) {
	q.end = max(q.end, index+int64(len(units)))
	if q.first < 0 {
		q.first = index
	}
	for i := range units {
		u := &units[i].Unit
		if u.IsFiller() {
			continue
		}
		c.unitEnd = max(c.unitEnd, u.End())
		if q.filled < 0 {
			q.filled = index + int64(i)
		}
	}
}
