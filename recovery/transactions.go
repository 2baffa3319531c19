package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// Transactions are the two structures of 3.1.x: the state table and the redo log that it is made again from.
type Transactions struct {
	States *txstate.Table
	Redo   *redolog.Log
}

// Event is the redo unit that a record makes; ok is false for one that is of no transaction, as those are that stand for loss.
func Event(r *commitlog.Record) (redolog.Unit, bool) {
	u := redolog.Unit{PhysicalOffset: r.PhysicalOffset, Size: r.Size}
	if StandsForLoss(r) {
		return u, false
	}
	switch r.SysFlag.Transaction() {
	case message.FlagPrepared:
		u.TagsCode = redolog.Prepared
	case message.FlagCommit, message.FlagRollback:
		u.TagsCode = r.PreparedTransactionOffset
	default:
		return u, false
	}
	// An end of no message: its unit would be taken for that of a prepared one.
	return u, u.TagsCode >= 0 || r.SysFlag.Transaction() == message.FlagPrepared
}

// prepared is the state table's record of a prepared message. A message without PGROUP has group hash 0 (R-B-55).
func prepared(r *commitlog.Record) txstate.Record {
	return txstate.Record{
		CommitOffset: r.PhysicalOffset, Size: r.Size, StoredAt: txstate.SecondsOf(r.StoreTimestamp), State: txstate.Prepared,
		GroupHash: message.HashMore(0, message.Lookup(r.Properties, message.PropertyProducerGroup)),
	}
}

// stateSink puts prepared messages into the state table and resolves them there.
type stateSink struct {
	log   *commitlog.Log
	table *txstate.Table
	from  int64
	warn  func(Warning)
}

// NewStateSink makes the sink for the state table; records before from are in it already.
func NewStateSink(log *commitlog.Log, t *txstate.Table, from int64, warn func(Warning)) Sink {
	return &stateSink{log: log, table: t, from: from, warn: warn}
}

func (s *stateSink) Name() string               { return "state table" }
func (s *stateSink) Durable() int64             { return s.from }
func (s *stateSink) Sync(context.Context) error { return s.table.Sync(0) }

func (s *stateSink) Apply(r *commitlog.Record) error {
	if r.PhysicalOffset < s.from || StandsForLoss(r) {
		return nil
	}
	switch r.SysFlag.Transaction() {
	case message.FlagPrepared:
		err := s.table.Append(r.QueueOffset, prepared(r))
		if m, ok := errors.AsType[*txstate.MismatchError](err); ok {
			s.warn(Warning{Kind: KindNumberTwice, File: txstate.Dir, Offset: m.Number * txstate.RecordSize, Text: err.Error()})
			return nil
		}
		if errors.Is(err, txstate.ErrGap) || errors.Is(err, txstate.ErrNotFound) {
			s.warn(wildNumber(&txstate.Record{CommitOffset: r.PhysicalOffset}, r.QueueOffset, "it is not in the table: "+err.Error()))
			return nil
		}
		return err
	case message.FlagCommit:
		return s.resolve(r, txstate.Committed)
	case message.FlagRollback:
		return s.resolve(r, txstate.RolledBack)
	}
	return nil
}

// resolve closes the record of the prepared message that r ends. The number that the message carries counts first; one
// that another message has now is found by its offset (R-B-68).
func (s *stateSink) resolve(r *commitlog.Record, state txstate.State) error {
	offset := r.PreparedTransactionOffset
	hash := message.HashMore(0, message.Lookup(r.Properties, message.PropertyProducerGroup))
	h, err := s.log.Peek(offset)
	if err == nil {
		_, err = s.table.Update(h.QueueOffset, offset, hash, state)
	}
	if errors.Is(err, txstate.ErrNotFound) || errors.Is(err, txstate.ErrOtherMessage) || errors.Is(err, mappedfile.ErrOutOfRange) || errors.Is(err, mappedfile.ErrCorrupt) {
		var number int64
		if number, err = s.table.FindByOffset(offset); err == nil {
			_, err = s.table.Update(number, offset, hash, state)
		}
	}
	if errors.Is(err, txstate.ErrNotFound) || errors.Is(err, txstate.ErrOtherMessage) || errors.Is(err, txstate.ErrOtherGroup) {
		s.warn(Warning{Kind: KindNoTransaction, File: "commitlog", Offset: r.PhysicalOffset, Text: fmt.Sprintf("the record at %d ends a transaction at %d that is not in the table: %v", r.PhysicalOffset, offset, err)})
		return nil
	}
	return err
}

// redoSink puts the events of transactions into the redo log.
type redoSink struct {
	log  *redolog.Log
	from int64
}

// NewRedoSink makes the sink for the redo log; records before from are in it already.
func NewRedoSink(l *redolog.Log, from int64) Sink { return &redoSink{log: l, from: from} }

func (s *redoSink) Name() string               { return "redo log" }
func (s *redoSink) Durable() int64             { return s.from }
func (s *redoSink) Sync(context.Context) error { return s.log.Sync(0) }

func (s *redoSink) Apply(r *commitlog.Record) error {
	u, ok := Event(r)
	if !ok {
		return nil
	}
	_, err := s.log.Append(u)
	return err
}

// farNumbers is how far a number may lie beyond the one before it without a second message that bears it out. No CRC covers
// a record's queue offset, and each number that is passed over costs bytes on disk.
const farNumbers = txstate.DefaultSegmentSize / txstate.RecordSize

// farFiles bounds the same in files of the table.
const farFiles = 128

// maxNumber bounds the numbers that can be right at all.
const maxNumber = 1 << 48

// row is a transaction on its way into a table that is made again.
type row struct {
	number  int64
	noGroup bool
	lonely  bool // its neighbours in the log have numbers far from it
	txstate.Record
}

// markLonely compares each row with its neighbours in the log.
func markLonely(rows []row, far int64) {
	near := func(i int, number int64) bool {
		return i >= 0 && i < len(rows) && rows[i].number-number <= far && number-rows[i].number <= far
	}
	for i := range rows {
		n := rows[i].number
		rows[i].lonely = n < 0 || n > maxNumber || !near(i-1, n) && !near(i+1, n)
	}
}

// Records gives the records of a log by place. A [*commitlog.Log] does.
type Records interface {
	// Read is the record at a physical offset and the view that its slices lie in; mappedfile.ErrOutOfRange when the log does
	// not have it.
	Read(offset int64) (commitlog.Record, mappedfile.View, error)
	// Peek reads its fixed fields.
	Peek(offset int64) (commitlog.Header, error)
}

// RebuildStates makes the state table again from the redo log and the messages it points to: see [MakeStates].
func RebuildStates(ctx context.Context, log *commitlog.Log, t *Transactions, warn func(Warning)) error {
	first, end := t.Redo.Bounds()
	return MakeStates(ctx, log, t.Redo.Replay(first), int(end-first), t.States, warn)
}

// MakeStates makes the state table again from the events of a redo log, about so many, and the messages they point to, each
// record under the number that its message carries (R-B-50 to R-B-52). Where two messages carry one number, which 3.1 brings
// about, an open one goes before a finished one and the later before the earlier; the other open ones get numbers at the end
// (R-B-67). So do open ones whose number cannot be right. It tells warn what it could not do as the original numbering has it.
func MakeStates(ctx context.Context, log Records, events iter.Seq2[redolog.Entry, error], about int, states *txstate.Table, warn func(Warning)) error {
	if err := states.RemoveAll(); err != nil {
		return err
	}
	rows, err := foldRedo(ctx, log, events, about, warn)
	if err != nil || len(rows) == 0 {
		return err
	}
	for _, r := range settle(rows, states.SegmentSize(), warn) {
		if err := putRow(states, r); err != nil {
			return err
		}
	}
	return nil
}

// settle gives the rows of a table with files of a size in the order of the numbers that they get, and tells what is not as the messages
// have it.
func settle(rows []row, fileSize int64, warn func(Warning)) []row {
	for i := range rows {
		if rows[i].noGroup && rows[i].State == txstate.Prepared {
			warn(Warning{Kind: KindNoGroup, File: "commitlog", Offset: rows[i].CommitOffset, Text: fmt.Sprintf(
				"the prepared message at %d, number %d, has no PGROUP: it is open, and no producer can be asked", rows[i].CommitOffset, rows[i].number)})
		}
	}
	far := min(farNumbers, farFiles*fileSize/txstate.RecordSize)
	markLonely(rows, far)
	// Of one number the row that keeps it comes first.
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(closed(a), closed(b)), cmp.Compare(b.CommitOffset, a.CommitOffset))
	})
	var moved []row
	kept := rows[:0]
	last := int64(-1) // the greatest number that is kept
	for _, r := range rows {
		wild := r.number < 0 || r.number > maxNumber || r.lonely && last >= 0 && r.number-last > far
		if wild || r.number == last {
			if r.State == txstate.Prepared {
				r.lonely = wild
				moved = append(moved, r)
			} else if wild {
				warn(wildNumber(&r.Record, r.number, "it is ended and not in the table"))
			}
			continue
		}
		kept = append(kept, r)
		last = r.number
	}
	return append(kept, renumber(moved, last, warn)...)
}

// renumber gives new numbers, behind the last one, to open transactions that cannot have their own.
func renumber(moved []row, last int64, warn func(Warning)) []row {
	slices.SortFunc(moved, func(a, b row) int { return cmp.Compare(a.CommitOffset, b.CommitOffset) })
	for i := range moved {
		r := &moved[i]
		was := r.number
		last++
		r.number = last
		if r.lonely {
			warn(wildNumber(&r.Record, was, fmt.Sprintf("it is now number %d", r.number)))
		} else {
			warn(Warning{Kind: KindNumberTwice, File: txstate.Dir, Offset: r.number * txstate.RecordSize, Text: fmt.Sprintf(
				"the open transactions at %d and another carry number %d; this one is now number %d", r.CommitOffset, was, r.number)})
		}
	}
	return moved
}

func wildNumber(r *txstate.Record, number int64, what string) Warning {
	return Warning{Kind: KindWildNumber, File: "commitlog", Offset: r.CommitOffset, Text: fmt.Sprintf(
		"the prepared message at %d carries number %d, which cannot be right; %s", r.CommitOffset, number, what)}
}

// putRow appends a row, with as many fillers before it as the numbers ask for.
func putRow(t *txstate.Table, r row) error {
	if first, next := t.Bounds(); next > first && r.number > next {
		near, err := t.Get(next - 1)
		if err != nil {
			return err
		}
		if err := t.Fill(r.number, txstate.Filler(near)); err != nil {
			return err
		}
	}
	return t.Append(r.number, r.Record)
}

func closed(r row) int {
	if r.State == txstate.Prepared {
		return 0
	}
	return 1
}

// foldRedo reads the redo log into one row for each prepared message that the commit log still has, in log order.
// Those that cannot be read are left out and told (R-B-55).
func foldRedo(ctx context.Context, log Records, events iter.Seq2[redolog.Entry, error], about int, warn func(Warning)) ([]row, error) {
	rows := make([]row, 0, about/2+1)
	n := 0
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		if n++; n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if e.TagsCode != redolog.Prepared {
			i, ok := findRow(rows, e.TagsCode)
			if !ok || rows[i].State != txstate.Prepared {
				continue // its message is gone, or the first end counts
			}
			if err := endRow(log, e.PhysicalOffset, &rows[i].Record); err != nil {
				return nil, err
			}
			continue
		}
		r, v, err := log.Read(e.PhysicalOffset)
		if errors.Is(err, mappedfile.ErrOutOfRange) {
			continue // deleted with its segment, or in a gap
		}
		if errors.Is(err, mappedfile.ErrCorrupt) {
			warn(Warning{Kind: KindNoPrepared, File: "commitlog", Offset: e.PhysicalOffset, Text: fmt.Sprintf(
				"unit %d of the redo log is of a prepared message at %d that cannot be read; it is not in the state table: %v", e.Index, e.PhysicalOffset, err)})
			continue
		}
		if err != nil {
			return nil, err
		}
		rec := prepared(&r)
		noGroup := rec.GroupHash == 0 && message.Lookup(r.Properties, message.PropertyProducerGroup) == nil
		rows = append(rows, row{number: r.QueueOffset, noGroup: noGroup, Record: rec})
		v.Release()
	}
	return rows, nil
}

// findRow finds the row of the message at an offset. Rows are in log order, and most ends come soon after.
func findRow(rows []row, offset int64) (int, bool) {
	low := len(rows)
	for step := 1; low > 0 && rows[low-1].CommitOffset > offset; step *= 2 {
		low = max(0, low-step)
	}
	i, ok := slices.BinarySearchFunc(rows[max(0, low-1):], offset, func(r row, offset int64) int { return cmp.Compare(r.CommitOffset, offset) })
	return max(0, low-1) + i, ok
}

// endRow sets the state that the record at offset brought about. That of one which is gone or damaged is not known: the
// transaction is ended, so it counts as rolled back.
func endRow(log Records, offset int64, to *txstate.Record) error {
	h, err := log.Peek(offset)
	if err != nil && !errors.Is(err, mappedfile.ErrOutOfRange) && !errors.Is(err, mappedfile.ErrCorrupt) {
		return err
	}
	to.State = txstate.RolledBack
	if err == nil && h.SysFlag.Transaction() == message.FlagCommit {
		to.State = txstate.Committed
	}
	return nil
}

// statesAgree compares the state table with the redo log and the messages, and says what does not agree; "" if all does. It
// costs a pass over the redo log and a look at each message that was walked over and has a record.
func (p *planner) statesAgree() (string, error) {
	set, err := p.Tx.Redo.OpenSet()
	if err != nil {
		return "", err
	}
	open := 0
	first, next := p.Tx.States.Bounds()
	for e, err := range p.Tx.States.Records(first) {
		if err != nil {
			// The original ends at it, and gives the numbers behind it out again.
			return fmt.Sprintf("record %d cannot be right: %v", e.Number, err), nil
		}
		if e.State == txstate.Prepared {
			continue // below
		}
		if why := p.endedAgrees(e); why != "" {
			return why, nil
		}
	}
	for e, err := range p.Tx.States.All(first) {
		if err != nil {
			return fmt.Sprintf("record %d cannot be read: %v", e.Number, err), nil
		}
		if _, err := p.Log.Peek(e.CommitOffset); errors.Is(err, mappedfile.ErrOutOfRange) && e.CommitOffset < p.w.end {
			continue // its segment was deleted, and maybe its unit of the redo log too
		}
		if !set.Has(e.CommitOffset) {
			return fmt.Sprintf("record %d is open, but the redo log knows no open transaction at %d", e.Number, e.CommitOffset), nil
		}
		if why := p.recordAgrees(e); why != "" {
			return why, nil
		}
		open++
	}
	for offset := range set.All() {
		if _, err := p.Log.Peek(offset); err == nil {
			open--
		}
	}
	if open != 0 {
		return fmt.Sprintf("it has %d open transactions too few", -open), nil
	}
	if p.w.redo.highest >= 0 && p.w.redo.highest+1 != next {
		return fmt.Sprintf("it ends at %d, the last prepared message has number %d", next, p.w.redo.highest), nil
	}
	return "", nil
}

// endedAgrees compares the record of an ended transaction with its message, where that was walked over. Its number may be
// another: what has ended is asked for by its place. A filler has no group.
func (p *planner) endedAgrees(e txstate.Entry) string {
	if e.CommitOffset < p.d.Start {
		return "" // not looked at, or deleted with its segment
	}
	r, v, err := p.Log.Read(e.CommitOffset)
	if err != nil {
		return fmt.Sprintf("record %d: %v", e.Number, err)
	}
	defer v.Release()
	want := prepared(&r)
	want.State = e.State
	if e.GroupHash == 0 && e.State == txstate.RolledBack {
		want.GroupHash = 0
	}
	if r.SysFlag.Transaction() != message.FlagPrepared || want != e.Record {
		return fmt.Sprintf("record %d, of an ended transaction, does not fit its message at %d", e.Number, e.CommitOffset)
	}
	return ""
}

// recordAgrees compares an open record with its message.
func (p *planner) recordAgrees(e txstate.Entry) string {
	r, v, err := p.Log.Read(e.CommitOffset)
	if err != nil {
		return fmt.Sprintf("record %d: %v", e.Number, err)
	}
	defer v.Release()
	switch want := prepared(&r); {
	case r.SysFlag.Transaction() != message.FlagPrepared:
		return fmt.Sprintf("record %d points to a message at %d that is not a prepared one", e.Number, e.CommitOffset)
	case r.QueueOffset != e.Number:
		return fmt.Sprintf("record %d holds the message at %d, which has number %d: the table was renumbered", e.Number, e.CommitOffset, r.QueueOffset)
	case want != e.Record:
		return fmt.Sprintf("record %d does not fit its message at %d", e.Number, e.CommitOffset)
	}
	return ""
}

// planTransactions decides what is cut off the redo log, and whether the state table is made again.
func (p *planner) planTransactions() error {
	if p.Tx == nil {
		return nil
	}
	_, end := p.Tx.Redo.Bounds()
	c := p.w.redo
	p.d.redoCut, p.d.redoLacks = c.good, c.missing >= 0
	stale := c.good < end || c.missing >= 0
	if stale && (!p.Unclean || c.good < end) {
		text := fmt.Sprintf("the unit of the record at %d is missing; what follows is made again from the log", c.missing)
		if c.good < end {
			text = rangeSays("unit", c.good, end-1, "is", "are") + " cut and made again from the log"
		}
		p.d.warn(Warning{Kind: KindStaleRedo, File: redolog.Dir, Offset: c.good * redolog.UnitSize, Text: text})
	}
	if p.Unclean || stale {
		p.d.remakeStates = true
		return nil
	}
	why, err := p.statesAgree()
	if why != "" {
		p.d.remakeStates = true
		p.d.warn(Warning{Kind: KindStateTable, File: txstate.Dir, Text: why})
	}
	return err
}
