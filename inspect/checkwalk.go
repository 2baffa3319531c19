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
		dir: c.dir, of: files.name(), size: consumequeue.UnitSize, scan: consumequeue.Scan, report: c.report,
		yield: func(at place, e consumequeue.Entry, err error) bool {
			if note(err) {
				c.unit(q, at.index, &e.Unit)
			}
			return ended == nil
		},
	}
	w.walk(ctx, files.Segments)
	return ended
}

// unit notes a unit that is on disk.
func (c *checkQueues) unit(q *queueCheck, index int64, u *consumequeue.Unit) {
	q.end = max(q.end, index+1)
	if q.first < 0 {
		q.first = index
	}
	if u.IsFiller() {
		return
	}
	if u.Valid() {
		c.unitEnd = max(c.unitEnd, u.End())
	}
	if q.filled < 0 {
		q.filled = index
	}
}
