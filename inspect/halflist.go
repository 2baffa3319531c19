package inspect

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/txstate"
)

// transactionGroup is the consumer group whose stored offsets say how far half and op messages are finished.
const transactionGroup = "CID_RMQ_SYS_TRANS"

// HasHalfTopic says whether the store may keep transactions as 4.3 and later do. A store with a state table does so as well
// when 4.x went on with it.
func (d *Dir) HasHalfTopic() bool {
	return !d.HasStateTable() || !d.exists(queueDir) || d.exists(path.Join(queueDir, halfTopic))
}

// HalfTransactions folds the half and op messages of 4.x in the log into the open transactions, by queue offset: half
// messages from the stored progress on that no op message names, nor names as the first one that they are a copy of, and
// that have no later copy. It reads the whole log and reports what [Dir.Log] does, and a damaged file with the progress.
func (d *Dir) HalfTransactions(ctx context.Context, report func(Finding)) iter.Seq2[Transaction, error] {
	return func(yield func(Transaction, error) bool) {
		f, err := d.newHalfFold(report)
		if err != nil {
			yield(Transaction{}, err)
			return
		}
		for r, err := range d.Log(ctx, LogRange{}, report) {
			if err != nil {
				if !yield(Transaction{}, err) {
					return
				}
				continue
			}
			if r.Damaged == "" {
				f.take(&r)
			}
		}
		for _, h := range slices.SortedFunc(maps.Values(f.newest), func(a, b *foldedHalf) int { return cmp.Compare(a.Number, b.Number) }) {
			if end := max(f.named[h.Number], f.named[h.first]); end > h.CommitOffset {
				continue
			}
			if !yield(h.Transaction, nil) {
				return
			}
		}
	}
}

// halfFold is what was met of half and op messages.
type halfFold struct {
	halves, ops int64 // the stored progress
	newest      map[string]*foldedHalf
	named       map[int64]int64 // physical offset of the last op message by the queue offset that it names
}

type foldedHalf struct {
	Transaction
	first int64 // queue offset of the first copy, -1 when the message does not say
}

func (d *Dir) newHalfFold(report func(Finding)) (*halfFold, error) {
	f := &halfFold{newest: make(map[string]*foldedHalf), named: make(map[int64]int64)}
	offsets := &config.ConsumerOffsets{}
	notice, err := config.Load[mappedfile.File](d.mapped(), offsets)
	if notice != nil {
		report(Finding{Kind: BackupInUse, Severity: Warning, File: notice.File, Text: notice.Text})
	}
	if damage, ok := errors.AsType[*config.DamageError](err); ok { // then all that the log has is looked at
		report(Finding{Kind: BadFile, Severity: Error, File: damage.File, Offset: damage.Offset, Text: damage.Err.Error()})
		err = nil
	}
	f.halves, _ = offsets.At(halfTopic, transactionGroup, 0)
	f.ops, _ = offsets.At(opTopic, transactionGroup, 0)
	return f, err
}

// take takes in a record.
func (f *halfFold) take(r *LogRecord) {
	switch {
	case string(r.Topic) == halfTopic && r.QueueID == 0 && r.QueueOffset >= f.halves:
		h, key := foldHalf(&r.Record)
		h.File = r.File
		f.newest[key] = h
	case string(r.Topic) == opTopic && r.QueueID == 0 && r.QueueOffset >= f.ops && string(message.Lookup(r.Properties, message.PropertyTags)) == "d":
		for word := range strings.SplitSeq(string(r.Body), ",") {
			if n, err := strconv.ParseInt(word, 10, 64); err == nil && n >= 0 {
				f.named[n] = r.PhysicalOffset
			}
		}
	}
}

// foldHalf is the transaction of a half message, and what its copies share.
func foldHalf(r *commitlog.Record) (h *foldedHalf, key string) {
	h = &foldedHalf{first: -1}
	h.describe(r)
	h.Number, h.Record = r.QueueOffset, txstate.Record{
		CommitOffset: r.PhysicalOffset, Size: r.Size, StoredAt: txstate.SecondsOf(r.StoreTimestamp),
		GroupHash: message.HashString(h.Group), State: txstate.Prepared,
	}
	h.Topic = string(message.Lookup(r.Properties, message.PropertyRealTopic))
	if n, err := strconv.ParseInt(string(message.Lookup(r.Properties, message.PropertyRealQueueID)), 10, 32); err == nil {
		h.QueueID = int32(n)
	}
	if n, err := strconv.ParseInt(string(message.Lookup(r.Properties, message.PropertyPreparedQueueOffset)), 10, 64); err == nil && n >= 0 && n < h.Number { // else it lies
		h.first = n
	}
	if unique := message.Lookup(r.Properties, message.PropertyUniqueKey); len(unique) > 0 {
		return h, string(unique) + "\x00" + h.Group
	}
	n := h.Number
	if h.first >= 0 {
		n = h.first
	}
	return h, "\x00" + decimal(n)
}
