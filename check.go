package rocketstore

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
)

// ErrNoProducer is what a [Checker] returns when no producer of the group can be asked now.
var ErrNoProducer = errors.New("no producer of the group can be asked")

// errCheckerPanic is what became of a question at which the Checker panicked.
var errCheckerPanic = errors.New("the checker panicked")

// Checker asks producers what became of their transactions.
type Checker interface {
	// Check hands one question on, without waiting for the answer: that comes, if it does, by [Store.EndTransaction] with
	// the request's offset and number, at any time, also from within Check. It is called from one goroutine, so it holds
	// up all other questions; ctx ends with the store, and after 3 s, and [Store.Close] waits until Check has returned. An
	// error is counted and logged, and the transaction is asked about again in a later round, and so is a panic; ErrNoProducer
	// says that nobody is there to be asked.
	Check(ctx context.Context, r CheckRequest) error
}

// CheckRequest is a question about one open transaction.
type CheckRequest struct {
	Group          string // of its producers, as the message has it
	GroupHash      int32  // Java String.hashCode of the group, as the state table has it
	Number         int64  // in the state table, or queue offset in the half topic. Wire: tranStateTableOffset
	PhysicalOffset int64  // of the prepared or half message. Wire: commitLogOffset
	Size           int32  // bytes of its record in the log
	// Record is the message as its producer knows it: a half message has its own topic and queue again. For the state table
	// its AppendTo gives the bytes of the log. It is valid until Check returns.
	Record *commitlog.Record
}

// Checks configure the check-back service: rounds in which the producers of open transactions are asked. The zero value
// means that there is none.
type Checks struct {
	// Checker asks. Nil: there is no service.
	Checker Checker
	// Every is the time between two rounds; the first comes one such time after the start, or after the first transaction
	// of a new state table file. Default 60 s, for the half topic of 5.3 30 s. Java: checkTransactionMessageTimerInterval,
	// transactionCheckInterval.
	Every time.Duration
	// MinAge is how old a transaction must be to be asked about. Default 60 s for the state table, 6 s for the half topic,
	// where a message may state another time (CHECK_IMMUNITY_TIME_IN_SECONDS). Java: checkTransactionMessageAtleastInterval,
	// transactionTimeOut.
	MinAge time.Duration
	// Max is how often one transaction is asked about; negative: no limit. Default 15 for the half topic, which then moves
	// the message to TRANS_CHECK_MAX_TIME_TOPIC. The state table has no default; with a limit it counts in memory only,
	// from the start of the store, and leaves the transaction open. Java: transactionCheckMax.
	Max int
	// MaxAge is how old a half message may become, by its birth, before it is moved as well. Default 72 h. Java:
	// fileReservedTime.
	MaxAge time.Duration
	// InFlight is how many questions one round asks at most, for each state table file; the next one goes on there.
	// Default 1000.
	InFlight int
	// Enabled and Slave are asked at each round; it does nothing unless it is enabled and the store is no slave. Nil:
	// enabled, no slave. Java: checkTransactionMessageEnable, brokerRole.
	Enabled, Slave func() bool
}

// CheckRun says what one round did.
type CheckRun struct {
	File     string // of the state table, or the half topic
	Began    int64  // ms, the store's clock
	Open     int64  // open transactions met
	Walked   int64  // records passed, finished ones too, which cost nothing
	Total    int64  // records of the file; of the half topic, the half messages from its progress on
	Asked    int64  // questions handed on
	Young    bool   // it ended at a transaction that is too young
	Limited  bool   // it ended because InFlight was reached, or after 60 s
	Orphans  int64  // open ones whose message is gone or damaged
	NoAnswer int64  // questions for which there was no producer
	Failed   int64  // questions that the Checker could not hand on for another reason
	GaveUp   int64  // transactions asked about too often, or too old
	Deferred int64  // half messages stored again because their producer does not want to be asked yet
	Err      error  // why the round ended early, if it did
}

// CheckStats counts what the check-back service did since the store was opened.
type CheckStats struct {
	Rounds  int64 // that looked
	Skipped int64 // that did nothing: the store is a slave, or checks are switched off
	// The sums over all rounds.
	Asked, Orphans, NoAnswer, Failed, GaveUp, Deferred, Limited int64
	// Files is how many state table files have a schedule; 1 for the half topic.
	Files int
	// Last has the newest round of each state table file that has a schedule, or of the half topic.
	Last []CheckRun
}

const (
	defaultStateAge   = time.Minute
	defaultHalfAge    = 6 * time.Second
	defaultHalfChecks = 15
	defaultHalfMaxAge = 72 * time.Hour
	defaultInFlight   = 1000
	checkTimeout      = 3 * time.Second // of one question
	maxGroups         = 4096            // names that are kept
	checkRoundAtMost  = time.Minute
)

// rounds is what an engine does in the check-back service.
type rounds interface {
	// due runs what is due and gives the time of the next run.
	due(ctx context.Context, now time.Time) time.Time
	// wake tells that something may have to be scheduled; nil: never.
	wake() <-chan struct{}
	// last gives the newest round of each schedule; the service's lock is held.
	last() []CheckRun
}

// checkService asks, in one goroutine.
type checkService struct {
	store *Store
	opts  Checks

	runs  rounds
	mu    sync.Mutex // guards stats, and what runs.last reads
	stats CheckStats

	// Of the service's goroutine, so that a question allocates nothing:
	record   commitlog.Record
	groups   map[string]string
	question question
}

func newCheckService(s *Store) *checkService {
	c := &checkService{store: s, opts: s.opts.Checks, groups: make(map[string]string)}
	if c.opts.InFlight == 0 {
		c.opts.InFlight = defaultInFlight
	}
	c.runs = s.engine.rounds(c)
	return c
}

// run makes the rounds until ctx ends.
func (c *checkService) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer c.question.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.runs.wake():
		}
		next := c.runs.due(ctx, time.Now())
		c.question.end()
		timer.Reset(max(time.Millisecond, time.Until(next)))
	}
}

// after is the time of the next round: those that one took too long for are left out.
func (c *checkService) after(due time.Time) time.Time {
	late := max(0, time.Since(due))
	return due.Add((late/c.opts.Every + 1) * c.opts.Every)
}

// silent says whether a round does nothing, and counts it.
func (c *checkService) silent() bool {
	skip := c.opts.Slave != nil && c.opts.Slave() || c.opts.Enabled != nil && !c.opts.Enabled()
	c.mu.Lock()
	defer c.mu.Unlock()
	if skip {
		c.stats.Skipped++
	}
	return skip
}

// count takes a round into the sums and tells the log of it.
func (c *checkService) count(r *CheckRun) {
	c.mu.Lock()
	s := &c.stats
	s.Rounds++
	s.Asked += r.Asked
	s.Orphans += r.Orphans
	s.NoAnswer += r.NoAnswer
	s.Failed += r.Failed
	s.GaveUp += r.GaveUp
	s.Deferred += r.Deferred
	if r.Limited {
		s.Limited++
	}
	c.mu.Unlock()
	log := c.store.opts.Logger
	if r.Err != nil {
		log.Error("check of transactions ended early", "file", r.File, "err", r.Err)
	}
	if r.Open > 0 {
		log.Info("transactions checked", "file", r.File, "open", r.Open, "walked", r.Walked, "total", r.Total, "asked", r.Asked,
			"orphans", r.Orphans, "noProducer", r.NoAnswer, "failed", r.Failed, "gaveUp", r.GaveUp)
	}
}

// ask hands one question to the Checker and counts what came of it.
func (c *checkService) ask(ctx context.Context, r *CheckRun, req CheckRequest) {
	err := ErrNoProducer
	if req.Group != "" {
		err = c.guarded(ctx, req)
	}
	switch {
	case err == nil:
		r.Asked++
	case errors.Is(err, ErrNoProducer):
		r.NoAnswer++
	default:
		r.Failed++
		c.store.opts.Logger.Warn("producer not asked", "group", req.Group, "number", req.Number, "offset", req.PhysicalOffset, "err", err)
	}
}

// guarded hands a question to the Checker and makes its panic an error, so that the questions behind it are asked (R-B-35).
func (c *checkService) guarded(ctx context.Context, req CheckRequest) (err error) {
	defer func() {
		c.question.timer.Stop()
		if v := recover(); v != nil {
			c.store.opts.Logger.Error("checker panic", "number", req.Number, "offset", req.PhysicalOffset, "panic", v, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errCheckerPanic, v)
		}
	}()
	return c.opts.Checker.Check(c.question.begin(ctx), req)
}

// question is the context of the questions of one round, one after the other: each has its own deadline. One from the standard
// library would be made for each question.
type question struct {
	context.Context
	until  time.Time
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (q *question) begin(ctx context.Context) context.Context {
	if q.Context == nil || q.Context.Err() != nil {
		q.end()
		q.Context, q.cancel = context.WithCancelCause(ctx)
		cancel := q.cancel
		q.timer = time.AfterFunc(checkTimeout, func() { cancel(context.DeadlineExceeded) })
	} else {
		q.timer.Reset(checkTimeout)
	}
	q.until = time.Now().Add(checkTimeout)
	return q
}

func (q *question) Deadline() (time.Time, bool) { return q.until, true }

func (q *question) Err() error {
	if err := q.Context.Err(); err == nil || !errors.Is(context.Cause(q.Context), context.DeadlineExceeded) {
		return err
	}
	return context.DeadlineExceeded
}

// end lets go of what the questions used.
func (q *question) end() {
	if q.cancel != nil {
		q.timer.Stop()
		q.cancel(context.Canceled)
	}
	*q = question{}
}

// group is the string of a producer group's name, made once for each of the groups that are met.
func (c *checkService) group(name []byte) string {
	if known, ok := c.groups[string(name)]; ok {
		return known
	}
	if len(c.groups) >= maxGroups {
		clear(c.groups)
	}
	text := string(name)
	c.groups[text] = text
	return text
}

// asked says how many questions of a round count against its limit.
func (r *CheckRun) asked() int { return int(r.Asked + r.NoAnswer + r.Failed + r.Orphans + r.Deferred) }

// CheckStats gives the counters of the check-back service; false when there is none.
func (s *Store) CheckStats() (CheckStats, bool) {
	if s.checks == nil {
		return CheckStats{}, false
	}
	c := s.checks
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := c.stats
	stats.Last = c.runs.last()
	stats.Files = len(stats.Last)
	return stats, true
}

// checkInterval is the dialect's time between two rounds.
func (s *Store) checkInterval() time.Duration {
	return time.Duration(s.dialect.CheckIntervalMillis) * time.Millisecond
}

func (c *Checks) validate() []error {
	var errs []error
	for _, v := range []struct {
		name  string
		value int64
	}{{"Every", int64(c.Every)}, {"MinAge", int64(c.MinAge)}, {"MaxAge", int64(c.MaxAge)}, {"InFlight", int64(c.InFlight)}} {
		if v.value < 0 {
			errs = append(errs, fmt.Errorf("rocketstore: Checks.%s is %d, want 0 or more", v.name, v.value))
		}
	}
	return errs
}
