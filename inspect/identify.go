package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/txstate"
)

// Identity is what a store directory is: which line of RocketMQ wrote it and why that is believed, whether it was stopped
// cleanly, how large its files are and what they hold.
type Identity struct {
	// Line is "3.1", "4.x" or "5.x".
	Line string `json:"line"`
	// Dialect is the name of the dialect that stands for the line: "3.1", "4.9" or "5.3".
	Dialect string `json:"dialect"`
	// Why is what shows the line.
	Why string `json:"why"`
	// Clean is false when the file abort is there: a broker runs on the directory, or did not stop in order.
	Clean bool  `json:"clean"`
	Sizes Sizes `json:"sizes"`
	// Checkpoint is what the file of that name holds; nil when it is missing or damaged.
	Checkpoint *Checkpoint    `json:"checkpoint"`
	CommitLog  LogSummary     `json:"commitLog"`
	Queues     []QueueSummary `json:"queues"`
	Index      IndexSummary   `json:"index"`
	// Transactions is what the state table and the redo log of 3.1 hold; nil when they are not there.
	Transactions *TransactionSummary `json:"transactions"`
	// Recognised is what is there of kinds that are known but not read here.
	Recognised []Recognised `json:"recognised"`
	// Other are names in the root of the directory that no line of RocketMQ has.
	Other    []string  `json:"other"`
	Findings []Finding `json:"findings"`
}

// Checkpoint is the checkpoint file: store times in ms, then two fields of 5.x.
type Checkpoint struct {
	Physic        int64 `json:"physicTimestamp"`
	Logics        int64 `json:"logicsTimestamp"`
	Index         int64 `json:"indexTimestamp"`
	MasterFlushed int64 `json:"masterFlushedOffset"`
	ConfirmOffset int64 `json:"confirmOffset"`
}

// LogSummary is what the commit log holds.
type LogSummary struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"` // of all files
	// Start is the physical offset of the first file's first byte, End the one behind the last record.
	Start   int64 `json:"start"`
	End     int64 `json:"end"`
	Records int64 `json:"records"` // damaged ones included
	Damaged int64 `json:"damaged"` // of them, those with a wrong CRC
	// FirstStoreTime and LastStoreTime are of the first and the last undamaged record, in ms; 0 without one.
	FirstStoreTime int64 `json:"firstStoreTime"`
	LastStoreTime  int64 `json:"lastStoreTime"`
}

// QueueSummary is what there is of one queue in the log and in its own files.
type QueueSummary struct {
	Topic   string `json:"topic"`
	QueueID int32  `json:"queueId"`
	// Records is the number of undamaged records of the commit log that belong to the queue, those of 3.1 transactions
	// that are not queued (prepared, rolled back) included.
	Records int64 `json:"records"`
	Batch   bool  `json:"batch,omitempty"` // the units are those of a batch queue
	Units   int64 `json:"units"`           // on disk, without fillers
	// Min and Max are the first queue offset on disk and the one behind the last.
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

// IndexSummary is what the index files hold.
type IndexSummary struct {
	Files   int   `json:"files"`
	Bytes   int64 `json:"bytes"`
	Entries int64 `json:"entries"` // as the headers count them
	// FirstStoreTime and LastStoreTime are the bounds that the headers state, in ms; 0 without an entry.
	FirstStoreTime int64 `json:"firstStoreTime"`
	LastStoreTime  int64 `json:"lastStoreTime"`
}

// TransactionSummary is what the transaction files of 3.1 hold.
type TransactionSummary struct {
	Records   int64 `json:"records"`  // of the state table
	Prepared  int64 `json:"prepared"` // of them, those not ended
	RedoUnits int64 `json:"redoUnits"`
}

// Identify looks at the whole directory: it reads the commit log, the queues, and the headers of the index files.
// Everything that cannot be believed or not be read is in the findings of the result. The error is that of ctx, or of the
// directory itself.
func (d *Dir) Identify(ctx context.Context) (*Identity, error) {
	s := &survey{dir: d, id: &Identity{Recognised: []Recognised{}, Other: []string{}, Findings: []Finding{}}, queues: make(map[string]map[int32]*QueueSummary), told: make(map[Finding]bool)}
	for _, look := range []func(context.Context) error{s.root, s.log, s.units, s.index, s.transactions, s.line} {
		if err := look(ctx); err != nil {
			return nil, err
		}
	}
	s.sort()
	s.id.Sizes, _ = d.Sizes() // what could not be read is in the findings
	return s.id, nil
}

// survey puts an Identity together.
type survey struct {
	dir    *Dir
	id     *Identity
	queues map[string]map[int32]*QueueSummary
	later  string // what in the log shows 4.x or 5.x that a sample may have missed: "4.9" or "5.3"
	why    string
	told   map[Finding]bool // the findings
}

// maxFindings bounds how many findings an Identity holds, since a file of rubbish may have millions.
const maxFindings = 10_000

func (s *survey) report(f Finding) {
	if s.told[f] {
		return // two looks at one file find the same
	}
	switch n := len(s.id.Findings); {
	case n < maxFindings:
		s.id.Findings = append(s.id.Findings, f)
		s.told[f] = true
	case n == maxFindings:
		f = Finding{Kind: More, Severity: Error, File: f.File, Text: "there are more findings than are kept here"}
		s.id.Findings = append(s.id.Findings, f)
	}
}

// failed notes an error of reading as a finding, so that the rest is looked at; it passes the end of ctx on.
func (s *survey) failed(ctx context.Context, where string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, f := range unreadable(where, err) {
		s.report(f)
	}
	return nil
}

// queue is the summary of a queue, made when it is new.
func (s *survey) queue(topic []byte, id int32) *QueueSummary {
	ids := s.queues[string(topic)]
	if ids == nil {
		ids = make(map[int32]*QueueSummary)
		s.queues[string(topic)] = ids
	}
	q := ids[id]
	if q == nil {
		q = &QueueSummary{Topic: string(topic), QueueID: id}
		ids[id] = q
	}
	return q
}

// sort puts the queues into the result, by topic and id.
func (s *survey) sort() {
	s.id.Queues = []QueueSummary{}
	for _, topic := range slices.Sorted(maps.Keys(s.queues)) {
		ids := s.queues[topic]
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			s.id.Queues = append(s.id.Queues, *ids[id])
		}
	}
}

// log reads the commit log.
func (s *survey) log(ctx context.Context) error {
	segs, _, err := s.dir.Segments(func(Finding) {})
	if err != nil {
		return s.failed(ctx, commitLogDir, err)
	}
	l := &s.id.CommitLog
	l.Files = len(segs)
	for _, seg := range segs {
		l.Bytes += seg.Length
	}
	if len(segs) > 0 {
		l.Start, l.End = segs[0].Start, segs[0].Start
	}
	for r, err := range s.dir.Log(ctx, LogRange{}, s.report) {
		if err != nil {
			if err := s.failed(ctx, commitLogDir, err); err != nil {
				return err
			}
			continue
		}
		s.record(&r)
	}
	return nil
}

func (s *survey) record(r *LogRecord) {
	l := &s.id.CommitLog
	l.Records++
	l.End = r.PhysicalOffset + int64(r.Size)
	if r.Damaged != "" {
		l.Damaged++
		return
	}
	if l.FirstStoreTime == 0 {
		l.FirstStoreTime = r.StoreTimestamp
	}
	l.LastStoreTime = r.StoreTimestamp
	s.queue(r.Topic, r.QueueID).Records++
	switch {
	case s.later == "5.3":
	case r.Magic == commitlog.MagicV2:
		s.later, s.why = "5.3", "the record at "+strconv.FormatInt(r.PhysicalOffset, 10)+" is of version 2"
	case s.later != "":
	case r.BornHost.Is6() || r.StoreHost.Is6():
		s.later, s.why = "4.9", "the record at "+strconv.FormatInt(r.PhysicalOffset, 10)+" has an IPv6 host"
	case message.Lookup(r.Properties, message.PropertyUniqueKey) != nil:
		s.later, s.why = "4.9", "the record at "+strconv.FormatInt(r.PhysicalOffset, 10)+" has UNIQ_KEY"
	case message.Lookup(r.Properties, message.PropertyCluster) != nil:
		s.later, s.why = "4.9", "the record at "+strconv.FormatInt(r.PhysicalOffset, 10)+" has CLUSTER"
	}
}

// units reads the queues.
func (s *survey) units(ctx context.Context) error {
	for u, err := range s.dir.Queues(ctx, QueueFilter{}, s.report) {
		if err != nil {
			if err := s.failed(ctx, queueDir, err); err != nil {
				return err
			}
			continue
		}
		s.unit(&u)
	}
	for _, err := range s.dir.Extensions(ctx, QueueFilter{}, s.report) {
		if err != nil {
			if err := s.failed(ctx, extDir, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *survey) unit(u *QueueUnit) {
	if u.IsFiller() {
		return
	}
	q := s.queue([]byte(u.Topic), u.QueueID)
	first, behind := u.Index, u.Index+1
	if u.Batch != nil {
		q.Batch = true
		first, behind = u.Batch.BaseOffset, u.Batch.BaseOffset+int64(u.Batch.BatchSize)
	}
	if q.Units == 0 {
		q.Min = first
	}
	q.Units++
	q.Max = behind
}

// index reads the headers of the index files.
func (s *survey) index(ctx context.Context) error {
	x := &s.id.Index
	for f, err := range s.dir.IndexFiles(ctx, s.report) {
		if err != nil {
			if err := s.failed(ctx, indexDir, err); err != nil {
				return err
			}
			continue
		}
		x.Files++
		x.Bytes += f.Size
		if n := int64(f.Keys()); n > 0 {
			x.Entries += min(n, f.Size/index.EntrySize)
			x.FirstStoreTime = cmp.Or(x.FirstStoreTime, f.BeginTimestamp)
			x.LastStoreTime = f.EndTimestamp
		}
	}
	return nil
}

// transactions reads the state table and the redo log.
func (s *survey) transactions(ctx context.Context) error {
	if !s.dir.exists(transactionDir) {
		return nil
	}
	t := &TransactionSummary{}
	s.id.Transactions = t
	for r, err := range s.dir.StateTable(ctx, s.report) {
		if err != nil {
			if err := s.failed(ctx, transactionDir, err); err != nil {
				return err
			}
			continue
		}
		t.Records++
		if r.State == txstate.Prepared {
			t.Prepared++
		}
	}
	for _, err := range s.dir.RedoLog(ctx, s.report) {
		if err != nil {
			if err := s.failed(ctx, transactionDir, err); err != nil {
				return err
			}
			continue
		}
		t.RedoUnits++
	}
	return nil
}

// line says which line wrote the directory. What the whole log shows counts where a sample of it showed less.
func (s *survey) line(ctx context.Context) error {
	id, err := s.dir.lineOf()
	if err != nil {
		id = &recovery.Identity{Line: dialect.V49().Name, Why: "it could not be looked at"}
		if err := s.failed(ctx, ".", err); err != nil {
			return err
		}
	}
	s.id.Dialect, s.id.Why = id.Line, id.Why
	if s.later > id.Line && !s.dir.exists(transactionDir) {
		s.id.Dialect, s.id.Why = s.later, s.why
	}
	s.id.Line = lineName(s.id.Dialect)
	return nil
}
