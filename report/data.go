package report

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/rocketstore/rocketstore/inspect"
)

// Bounds of what a page shows.
const (
	maxFindings = 200
	maxRows     = 50
	maxSegments = 400
	maxFillers  = 5 // topics of a segment
)

// Segment is one file of the commit log and who fills it.
type Segment struct {
	inspect.Segment
	Records     int64
	Bytes       int64 // of records
	First, Last int64 // store times, ms; 0 without a record
	Topics      []Use // the largest first, at most five
	byTopic     map[string]int64
}

// Use is a topic's share of something.
type Use struct {
	Topic string
	Bytes int64
}

// Data is what a page shows.
type Data struct {
	Dir      string // as it was named
	Stat     *inspect.Stat
	Check    inspect.CheckStats
	Findings []inspect.Finding // from severity warning on, the first ones
	Infos    int64
	Segments []Segment
	Open     []inspect.Transaction // the first ones
	OpenAll  int64                 // how many there are
	Errors   []string              // what could not be read
}

// Collect looks at a store. What could not be read is in Data.Errors; an error is that of ctx.
func Collect(ctx context.Context, d *inspect.Dir, name string) (*Data, error) {
	data := &Data{Dir: name}
	for f, err := range d.Check(ctx, inspect.CheckOptions{Max: maxFindings, Stats: &data.Check}) {
		switch {
		case err != nil:
			data.trouble(err)
		case f.Severity == inspect.Info:
			data.Infos++
		case len(data.Findings) < maxFindings:
			data.Findings = append(data.Findings, f)
		}
	}
	stat, err := d.Stat(ctx, inspect.StatOptions{}, func(f inspect.Finding) {
		if f.Kind == inspect.Unreadable {
			data.trouble(errors.New(f.Text))
		}
	})
	if err != nil {
		data.trouble(err)
	}
	if stat == nil {
		stat = &inspect.Stat{}
	}
	data.Stat = stat
	data.segments(ctx, d)
	data.transactions(ctx, d)
	return data, ctx.Err()
}

func (data *Data) trouble(err error) {
	if len(data.Errors) < maxRows && !slices.Contains(data.Errors, err.Error()) { // several parts meet the same
		data.Errors = append(data.Errors, err.Error())
	}
}

// segments notes when each file was filled, and by whom.
func (data *Data) segments(ctx context.Context, d *inspect.Dir) {
	segs, _, err := d.Segments(func(inspect.Finding) {})
	if err != nil {
		data.trouble(err)
	}
	for _, s := range segs {
		data.Segments = append(data.Segments, Segment{Segment: s, byTopic: make(map[string]int64)})
	}
	i := 0
	for r, err := range d.Log(ctx, inspect.LogRange{}, func(inspect.Finding) {}) {
		if err != nil {
			data.trouble(err)
			continue
		}
		for i < len(data.Segments)-1 && data.Segments[i].File != r.File {
			i++
		}
		if i < len(data.Segments) && r.Damaged == "" {
			data.Segments[i].add(&r)
		}
	}
	for i := range data.Segments {
		data.Segments[i].rank()
	}
}

// maxTopics bounds the topics that are told apart in a segment.
const maxTopics = 1 << 12

func (s *Segment) add(r *inspect.LogRecord) {
	s.Records++
	s.Bytes += int64(r.Size)
	if s.First == 0 || r.StoreTimestamp < s.First {
		s.First = r.StoreTimestamp
	}
	s.Last = max(s.Last, r.StoreTimestamp)
	if _, known := s.byTopic[string(r.Topic)]; known || len(s.byTopic) < maxTopics {
		s.byTopic[string(r.Topic)] += int64(r.Size)
	} else {
		s.byTopic[inspect.Others] += int64(r.Size)
	}
}

// rank keeps the topics that fill most.
func (s *Segment) rank() {
	for t, n := range s.byTopic {
		s.Topics = append(s.Topics, Use{t, n})
	}
	s.byTopic = nil
	slices.SortFunc(s.Topics, func(a, b Use) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Topic, b.Topic)) })
	if len(s.Topics) > maxFillers {
		rest := Use{Topic: inspect.Others}
		for _, u := range s.Topics[maxFillers-1:] {
			rest.Bytes += u.Bytes
		}
		s.Topics = append(s.Topics[:maxFillers-1:maxFillers-1], rest)
	}
}

// transactions notes the open ones, of either kind.
func (data *Data) transactions(ctx context.Context, d *inspect.Dir) {
	for _, list := range []func(context.Context, func(inspect.Finding)) func(func(inspect.Transaction, error) bool){
		func(ctx context.Context, f func(inspect.Finding)) func(func(inspect.Transaction, error) bool) {
			return d.Transactions(ctx, f)
		},
		func(ctx context.Context, f func(inspect.Finding)) func(func(inspect.Transaction, error) bool) {
			return d.HalfTransactions(ctx, f)
		},
	} {
		for t, err := range list(ctx, func(inspect.Finding) {}) {
			switch {
			case err != nil:
				data.trouble(err)
			case t.Open():
				if data.OpenAll++; len(data.Open) < maxRows {
					data.Open = append(data.Open, t)
				}
			}
		}
	}
}
