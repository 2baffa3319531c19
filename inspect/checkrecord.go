package inspect

import (
	"errors"
	"io/fs"
	"math"
	"path"
	"slices"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// maxOpenLogs bounds the log files that are open for recordAt.
const maxOpenLogs = 4

// recordAt is the record at a physical offset that can be believed. It is valid until the next call.
func (c *checker) recordAt(off int64) (*commitlog.Record, error) {
	if off < c.s.LogStart || off == math.MaxInt64 {
		return nil, nil
	}
	l, err := c.logAt(off)
	if l == nil || err != nil {
		return nil, err
	}
	r, ok, err := l.recordAt(off, func(Finding) {})
	if err != nil || !ok || r.Damaged != "" || recovery.StandsForLoss(&r.Record) {
		return nil, err
	}
	return &r.Record, nil
}

// logAt is the log file with a physical offset; nil when there is none.
func (c *checker) logAt(off int64) (*logFile, error) {
	for i, l := range c.logs {
		if l.seg.Start <= off && off < l.seg.End() {
			c.logs = append(slices.Delete(c.logs, i, i+1), l)
			return l, nil
		}
	}
	n, ok := segmentOf(c.segs, off)
	if last := len(c.segs) - 1; last < 0 || !ok && off >= c.segs[last].End() && off-c.segs[last].End() <= c.segs[last].Length { // made meanwhile
		segs, err := c.dir.segmentsIn(commitLogDir, func(Finding) {})
		if err != nil {
			return nil, err
		}
		c.segs = segs
		n, ok = segmentOf(c.segs, off)
	}
	if !ok {
		return nil, nil
	}
	l, err := c.dir.openLog(c.segs[n])
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // removed meanwhile
	}
	if err != nil {
		return nil, err
	}
	if len(c.logs) == maxOpenLogs {
		c.logs[0].f.close()
		c.logs = c.logs[1:]
	}
	c.logs = append(c.logs, l)
	return l, nil
}

// place is where in its file a record of the log lies.
func (r *LogRecord) place() (file string, offset int64) {
	start, _ := mappedfile.ParseSegmentName(path.Base(r.File))
	return r.File, r.PhysicalOffset - start
}
