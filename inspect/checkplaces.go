package inspect

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/rocketstore/rocketstore/recovery"
)

// emptyLog reports a log without a record to which others point.
func (c *checker) emptyLog(context.Context) error {
	if end := max(c.queues.unitEnd, c.vouched); c.s.Records == 0 && !c.unreadLog && len(c.damaged) == 0 && end > c.s.LogEnd {
		c.report(Finding{
			Kind: EmptyLog, Severity: Error, File: commitLogDir, From: c.s.LogEnd, To: end, Expected: fmt.Sprintf("records up to %d", end),
			Found: "no record", Text: fmt.Sprintf("no record in the log, though queues, index or redo log know of records up to %d", end),
		})
	}
	return nil
}

// places reports what is no folder, or no file, in the place of one.
func (c *checker) places() {
	entries, err := c.dir.list(".")
	if err != nil {
		return // root says so
	}
	c.misplaced = make(map[string]bool)
	for _, e := range entries {
		f := Finding{Kind: BadFile, Severity: Error, File: e.name}
		switch e.name {
		case commitLogDir, queueDir, extDir, batchQueueDir, indexDir, transactionDir, configDir:
			if e.info.IsDir() {
				continue
			}
			f.Expected, f.Text = "a folder", "is no folder but a file"
			if e.info.Mode().Type() == fs.ModeSymlink {
				f.Text = "is no folder but a link that leads to none"
			}
		case recovery.CheckpointFile:
			if e.info.Mode().IsRegular() {
				continue
			}
			f.Expected, f.Text = "a file", "is "+notRegular(e.info)
		default:
			continue
		}
		c.misplaced[e.name] = true
		c.report(f)
	}
}
