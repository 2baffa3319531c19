package recovery

import (
	"fmt"
	"time"
)

// The kinds of a [Warning], besides those of mappedfile.Notice.
const (
	KindStaleRecords  = "stale records"             // left over from an earlier cut by the original, and cut
	KindHidden        = "records behind a blank"    // whole ones, in no queue, which an earlier cut of the original may have left over
	KindTornTail      = "torn tail"                 // an unfinished record at the end, cut
	KindLostPages     = "pages lost in a power cut" // unwritten ones with whole records behind them, cut; those are kept in lost+found
	KindStaleUnits    = "stale queue units"         // units behind the end of a queue that fit no record, cut
	KindQueueBehind   = "queue behind"              // units that were missing, made again from the log
	KindQueueGone     = "queue gone"                // a whole queue that was missing
	KindOffsetTwice   = "queue offset twice"        // two records of the log claim one place in a queue; the first keeps it
	KindWrongUnit     = "wrong queue unit"          // a unit that did not fit its record, written again
	KindHole          = "hole in a queue"           // queue offsets without a record, filled
	KindQueueFileGone = "queue file gone"           // the first files of a queue of which the log still has messages
	KindIndexRebuilt  = "index rebuilt"             // index files dropped or missing, made again
	KindCheckpoint    = "checkpoint damaged"        // not believed; recovery started as if there were none
	KindUnsafeTopic   = "unsafe topic name"         // a record whose topic cannot be a folder; it is in no queue
	KindLost          = "lost messages"             // units whose records lie in a gap of the log
	KindCut           = "cut by choice"             // OnDamage: what was cut, and where it is kept
	KindSkipped       = "skipped by choice"         // OnDamage: what was passed over, and where it is kept
	KindBatchQueue    = "batch queue"               // recognised, not written
	KindRocksDB       = "RocksDB queues"            // recognised, not supported
	KindDamage        = "damage in the log"         // refused: bytes that cannot be believed, with good records behind them
	KindEmptyLog      = "empty log"                 // refused: no record in the log, but units in queues
	KindDamagedTable  = "damaged table"             // refused: a JSON file that the store needs, without a good .bak
	KindNumberTwice   = "transaction number twice"  // two messages carry one number of the state table
	KindWildNumber    = "wild transaction number"   // a number of the state table that cannot be right
	KindNoTransaction = "end without a transaction" // a commit or rollback whose prepared message is not in the table
	KindStaleRedo     = "redo log not as the log"   // units that no record stands behind, or records without a unit: made again
	KindStateTable    = "state table made again"    // it was not what redo log and messages say
	KindPlaceTaken    = "place taken"               // refused: a file where the folder of a queue must be
	KindIdleQueues    = "note of queues damaged"    // where queues without files go on is not known
	KindNoPrepared    = "prepared not readable"     // its message is damaged
	KindNoGroup       = "prepared without a group"  // open, but nobody can be asked
)

// Warning is something that recovery came upon and went on from.
type Warning struct {
	Kind   string
	File   string // path in the store, "" if it is about none
	Offset int64  // in that file
	From   int64  // physical range, where the kind has one
	To     int64
	Text   string
}

// RefusedError says why a store was not opened for writing. Nothing was changed.
type RefusedError struct {
	Kind   string
	File   string // path in the store
	Offset int64  // in that file
	Text   string // what is there, and what the choices are
	Err    error  // the damage itself, or nil
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("not opened for writing: %s: %s: offset %d: %s", e.Kind, e.File, e.Offset, e.Text)
}

// Unwrap gives the damage.
func (e *RefusedError) Unwrap() error { return e.Err }

// Gap is a hole between two segments of the log: physical offsets from From up to To are gone.
type Gap struct{ From, To int64 }

// Lost are queue offsets whose records lie in a gap.
type Lost struct {
	Topic        string
	QueueID      int32
	From, To     int64 // the first and the last queue offset that is lost
	NextReadable int64 // the next one that can be read, or the end of the queue
}

// Report says what opening a store found and did.
type Report struct {
	Unclean     bool   // the abort file was there
	Trusted     bool   // a clean stop of our own, believed without a walk
	Start       int64  // physical offset where the walk began
	Reason      string // why there
	Records     int64  // walked
	Bytes       int64  // of the records walked
	Dispatched  int64  // records replayed into the derived structures
	LogStart    int64  // first byte of the log
	LogEnd      int64  // behind the last record
	LastRecord  int64  // physical offset of the last record, -1: unknown or none
	TruncatedAt int64  // where something other than zeros was cut off the log, -1: nowhere
	CutBytes    int64  // from there to the last byte that was not zero
	Gaps        []Gap
	Lost        []Lost
	Warnings    []Warning
	Planning    time.Duration // walk and decision
	Replaying   time.Duration // cuts and replay
}

func (r *Report) warn(w Warning) { r.Warnings = append(r.Warnings, w) }
