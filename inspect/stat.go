package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// StatOptions steer [Dir.Stat].
type StatOptions struct {
	// Filter chooses the records that are counted; the zero value takes all.
	Filter Filter
	// LogOnly leaves out queue files and index.
	LogOnly bool
	// Progress, if not nil, is called now and then with the bytes of the commit log that are done, and all.
	Progress func(done, total int64)
}

// Share is what a topic, a queue, an hour, a size class or a tag has of the log.
type Share struct {
	Name      string `json:"name"`
	Records   int64  `json:"records"`
	Bytes     int64  `json:"bytes"`     // of the records in the log
	BodyBytes int64  `json:"bodyBytes"` // as stored
}

// LogUse says what the bytes of the commit log's files are used for. Records, Blanks, Damaged, Zeros and Slack are all bytes
// of the files.
type LogUse struct {
	Files   int   `json:"files"`
	Bytes   int64 `json:"bytes"`
	Start   int64 `json:"start"`
	End     int64 `json:"end"`     // behind the last record
	Records int64 `json:"records"` // bytes of records that can be believed
	Blanks  int64 `json:"blanks"`  // fill the ends of files
	Damaged int64 `json:"damaged"` // bytes that cannot be believed
	Zeros   int64 `json:"zeros"`   // with records behind them
	Slack   int64 `json:"slack"`   // behind the last record
	Missing int64 `json:"missing"` // between files, in no file
}

// QueueUse says what the files of the consume queues hold.
type QueueUse struct {
	Queues  int   `json:"queues"`
	Files   int   `json:"files"`
	Bytes   int64 `json:"bytes"`
	Units   int64 `json:"units"`
	Fillers int64 `json:"fillers"`
	Slack   int64 `json:"slack"` // bytes that are no unit
	// Holes are queue offsets between two of a queue's that no record of the log has.
	Holes int64 `json:"holes"`
}

// IndexUse says how full an index file is.
type IndexUse struct {
	File      string  `json:"file"`
	Slots     int32   `json:"slots"`
	UsedSlots int32   `json:"usedSlots"`
	Room      int32   `json:"room"` // entries that fit
	Keys      int32   `json:"keys"`
	Fill      float64 `json:"fill"` // of the room, 0 to 1
	// LongestChain is the most entries that share a slot: what a query may have to read.
	LongestChain int32 `json:"longestChain"`
}

// GroupLag says how far a consumer group is behind on a queue.
type GroupLag struct {
	Group   string `json:"group"`
	Topic   string `json:"topic"`
	QueueID int32  `json:"queueId"`
	Offset  int64  `json:"offset"` // the next that it reads, as stored
	End     int64  `json:"end"`    // of the queue, by the records of the log
	Lag     int64  `json:"lag"`
}

// Stat is who and what fills a store.
type Stat struct {
	Line    string     `json:"line"`
	Clean   bool       `json:"clean"`
	At      int64      `json:"at"`      // moment of looking, ms
	Records int64      `json:"records"` // that were counted
	Log     LogUse     `json:"log"`
	Queues  QueueUse   `json:"queues"`
	Topics  []Share    `json:"topics"`
	ByQueue []Share    `json:"byQueue"`
	Hours   []Share    `json:"hours"` // of the store time, UTC, in order; the others by bytes, the largest first
	Sizes   []Share    `json:"sizes"` // by stored body, in order
	Tags    []Share    `json:"tags"`
	Index   []IndexUse `json:"index"`
	Lags    []GroupLag `json:"lags"` // the greatest first
}

// maxShares bounds how many names of one sort are counted apart; the rest is Others.
const maxShares = 1 << 16

// Others is the name of the share of what is too much to count apart, NoTag that of records without a tag.
const (
	Others = "(others)"
	NoTag  = "(no tag)"
)

// Stat reads the whole log once, then the queues and the index files, and says who and what fills the store: by topic,
// queue, hour, size class and tag; slack, blanks and holes; how full the index is; how far groups are behind. Damage is
// reported, and so is what cannot be read ([Unreadable]); the rest is counted all the same. The error is that of ctx.
//
// Memory: some hundred bytes for each of at most 65536 topics, queues, hours and tags, and 4 bytes for each slot of one index
// file.
func (d *Dir) Stat(ctx context.Context, o StatOptions, report func(Finding)) (*Stat, error) {
	id, unread := d.lineAnyway()
	s := &statist{
		dir: d, o: o, report: report,
		out: &Stat{
			Line: lineName(id.Line), Clean: !d.exists("abort"), At: time.Now().UnixMilli(),
			Index: []IndexUse{}, Lags: []GroupLag{},
		},
		topics: make(map[string]*topicShare), hours: make(map[int64]*Share), tags: make(map[string]*Share), told: make(map[Finding]bool),
	}
	if err := s.failed(ctx, ".", unread); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context) error{s.log, s.units, s.index, s.lags} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	s.sort()
	return s.out, nil
}

// statist is one run of Stat.
type statist struct {
	dir    *Dir
	o      StatOptions
	report func(Finding)
	out    *Stat
	topics map[string]*topicShare
	queues int
	hours  map[int64]*Share
	tags   map[string]*Share
	sizes  [33]Share
	told   map[Finding]bool // what could not be read, at most maxFindings
}

// failed reports what could not be read, once. The error, that of ctx, ends the run.
func (s *statist) failed(ctx context.Context, where string, err error) error {
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	for _, f := range unreadable(where, err) {
		if !s.told[f] {
			if len(s.told) < maxFindings {
				s.told[f] = true
			}
			s.report(f)
		}
	}
	return nil
}

type topicShare struct {
	Share
	queues map[int32]*queueShare
}

// queueShare is a queue's, with the offsets that its records have.
type queueShare struct {
	Share
	count, first, end int64
}

func (s *Share) add(r *LogRecord) {
	s.Records++
	s.Bytes += int64(r.Size)
	s.BodyBytes += int64(len(r.Body))
}

// log reads the commit log.
func (s *statist) log(ctx context.Context) error {
	segs, _, err := s.dir.Segments(func(Finding) {})
	if err != nil {
		return s.failed(ctx, commitLogDir, err)
	}
	use := &s.out.Log
	use.Files = len(segs)
	for i, seg := range segs {
		use.Bytes += seg.Length
		if i > 0 && seg.Start > segs[i-1].End() {
			use.Missing += seg.Start - segs[i-1].End()
		}
	}
	if len(segs) > 0 {
		use.Start, use.End = segs[0].Start, segs[0].Start
	}
	var lost []Finding // stretches without a record, at most maxFindings
	inLog := func(f Finding) {
		if f.From < f.To && f.Kind != Gap && len(lost) < maxFindings {
			lost = append(lost, f)
		}
		s.report(f)
	}
	n, done := 0, int64(0)
	for r, err := range s.dir.Log(ctx, LogRange{}, inLog) {
		if err != nil {
			if err := s.failed(ctx, commitLogDir, err); err != nil {
				return err
			}
			continue
		}
		use.End = r.PhysicalOffset + int64(r.Size)
		done += int64(r.Size)
		if n++; n%4096 == 0 && s.o.Progress != nil {
			s.o.Progress(done, use.Bytes)
		}
		if r.Damaged != "" {
			continue
		}
		use.Records += int64(r.Size)
		if s.dir.Match(&s.o.Filter, &r) {
			s.record(&r)
		}
	}
	for _, f := range lost {
		n := max(0, min(f.To, use.End)-f.From)
		if f.Kind == Zeros {
			use.Zeros += n
		} else {
			use.Damaged += n
		}
	}
	for _, seg := range segs {
		switch {
		case seg.Start >= use.End:
			use.Slack += seg.Length
		case seg.End() > use.End:
			use.Slack += seg.End() - use.End
		}
	}
	// All else in the files is blanks.
	use.Blanks = max(0, use.Bytes-use.Records-use.Damaged-use.Zeros-use.Slack)
	return nil
}

// record counts a record.
func (s *statist) record(r *LogRecord) {
	s.out.Records++
	s.topic(r)
	hour := r.StoreTimestamp / time.Hour.Milliseconds()
	h := s.hours[hour]
	if h == nil {
		if len(s.hours) >= maxShares {
			hour = -1
		}
		if h = s.hours[hour]; h == nil {
			h = &Share{Name: hourName(hour)}
			s.hours[hour] = h
		}
	}
	h.add(r)
	s.sizes[bits.Len32(uint32(len(r.Body)))].add(r)
	s.tag(r)
}

func hourName(hour int64) string {
	if hour < 0 || hour > 253402300799/3600 {
		return Others
	}
	return time.Unix(hour*3600, 0).UTC().Format("2006-01-02T15Z")
}

func (s *statist) tag(r *LogRecord) {
	name := message.Lookup(r.Properties, message.PropertyTags)
	if len(name) == 0 {
		name = []byte(NoTag)
	}
	t := s.tags[string(name)]
	if t == nil {
		if len(s.tags) >= maxShares {
			name = []byte(Others)
		}
		if t = s.tags[string(name)]; t == nil {
			t = &Share{Name: string(name)}
			s.tags[t.Name] = t
		}
	}
	t.add(r)
}

// topic counts a record for its topic and queue.
func (s *statist) topic(r *LogRecord) {
	t := s.topics[string(r.Topic)]
	if t == nil {
		name := string(r.Topic)
		if len(s.topics) >= maxShares {
			name = Others
		}
		if t = s.topics[name]; t == nil {
			t = &topicShare{Share: Share{Name: name}, queues: make(map[int32]*queueShare)}
			s.topics[name] = t
		}
	}
	t.add(r)
	q := t.queues[r.QueueID]
	if q == nil {
		if s.queues++; s.queues > maxShares {
			return
		}
		q = &queueShare{Share: Share{Name: t.Name + "/" + strconv.Itoa(int(r.QueueID))}, first: r.QueueOffset}
		t.queues[r.QueueID] = q
	}
	q.add(r)
	if r.SysFlag.Queued() {
		q.count++
		q.first, q.end = min(q.first, r.QueueOffset), max(q.end, r.QueueOffset+1)
	}
}

// units reads the files of the consume queues.
func (s *statist) units(ctx context.Context) error {
	if s.o.LogOnly {
		return nil
	}
	queues, _, err := s.dir.queueTree(queueDir, QueueFilter{}, s.report)
	if err := s.failed(ctx, queueDir, err); err != nil {
		return err
	}
	use := &s.out.Queues
	use.Queues = len(queues)
	for _, q := range queues {
		use.Files += len(q.Segments)
		for _, seg := range q.Segments {
			use.Bytes += seg.Length
		}
	}
	used := int64(0)
	for u, err := range s.dir.Queues(ctx, QueueFilter{}, func(Finding) {}) {
		switch {
		case err != nil:
			if err := s.failed(ctx, queueDir, err); err != nil {
				return err
			}
		case u.Batch != nil:
		case u.IsFiller():
			use.Fillers++
			used += 20
		default:
			use.Units++
			used += 20
		}
	}
	use.Slack = use.Bytes - used
	for _, t := range s.topics {
		for _, q := range t.queues {
			if n := q.end - q.first - q.count; n > 0 && s.o.Filter.Since == 0 && s.o.Filter.Until == 0 {
				use.Holes += n
			}
		}
	}
	return nil
}

// index reads the index files.
func (s *statist) index(ctx context.Context) error {
	if s.o.LogOnly {
		return nil
	}
	for x, err := range s.dir.IndexFiles(ctx, s.report) {
		if err != nil {
			if err := s.failed(ctx, indexDir, err); err != nil {
				return err
			}
			continue
		}
		use := IndexUse{File: x.File, Slots: x.Shape.Slots, Room: max(x.Shape.Entries-1, 0), Keys: x.Keys()}
		if use.Room > 0 {
			use.Fill = float64(use.Keys) / float64(use.Room)
		}
		if x.Shape.Slots > 0 {
			chains := make([]int32, x.Shape.Slots) // no more slots than the file has bytes for
			for e, err := range x.Entries() {
				if err != nil {
					if err := s.failed(ctx, x.File, err); err != nil {
						return err
					}
					break
				}
				slot := index.Slot(e.KeyHash, x.Shape.Slots)
				if chains[slot]++; chains[slot] == 1 {
					use.UsedSlots++
				}
				use.LongestChain = max(use.LongestChain, chains[slot])
			}
		}
		s.out.Index = append(s.out.Index, use)
	}
	return ctx.Err()
}

// lags compares the stored offsets of the groups with the queues.
func (s *statist) lags(ctx context.Context) error {
	offsets := &config.ConsumerOffsets{}
	notice, err := config.Load[mappedfile.File](s.dir.mapped(), offsets)
	if damage, ok := errors.AsType[*config.DamageError](err); ok {
		s.report(Finding{Kind: BadFile, Severity: Error, File: damage.File, Offset: damage.Offset, Text: damage.Err.Error()})
		err = nil
	}
	if err := s.failed(ctx, offsets.File(), err); err != nil {
		return err
	}
	if notice != nil {
		s.report(Finding{Kind: BackupInUse, Severity: Warning, File: notice.File, Text: notice.Text})
	}
	for key, table := range offsets.Table.All() {
		topic, group := config.SplitKey(key)
		if s.o.Filter.Topic != "" && s.o.Filter.Topic != topic {
			continue
		}
		for queue, offset := range table.All() {
			l := GroupLag{Group: group, Topic: topic, QueueID: queue, Offset: offset, End: offset}
			if t := s.topics[topic]; t != nil && t.queues[queue] != nil {
				l.End = t.queues[queue].end
			}
			l.Lag = l.End - l.Offset
			s.out.Lags = append(s.out.Lags, l)
		}
	}
	slices.SortStableFunc(s.out.Lags, func(a, b GroupLag) int { return cmp.Compare(b.Lag, a.Lag) })
	return nil
}

// sort puts the shares into the result.
func (s *statist) sort() {
	s.out.Topics, s.out.ByQueue, s.out.Hours, s.out.Sizes, s.out.Tags = []Share{}, []Share{}, []Share{}, []Share{}, []Share{}
	for _, t := range s.topics {
		s.out.Topics = append(s.out.Topics, t.Share)
		for _, q := range t.queues {
			s.out.ByQueue = append(s.out.ByQueue, q.Share)
		}
	}
	for _, h := range s.hours {
		s.out.Hours = append(s.out.Hours, *h)
	}
	for i, size := range s.sizes {
		if size.Records > 0 {
			size.Name = sizeName(i)
			s.out.Sizes = append(s.out.Sizes, size)
		}
	}
	for _, t := range s.tags {
		s.out.Tags = append(s.out.Tags, *t)
	}
	byBytes := func(a, b Share) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) }
	for _, shares := range [][]Share{s.out.Topics, s.out.ByQueue, s.out.Tags} {
		slices.SortFunc(shares, byBytes)
	}
	slices.SortFunc(s.out.Hours, func(a, b Share) int { return cmp.Compare(a.Name, b.Name) })
}

// sizeName is the name of the size class of bodies whose length has n bits.
func sizeName(n int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d-%d", int64(1)<<(n-1), int64(1)<<n-1)
}
