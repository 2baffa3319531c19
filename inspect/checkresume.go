package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// CheckState is how far a check came: what [CheckOptions.Resume] takes to go on there. It is meant to be kept as JSON.
type CheckState struct {
	// Next is the physical offset of the first record that was not compared.
	Next  int64      `json:"next"`
	Stats CheckStats `json:"stats"`

	GoodEnd   int64        `json:"goodEnd"`
	QueuedEnd int64        `json:"queuedEnd"`
	Leftover  bool         `json:"leftover,omitempty"`
	Damaged   []Finding    `json:"damaged,omitempty"`
	Queues    []queueState `json:"queues,omitempty"`
	Index     indexState   `json:"index"`
}

// queueState is what is kept of a queue, or, without runs, of one that has no files.
type queueState struct {
	Topic  string                   `json:"topic"`
	Queue  int32                    `json:"queue"`
	Absent *absenceState            `json:"absent,omitempty"`
	Runs   [][2]int64               `json:"runs,omitempty"`
	Full   bool                     `json:"full,omitempty"`
	LogEnd int64                    `json:"logEnd"`
	Logged bool                     `json:"logged"`
	Delay  *int64                   `json:"delay,omitempty"`
	Parts  map[string]*absenceState `json:"parts,omitempty"` // late, blank, before
}

// absenceState is an absence or, of the index, a stretch of records without entries.
type absenceState struct {
	File    string `json:"file"`
	Offset  int64  `json:"offset"`
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Records int64  `json:"records"`
	Keys    int64  `json:"keys,omitempty"`
}

// indexState is what is kept of the comparison of the index.
type indexState struct {
	Consumed int64                    `json:"consumed"` // entries and ends of files
	Started  bool                     `json:"started"`
	Parts    map[string]*absenceState `json:"parts,omitempty"` // missing, before, behind
	// File is the one that entries are left of, with what its first and its last compared entry say.
	File  string   `json:"file,omitempty"`
	Marks [5]int64 `json:"marks"`
}

// errNotResumed says that a check starts over: the store is one whose check cannot be gone on with, or is another one.
var errNotResumed = errors.New("not resumed")

// resumable says whether a check of the store can be gone on with: not with the transactions of 3.1 and batch queues, whose
// comparisons remember too much.
func (c *checker) resumable() bool {
	return !c.states.hasTable && !c.states.hasRedo && c.states.prepares == 0 && !c.queues.anyBatch
}

// save gives the state to the caller. Next is the place of the record that is to be compared next.
func (c *checker) save(next int64) {
	if c.o.Save == nil || !c.resumable() || c.read {
		return
	}
	c.release()
	s := &CheckState{Next: next, Stats: *c.s, GoodEnd: c.goodEnd, QueuedEnd: c.queuedEnd, Leftover: c.leftover, Damaged: slices.Clone(c.damaged)}
	s.Stats.Findings = maps.Clone(c.s.Findings)
	for topic, ids := range c.queues.byTopic {
		for id, q := range ids {
			s.Queues = append(s.Queues, q.save(topic, id))
		}
	}
	for topic, ids := range c.queues.absent {
		for id, a := range ids {
			s.Queues = append(s.Queues, queueState{Topic: topic, Queue: id, Absent: a.save()})
		}
	}
	s.Index = c.index.save()
	c.o.Save(s)
}

func (a *absence) save() *absenceState {
	if a == nil {
		return nil
	}
	return &absenceState{File: a.file, Offset: a.offset, From: a.from, To: a.to, Records: a.records}
}

func (s *absenceState) load() *absence {
	if s == nil {
		return nil
	}
	return &absence{file: s.File, offset: s.Offset, from: s.From, to: s.To, records: s.Records}
}

func (q *queueCheck) save(topic string, id int32) queueState {
	s := queueState{Topic: topic, Queue: id, Full: q.found.full, LogEnd: q.logEnd, Logged: q.logged, Parts: map[string]*absenceState{}}
	for _, r := range q.found.list {
		s.Runs = append(s.Runs, [2]int64{r.from, r.to})
	}
	for name, a := range map[string]*absence{"late": q.late, "blank": q.blank, "before": q.before} {
		if a != nil {
			s.Parts[name] = a.save()
		}
	}
	if q.delays.known {
		s.Delay = &q.delays.delay
	}
	return s
}

func (q *queueCheck) load(s queueState) {
	q.found = runs{full: s.Full}
	for _, r := range s.Runs[:min(len(s.Runs), maxRuns)] {
		q.found.list = append(q.found.list, run{r[0], r[1]})
	}
	q.logEnd, q.logged = s.LogEnd, s.Logged
	q.late, q.blank, q.before = s.Parts["late"].load(), s.Parts["blank"].load(), s.Parts["before"].load()
	if s.Delay != nil {
		q.delays = delayRule{true, *s.Delay}
	}
}

func (m *keysMissing) save() *absenceState {
	if m == nil {
		return nil
	}
	return &absenceState{File: m.file, Offset: m.offset, From: m.from, To: m.to, Records: m.records, Keys: m.keys}
}

func (s *absenceState) keys() *keysMissing {
	if s == nil {
		return nil
	}
	return &keysMissing{from: s.From, to: s.To, records: s.Records, keys: s.Keys, file: s.File, offset: s.Offset}
}

func (c *checkIndex) save() indexState {
	s := indexState{Consumed: c.entries.dropped, Started: c.started, Parts: map[string]*absenceState{}}
	for name, m := range map[string]*keysMissing{"missing": c.missing, "before": c.before, "behind": c.behind} {
		if m != nil {
			s.Parts[name] = m.save()
		}
	}
	if len(c.entries.window) > 0 {
		f := c.entries.window[0].file
		s.File, s.Marks = f.name, [5]int64{f.begin, f.firstOff, f.firstTime, f.lastOff, f.lastTime}
	}
	return s
}

// load passes over the entries that were compared. Those that point behind the place where the log is gone on with are
// looked at again.
func (c *checkIndex) load(ctx context.Context, s *indexState, next int64) error {
	for c.entries.dropped < s.Consumed {
		if len(c.entries.window) == 0 {
			if err := c.entries.fill(); err != nil || len(c.entries.window) == 0 {
				return errors.Join(err, errNotResumed)
			}
		}
		item := c.entries.window[0]
		c.entries.drop()
		if item.number == 0 {
			continue
		}
		c.chain(&item, item.KeyHash)
		if item.PhysicalOffset >= next {
			if err := c.stray(item); err != nil {
				return err
			}
		}
		if item.number%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	c.started = s.Started
	c.missing, c.before, c.behind = s.Parts["missing"].keys(), s.Parts["before"].keys(), s.Parts["behind"].keys()
	if len(c.entries.window) > 0 && c.entries.window[0].file.name == s.File {
		f := c.entries.window[0].file
		f.begin, f.firstOff, f.firstTime, f.lastOff, f.lastTime = s.Marks[0], s.Marks[1], s.Marks[2], s.Marks[3], s.Marks[4]
	}
	return nil
}

// resume takes up a state; what was found before is not given again. It returns errNotResumed when the state is not one
// of this store.
func (c *checker) resume(ctx context.Context) error {
	s := c.o.Resume
	if s == nil {
		return nil
	}
	segs, _, err := c.dir.Segments(func(Finding) {})
	if err != nil {
		return err
	}
	if _, ok := segmentOf(segs, s.Next); !c.resumable() || !ok || s.Stats.Line != c.s.Line || s.Stats.LogEnd > s.Next {
		return errNotResumed
	}
	c.s.LogStart, c.s.LogEnd = segs[0].Start, s.Stats.LogEnd
	c.goodEnd, c.queuedEnd, c.leftover = s.GoodEnd, s.QueuedEnd, s.Leftover
	for _, q := range s.Queues {
		switch known := c.queues.byTopic[q.Topic][q.Queue]; {
		case q.Absent != nil:
			if c.queues.absent[q.Topic] == nil {
				c.queues.absent[q.Topic] = make(map[int32]*absence)
			}
			c.queues.absent[q.Topic][q.Queue] = q.Absent.load()
		case known != nil:
			known.load(q)
		}
	}
	c.damaged = slices.Clone(s.Damaged)
	if err := c.index.load(ctx, &s.Index, s.Next); err != nil {
		return err
	}
	c.s.Records, c.s.Damaged, c.s.Leftover, c.s.LastStoreTime = s.Stats.Records, s.Stats.Damaged, s.Stats.Leftover, s.Stats.LastStoreTime
	c.s.PassedOver = s.Stats.PassedOver
	maps.Copy(c.s.Findings, s.Stats.Findings)
	c.from = s.Next
	return nil
}
