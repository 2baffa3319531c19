package rocketstore

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// ErrNotFound says that no record has that name.
var ErrNotFound = errors.New("no such message")

// QueryRequest asks for the records of a topic that have a key.
type QueryRequest struct {
	Topic string
	Key   string // one word of KEYS, or a UNIQ_KEY
	// Begin and End bound the store time in ms, both included. End 0 means no bound.
	Begin, End int64
	// Max is how many records to give at most. Default: no limit.
	Max int
}

// Query yields the records of a topic that have a key, newest first. The index knows hashes only; a record whose own topic
// and keys do not fit is not yielded, nor is one twice. A record's slices are valid until the next one. Damage met on the
// way yields a [*mappedfile.CorruptError], and the rest follows.
func (s *Store) Query(ctx context.Context, req QueryRequest) iter.Seq2[commitlog.Record, error] {
	return func(yield func(commitlog.Record, error) bool) {
		if err := s.readable(ctx); err != nil {
			yield(commitlog.Record{}, err)
			return
		}
		if s.index == nil {
			return
		}
		if req.End == 0 {
			req.End = math.MaxInt64
		}
		given, seen := 0, make(map[int64]bool)
		for hit, err := range s.index.Query(req.Topic, req.Key, req.Begin, req.End) {
			if err == nil && seen[hit.PhysicalOffset] {
				continue
			}
			seen[hit.PhysicalOffset] = true
			var r commitlog.Record
			var v mappedfile.View
			if err == nil {
				r, v, err = s.log.Read(hit.PhysicalOffset)
				if errors.Is(err, commitlog.ErrMagic) || errors.Is(err, commitlog.ErrPlace) {
					continue // no record begins there any more, as with MessageAt; recovery has told what became of it
				}
			}
			more := yieldRecord(r, v, err, func(r commitlog.Record, err error) bool {
				if err == nil && !answers(&r, &req) {
					return true
				}
				if err == nil {
					given++
				}
				return yield(r, err)
			})
			if !more || req.Max > 0 && given >= req.Max {
				return
			}
		}
	}
}

// answers compares a record with what was asked.
func answers(r *commitlog.Record, req *QueryRequest) bool {
	if string(r.Topic) != req.Topic || r.StoreTimestamp < req.Begin || r.StoreTimestamp > req.End {
		return false
	}
	if string(message.Lookup(r.Properties, message.PropertyUniqueKey)) == req.Key {
		return true
	}
	for word := range bytes.SplitSeq(message.Lookup(r.Properties, message.PropertyKeys), []byte{' '}) {
		if string(word) == req.Key {
			return true
		}
	}
	return false
}

// Lookup gives a copy of the message that an offset message id names, as [PutResult.MessageID] makes it, and its physical
// offset. It gives ErrNotFound when the log holds no record of that id. A UNIQ_KEY is found by Query.
func (s *Store) Lookup(id string) (*message.Message, int64, error) {
	if s.closed.Load() {
		return nil, 0, ErrClosed
	}
	host, offset, err := message.ParseOffsetID(id)
	if err != nil {
		return nil, 0, err
	}
	m, err := s.MessageAt(offset)
	if err == nil && m.StoreHost != host {
		err = ErrNotFound
	}
	if err != nil {
		return nil, 0, err
	}
	return m, offset, nil
}

// MessageAt gives a copy of the message whose record starts at a physical offset; ErrNotFound when none does. A damaged one
// gives a [*mappedfile.CorruptError].
func (s *Store) MessageAt(offset int64) (*message.Message, error) {
	r, v, err := s.recordAt(offset)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	return r.Message(), nil
}

// RawAt gives a copy of the bytes of the record that starts at a physical offset; its errors are those of MessageAt.
func (s *Store) RawAt(offset int64) ([]byte, error) {
	r, v, err := s.recordAt(offset)
	if err != nil {
		return nil, err
	}
	defer v.Release()
	return bytes.Clone(v.Bytes()[:r.Size]), nil
}

// recordAt reads the record at an offset that somebody else names.
func (s *Store) recordAt(offset int64) (commitlog.Record, mappedfile.View, error) {
	if s.closed.Load() {
		return commitlog.Record{}, mappedfile.View{}, ErrClosed
	}
	if _, end := s.log.Bounds(); offset >= end {
		return commitlog.Record{}, mappedfile.View{}, ErrNotFound
	}
	r, v, err := s.log.Read(offset)
	if errors.Is(err, mappedfile.ErrOutOfRange) || errors.Is(err, commitlog.ErrMagic) || errors.Is(err, commitlog.ErrPlace) {
		err = ErrNotFound
	}
	return r, v, err
}

// IndexEnd says how far the key index reaches: the store time (ms) of the newest message in it, and its physical offset. It is
// 0 and 0 when there is none.
func (s *Store) IndexEnd() (storeTime, physicalOffset int64) {
	if s.index == nil {
		return 0, 0
	}
	for _, f := range slices.Backward(s.index.Files()) {
		if f.Damaged == nil && f.Header.Keys() > 0 {
			return f.Header.EndTimestamp, f.Header.EndOffset
		}
	}
	return 0, 0
}

// OffsetAt gives the queue offset of the first message stored at or after a time (ms), or the end of the queue when all
// are older. It gives ErrNotFound when there is no such queue.
func (s *Store) OffsetAt(ctx context.Context, topic string, queueID int32, time int64) (int64, error) {
	if err := s.readable(ctx); err != nil {
		return 0, err
	}
	q := s.queues.Lookup(topic, queueID)
	if q == nil {
		return 0, ErrNotFound
	}
	return q.OffsetAt(time, func(u consumequeue.Unit) (int64, error) {
		h, err := s.log.Peek(u.PhysicalOffset)
		return h.StoreTimestamp, err
	})
}

// QueueInfo names a queue and says what it holds.
type QueueInfo struct {
	Topic    string
	QueueID  int32
	Min, Max int64 // queue offsets: of the first message, and behind the last
}

// Queues yields all queues, by topic and then by id. It sees every message whose put returned before the call.
func (s *Store) Queues(ctx context.Context) iter.Seq2[QueueInfo, error] {
	return func(yield func(QueueInfo, error) bool) {
		if err := s.readable(ctx); err != nil {
			yield(QueueInfo{}, err)
			return
		}
		for q := range s.queues.All() {
			first, end := q.Bounds()
			if !yield(QueueInfo{q.Topic(), q.ID(), first, end}, nil) {
				return
			}
		}
	}
}

// Records yields the records of the log from a physical offset on, which must be a record's start, in log order. A
// record's slices are valid until the next one.
func (s *Store) Records(from int64) iter.Seq2[*commitlog.Record, error] { return s.log.Records(from) }
