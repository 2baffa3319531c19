package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// checkStates compares the transactions of a store: state table and redo log of 3.1, half and op messages of 4.x.
type checkStates struct {
	*checker
	table unitFile
	first int64 // number of the table's first record
	next  int64 // number behind the last one that a file has room for
	ended map[int64]*endedPage
	// homeless are prepared messages without a record in the table whose end was not met yet, at most maxHomeless.
	homeless map[int64]homeless
	// recent are the numbers in the table of the last prepared messages, by place; older are those before, maxHomeless each.
	recent, older map[int64]int64
	redo          *follower[RedoUnit]
	hasTable      bool
	hasRedo       bool
	// unreadTable and unreadRedo say that what is not found may lie in what could not be read.
	unreadTable, unreadRedo bool
	prepares                int64 // prepared messages in the log: they show that there should be both
	redoLate                *absence
	noRedo                  *absence // between others
}

type homeless struct {
	number int64
	group  bool // it has a producer group
	file   string
	offset int64
}

// maxHomeless bounds what is kept in mind of prepared messages that the table does not have.
const maxHomeless = 1 << 16

// endedPage says of 4096 transactions which ends the log has of them: bit 0 commit, bit 1 rollback.
type endedPage [4096]byte

func newCheckStates(c *checker) *checkStates {
	s := &checkStates{checker: c, ended: make(map[int64]*endedPage), homeless: make(map[int64]homeless), recent: make(map[int64]int64)}
	segs, err := c.dir.segmentsIn(recovery.StateTableDir, func(Finding) {})
	s.unreadTable = err != nil
	if err == nil && len(segs) > 0 {
		s.hasTable, s.table = true, unitFile{dir: c.dir, segs: segs}
		s.first, s.next = segs[0].Start/txstate.RecordSize, segs[len(segs)-1].End()/txstate.RecordSize
	}
	segs, err = c.dir.segmentsIn(recovery.RedoLogDir, func(Finding) {})
	s.hasRedo, s.unreadRedo = err == nil && len(segs) > 0, err != nil
	for u, err := range c.dir.RedoLog(context.Background(), func(Finding) {}) {
		if err != nil {
			s.unreadRedo = true
			continue
		}
		c.vouched = max(c.vouched, u.PhysicalOffset)
		c.s.RedoUnits++
	}
	s.redo = follow(c.dir.RedoLog(context.Background(), func(f Finding) { c.report(f) }), func(u *RedoUnit) int64 { return u.PhysicalOffset }, s.oddRedo)
	return s
}

// record compares what a record says of a transaction.
func (c *checkStates) record(r *LogRecord) error {
	tx := r.SysFlag.Transaction()
	if tx == 0 {
		c.half(r)
		return nil
	}
	if tx == message.FlagPrepared { // half messages of 4.x do not have that flag, their ends do
		c.prepares++
	}
	if !c.hasTable && !c.hasRedo && c.prepares == 0 {
		return nil
	}
	if err := c.redoUnit(r, tx); err != nil {
		return err
	}
	if tx == message.FlagPrepared {
		return c.prepared(r)
	}
	return c.end(r, tx)
}

// record of the table with a number; ok is false when no file has it or nothing is there.
func (c *checkStates) state(number int64) (s txstate.Record, ok bool, err error) {
	if number < 0 || number >= c.next {
		return s, false, nil
	}
	b, err := c.table.bytes(number*txstate.RecordSize, txstate.RecordSize)
	if err != nil || len(b) < txstate.RecordSize {
		return s, false, err
	}
	s, bad := txstate.Decode(b)
	return s, bad == nil, nil
}

// find gives the number of the table's record of the prepared message at off: that which the message carries, or the one
// that a search finds, since records lie in log order.
func (c *checkStates) find(number, off int64) (int64, bool, error) {
	s, ok, err := c.state(number)
	if err != nil || ok && s.CommitOffset == off {
		return number, ok, err
	}
	n := int64(sort.Search(int(max(c.next-c.first, 0)), func(i int) bool {
		s, ok, failed := c.state(c.first + int64(i))
		if failed != nil {
			err = failed
		}
		return !ok || s.CommitOffset >= off
	}))
	if err != nil {
		return 0, false, err
	}
	s, ok, err = c.state(c.first + n)
	return c.first + n, ok && s.CommitOffset == off, err
}

// prepared looks for the record of a prepared message.
func (c *checkStates) prepared(r *LogRecord) error {
	number, ok, err := c.find(r.QueueOffset, r.PhysicalOffset)
	if ok {
		if len(c.recent) >= maxHomeless {
			c.recent, c.older = make(map[int64]int64), c.recent
		}
		c.recent[r.PhysicalOffset] = number
	}
	if ok || err != nil || len(c.homeless) >= maxHomeless {
		return err
	}
	h := homeless{number: r.QueueOffset, group: len(message.Lookup(r.Properties, message.PropertyProducerGroup)) > 0}
	h.file, h.offset = r.place()
	c.homeless[r.PhysicalOffset] = h
	return nil
}

// end notes the end of a transaction.
func (c *checkStates) end(r *LogRecord, tx message.SysFlag) error {
	at := r.PreparedTransactionOffset
	delete(c.homeless, at)
	for _, known := range []map[int64]int64{c.recent, c.older} {
		if number, ok := known[at]; ok {
			c.noteEnd(number, tx)
			return nil
		}
	}
	if at < c.s.LogStart {
		return nil
	}
	rec, err := c.recordAt(at)
	if err != nil {
		return err
	}
	if rec == nil || rec.SysFlag.Transaction() != message.FlagPrepared {
		if !c.inDamage(at) {
			file, off := r.place()
			c.report(Finding{
				Kind: Orphan, Severity: Warning, File: file, Offset: off, Expected: "a prepared message at " + decimal(at),
				Text: fmt.Sprintf("the record ends a transaction at %d, where no prepared message starts", at),
			})
		}
		return nil
	}
	number, ok, err := c.find(rec.QueueOffset, at)
	if ok {
		c.noteEnd(number, tx)
	}
	return err
}

// noteEnd remembers that the log has an end of a transaction.
func (c *checkStates) noteEnd(number int64, tx message.SysFlag) {
	page := c.ended[number/int64(len(endedPage{}))]
	if page == nil {
		page = new(endedPage)
		c.ended[number/int64(len(endedPage{}))] = page
	}
	page[number%int64(len(page))] |= endBit(tx)
}

func endBit(tx message.SysFlag) byte {
	if tx == message.FlagCommit {
		return 1
	}
	return 2
}

// redoUnit compares the redo log's unit of a record.
func (c *checkStates) redoUnit(r *LogRecord, tx message.SysFlag) error {
	want := redolog.Unit{PhysicalOffset: r.PhysicalOffset, Size: r.Size, TagsCode: redolog.Prepared}
	if tx != message.FlagPrepared {
		want.TagsCode = r.PreparedTransactionOffset
	}
	ok, err := c.redo.take(r.PhysicalOffset, func(u *RedoUnit) {
		c.closeNoRedo()
		if u.Unit == want {
			return
		}
		f := Finding{
			Kind: WrongRedo, Severity: Error, File: u.File, Offset: u.Offset, Expected: redoText(want), Found: redoText(u.Unit),
			Text: fmt.Sprintf("unit %d of the redo log is not that of its record at %d", u.Index, r.PhysicalOffset),
		}
		switch {
		case u.Size != want.Size:
			f.Offset += 8
		default:
			f.Offset += 12
		}
		c.report(f)
	})
	if ok || err != nil {
		return err
	}
	next, err := c.redo.front()
	switch {
	case err != nil:
	case next == nil:
		c.redoLate = c.redoLate.add(r, r.PhysicalOffset)
	default:
		if c.noRedo == nil {
			c.noRedo = &absence{from: r.PhysicalOffset, file: next.File, offset: next.Offset}
		}
		c.noRedo.to = r.PhysicalOffset + int64(r.Size)
		c.noRedo.records++
	}
	return err
}

// closeNoRedo reports a stretch of records without redo unit whose end is known.
func (c *checkStates) closeNoRedo() {
	a := c.noRedo
	c.noRedo = nil
	if a == nil || c.unreadRedo {
		return
	}
	c.report(Finding{
		Kind: MissingRedo, Severity: Error, File: a.file, Offset: a.offset, From: a.from, To: a.to,
		Text: fmt.Sprintf("%s of transactions from %d on without a unit in the redo log", countText(a.records, "record", "records"), a.from),
	})
}

// oddRedo looks at a unit of the redo log that no record took.
func (c *checkStates) oddRedo(u RedoUnit) error {
	at := u.PhysicalOffset
	if c.postpone(at, func() error { return c.oddRedo(u) }) {
		return nil
	}
	f := Finding{Kind: WrongRedo, Severity: Error, File: u.File, Offset: u.Offset, Found: redoText(u.Unit)}
	rec, err := c.recordAt(at)
	switch {
	case err != nil, at >= 0 && at < c.s.LogStart:
		return err
	case rec != nil && rec.Size == u.Size && rec.SysFlag.Transaction() != 0:
		return nil // there twice
	case rec != nil:
		f.Text = fmt.Sprintf("unit %d of the redo log points to the record at %d, which is another one", u.Index, at)
	case c.inDamage(at):
		f.Severity, f.Text = Info, fmt.Sprintf("unit %d of the redo log points to %d, where the log is damaged", u.Index, at)
	case at >= c.s.LogEnd:
		f.Kind, f.Severity, f.Text = RedoBeyond, Warning, fmt.Sprintf("unit %d of the redo log points to %d, the log ends at %d", u.Index, at, c.s.LogEnd)
	default:
		f.Text = fmt.Sprintf("unit %d of the redo log points to %d, where no record starts", u.Index, at)
	}
	c.report(f)
	return nil
}

func redoText(u redolog.Unit) string {
	if u.Prepares() {
		return fmt.Sprintf("prepared message at %d of %d bytes", u.PhysicalOffset, u.Size)
	}
	return fmt.Sprintf("record at %d of %d bytes that ends the transaction at %d", u.PhysicalOffset, u.Size, u.TagsCode)
}

// finish looks at each record of the table, and at what has none.
func (c *checkStates) finish(ctx context.Context) error {
	if err := c.redo.rest(); err != nil { // without a file it reports what is foreign there
		if err := c.trouble(ctx, err); err != nil {
			return err
		}
	}
	c.closeNoRedo()
	if a := c.redoLate; a != nil && !c.unreadRedo {
		what := "at the end of the log without a unit in the redo log"
		if !c.hasRedo {
			what = "in the log, and there is no redo log"
		}
		c.report(Finding{
			Kind: MissingRedo, Severity: c.late, File: recovery.RedoLogDir, From: a.from, To: a.to,
			Text: fmt.Sprintf("%s of transactions %s; the first lies in %s at %d", countText(a.records, "record", "records"), what, a.file, a.offset),
		})
	}
	for s, err := range c.dir.StateTable(ctx, c.report) {
		if err == nil && c.stopped {
			err = errStop
		}
		if err == nil {
			c.s.StateRecords++
			err = c.tableRecord(&s)
		}
		if err != nil {
			if err := c.trouble(ctx, err); err != nil {
				return err
			}
		}
	}
	c.withoutRecord()
	return ctx.Err()
}

// withoutRecord reports open transactions that the table does not have.
func (c *checkStates) withoutRecord() {
	if c.unreadTable {
		return
	}
	for _, at := range slices.Sorted(maps.Keys(c.homeless)) {
		h := c.homeless[at]
		severity := c.late
		if h.number < c.first || !h.group {
			severity = Info // its file was removed; 3.1 does not put one without group there
		}
		c.report(Finding{
			Kind: MissingState, Severity: severity, File: h.file, Offset: h.offset, Expected: fmt.Sprintf("record %d of the state table", h.number),
			Text: fmt.Sprintf("the prepared message at %d is open and not in the state table", at),
		})
	}
}

func (c *checkStates) close() {
	c.table.close()
	c.redo.stop()
}
