package rocketstore

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
	"github.com/rocketstore/rocketstore/txstate"
)

// stateEngine keeps transactions as 3.1 does.
type stateEngine struct {
	store   *Store
	tx      *recovery.Transactions
	numbers numbers
	claims  claims
	// lastFile is the greatest file of the table that a number was handed out for, -1 for none; it only grows. Began tells,
	// with one place, when it does.
	lastFile atomic.Int64
	began    chan struct{}
}

func newStateEngine(s *Store) *stateEngine {
	e := &stateEngine{store: s, tx: s.tx, numbers: numbers{s.tx.States.Next()}, claims: claims{taken: make(map[int64]struct{})}, began: make(chan struct{}, 1)}
	e.lastFile.Store(-1)
	return e
}

// numbers hands out the numbers of prepared messages. The log calls it with its append lock held.
type numbers struct{ next int64 }

func (n *numbers) NextOffset() int64 { return n.next }
func (n *numbers) Advance(by int64)  { n.next += by }

// put appends a prepared message: its queue offset is its number, it enters no queue, and DELAY has no meaning for it.
func (e *stateEngine) put(ctx context.Context, m *message.Message) (PutResult, error) {
	prepared := *m
	prepared.SysFlag = m.SysFlag.WithTransaction(message.FlagPrepared)
	res, err := e.store.append(ctx, &prepared, &e.numbers, waits(m))
	if file := res.QueueOffset / e.perFile(); res.Size > 0 && file > e.lastFile.Load() {
		e.lastFile.Store(file)
		select {
		case e.began <- struct{}{}:
		default:
		}
	}
	return res, err
}

// end appends the commit or rollback record; the dispatch then closes the table's record and notes it in the redo log.
func (e *stateEngine) end(ctx context.Context, t TransactionEnd) (PutResult, error) {
	r, v, err := e.store.log.Read(t.PreparedOffset)
	switch {
	case errors.Is(err, mappedfile.ErrOutOfRange), errors.Is(err, mappedfile.ErrCorrupt):
		return PutResult{}, errors.Join(ErrNoPrepared, err)
	case err != nil:
		return PutResult{}, err
	}
	defer v.Release()
	if err := e.fits(&r, t); err != nil {
		return PutResult{}, err
	}
	if !e.claims.take(t.PreparedOffset, e.store.dispatched.Load()) {
		return PutResult{}, ErrAlreadyEnded
	}
	res, err := PutResult{}, e.stillOpen(t.PreparedOffset, r.QueueOffset)
	if err == nil {
		res, err = e.appendEnd(ctx, t, &r)
	}
	end := int64(0)
	if res.Size > 0 {
		end = res.PhysicalOffset + int64(res.Size)
	}
	e.claims.settle(t.PreparedOffset, end)
	return res, err
}

// fits compares the record that is to be ended with the request.
func (e *stateEngine) fits(r *commitlog.Record, t TransactionEnd) error {
	switch {
	case r.SysFlag.Transaction() != message.FlagPrepared:
		return ErrNoPrepared
	case string(message.Lookup(r.Properties, message.PropertyProducerGroup)) != t.ProducerGroup:
		return ErrWrongGroup
	case r.QueueOffset != t.Number:
		// After a conflict of numbers a check hands out the table's, not the message's (R-B-66).
		if rec, err := e.tx.States.Get(t.Number); err != nil || rec.CommitOffset != t.PreparedOffset {
			return ErrWrongNumber
		}
	}
	return nil
}

// stillOpen says whether the table has the transaction as open, or does not have it yet: what is dispatched later than the
// caller has claimed it cannot be ended.
func (e *stateEngine) stillOpen(offset, number int64) error {
	if e.store.dispatched.Load() <= offset {
		return nil
	}
	rec, err := e.tx.States.Get(number)
	if err == nil && rec.CommitOffset == offset {
		if rec.State == txstate.Prepared {
			return nil
		}
		return ErrAlreadyEnded
	}
	if _, err = e.tx.States.FindByOffset(offset); errors.Is(err, txstate.ErrNotFound) {
		return ErrAlreadyEnded
	}
	return err
}

// appendEnd appends the record of the prepared message again as that of the end. It is made from the record, since a message
// would need copies of its texts. A commit gets a queue offset, a rollback keeps the number in its place.
func (e *stateEngine) appendEnd(ctx context.Context, t TransactionEnd, r *commitlog.Record) (PutResult, error) {
	end := *r
	end.PreparedTransactionOffset = t.PreparedOffset
	if !t.Commit {
		end.SysFlag, end.Body = r.SysFlag.WithTransaction(message.FlagRollback), nil
	} else {
		end.SysFlag = r.SysFlag.WithTransaction(message.FlagCommit)
	}
	if len(end.Body) == 0 {
		end.BodyCRC = 0
	}
	var seq commitlog.Sequence
	if t.Commit {
		queue := e.store.queues.LookupBytes(r.Topic, r.QueueID)
		if queue == nil {
			var err error
			if queue, err = e.store.queue(string(r.Topic), r.QueueID); err != nil {
				return PutResult{}, err
			}
		}
		seq = queue
	}
	return e.store.appendRecord(ctx, &end, seq)
}

// claims remembers which transactions are being ended, from the look whether they are open until the dispatch has noted the
// end, so that two ends at the same moment do not both count.
type claims struct {
	mu    sync.Mutex
	taken map[int64]struct{} // prepared offsets
	ended []claimed          // those whose end is appended, about in log order, from first on
	first int
}

type claimed struct{ preparedOffset, end int64 }

// take claims the end of a transaction; false: somebody has claimed it. All before dispatched is in the table.
func (c *claims) take(preparedOffset, dispatched int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.taken[preparedOffset]; taken {
		return false
	}
	for ; c.first < len(c.ended) && c.ended[c.first].end <= dispatched; c.first++ {
		delete(c.taken, c.ended[c.first].preparedOffset)
	}
	if c.first > len(c.ended)/2 {
		c.ended = append(c.ended[:0], c.ended[c.first:]...)
		c.first = 0
	}
	c.taken[preparedOffset] = struct{}{}
	return true
}

// settle says behind which offset the record of a claimed end lies; 0: it was not written.
func (c *claims) settle(preparedOffset, end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if end == 0 {
		delete(c.taken, preparedOffset)
		return
	}
	c.ended = append(c.ended, claimed{preparedOffset, end})
}

func (e *stateEngine) open(context.Context) iter.Seq2[OpenTransaction, error] {
	return func(yield func(OpenTransaction, error) bool) {
		first, _ := e.tx.States.Bounds()
		for rec, err := range e.tx.States.All(first) {
			t := OpenTransaction{
				Number: rec.Number, PhysicalOffset: rec.CommitOffset, Size: rec.Size, StoreTimestamp: rec.Seconds() * 1000, GroupHash: rec.GroupHash,
			}
			if _, gone := e.store.log.Peek(rec.CommitOffset); err == nil && errors.Is(gone, mappedfile.ErrOutOfRange) {
				continue // deleted with its message, as after a rebuild of the table
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// advance does nothing: the table needs no progress.
func (e *stateEngine) advance() error { return nil }
