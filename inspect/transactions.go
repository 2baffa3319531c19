package inspect

import (
	"context"
	"iter"
	"path"

	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/redolog"
	"github.com/rocketstore/rocketstore/txstate"
)

// StateRecord is one record of the transaction state table of 3.1, raw as on disk.
type StateRecord struct {
	// Number is the record's place in the table. What the prepared message says is its number may be another one.
	Number int64
	txstate.Record

	File   string // path inside the store directory
	Offset int64  // of the record in File, bytes
}

// StateTable walks the records of the transaction state table of 3.1 by number. Findings and errors are as with
// [Dir.Queues].
func (d *Dir) StateTable(ctx context.Context, report func(Finding)) iter.Seq2[StateRecord, error] {
	return func(yield func(StateRecord, error) bool) {
		w := unitWalk[txstate.Entry]{
			dir: d, of: "the state table", size: txstate.RecordSize, scan: txstate.Scan, report: report,
			yield: func(at place, e txstate.Entry, err error) bool {
				return yield(StateRecord{at.index, e.Record, at.file, at.offset}, err)
			},
		}
		segs, err := d.transactionFiles(recovery.StateTableDir, report)
		if err != nil {
			yield(StateRecord{}, err)
			return
		}
		w.walk(ctx, segs)
	}
}

// RedoUnit is one unit of the transaction redo log of 3.1, raw as on disk.
type RedoUnit struct {
	Index int64 // by its place
	redolog.Unit

	File   string // path inside the store directory
	Offset int64  // of the unit in File, bytes
}

// RedoLog walks the units of the transaction redo log of 3.1 in order. Findings and errors are as with [Dir.Queues].
func (d *Dir) RedoLog(ctx context.Context, report func(Finding)) iter.Seq2[RedoUnit, error] {
	return func(yield func(RedoUnit, error) bool) {
		w := unitWalk[redolog.Entry]{
			dir: d, of: "the redo log", size: redolog.UnitSize, scan: redolog.Scan, report: report,
			yield: func(at place, e redolog.Entry, err error) bool {
				return yield(RedoUnit{at.index, e.Unit, at.file, at.offset}, err)
			},
		}
		for _, dir := range []string{path.Dir(path.Dir(recovery.RedoLogDir)), path.Dir(recovery.RedoLogDir)} {
			d.onlyFolder(dir, recovery.RedoLogDir, report)
		}
		segs, err := d.transactionFiles(recovery.RedoLogDir, report)
		if err != nil {
			yield(RedoUnit{}, err)
			return
		}
		w.walk(ctx, segs)
	}
}

// onlyFolder reports what lies in dir besides the folder on the way to below.
func (d *Dir) onlyFolder(dir, below string, report func(Finding)) {
	entries, err := d.list(dir)
	if err != nil {
		return // reading below fails as well
	}
	for _, e := range entries {
		if name := path.Join(dir, e.name); name != below && name != path.Dir(below) {
			report(foreign(name, "the redo log is one queue only"))
		}
	}
}

func (d *Dir) transactionFiles(dir string, report func(Finding)) ([]Segment, error) {
	segs, err := d.segmentsIn(dir, report)
	if err == nil {
		checkRun(segs, inferSize(segs), d.zeroFile, report)
	}
	return segs, err
}
