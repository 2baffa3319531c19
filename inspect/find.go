package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/message"
)

// Looked says how far a search looked.
type Looked struct {
	IndexFiles int `json:"indexFiles"` // that were asked for the key
	// From and To bound the part of the commit log that was read because no index file led anywhere; both 0 when none was.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// LogStart and LogEnd are the bounds of the whole log's files at that moment.
	LogStart int64 `json:"logStart"`
	LogEnd   int64 `json:"logEnd"`
	At       int64 `json:"at"` // moment of looking, ms; a broker may have gone on meanwhile
}

// Scanned says whether the log was read.
func (l *Looked) Scanned() bool { return l.To > l.From }

// String says it in words.
func (l *Looked) String() string {
	switch {
	case !l.Scanned():
		return fmt.Sprintf("%d index files were asked", l.IndexFiles)
	case l.From > l.LogStart:
		return fmt.Sprintf("%d index files were asked, and the log read from %d to %d; it begins at %d", l.IndexFiles, l.From, l.To, l.LogStart)
	}
	return fmt.Sprintf("%d index files were asked, and the whole log read, %d to %d", l.IndexFiles, l.From, l.To)
}

// FindOptions steer [Dir.Find].
type FindOptions struct {
	// MaxScan bounds how many bytes of the log are read where no index file leads to the record: the last ones. 0: all.
	MaxScan int64
	// Looked, if not nil, is filled in while the search goes on.
	Looked *Looked
}

// Find gives the records that f takes. With an id that holds a physical offset it looks there first; with a key, unique key
// or id it follows the index files (of f.Topic, or of all topics that have queues) and compares each record that they lead
// to. Where that leads to none, or f has neither, the last o.MaxScan bytes of the log are read. Records come in log order.
//
// An error means that something could not be read; the caller can go on.
func (d *Dir) Find(ctx context.Context, f Filter, o FindOptions, report func(Finding)) iter.Seq2[LogRecord, error] {
	return func(yield func(LogRecord, error) bool) {
		d.newSearch(&f, o, report, yield).run(func(s *search) error {
			err := s.byOffset()
			if err == nil && !s.found {
				err = s.byIndex(ctx)
			}
			if err == nil && !s.found {
				err = s.byScan(ctx, o.MaxScan)
			}
			return err
		})
	}
}

// search is one run of Find.
type search struct {
	dir    *Dir
	filter *Filter
	looked *Looked
	report func(Finding)
	yield  func(LogRecord, error) bool
	found  bool
}

func (d *Dir) newSearch(f *Filter, o FindOptions, report func(Finding), yield func(LogRecord, error) bool) *search {
	s := &search{dir: d, filter: f, looked: o.Looked, report: report, yield: yield}
	if s.looked == nil {
		s.looked = &Looked{}
	}
	*s.looked = Looked{At: time.Now().UnixMilli()}
	return s
}

// run searches in a way, and gives the error that ended it.
func (s *search) run(way func(*search) error) {
	if err := way(s); err != nil && !errors.Is(err, errStop) {
		s.yield(LogRecord{}, err)
	}
}

// give hands a record or an error to the caller.
func (s *search) give(r LogRecord, err error) error {
	s.found = s.found || err == nil
	if !s.yield(r, err) {
		return errStop
	}
	return nil
}

// byOffset looks where an offset message id points to.
func (s *search) byOffset() error {
	host, off, err := message.ParseOffsetID(s.filter.ID)
	if err != nil || off < 0 {
		return nil //nolint:nilerr // then it is a unique key, or a filter by something else
	}
	r, ok, err := s.dir.RecordAt(off, s.report)
	if err != nil {
		return s.give(LogRecord{}, err)
	}
	if ok && r.StoreHost == host && s.dir.Match(s.filter, &r) {
		return s.give(r, nil)
	}
	return nil
}

// byIndex follows the index by the filter's key.
func (s *search) byIndex(ctx context.Context) error {
	key := firstText(s.filter.Key, s.filter.UniqueKey, s.filter.ID)
	if key == "" {
		return nil
	}
	topics := []string{s.filter.Topic}
	if s.filter.Topic == "" {
		var err error
		if topics, err = s.dir.topics(); err != nil {
			if err := s.give(LogRecord{}, err); err != nil {
				return err
			}
		}
	}
	offsets, err := s.dir.indexed(ctx, key, topics, s.looked, s.report)
	if err != nil {
		if err := s.give(LogRecord{}, err); err != nil {
			return err
		}
	}
	for _, off := range offsets {
		r, ok, err := s.dir.RecordAt(off, s.report)
		if err == nil && (!ok || !s.dir.Match(s.filter, &r)) {
			continue
		}
		if err := s.give(r, err); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func firstText(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// byScan reads the last bytes of the log.
func (s *search) byScan(ctx context.Context, most int64) error {
	segs, _, err := s.dir.Segments(func(Finding) {})
	if err != nil || len(segs) == 0 {
		return err
	}
	l := s.looked
	l.LogStart, l.LogEnd = segs[0].Start, segs[len(segs)-1].End()
	l.From = l.LogStart
	if most > 0 && l.LogEnd-most > l.From {
		l.From = s.dir.dataEnd(segs) - most
		l.From = max(l.From, l.LogStart)
	}
	l.To = l.From
	for r, err := range s.dir.Log(ctx, LogRange{From: l.From}, s.report) {
		if err == nil {
			l.To = r.PhysicalOffset + int64(r.Size)
			if !s.dir.Match(s.filter, &r) {
				continue
			}
		}
		if err := s.give(r, err); err != nil {
			return err
		}
	}
	return nil
}

// dataEnd is behind the last file of the log in which something was written, or where zeros without end begin in it when
// the file system tells.
func (d *Dir) dataEnd(segs []Segment) int64 {
	for _, seg := range slices.Backward(segs) {
		if d.zeroFile(seg) {
			continue
		}
		l, err := d.openLog(seg)
		if err != nil {
			return seg.End()
		}
		defer l.f.close()
		for l.s.Next() || l.s.Ending() != commitlog.EndBlank && l.s.Ending() != commitlog.EndOfSegment && l.resume() {
			continue
		}
		if l.s.Ending() == commitlog.EndZeros || l.s.Ending() == commitlog.EndDamage {
			return l.s.Offset()
		}
		return seg.End()
	}
	return segs[0].Start
}

// indexed gives the offsets that the index files have for a key in any of the topics, in order, each once. With more than
// maxHits it gives none.
func (d *Dir) indexed(ctx context.Context, key string, topics []string, looked *Looked, report func(Finding)) ([]int64, error) {
	var offsets []int64
	for x, err := range d.IndexFiles(ctx, report) {
		if err != nil {
			return nil, fmt.Errorf("look into the index: %w", err)
		}
		looked.IndexFiles++
		for _, topic := range topics {
			for off, err := range x.chain(index.KeyHash(topic, key)) {
				if err != nil {
					return nil, err
				}
				if offsets = append(offsets, off); len(offsets) > maxHits {
					return nil, nil
				}
			}
		}
	}
	slices.Sort(offsets)
	return slices.Compact(offsets), nil
}
