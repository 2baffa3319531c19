package recovery

import (
	"errors"
	"iter"
	"slices"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/redolog"
)

// redoCheck compares the events that a walk meets with the units of the redo log.
type redoCheck struct {
	next    func() (redolog.Entry, error, bool)
	stop    func()
	unit    redolog.Entry
	have    bool  // unit holds the next one to compare
	end     bool  // the redo log is at its end
	good    int64 // index behind the last unit that agrees, or lies before the walk
	missing int64 // physical offset of the first record that the redo log lacks, -1 none
	collect bool  // lacking is wanted
	lacking []redolog.Unit
	highest int64 // number of prepared messages: the greatest queue offset, -1 none
	gaps    []Gap // in them records are gone, but what the redo log says of them is true
	wrong   int64 // index of the first unit before the walk that is not its record's or lies behind a gap, -1 none
}

// newRedoCheck starts a comparison for a walk from a physical offset on. The units before it are compared with the fixed
// fields of their records.
func newRedoCheck(l *redolog.Log, log Records, from int64, gaps []Gap) *redoCheck {
	first, _ := l.Bounds()
	c := &redoCheck{good: first, missing: -1, highest: -1, gaps: gaps, wrong: -1}
	c.next, c.stop = iter.Pull2(l.Replay(first))
	for last := int64(-1); c.peek() && c.unit.PhysicalOffset < from; c.take() {
		if c.wrong < 0 && (c.unit.Index != c.good || c.unit.PhysicalOffset <= last || !ofRecord(log, c.unit.Unit)) {
			c.wrong = c.unit.Index
		}
		last = c.unit.PhysicalOffset
	}
	return c
}

// ofRecord says whether a unit is that of its record, as far as the record's fixed fields tell; one without a record is.
func ofRecord(log Records, u redolog.Unit) bool {
	h, err := log.Peek(u.PhysicalOffset)
	if errors.Is(err, mappedfile.ErrOutOfRange) {
		return u.PhysicalOffset >= 0 // its segment was deleted, or lies in a gap
	}
	want, ok := Event(&commitlog.Record{
		PhysicalOffset: u.PhysicalOffset, Size: h.Size, SysFlag: h.SysFlag, PreparedTransactionOffset: h.PreparedTransactionOffset,
	})
	return err == nil && ok && want == u
}

// peek makes the next unit stand in c.unit. A unit that cannot be believed ends the redo log.
func (c *redoCheck) peek() bool {
	if !c.have && !c.end {
		var err error
		var ok bool
		if c.unit, err, ok = c.next(); !ok || err != nil {
			c.end = true
			return false
		}
		c.have = true
	}
	return c.have
}

func (c *redoCheck) take() {
	c.good, c.have = c.unit.Index+1, false
}

// passGaps takes the units of records that lay in gaps of the log before a physical offset: a transaction whose end is gone
// is ended all the same.
func (c *redoCheck) passGaps(before int64) {
	inGap := func(g Gap) bool { return g.From <= c.unit.PhysicalOffset && c.unit.PhysicalOffset < g.To }
	for c.missing < 0 && c.peek() && c.unit.PhysicalOffset < before && slices.ContainsFunc(c.gaps, inGap) {
		c.take()
	}
}

// meet compares the event of a record of the log.
func (c *redoCheck) meet(u redolog.Unit) {
	if c.missing >= 0 {
		c.lacks(u)
		return
	}
	c.passGaps(u.PhysicalOffset)
	if c.peek() && c.unit.Unit == u {
		c.take()
		return
	}
	c.missing = u.PhysicalOffset
	c.end, c.have = true, false
	c.lacks(u)
}

// lacks notes a unit that the replay will add, for those who want to foresee what it does.
func (c *redoCheck) lacks(u redolog.Unit) {
	if c.collect {
		c.lacking = append(c.lacking, u)
	}
}
