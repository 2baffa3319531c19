package rocketstore

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// Permissions of what the store makes itself.
const (
	filePerm fs.FileMode = 0o640
	dirPerm  fs.FileMode = 0o750
)

// PutResult says where a message went.
type PutResult struct {
	PhysicalOffset int64
	QueueOffset    int64
	Size           int // bytes of the record
	StoreTimestamp int64
	StoreHost      message.Host
}

// MessageID is the offset message id: of 3.1 the message id, of later lines the offsetMsgId.
func (r PutResult) MessageID() string { return message.OffsetID(r.StoreHost, r.PhysicalOffset) }

// Put appends one message. Under commitlog.SyncGroup it returns after the record is on the device, unless the message has
// the property WAIT with another value than "true".
//
// A message with the property DELAY waits under SCHEDULE_TOPIC_XXXX and is delivered from there when its level's time is
// over. One with the property [message.PropertyTransactionPrepared] of value "true", as [message.NewProperties] makes it, or with
// the prepared flag begins a transaction: [Store.EndTransaction] ends it.
//
// A message that cannot be stored gives an error that matches commitlog.ErrMessageIllegal; a full disk one that matches
// syscall.ENOSPC, and puts succeed again when there is room. With commitlog.ErrSyncTimeout and the context's own error the
// message is stored, only not known to be durable.
func (s *Store) Put(ctx context.Context, m *message.Message) (PutResult, error) {
	if err := s.admit(m); err != nil {
		return PutResult{}, err
	}
	a := asksOf(m.Properties)
	if a.prepares(m) {
		return s.engine.put(ctx, m)
	}
	if level := s.levelOf(m.Topic, a.delay); level > 0 {
		return s.putDelayed(ctx, m, level)
	}
	return s.putTo(ctx, m, a.waits())
}

// append encodes a message and appends its record.
func (s *Store) append(ctx context.Context, m *message.Message, seq commitlog.Sequence, wait bool) (PutResult, error) {
	if err := s.keepUp(ctx); err != nil {
		return PutResult{}, err
	}
	buf := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buf)
	rec, host, err := s.encode((*buf)[:0], m)
	if err != nil {
		return PutResult{}, err
	}
	*buf = rec
	res, err := s.log.Append(ctx, rec, seq, wait)
	return PutResult{res.PhysicalOffset, res.QueueOffset, res.Size, res.StoreTimestamp, host}, err
}

// appendRecord appends a record that was read from the log, with the fields that the caller has changed, and does not wait.
// Its slices may lie in the mapping. With seq nil it keeps its queue offset.
func (s *Store) appendRecord(ctx context.Context, r *commitlog.Record, seq commitlog.Sequence) (PutResult, error) {
	if err := s.keepUp(ctx); err != nil {
		return PutResult{}, err
	}
	buf := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buf)
	if err := mappedfile.Guard("commitlog", func() error { *buf = r.AppendTo((*buf)[:0]); return nil }); err != nil {
		return PutResult{}, err
	}
	res, err := s.log.Append(ctx, *buf, seq, false)
	return PutResult{res.PhysicalOffset, res.QueueOffset, res.Size, res.StoreTimestamp, r.StoreHost}, err
}

// PutBatch appends messages of one topic and queue, all or none, one behind the other. The results are in the order of
// the messages; the errors are those of Put.
func (s *Store) PutBatch(ctx context.Context, batch []*message.Message) ([]PutResult, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	buf := s.buffers.Get().(*[]byte)
	defer s.buffers.Put(buf)
	if err := s.admit(batch[0]); err != nil {
		return nil, err
	}
	if err := s.keepUp(ctx); err != nil {
		return nil, err
	}
	queue, err := s.queue(batch[0].Topic, batch[0].QueueID)
	if err != nil {
		return nil, err
	}
	rec, results := (*buf)[:0], make([]PutResult, len(batch))
	for i, m := range batch {
		if m.Topic != batch[0].Topic || m.QueueID != batch[0].QueueID || m.SysFlag.Transaction() != 0 || isPrepared(m) {
			return nil, &commitlog.LimitError{What: "batch", Text: fmt.Sprintf("message %d is of another queue than the first, or of a transaction", i)}
		}
		before := len(rec)
		if rec, results[i].StoreHost, err = s.encode(rec, m); err != nil {
			return nil, fmt.Errorf("message %d of the batch: %w", i, err)
		}
		results[i].Size = len(rec) - before
	}
	*buf = rec
	res, err := s.log.Append(ctx, rec, queue, waits(batch[0]))
	at := res.PhysicalOffset
	for i := range results {
		results[i].PhysicalOffset, results[i].QueueOffset, results[i].StoreTimestamp = at, res.QueueOffset+int64(i), res.StoreTimestamp
		at += int64(results[i].Size)
	}
	return results, err
}

// AppendRaw appends bytes of another store's log as they are, at the offset where they lie there. They may be cut
// anywhere; what is whole is dispatched. Offsets that do not continue the log give commitlog.ErrNotAtEnd.
func (s *Store) AppendRaw(ctx context.Context, offset int64, b []byte) error {
	if err := s.putable(); err != nil {
		return err
	}
	if err := s.keepUp(ctx); err != nil {
		return err
	}
	return s.log.AppendRaw(ctx, offset, b, true)
}

// writable says why nothing can be put, if so.
func (s *Store) writable() error {
	switch {
	case s.closed.Load():
		return ErrClosed
	case s.opts.ReadOnly:
		return mappedfile.ErrReadOnly
	}
	if err := s.trouble.Load(); err != nil {
		return fmt.Errorf("puts are refused: %w", *err)
	}
	return nil
}

// admit says why the store does not take a message, if so.
func (s *Store) admit(m *message.Message) error {
	if err := s.putable(); err != nil {
		return err
	}
	if !message.ValidTopic(m.Topic) {
		return &commitlog.LimitError{What: "topic", Text: fmt.Sprintf("%q: want letters, digits and %%, |, - or _", m.Topic)}
	}
	switch {
	case m.QueueID < 0:
		return &commitlog.LimitError{What: "queue id", Text: fmt.Sprintf("%d is negative", m.QueueID)}
	case m.SysFlag.Has(message.FlagInnerBatch):
		return &commitlog.LimitError{What: "inner batch", Text: "batch queues are not written"}
	case m.SysFlag.Transaction() == message.FlagRollback:
		return &commitlog.LimitError{What: "transaction", Text: "rollback records are made by EndTransaction"}
	}
	return nil
}

// queue is the consume queue of that name, made if it is not there.
func (s *Store) queue(topic string, id int32) (*consumequeue.Queue, error) {
	if q := s.queues.Lookup(topic, id); q != nil {
		return q, nil
	}
	return s.queues.Ensure(topic, id)
}

// ordinary is a message as it is stored when it neither begins nor ends a transaction, whatever its flags say: one that is
// sent back for a retry keeps those that it was stored with. As prepared it would not enter its queue, and in a state table
// it would open a transaction, or close that of another message.
func (s *Store) ordinary(m *message.Message) *message.Message {
	kind := m.SysFlag.Transaction()
	if kind == 0 || kind == message.FlagCommit && s.tx == nil {
		return m
	}
	o := *m
	o.SysFlag, o.PreparedTransactionOffset = m.SysFlag.WithTransaction(0), 0
	return &o
}

// encode appends the message's record to b.
func (s *Store) encode(b []byte, m *message.Message) ([]byte, message.Host, error) {
	full := *m
	full.StoreHost = m.StoreHost.Or(s.opts.StoreHost)
	full.BornHost = m.BornHost.Or(full.StoreHost)
	if full.BornTimestamp == 0 {
		full.BornTimestamp = commitlog.BornWhenStored
	}
	b, err := commitlog.AppendMessage(b, &full, s.dialect, s.opts.MaxMessageSize)
	return b, full.StoreHost, err
}

// asks are the properties that say how a message is put.
type asks struct {
	prepared, delay, wait string
	hasWait               bool
}

// asksOf reads them in one pass, which every put makes.
func asksOf(p message.Properties) (a asks) {
	for name, value := range p.All() {
		switch name {
		case message.PropertyTransactionPrepared:
			a.prepared = value
		case message.PropertyDelay:
			a.delay = value
		case message.PropertyWait:
			a.wait, a.hasWait = value, true
		}
	}
	return a
}

// waits says whether a put of the message waits for the device: WAIT is absent or "true".
func (a *asks) waits() bool { return !a.hasWait || a.wait == "true" }

func waits(m *message.Message) bool {
	a := asksOf(m.Properties)
	return a.waits()
}
