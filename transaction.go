package rocketstore

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/rocketstore/rocketstore/message"
)

// Engine is where a store keeps its transactions.
type Engine int

// The engines.
const (
	// EngineByDirectory is the engine that the directory shows; in a new one that of the dialect.
	EngineByDirectory Engine = iota
	// StateTable is that of 3.1: prepared records in the log, a table of their states and a redo log.
	StateTable
	// HalfTopic is that of 4.3 and later: half messages in a topic of their own.
	HalfTopic
)

// String names the engine as config/rocketstore.json does.
func (e Engine) String() string { return [...]string{"by directory", "stateTable", "halfTopic"}[e] }

// Why a transaction cannot be ended. The texts are those that RocketMQ answers with.
var (
	ErrNoPrepared   = errors.New("find prepared transaction message failed")
	ErrWrongGroup   = errors.New("the producer group wrong")
	ErrWrongNumber  = errors.New("the transaction state table offset wrong")
	ErrAlreadyEnded = errors.New("the transaction was ended before")
	ErrTooLate      = errors.New("the time within which the producer may end the transaction unasked is over")
)

// TransactionEnd asks for the end of a transaction.
type TransactionEnd struct {
	ProducerGroup  string
	PreparedOffset int64 // physical offset of the prepared message. Wire: commitLogOffset
	Number         int64 // queue offset that putting it gave, or that a check handed out. Wire: tranStateTableOffset
	Commit         bool  // else it is rolled back
	Unasked        bool  // the producer says so by itself, not as the answer to a check. Wire: not fromTransactionCheck
}

// OpenTransaction is a prepared message that is neither committed nor rolled back.
type OpenTransaction struct {
	Number         int64 // in the state table, or queue offset in the half topic
	PhysicalOffset int64 // of the prepared or half message
	Size           int32 // of its record, bytes
	StoreTimestamp int64 // ms, of the prepared or half message
	GroupHash      int32 // Java String.hashCode of the producer group
	Checks         int   // how often its producer was asked, as far as is known
}

// engine is one way to keep transactions.
type engine interface {
	// put stores a prepared message.
	put(ctx context.Context, m *message.Message) (PutResult, error)
	// end stores the outcome, once.
	end(ctx context.Context, e TransactionEnd) (PutResult, error)
	// open yields what is open, in the order in which it was prepared.
	open(ctx context.Context) iter.Seq2[OpenTransaction, error]
	// advance brings the progress that config/ holds up to date.
	advance() error
	// rounds makes the engine's part of the check-back service.
	rounds(c *checkService) rounds
}

// What a consumer sends back goes to topics that begin so.
const (
	retryTopicPrefix = "%RETRY%"
	deadTopicPrefix  = "%DLQ%"
)

// isPrepared says whether a message that is put begins a transaction: it says so by flag or by property, and is not a
// committed one that is sent back for a retry, or is dead, and still carries the marks (protocol.md E4).
func isPrepared(m *message.Message) bool {
	a := asksOf(m.Properties)
	return a.prepares(m)
}

func (a *asks) prepares(m *message.Message) bool {
	kind := m.SysFlag.Transaction()
	if kind == message.FlagCommit || kind == message.FlagRollback ||
		strings.HasPrefix(m.Topic, retryTopicPrefix) || strings.HasPrefix(m.Topic, deadTopicPrefix) {
		return false
	}
	return kind == message.FlagPrepared || a.prepared == "true"
}

// EndTransaction commits or rolls back a prepared message: a committed one enters its queue, as a record of its own. A
// transaction is ended once; a second end gives ErrAlreadyEnded and changes nothing. What does not fit the prepared
// message gives ErrNoPrepared, ErrWrongGroup or ErrWrongNumber (R-B-48). In a half topic of 5.3 a message that says for how
// long its producer is not to be asked (CHECK_IMMUNITY_TIME_IN_SECONDS) cannot be ended unasked afterwards: that gives
// ErrTooLate (protocol.md E13). Other errors are those of Put.
func (s *Store) EndTransaction(ctx context.Context, e TransactionEnd) (PutResult, error) {
	if err := s.putable(); err != nil {
		return PutResult{}, err
	}
	return s.engine.end(ctx, e)
}

// OpenTransactions yields the transactions that are open, in the order in which they were prepared. It sees every end that
// returned before the call.
func (s *Store) OpenTransactions(ctx context.Context) iter.Seq2[OpenTransaction, error] {
	return func(yield func(OpenTransaction, error) bool) {
		if err := s.readable(ctx); err != nil {
			yield(OpenTransaction{}, err)
			return
		}
		for t, err := range s.engine.open(ctx) {
			if !yield(t, err) {
				return
			}
		}
	}
}

// StateTableInfo says what the transaction structures of 3.1 hold.
type StateTableInfo struct {
	First, Next int64 // number of the first record, and the one that the next prepared message gets
	RedoUnits   int64 // units in the redo log
}

// StateTableInfo is false when the store's engine is another one.
func (s *Store) StateTableInfo() (StateTableInfo, bool) {
	if s.tx == nil {
		return StateTableInfo{}, false
	}
	first, next := s.tx.States.Bounds()
	from, end := s.tx.Redo.Bounds()
	return StateTableInfo{first, next, end - from}, true
}
