package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// OnDamage says what to do when the log is damaged in the middle: good records lie behind bytes that cannot be believed.
type OnDamage int

// The choices.
const (
	// Refuse opens nothing for writing and changes nothing; the error says what is there.
	Refuse OnDamage = iota
	// CutAndKeep ends the log before the damage; what lay behind is kept in lost+found.
	CutAndKeep
	// Skip keeps the good records behind the damage. The damaged bytes are kept in lost+found, and in their place come
	// records of no queue (rolled back, topic LOST_AND_FOUND) or a blank, so that every reader passes over them.
	Skip
)

// Hint is what we noted at our own last clean stop, and at the last checkpoint.
type Hint struct {
	LogEnd      int64       // where the log ended
	LastRecord  int64       // physical offset of the last record, -1 none
	Fingerprint uint64      // of all queues' ends and the index, see [Fingerprint]
	Dispatched  int64       // log and all derived structures were durable up to here
	RedoEnd     int64       // index behind the last unit of the redo log that was durable then, 0: not known
	SameBoot    bool        // the system has run without a break since, so a power cut has taken nothing
	Index       *index.Mark // what was durable of the last index file, nil: not known
}

// Parts are the pieces of one store, opened but not recovered.
type Parts struct {
	FS         mappedfile.FS
	Log        *commitlog.Log
	Queues     *consumequeue.Table
	Index      *index.Index  // nil: no index is kept
	Tx         *Transactions // nil: the store has no state table
	Derive     *Deriver
	Checkpoint Checkpoint
	Damaged    error // what was wrong with the checkpoint, or nil
	Unclean    bool  // the abort file was there
	Hint       *Hint // nil: none
}

// Options steer recovery. The zero value works.
type Options struct {
	// OnDamage is the choice when the log is damaged in the middle. Default Refuse.
	OnDamage OnDamage
	// StartAnew lets a store whose log is empty drop queues and index that are not. Default: refused.
	StartAnew bool
	// VerifyBytes is how much of the log's end is compared with queues and index, at the least, after every stop but a clean
	// one of our own. Default 1 GiB, never less than the last segment.
	VerifyBytes int64
	// IndexSafe lets the checkpoint's index time count for the start. Java: messageIndexSafe.
	IndexSafe bool
	// ReplayMemory bounds, in bytes, what the check keeps of records so that the replay need not decode them again. Default 128 MiB,
	// enough for some 2 million records; those behind them are decoded twice. Negative: nothing is kept.
	ReplayMemory int64
	// Foresee lets a plan say also what the replay would warn of, as far as that can be told without doing it. It is for plans that nobody
	// carries out.
	Foresee bool
	// Progress is called now and then with the bytes walked or replayed and the bytes in all.
	Progress func(phase string, done, total int64)
	// Logger receives the decisions. Default: discard.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.ReplayMemory == 0 {
		c.ReplayMemory = 128 << 20
	}
	if c.VerifyBytes == 0 {
		c.VerifyBytes = 1 << 30
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// queuePlan is what is to become of one queue before the replay.
type queuePlan struct {
	queue *consumequeue.Queue
	end   int64 // units from here on are cut, or missing
	cut   bool  // there are units behind it
	anew  bool  // all its files are removed, and it is made again
	// readable is end for who reads only: files that are missing keep none of the others from being read.
	readable int64
	keepEnd  int64   // where a queue that is made again ends at the least, 0: anywhere
	voids    []int64 // units that become fillers, as the log has no record for their places
}

// Decision is what recovery is going to do. Making it changes nothing.
type Decision struct {
	Report
	Refused *RefusedError // not nil: opening for writing is refused

	replayFrom   int64
	lastTime     int64
	queues       []queuePlan
	indexFrom    int64        // records from here on go into the index
	indexKeep    int          // of the oldest index files; later ones are dropped
	indexProof   *index.Proof // of the last of them, which ends there; nil: as it is
	redoCut      int64        // units of the redo log from this index on are cut
	redoLacks    bool         // the replay adds units to it
	remakeStates bool         // the state table is made again
	early        bool         // the replay begins before what the checkpoint vouches for
	anew         bool
	missing      []Change // queues that the replay adds to
	readable     int64    // behind the last record that can be read, damage or not
	keep         Beyond   // what a cut by choice takes away
	holes        []hole   // what is passed over by choice
	kept         []*kept  // what the walk kept for the replay
}

// Plan looks at the parts of a store and decides what opening it for writing has to do. It changes nothing on disk. An error means that it could not look; what speaks against opening is in the decision.
func Plan(ctx context.Context, p *Parts, o *Options) (*Decision, error) {
	return plan(ctx, p, o, false)
}

// plan is Plan; with replay to follow its walk keeps what that wants.
func plan(ctx context.Context, p *Parts, o *Options, replay bool) (*Decision, error) {
	began := time.Now()
	pl := &planner{Parts: p, opts: o.withDefaults(), d: &Decision{}, badBlanks: make(map[int64]bool), ends: make(map[*consumequeue.Queue]int64), fits: make(map[index.Header]bool), unindexed: -1, replay: replay}
	pl.d.Unclean, pl.d.TruncatedAt, pl.d.LastRecord = p.Unclean, -1, -1
	pl.notices()
	err := pl.decide(ctx)
	if err == nil && pl.opts.Foresee && !replay {
		err = pl.foresee(ctx)
	}
	pl.d.Planning = time.Since(began)
	return pl.d, err
}

type planner struct {
	*Parts
	opts Options
	d    *Decision
	w    *walk
	// replay: the walk keeps records for it.
	replay bool

	badBlanks map[int64]bool                // see walk
	ends      map[*consumequeue.Queue]int64 // see foundEnd
	fits      map[index.Header]bool         // see indexFits
	unindexed int64                         // of lookBetweenIndexFiles, -1 none
	proof     *index.Proof                  // of the index file that is taken up where our last checkpoint left it, nil none
	changed   bool                          // since our own clean stop, though the log is as it was
}

func (p *planner) notices() {
	lists := [][]mappedfile.Notice{p.Log.Queue().Notices(), p.Queues.Notices()}
	if p.Index != nil {
		lists = append(lists, p.Index.Notices())
	}
	if p.Tx != nil {
		lists = append(lists, p.Tx.States.Notices(), p.Tx.Redo.Notices())
	}
	for _, list := range lists {
		for _, n := range list {
			p.d.warn(Warning{Kind: n.Kind, File: n.File, From: n.From, To: n.To, Text: n.Text})
		}
	}
	if p.Damaged != nil {
		p.d.warn(Warning{Kind: KindCheckpoint, File: CheckpointFile, Text: p.Damaged.Error()})
	}
}

func (p *planner) decide(ctx context.Context) error {
	p.d.LogStart, _ = p.Log.Bounds()
	if p.trusted() {
		p.d.Trusted, p.d.Reason = true, "clean stop of our own"
		p.d.Start, p.d.LogEnd, p.d.LastRecord = p.Hint.LogEnd, p.Hint.LogEnd, p.Hint.LastRecord
		p.d.replayFrom, p.d.indexFrom = p.d.LogEnd, p.d.LogEnd
		for q := range p.Queues.All() {
			_, end := q.Bounds()
			p.d.queues = append(p.d.queues, queuePlan{queue: q, end: end, readable: end})
		}
		return p.lost()
	}
	start, reason, err := p.chooseStart()
	if err != nil {
		return err
	}
	if err := p.proveIndex(); err != nil {
		return err
	}
	p.lookBetweenIndexFiles(start)
	for {
		p.w = newWalk(p.Log, p.Derive)
		p.w.taken, p.w.skip, p.w.unclean = p.taken, p.opts.OnDamage == Skip, p.Unclean
		p.w.badBlanks = p.badBlanks
		if p.Index != nil {
			p.w.index = p.indexFiles()
		}
		if p.replay && p.Tx == nil { // the state table wants more of a record than is kept
			p.w.keep = newKeeper(p.Index, p.opts.ReplayMemory)
		}
		if total := p.size(start); p.opts.Progress != nil {
			p.w.progress = func(done int64) { p.opts.Progress("check", done, total) }
		}
		if p.Tx != nil {
			p.w.redo = newRedoCheck(p.Tx.Redo, p.Log, start, p.gaps())
			p.w.redo.collect = p.opts.Foresee && !p.replay
		}
		err := p.w.run(ctx, start)
		if p.w.redo != nil {
			p.w.redo.passGaps(p.w.end)
			p.w.redo.stop()
		}
		if err != nil {
			return err
		}
		if p.markBlanks() {
			continue
		}
		need, why := p.needs(start)
		if need >= start {
			break
		}
		start, reason, p.d.early = need, why, true
	}
	p.d.Start, p.d.Reason = start, reason
	p.d.holes, p.d.kept = p.w.holes, p.w.kept
	p.d.Records, p.d.Bytes, p.d.Gaps = p.w.records, p.w.bytes, p.w.gaps
	p.d.readable = max(p.w.end, p.w.beyond.End)
	p.d.LogEnd, p.d.lastTime, p.d.LastRecord, p.d.replayFrom = p.w.end, p.w.lastTime, p.w.last, start
	return p.conclude()
}

// size is how many bytes the segments hold from start on.
func (p *planner) size(start int64) int64 {
	_, end := p.Log.Bounds()
	return end - start
}

// trusted says whether the store is as we left it at our own last clean stop: no abort file, the same ends, and the last
// record of the log checks out.
func (p *planner) trusted() bool {
	h := p.Hint
	if p.Unclean || h == nil || h.LastRecord < 0 || h.LogEnd < p.d.LogStart {
		return false
	}
	r, v, err := p.Log.Read(h.LastRecord)
	if err != nil {
		return false
	}
	end := h.LastRecord + int64(r.Size)
	v.Release()
	if end != h.LogEnd && h.LogEnd%p.Log.SegmentSize() != 0 {
		return false
	}
	if next, v, err := p.Log.Read(h.LogEnd); err == nil { // somebody wrote on
		_ = next
		v.Release()
		return false
	}
	p.changed = Fingerprint(p.Queues, p.Index, p.Tx) != h.Fingerprint
	return !p.changed
}

// chooseStart gives the place where the walk begins, and why there.
func (p *planner) chooseStart() (int64, string, error) {
	segments := p.Log.Queue().Segments()
	if len(segments) == 0 {
		return p.d.LogStart, "no segments", nil
	}
	if p.Tx != nil && (p.Hint == nil || !p.Unclean) {
		// 3.1 gives transactions new numbers and leaves stale units, so all of it is compared.
		return segments[0].Start, "state table and redo log are compared with the whole log", nil
	}
	if p.changed {
		return segments[0].Start, "queues, index or transactions are not as our own clean stop left them", nil
	}
	start, reason := p.verifyStart(segments)
	if !p.Unclean {
		return start, reason, nil
	}
	if by, why := p.checkpointStart(segments); by <= start {
		start, reason = by, why
	}
	return start, reason, nil
}

// checkpointStart is the segment that the checkpoint and our own note of it point to.
func (p *planner) checkpointStart(segments []mappedfile.SegmentInfo) (int64, string) {
	limit := p.Checkpoint.Min(p.Derive.Dialect)
	if p.opts.IndexSafe {
		limit = min(limit, p.Checkpoint.Index)
	}
	start, reason := segments[0].Start, "first segment: none is older than the checkpoint"
	last := int64(0)
	for _, s := range segments {
		h, err := p.Log.Peek(s.Start)
		if err != nil || h.StoreTimestamp == 0 || h.StoreTimestamp > limit {
			break
		}
		if h.StoreTimestamp < last {
			// The clock was set back within the segment before: its time says nothing of what is durable.
			reason = "last segment before the clock went back"
			break
		}
		last = h.StoreTimestamp
		start, reason = s.Start, fmt.Sprintf("last segment whose first record (%d) is not younger than the checkpoint (%d)", last, limit)
	}
	if p.Hint != nil && p.Hint.Dispatched < start && p.Hint.Dispatched >= segments[0].Start {
		start = p.Hint.Dispatched - p.Hint.Dispatched%p.Log.SegmentSize()
		reason = "segment up to which our last checkpoint was complete"
	}
	return max(start, segments[0].Start), reason
}

// verifyStart goes back from the last segment as far as VerifyBytes reaches.
func (p *planner) verifyStart(segments []mappedfile.SegmentInfo) (int64, string) {
	i := len(segments) - 1
	for sum := p.Log.SegmentSize(); i > 0 && sum+p.Log.SegmentSize() <= p.opts.VerifyBytes; i-- {
		sum += p.Log.SegmentSize()
	}
	if i == 0 {
		return segments[0].Start, "the whole log is compared with queues and index"
	}
	return segments[i].Start, fmt.Sprintf("the last %d segments are compared with queues and index", len(segments)-i)
}

// taken says whether a queue offset belongs to a record that lies before end.
func (p *planner) taken(pl Placement, end int64) bool {
	q := p.Queues.LookupBytes(pl.Topic, pl.QueueID)
	if q == nil {
		return false
	}
	u, err := q.Get(pl.QueueOffset)
	return err == nil && u.Valid() && !u.IsFiller() && u.PhysicalOffset < end
}

// conclude turns what the walk found into a decision.
func (p *planner) conclude() error {
	w := p.w
	if w.beyond.NotZero {
		p.d.TruncatedAt, p.d.CutBytes = w.end, w.beyond.End-w.end
	}
	file := ""
	if c, ok := errors.AsType[*mappedfile.CorruptError](w.stop); ok {
		file = c.File
		if w.beyond.Records > 0 {
			if err := p.damaged(c); err != nil {
				return err
			}
		} else {
			p.d.warn(Warning{
				Kind: KindTornTail, File: c.File, Offset: c.Offset, From: w.end, To: w.end + p.d.CutBytes,
				Text: fmt.Sprintf("the log ends here: %v; %d bytes cut", c.Err, p.d.CutBytes),
			})
		}
	}
	for _, h := range w.holes {
		p.d.warn(Warning{
			Kind: KindSkipped, File: h.why.File, Offset: h.why.Offset, From: h.from, To: h.to,
			Text: fmt.Sprintf("%v; %d bytes are passed over by OnDamage and kept in lost+found", h.why.Err, h.to-h.from),
		})
	}
	if w.beyond.Stale > 0 && p.d.Refused == nil {
		p.d.warn(Warning{
			Kind: KindStaleRecords, File: file, From: w.end, To: w.beyond.End,
			Text: fmt.Sprintf("%d records behind the end at %d are left over from an earlier cut", w.beyond.Stale, w.end),
		})
	}
	p.warnOfHidden()
	if w.last < 0 && w.end == p.d.LogStart && p.d.Refused == nil {
		p.emptyLog()
	}
	p.placesTaken()
	if p.d.Refused != nil {
		return nil
	}
	if err := p.planQueues(); err != nil {
		return err
	}
	p.notePlanned()
	p.planIndex()
	if err := p.planTransactions(); err != nil {
		return err
	}
	return p.lost()
}

// damaged decides about damage with good records behind it.
func (p *planner) damaged(c *mappedfile.CorruptError) error {
	if tail, err := p.leftByPowerCut(); err != nil || tail {
		p.cutAsTail(c)
		return err
	}
	b := p.w.beyond
	what := fmt.Sprintf("%v; behind it lie %d good records of %d bytes, at %d to %d", c.Err, b.Records, b.Bytes, b.First, b.Last)
	if p.opts.OnDamage == CutAndKeep {
		p.d.keep = b
		p.d.warn(Warning{
			Kind: KindCut, File: c.File, Offset: c.Offset, From: p.w.end, To: b.End,
			Text: what + "; cut by OnDamage, kept in lost+found",
		})
		return nil
	}
	p.d.Refused = &RefusedError{
		Kind: KindDamage, File: c.File, Offset: c.Offset, Err: c,
		Text: what + "; nothing was changed: look with the inspection tools, restore the bytes, or open with OnDamage to end the log here and keep the rest aside",
	}
	return nil
}

// emptyLog decides about queues without a log.
func (p *planner) emptyLog() {
	if p.unsure() {
		return // a power cut came before anything was durable; the units are cut
	}
	for q := range p.Queues.All() {
		if q.MaxPhysical() <= 0 {
			continue
		}
		if p.opts.StartAnew {
			p.d.anew = true
			p.d.warn(Warning{Kind: KindEmptyLog, File: q.Dir(), Text: "the log is empty: all queues and the index are dropped, as asked"})
			return
		}
		_, units := q.Bounds()
		p.d.Refused = &RefusedError{Kind: KindEmptyLog, File: "commitlog", Text: fmt.Sprintf(
			"no record in the log, but %s has %d units; nothing was changed: bring the log back, or open with StartAnew to drop queues and index", q.Dir(), units)}
		return
	}
}
