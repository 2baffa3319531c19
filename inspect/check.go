package inspect

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"strings"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/recovery"
)

// CheckOptions steer [Dir.Check].
type CheckOptions struct {
	// DelayLevels is messageDelayLevel, by which delivery times are computed. Default "": that of the line; a delivery time
	// by other levels is then taken as right if it can be one.
	DelayLevels string
	// Max is how many findings of one kind in one file are given; of the rest only the number is, as a finding of kind
	// [More]. Default 1000; negative: all.
	Max int
	// Progress, if not nil, is called now and then with the bytes of the commit log that are done, and all.
	Progress func(done, total int64)
	// Resume goes on where an earlier check of the same store ended; what that found is not given again. A state that is not
	// of this store is left out of account. The check of a store with the transactions of 3.1 or batch queues starts over.
	Resume *CheckState
	// Save, if not nil, is called with the state at the end of each file of the commit log, and when ctx ends.
	Save func(*CheckState)
	// Stats, if not nil, is filled in while the check goes on.
	Stats *CheckStats
}

// CheckStats says what a check looked at.
type CheckStats struct {
	Line         string `json:"line"`  // "3.1", "4.x" or "5.x"
	Clean        bool   `json:"clean"` // there is no file abort
	LogStart     int64  `json:"logStart"`
	LogEnd       int64  `json:"logEnd"` // behind the last record, as the log was when it was read
	Records      int64  `json:"records"`
	Damaged      int64  `json:"damaged"`    // of them, records with a wrong CRC
	PassedOver   int64  `json:"passedOver"` // stretches of the log where no record can be believed
	Leftover     int64  `json:"leftover"`   // records behind the end, from before a cut
	Queues       int    `json:"queues"`
	Units        int64  `json:"units"`
	ExtUnits     int64  `json:"extUnits"`
	IndexFiles   int    `json:"indexFiles"`
	Entries      int64  `json:"indexEntries"`
	StateRecords int64  `json:"stateRecords"`
	RedoUnits    int64  `json:"redoUnits"`
	// Findings counts what was found, by severity, what was not given included.
	Findings map[Severity]int64 `json:"findings"`
	// LastStoreTime is the greatest store time in the log, ms; 0 without a record.
	LastStoreTime int64 `json:"lastStoreTime"`
}

// Check compares everything in the directory with the commit log, in one pass over the log: consume queues, batch queues
// and extensions, the index, the checkpoint, the files under config, and state table and redo log of 3.1. Damage does not
// end it. What a killed or running broker may leave (queues behind the log, files made ahead) is of severity [Info] when the
// file abort is there.
//
// A store that is written to meanwhile can be checked: what lies behind the end of the log as it was read is looked at again
// before anything is said about it.
//
// An error means that something could not be read; the check goes on, unless it is that of ctx.
//
// Memory: some hundred bytes for each queue and 16 for each stretch of its units that is whole, a few MiB for what is being
// read, 4 bytes for each slot of one index file (20 MiB at RocketMQ's size), and a quarter byte for each record of the state
// table. It does not grow with the log.
func (d *Dir) Check(ctx context.Context, o CheckOptions) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		if o.Stats == nil {
			o.Stats = &CheckStats{}
		}
		o.Stats.Findings = make(map[Severity]int64)
		if o.Max == 0 {
			o.Max = 1000
		}
		err := d.checkOnce(ctx, o, yield)
		if errors.Is(err, errNotResumed) {
			o.Resume = nil
			*o.Stats = CheckStats{Findings: make(map[Severity]int64)}
			err = d.checkOnce(ctx, o, yield)
		}
		if err != nil {
			yield(Finding{}, err)
		}
	}
}

// checkOnce is one run of Check; the error is the one that ended it, nil when the caller wanted no more.
func (d *Dir) checkOnce(ctx context.Context, o CheckOptions, yield func(Finding, error) bool) error {
	c := &checker{o: o, s: o.Stats, yield: yield, given: make(map[kindIn]int64), linked: make(map[string]bool), told: make(map[string]bool)}
	own := *d
	own.followed = c.followed
	c.dir = &own
	defer c.close()
	if err := c.run(ctx); !errors.Is(err, errStop) && !c.stopped {
		return err
	}
	return nil
}

// kindIn is what CheckOptions.Max counts by.
type kindIn struct {
	kind Kind
	file string
}

// checker is one run of Check.
type checker struct {
	dir      *Dir
	o        CheckOptions
	s        *CheckStats
	yield    func(Finding, error) bool
	stopped  bool // the caller wants no more
	given    map[kindIn]int64
	held     *Finding // waits for others of its sort
	heldMore int64    // so many came
	rules    *dialect.Dialect
	derive   *recovery.Deriver
	late     Severity // of what is behind the log

	segs      []Segment
	logs      []*logFile // open for recordAt, the one used last at the end
	damaged   []Finding  // stretches of the log that cannot be believed, at most maxFindings
	pending   []func() error
	misplaced map[string]bool // names in the root that are no folder, or no file, where they should be one
	linked    map[string]bool // links that were reported
	unreadLog bool            // some of the log could not be read
	told      map[string]bool // errors of reading that were given, at most maxFindings
	read      bool            // the whole log was read
	mute      bool            // findings were given by the run that is gone on with
	from      int64

	// goodEnd is behind the last record that can be believed, queuedEnd behind the last one of those that has a queue unit.
	goodEnd, queuedEnd int64
	// vouched is the greatest offset that index and redo log know of.
	vouched  int64
	leftover bool // what comes now in the log lies behind its end
	queues   *checkQueues
	index    *checkIndex
	states   *checkStates
}

// run makes all comparisons. The error ends the check.
func (c *checker) run(ctx context.Context) error {
	c.mute = c.o.Resume != nil
	if err := c.prepare(ctx); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{c.root, c.listQueues, c.resume} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	c.mute = false
	for _, part := range []func(context.Context) error{
		c.log, c.queues.finish, c.index.finish, c.states.finish, c.emptyLog, c.checkpoint, c.config, c.more,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare finds which line wrote the store.
func (c *checker) prepare(ctx context.Context) error {
	c.places()
	id, err := c.dir.lineAnyway()
	if err != nil {
		if err := cmp.Or(ctx.Err(), c.tell(err)); err != nil {
			return err
		}
	}
	if c.rules, err = dialect.Parse(id.Line); err != nil {
		return err
	}
	if c.derive, err = recovery.NewDeriver(c.rules, c.o.DelayLevels); err != nil {
		return err
	}
	c.s.Line, c.s.Clean = lineName(id.Line), c.dir.Clean()
	c.late = Info
	if c.s.Clean {
		c.late = Warning
	}
	c.queues, c.index, c.states = newCheckQueues(c), newCheckIndex(c), newCheckStates(c)
	return nil
}

func (c *checker) close() {
	for _, l := range c.logs {
		l.f.close()
	}
	if c.queues != nil {
		c.queues.close()
		c.index.close()
		c.states.close()
	}
}

// merges says whether neighbours of a kind in one file are one finding: what points to where the log is not any more.
func merges(k Kind) bool {
	return k == UnitBeyond || k == UnitOfDamage || k == EntryBeyond || k == RedoBeyond
}

// report gives a finding to the caller, unless there were too many of its sort. Those that go together wait for the next.
func (c *checker) report(f Finding) {
	if c.held != nil && c.held.Kind == f.Kind && c.held.File == f.File && c.held.Severity == f.Severity {
		c.heldMore++
		return
	}
	c.release()
	if merges(f.Kind) {
		c.held = &f
		return
	}
	c.give(f)
}

// release gives the finding that waits.
func (c *checker) release() {
	if f := c.held; f != nil {
		if c.heldMore > 0 {
			f.Text += "; " + countText(c.heldMore, "more of that sort follows", "more of that sort follow")
		}
		c.held, c.heldMore = nil, 0
		c.give(*f)
	}
}

func (c *checker) give(f Finding) {
	if c.stopped || c.mute {
		return
	}
	c.s.Findings[f.Severity]++
	at := kindIn{f.Kind, f.File}
	if _, known := c.given[at]; !known && len(c.given) >= maxFindings {
		at.file = "" // so many files that they count together
	}
	c.given[at]++
	if c.o.Max < 0 || c.given[at] <= int64(c.o.Max) {
		c.stopped = !c.yield(f, nil)
	}
}

// more says of what there was more.
func (c *checker) more(context.Context) error {
	c.release()
	if c.o.Max < 0 {
		return nil
	}
	for at, n := range c.given {
		if n > int64(c.o.Max) && !c.stopped {
			c.stopped = !c.yield(Finding{
				Kind: More, Severity: Info, File: at.file, Text: countText(n-int64(c.o.Max), "more finding", "more findings") + " of kind " + string(at.kind),
			}, nil)
		}
	}
	return nil
}

// trouble passes an error of reading on and says whether to end.
func (c *checker) trouble(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.stopped || errors.Is(err, errStop) {
		return errStop
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok && c.misplaced[at.Path] {
		return nil // there is a finding about it
	}
	if err != nil {
		return c.tell(err)
	}
	return nil
}

// tell gives an error to the caller, once: each record whose unit lies in a file that cannot be read comes upon it.
func (c *checker) tell(err error) error {
	for _, err := range apart(err) {
		if c.stopped || c.told[err.Error()] {
			continue
		}
		if len(c.told) < maxFindings {
			c.told[err.Error()] = true
		}
		c.stopped = !c.yield(Finding{}, err)
	}
	if c.stopped {
		return errStop
	}
	return nil
}

// root looks at the names in the directory.
func (c *checker) root(context.Context) error {
	entries, err := c.dir.list(".")
	if err != nil {
		return err
	}
	known := rootNames()
	for _, e := range entries {
		if _, ok := known[e.name]; !ok && !strings.HasPrefix(e.name, "dledger-") {
			c.report(Finding{Kind: ForeignFile, Severity: Info, File: e.name, Text: "no line of RocketMQ has that name in a store"})
		}
	}
	return nil
}

// log reads the commit log and compares each record.
func (c *checker) log(ctx context.Context) error {
	segs, _, err := c.dir.Segments(func(Finding) {})
	if err != nil {
		c.unreadLog = true
		return c.trouble(ctx, err)
	}
	var total, done int64
	starts := make(map[string]int64, len(segs))
	for i, s := range segs {
		starts[s.File] = total
		total += s.Length
		if i > 0 && segs[i-1].End() < s.Start && i < maxFindings && c.from == 0 { // what is missing counts as damaged
			c.damaged = append(c.damaged, Finding{From: segs[i-1].End(), To: s.Start})
		}
	}
	if len(segs) > 0 && c.from == 0 {
		c.s.LogStart, c.s.LogEnd = segs[0].Start, segs[0].Start
	}
	file := ""
	var ended error
	c.dir.walkLog(ctx, LogRange{From: c.from}, c.inLog, func(r *LogRecord, err error) bool {
		if err == nil && r.File != file && file != "" {
			c.save(r.PhysicalOffset)
		}
		c.unreadLog = c.unreadLog || err != nil
		if err == nil {
			err = c.record(r)
		}
		if err != nil || c.stopped {
			ended = c.trouble(ctx, err)
			return ended == nil
		}
		if r.File != file {
			file, done = r.File, starts[r.File]
		}
		done += int64(r.Size)
		if c.o.Progress != nil && c.s.Records%4096 == 0 {
			c.o.Progress(min(done, total), total)
		}
		return true
	})
	if ctx.Err() != nil {
		c.save(c.s.LogEnd)
	}
	if ended != nil {
		return ended
	}
	if c.o.Progress != nil && ctx.Err() == nil {
		c.o.Progress(total, total)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.read = true
	for _, f := range c.pending {
		if err := f(); err != nil {
			if err := c.trouble(ctx, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// postpone keeps f for the time when the whole log has been read, and says whether that is so. It is for what points behind
// the place up to which the log has been read. Too many do not wait.
func (c *checker) postpone(pointer int64, f func() error) bool {
	if c.read || pointer < c.s.LogEnd || len(c.pending) >= maxFindings {
		return false
	}
	c.pending = append(c.pending, f)
	return true
}

// inLog takes a finding about the log.
func (c *checker) inLog(f Finding) {
	switch f.Kind {
	case ForeignFile, EmptySegment, ShortSegment, WrongSize, Gap, Overlap: // of the files, not of their bytes
		if c.from > 0 {
			return // the run before said so
		}
	}
	if !c.leftover && c.isLeftover(f) {
		c.leftover = true
		c.s.LogEnd = f.From
		f.Severity = Info
		f.Text += "; the broker stopped cleanly and nothing points here or behind, so it is left over from before a cut"
	}
	switch f.Kind {
	case BadMagic, BadSize, BadPlace, Zeros:
		if f.Severity == Error {
			c.s.PassedOver++
		}
	}
	if f.To > f.From && len(c.damaged) < maxFindings {
		c.damaged = append(c.damaged, f)
	}
	c.report(f)
}

// inDamage says whether a physical offset lies where the log is damaged.
func (c *checker) inDamage(off int64) bool {
	for _, f := range c.damaged {
		if f.From <= off && off < f.To {
			return true
		}
	}
	return false
}

// record compares what is made from a record.
func (c *checker) record(r *LogRecord) error {
	if c.leftover {
		c.s.Leftover++
		return nil
	}
	c.s.Records++
	c.s.LogEnd = r.PhysicalOffset + int64(r.Size)
	if r.Damaged != "" {
		c.s.Damaged++
		return nil
	}
	c.goodEnd = c.s.LogEnd
	if recovery.StandsForLoss(&r.Record) { // what pointed there counts as of damage
		if n := len(c.damaged); n > 0 && c.damaged[n-1].To == r.PhysicalOffset {
			c.damaged[n-1].To = c.s.LogEnd
		} else if n < maxFindings {
			c.damaged = append(c.damaged, Finding{From: r.PhysicalOffset, To: c.s.LogEnd})
		}
		return nil
	}
	c.fields(r)
	if r.SysFlag.Queued() {
		c.queuedEnd = c.s.LogEnd
	}
	c.s.LastStoreTime = max(c.s.LastStoreTime, r.StoreTimestamp)
	unique, keys, err := c.queues.record(r)
	if err != nil {
		return err
	}
	if err := c.index.record(r, unique, keys); err != nil {
		return err
	}
	return c.states.record(r)
}
