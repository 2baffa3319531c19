package inspect

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// Transaction is a record of the state table of 3.1 together with what its prepared message says, or the same of a half
// message of 4.x.
type Transaction struct {
	// StateRecord is raw as on disk. Of a half message the number is its queue offset and File is that of the log.
	StateRecord
	// Carried is the number that the message itself carries, -1 when there is no message. It differs from the record's when
	// 3.1 gave new numbers after a crash.
	Carried int64
	// Of the message, empty when it is not there.
	Group, Topic, MsgID string
	QueueID             int32
	// StoreTimestamp is the message's, ms; of a record without one its seconds.
	StoreTimestamp int64
	// Filler: the record only fills the place of a message that is not known.
	Filler bool
}

// Open says whether the record counts as open.
func (t *Transaction) Open() bool { return t.State == txstate.Prepared }

// HasStateTable says whether the store keeps its transactions as 3.1 does, be the files there or not: by the folder, by our own
// note, by the line that wrote the store, or by a prepared message among the first records of the log's first and last file.
func (d *Dir) HasStateTable() bool { return d.exists(transactionDir) || d.keepsStates() }

// findKeepsStates looks for what shows a state table when its folder is not there. What cannot be read shows nothing.
func (d *Dir) findKeepsStates() bool {
	if note, err := config.LoadMarker[mappedfile.File](d.mapped()); err == nil && note.TransactionEngine == stateTableEngine {
		return true
	}
	if id, err := d.lineOf(); err == nil && id.Line == dialect.V31().Name {
		return true
	}
	segs, err := d.segmentsIn(commitLogDir, func(Finding) {})
	if err != nil || len(segs) == 0 {
		return false
	}
	return d.prepares(segs[0]) || len(segs) > 1 && d.prepares(segs[len(segs)-1])
}

// stateTableEngine is what our note calls the engine with a state table.
const stateTableEngine = "stateTable"

// sampleRecords is how many records at the start of a file of the log are looked at.
const sampleRecords = 1000

// prepares says whether a prepared message is among the first records of a file of the log. Half messages of 4.x do not have
// that flag.
func (d *Dir) prepares(seg Segment) bool {
	l, err := d.openLog(seg)
	if err != nil {
		return false
	}
	defer l.f.close()
	for range sampleRecords {
		if !l.s.Next() {
			return false
		}
		if l.s.Record().SysFlag.Transaction() == message.FlagPrepared {
			return true
		}
	}
	return false
}

// Transactions walks the records of the state table and looks for their messages. Besides what [Dir.StateTable] reports, it
// reports open records without a message, those of another number than their message carries, and those that do not fit
// theirs.
func (d *Dir) Transactions(ctx context.Context, report func(Finding)) iter.Seq2[Transaction, error] {
	return func(yield func(Transaction, error) bool) {
		l := recordReader{dir: d}
		defer l.close()
		there := false
		for s, err := range d.StateTable(ctx, report) {
			there = true
			var t Transaction
			if err == nil {
				t, err = l.transaction(s, report)
			}
			if !yield(t, err) {
				return
			}
		}
		if there || !d.HasStateTable() {
			return
		}
		if err := d.openWithoutTable(ctx, report); err != nil {
			yield(Transaction{}, err)
		}
	}
}

// openWithoutTable reports what the redo log, or without that the commit log, has as open in a store whose state table holds
// nothing: 3.1 leaves none when nothing is open, and takes a lost one for that.
func (d *Dir) openWithoutTable(ctx context.Context, report func(Finding)) error {
	o := openEvents{open: make(map[int64]RedoUnit)}
	for u, err := range d.RedoLog(ctx, func(Finding) {}) {
		if err != nil {
			return err
		}
		o.add(u)
	}
	by, severity := "by the redo log, and there is no state table", Warning
	if !o.any {
		by = "by the log, and there is neither a state table nor a redo log"
		if !d.Clean() {
			severity = Info // a broker that was killed had not come to it
		}
		for r, err := range d.Log(ctx, LogRange{}, report) {
			if err != nil {
				return err
			}
			if u, ok := recovery.Event(&r.Record); ok && r.Damaged == "" {
				file, offset := r.place()
				o.add(RedoUnit{Unit: u, File: file, Offset: offset})
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(o.open)) {
		u := o.open[at]
		report(Finding{
			Kind: MissingState, Severity: severity, File: u.File, Offset: u.Offset, Expected: "a record of the state table",
			Text: fmt.Sprintf("the prepared message at %d is open %s", at, by),
		})
	}
	return nil
}

// openEvents folds what happened to transactions into those that are open, at most maxHomeless.
type openEvents struct {
	open map[int64]RedoUnit // by the place of the prepared message
	any  bool
}

func (o *openEvents) add(u RedoUnit) {
	o.any = true
	if at, ends := u.Resolves(); ends {
		delete(o.open, at)
	} else if len(o.open) < maxHomeless {
		o.open[u.PhysicalOffset] = u
	}
}

// transaction adds what the message of a record says.
func (l *recordReader) transaction(s StateRecord, report func(Finding)) (Transaction, error) {
	t := Transaction{StateRecord: s, Carried: -1, StoreTimestamp: s.Seconds() * 1000}
	r, err := l.at(s.CommitOffset)
	if err != nil {
		return t, err
	}
	if r != nil && s.GroupHash == 0 && s.State == txstate.RolledBack && r.QueueOffset != s.Number {
		t.Filler = true
		return t, nil
	}
	f := Finding{Kind: WrongState, Severity: Error, File: s.File, Offset: s.Offset, Found: stateText(s.Record)}
	switch {
	case r == nil && t.Open():
		f.Kind, f.Severity = Orphan, Warning
		f.Text = fmt.Sprintf("record %d is open, and no message starts at %d in the log", s.Number, s.CommitOffset)
		report(f)
		return t, nil
	case r == nil:
		return t, nil
	case r.SysFlag.Transaction() != message.FlagPrepared:
		f.Text = fmt.Sprintf("record %d points to the record at %d, which is no prepared message", s.Number, s.CommitOffset)
		report(f)
		return t, nil
	}
	t.describe(r)
	if want := message.HashString(t.Group); s.Size != r.Size || s.GroupHash != want {
		f.Expected = fmt.Sprintf("%d bytes, group hash %d", r.Size, want)
		f.Text = fmt.Sprintf("record %d does not fit its message at %d", s.Number, s.CommitOffset)
		report(f)
	}
	if t.Carried != s.Number {
		f.Kind, f.Severity, f.Expected, f.Found = Renumbered, Warning, decimal(t.Carried), decimal(s.Number)
		f.Text = fmt.Sprintf("record %d is that of the message at %d, which carries number %d", s.Number, s.CommitOffset, t.Carried)
		report(f)
	}
	return t, nil
}

// describe takes over what a message says of its transaction.
func (t *Transaction) describe(r *commitlog.Record) {
	t.Carried, t.StoreTimestamp, t.MsgID = r.QueueOffset, r.StoreTimestamp, r.ID()
	t.Group = string(message.Lookup(r.Properties, message.PropertyProducerGroup))
	t.Topic, t.QueueID = string(r.Topic), r.QueueID
}

// RedoUnits is [Dir.RedoLog], and compares each unit with its record: units behind the end of the log and those that are not
// of their record are reported. Where the log begins later than the unit's record lay, nothing is said of it.
func (d *Dir) RedoUnits(ctx context.Context, report func(Finding)) iter.Seq2[RedoUnit, error] {
	return func(yield func(RedoUnit, error) bool) {
		l := recordReader{dir: d}
		defer l.close()
		for u, err := range d.RedoLog(ctx, report) {
			if err == nil {
				err = l.redoUnit(&u, report)
			}
			if !yield(u, err) {
				return
			}
		}
	}
}

// redoUnit compares a unit with its record.
func (l *recordReader) redoUnit(u *RedoUnit, report func(Finding)) error {
	r, err := l.at(u.PhysicalOffset)
	if err != nil || r == nil && u.PhysicalOffset < l.start() {
		return err
	}
	f := Finding{Kind: WrongRedo, Severity: Error, File: u.File, Offset: u.Offset, Found: redoText(u.Unit)}
	if r == nil {
		f.Kind, f.Severity = RedoBeyond, Warning
		f.Text = fmt.Sprintf("unit %d is left over from before a cut: no record starts at %d", u.Index, u.PhysicalOffset)
		report(f)
		return nil
	}
	want := redolog.Unit{PhysicalOffset: u.PhysicalOffset, Size: r.Size, TagsCode: redolog.Prepared}
	switch r.SysFlag.Transaction() {
	case message.FlagPrepared:
	case 0:
		f.Text = fmt.Sprintf("unit %d points to the record at %d, which is of no transaction", u.Index, u.PhysicalOffset)
		report(f)
		return nil
	default:
		want.TagsCode = r.PreparedTransactionOffset
	}
	if want != u.Unit {
		f.Expected, f.Text = redoText(want), fmt.Sprintf("unit %d does not fit the record at %d", u.Index, u.PhysicalOffset)
		report(f)
	}
	return nil
}

// recordReader reads records of the log by place, most of them in order: it keeps one file open.
type recordReader struct {
	dir  *Dir
	segs []Segment
	open *logFile
}

// at is the record at a physical offset, whole and undamaged, until the next call; nil when there is none.
func (l *recordReader) at(off int64) (*commitlog.Record, error) {
	if l.segs == nil {
		segs, err := l.dir.segmentsIn(commitLogDir, func(Finding) {})
		if err != nil {
			return nil, err
		}
		l.segs = append([]Segment{}, segs...)
	}
	if l.open == nil || off < l.open.seg.Start || off >= l.open.seg.End() {
		l.close()
		n, ok := segmentOf(l.segs, off)
		if !ok {
			return nil, nil
		}
		f, err := l.dir.openLog(l.segs[n])
		if err != nil {
			return nil, err
		}
		l.open = f
	}
	r, ok, err := l.open.recordAt(off, func(Finding) {})
	if err != nil || !ok || r.Damaged != "" || r.PhysicalOffset != off {
		return nil, err
	}
	return &r.Record, nil
}

// start is where the log begins.
func (l *recordReader) start() int64 {
	if len(l.segs) == 0 {
		return 0
	}
	return l.segs[0].Start
}

func (l *recordReader) close() {
	if l.open != nil {
		l.open.f.close()
		l.open = nil
	}
}
