package inspect

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/message"
)

// ByKey gives the records of a topic that have a key: a word of KEYS, or the unique key. It follows the index files and
// compares the record's own topic and keys, so that records whose key only has the same hash are left out. Where no index
// file leads to one, the whole log is read. Records come in log order; what is damaged on the way is reported.
//
// An error means that something could not be read; the caller can go on.
func (d *Dir) ByKey(ctx context.Context, topic, key string, report func(Finding)) iter.Seq2[LogRecord, error] {
	f := Filter{Topic: topic, Key: key}
	return d.lookUp(ctx, f, []string{topic}, report)
}

// ByID gives the record with an offset message id, or the records with a unique key (UNIQ_KEY). A topic, if not "", limits
// the latter. Without one all topics that have queues are tried in the index; then the log is read as in [Dir.ByKey].
func (d *Dir) ByID(ctx context.Context, id, topic string, report func(Finding)) iter.Seq2[LogRecord, error] {
	return func(yield func(LogRecord, error) bool) {
		if host, off, err := message.ParseOffsetID(id); err == nil && off >= 0 {
			r, ok, err := d.RecordAt(off, report)
			if err != nil || ok && r.StoreHost == host {
				yield(r, err)
				return
			}
		}
		topics := []string{topic}
		if topic == "" {
			var err error
			if topics, err = d.topics(); err != nil && !yield(LogRecord{}, err) {
				return
			}
		}
		d.lookUp(ctx, Filter{Topic: topic, UniqueKey: id}, topics, report)(yield)
	}
}

// topics are the names of the folders of topics, those of batch queues as well.
func (d *Dir) topics() ([]string, error) {
	var names []string
	for _, root := range []string{queueDir, batchQueueDir} {
		entries, err := d.list(root)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.info.IsDir() {
				names = append(names, e.name)
			}
		}
	}
	return names, nil
}

// maxHits bounds how many places the index may lead to before reading the whole log is the better way.
const maxHits = 1 << 20

// lookUp gives the records that f takes: those that the index leads to by f's key in one of the topics, or, when there are
// none, those in the whole log.
func (d *Dir) lookUp(ctx context.Context, f Filter, topics []string, report func(Finding)) iter.Seq2[LogRecord, error] {
	return func(yield func(LogRecord, error) bool) {
		offsets, err := d.indexed(ctx, f.Key+f.UniqueKey, topics, report)
		if err != nil && !yield(LogRecord{}, err) {
			return
		}
		found := false
		for _, off := range offsets {
			r, ok, err := d.RecordAt(off, report)
			if err == nil && (!ok || !d.Match(&f, &r)) {
				continue
			}
			found = true
			if !yield(r, err) {
				return
			}
		}
		if found {
			return
		}
		for r, err := range d.Log(ctx, LogRange{}, report) {
			if (err != nil || d.Match(&f, &r)) && !yield(r, err) {
				return
			}
		}
	}
}

// indexed gives the offsets that the index files have for a key in any of the topics, in order, each once. With more than
// maxHits it gives none.
func (d *Dir) indexed(ctx context.Context, key string, topics []string, report func(Finding)) ([]int64, error) {
	var offsets []int64
	for x, err := range d.IndexFiles(ctx, report) {
		if err != nil {
			return nil, fmt.Errorf("look into the index: %w", err)
		}
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
