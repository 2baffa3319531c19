package rocketstore

import (
	"context"
	"errors"
	"iter"
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
	// lastFile is the greatest file of the table that a number was handed out for, -1 for none; it only grows. Began tells,
	// with one place, when it does.
	lastFile atomic.Int64
	began    chan struct{}
}

func newStateEngine(s *Store) *stateEngine {
	e := &stateEngine{store: s, tx: s.tx, numbers: numbers{s.tx.States.Next()}, began: make(chan struct{}, 1)}
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
	m, number, err := e.preparedMessage(t)
	if err != nil {
		return PutResult{}, err
	}
	if !e.store.claim(t.PreparedOffset) {
		return PutResult{}, ErrAlreadyEnded
	}
	res, err := PutResult{}, e.stillOpen(t.PreparedOffset, number)
	if err == nil {
		res, err = e.appendEnd(ctx, t, m, number)
	}
	end := int64(0)
	if res.Size > 0 {
		end = res.PhysicalOffset + int64(res.Size)
	}
	e.store.settleClaim(t.PreparedOffset, end)
	return res, err
}

// preparedMessage reads the message that is to be ended and compares it with the request. It gives the number that the message carries.
func (e *stateEngine) preparedMessage(t TransactionEnd) (*message.Message, int64, error) {
	r, v, err := e.store.log.Read(t.PreparedOffset)
	switch {
	case errors.Is(err, mappedfile.ErrOutOfRange), errors.Is(err, mappedfile.ErrCorrupt):
		return nil, 0, errors.Join(ErrNoPrepared, err)
	case err != nil:
		return nil, 0, err
	}
	defer v.Release()
	if r.SysFlag.Transaction() != message.FlagPrepared {
		return nil, 0, ErrNoPrepared
	}
	if string(message.Lookup(r.Properties, message.PropertyProducerGroup)) != t.ProducerGroup {
		return nil, 0, ErrWrongGroup
	}
	if r.QueueOffset != t.Number {
		// After a conflict of numbers a check hands out the table's, not the message's (R-B-66).
		if rec, err := e.tx.States.Get(t.Number); err != nil || rec.CommitOffset != t.PreparedOffset {
			return nil, 0, ErrWrongNumber
		}
	}
	return r.Message(), r.QueueOffset, nil
}

// stillOpen says whether the table has the transaction as open, or does not have it yet.
func (e *stateEngine) stillOpen(offset, number int64) error {
	dispatched := e.store.dispatched.Load() // before the table is looked at, which the dispatch may fill meanwhile
	rec, err := e.tx.States.Get(number)
	if err == nil && rec.CommitOffset == offset {
		if rec.State == txstate.Prepared {
			return nil
		}
		return ErrAlreadyEnded
	}
	if _, err := e.tx.States.FindByOffset(offset); err == nil || !errors.Is(err, txstate.ErrNotFound) {
		return err
	}
	if dispatched <= offset {
		return nil // its own dispatch was still to come
	}
	return ErrAlreadyEnded
}

func (e *stateEngine) appendEnd(ctx context.Context, t TransactionEnd, m *message.Message, number int64) (PutResult, error) {
	m.PreparedTransactionOffset = t.PreparedOffset
	if !t.Commit {
		m.SysFlag, m.Body = m.SysFlag.WithTransaction(message.FlagRollback), nil
		return e.store.append(ctx, m, fixed(number), false)
	}
	m.SysFlag = m.SysFlag.WithTransaction(message.FlagCommit)
	queue, err := e.store.queue(m.Topic, m.QueueID)
	if err != nil {
		return PutResult{}, err
	}
	return e.store.append(ctx, m, queue, false)
}

// fixed is a queue offset that is given and not counted.
type fixed int64

func (f fixed) NextOffset() int64 { return int64(f) }
func (f fixed) Advance(int64)     {}

func (e *stateEngine) open(context.Context) iter.Seq2[OpenTransaction, error] {
	return func(yield func(OpenTransaction, error) bool) {
		first, _ := e.tx.States.Bounds()
		for rec, err := range e.tx.States.All(first) {
			t := OpenTransaction{
				Number: rec.Number, PhysicalOffset: rec.CommitOffset, Size: rec.Size, StoreTimestamp: rec.Seconds() * 1000, GroupHash: rec.GroupHash,
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// advance does nothing: the table needs no progress.
func (e *stateEngine) advance() error { return nil }

var _ commitlog.Sequence = fixed(0)
