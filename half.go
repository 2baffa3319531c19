package rocketstore

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strconv"
	"sync"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// The topics and the group of the half-message engine (protocol.md 7.2).
const (
	HalfTopicName    = "RMQ_SYS_TRANS_HALF_TOPIC"
	OpTopicName      = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
	GiveUpTopicName  = "TRANS_CHECK_MAX_TIME_TOPIC"
	TransactionGroup = "CID_RMQ_SYS_TRANS"
)

// halfEngine keeps transactions as 4.3 and later do: a half message waits in a topic of its own, and a message of the op
// topic that names its queue offset there ends it. A check of the producer stores the half message again, so one
// transaction may have several copies, of which the newest counts.
//
// Lock order: a stripe, then reading, then the set's own lock. Putting a half message takes only the last, after the
// append.
type halfEngine struct {
	store *Store
	set   *halfSet
	// opProperties are those of each op message.
	opProperties message.Properties
	// reading is held while units of the two topics are taken into the set.
	reading sync.Mutex
	// stripes are held, by key, from looking whether a transaction is open until its end or its copy is noted: two ends,
	// or an end and a check, must not both find it open.
	stripes [64]sync.Mutex
	// pending is the progress that is stored once the log is durable up to pendingEnd; guarded by reading.
	pending    halfProgress
	pendingEnd int64
}

// newHalfEngine makes the engine of a store that is recovered. Progress that lies behind the end of a topic was lost by
// the log but not by the file, and would hide the messages to come.
func newHalfEngine(s *Store) *halfEngine {
	at := func(topic string) int64 {
		first, end := bounds(s.queues.Lookup(topic, 0))
		stored := s.progress(topic)
		if stored > end && !s.opts.ReadOnly {
			s.opts.Logger.Warn("transaction progress lay behind the end of its topic", "topic", topic, "offset", stored, "end", end)
			s.setProgress(topic, end)
		}
		return max(first, min(stored, end))
	}
	e := &halfEngine{store: s, set: newHalfSet(at(HalfTopicName), at(OpTopicName))}
	e.opProperties, _ = s.withProperties("", message.PropertyTags, opTag, message.PropertyWait, "true") // they can be stored
	return e
}

func (e *halfEngine) stripe(key string) *sync.Mutex {
	return &e.stripes[uint32(message.HashString(key))%uint32(len(e.stripes))]
}

func (e *halfEngine) put(ctx context.Context, m *message.Message) (PutResult, error) {
	h := *m
	h.Properties = m.Properties.Delete(message.PropertyDelay)
	more := []string{message.PropertyRealTopic, m.Topic, message.PropertyRealQueueID, strconv.Itoa(int(m.QueueID))}
	if unique, ok := m.Properties.Get(message.PropertyUniqueKey); ok && e.store.dialect.NamesTransaction {
		more = append(more, message.PropertyTransactionID, unique)
	}
	var err error
	if h.Properties, err = e.store.withProperties(h.Properties, more...); err != nil {
		return PutResult{}, err
	}
	h.Topic, h.QueueID, h.SysFlag = HalfTopicName, 0, m.SysFlag.WithTransaction(0)
	return e.append(ctx, &h, waits(m))
}

// append stores a half message and notes it as open; it may be stored also when there is an error.
func (e *halfEngine) append(ctx context.Context, m *message.Message, wait bool) (PutResult, error) {
	queue, err := e.store.queue(HalfTopicName, 0)
	if err != nil {
		return PutResult{}, err
	}
	res, err := e.store.append(ctx, m, queue, wait)
	if res.Size > 0 {
		e.set.put(newHalf(res, m))
	}
	return res, err
}

// end writes the committed message into its own topic, and then the op message that ends the half one. An answer that
// names an older copy ends the newest.
func (e *halfEngine) end(ctx context.Context, t TransactionEnd) (PutResult, error) {
	r, v, err := e.halfMessage(t)
	if err != nil {
		return PutResult{}, err
	}
	defer v.Release()
	named := halfOf(&r)
	if t.Unasked && e.late(&r, &named) {
		return PutResult{}, ErrTooLate
	}
	stripe := e.stripe(named.key)
	stripe.Lock()
	defer stripe.Unlock()
	h, err := e.find(ctx, named)
	if err != nil {
		return PutResult{}, err
	}
	ctx = context.WithoutCancel(ctx) // nothing below waits, and half an end is worse than one too late
	res := PutResult{PhysicalOffset: -1, QueueOffset: -1}
	stored, committed := e.set.committed(h.Number)
	switch {
	case committed:
		res = stored // its op message could not be written last time
	case t.Commit:
		if res, err = e.commit(ctx, borrowed(&r), t.PreparedOffset); err != nil {
			return res, err
		}
		e.set.commit(h.Number, res)
	}
	if err := e.op(ctx, h.Number); err != nil {
		return res, err
	}
	if committed && !t.Commit {
		return PutResult{}, ErrAlreadyEnded
	}
	if h.Number != t.Number && t.Number >= e.set.progress().half {
		// A real broker would ask about the older copy again. For us the transaction is ended already.
		if err := e.op(ctx, t.Number); err != nil {
			e.store.opts.Logger.Warn("older copy of an ended half message not named", "offset", t.Number, "err", err)
		}
	}
	return res, nil
}

// late says whether the time is over for which a half message asks that its producer is left alone. A time that is no
// number means the usual one, as in 5.3.
func (e *halfEngine) late(r *commitlog.Record, h *half) bool {
	if !e.store.dialect.RefusesLateEnds || len(message.Lookup(r.Properties, message.PropertyCheckImmunityTime)) == 0 {
		return false
	}
	immunity := h.immunity
	if immunity < 0 {
		immunity = cmp.Or(e.store.opts.Checks.MinAge, defaultHalfAge).Milliseconds()
	}
	return h.age(e.store.now()) > immunity
}

// find gives the open copy of the transaction that a half message belongs to. The caller holds its stripe.
func (e *halfEngine) find(ctx context.Context, named half) (half, error) {
	if err := e.refresh(); err != nil {
		return half{}, err
	}
	if h, ok := e.set.find(named); ok {
		return h, nil
	}
	if err := e.store.waitDispatched(ctx, named.PhysicalOffset+1); err != nil {
		return half{}, err
	}
	if err := e.refresh(); err != nil {
		return half{}, err
	}
	if h, ok := e.set.find(named); ok {
		return h, nil
	}
	return half{}, ErrAlreadyEnded
}

// halfMessage reads the half message that an end names and compares it with the request.
func (e *halfEngine) halfMessage(t TransactionEnd) (commitlog.Record, mappedfile.View, error) {
	r, v, err := e.store.log.Read(t.PreparedOffset)
	switch {
	case errors.Is(err, mappedfile.ErrOutOfRange), errors.Is(err, mappedfile.ErrCorrupt):
		return r, v, errors.Join(ErrNoPrepared, err)
	case err != nil:
		return r, v, err
	case string(r.Topic) != HalfTopicName || r.QueueID != 0:
		err = ErrNoPrepared
	case string(message.Lookup(r.Properties, message.PropertyProducerGroup)) != t.ProducerGroup:
		err = ErrWrongGroup
	case r.QueueOffset != t.Number:
		err = ErrWrongNumber
	}
	if err != nil {
		v.Release()
	}
	return r, v, err
}

// commit appends the message of a half one to its real queue; the property text stays as it is (protocol.md E1).
func (e *halfEngine) commit(ctx context.Context, m message.Message, preparedOffset int64) (PutResult, error) {
	topic, id, ok := realQueue(m.Properties)
	if !ok {
		return PutResult{}, &commitlog.LimitError{What: "half message", Text: "its REAL_TOPIC and REAL_QID name no queue"}
	}
	m.Topic, m.QueueID = topic, id
	m.SysFlag, m.PreparedTransactionOffset = m.SysFlag.WithTransaction(message.FlagCommit), preparedOffset
	queue, err := e.store.queue(topic, id)
	if err != nil {
		return PutResult{}, err
	}
	return e.store.append(ctx, &m, queue, false)
}

// borrowed is the message of a record; its body is that of the record.
func borrowed(r *commitlog.Record) message.Message {
	return message.Message{
		Topic: string(r.Topic), QueueID: r.QueueID, Flag: r.Flag, SysFlag: r.SysFlag, BornTimestamp: r.BornTimestamp, BornHost: r.BornHost,
		StoreHost: r.StoreHost, ReconsumeTimes: r.ReconsumeTimes, Body: r.Body, Properties: message.Properties(r.Properties),
	}
}

// realQueue is the queue that a half message is meant for.
func realQueue(p message.Properties) (topic string, id int32, ok bool) {
	topic, _ = p.Get(message.PropertyRealTopic)
	text, _ := p.Get(message.PropertyRealQueueID)
	n, err := strconv.ParseInt(text, 10, 32)
	return topic, int32(n), err == nil && n >= 0 && message.ValidTopic(topic)
}

// op appends the message that ends the half one at a queue offset. It holds the plain number, which every line reads.
func (e *halfEngine) op(ctx context.Context, number int64) error {
	queue, err := e.store.queue(OpTopicName, 0)
	if err != nil {
		return err
	}
	var digits [20]byte
	res, err := e.store.append(ctx, &message.Message{
		Topic: OpTopicName, Body: strconv.AppendInt(digits[:0], number, 10), Properties: e.opProperties,
	}, queue, false)
	if res.Size > 0 {
		e.set.op(res, number)
	}
	return err
}

func (e *halfEngine) open(ctx context.Context) iter.Seq2[OpenTransaction, error] {
	return func(yield func(OpenTransaction, error) bool) {
		err := e.store.readable(ctx)
		if err == nil {
			err = e.refresh()
		}
		if err != nil {
			yield(OpenTransaction{}, err)
			return
		}
		for h := range e.set.all() {
			if !yield(h.OpenTransaction, nil) {
				return
			}
		}
	}
}

// refresh takes up what the two topics hold and the set does not know yet: all of them at first, later what did not come
// through put and end. The ops' end is looked at first, so that every half message that they name is there.
func (e *halfEngine) refresh() error {
	e.reading.Lock()
	defer e.reading.Unlock()
	return e.read()
}

// read is refresh; reading is held.
func (e *halfEngine) read() error {
	ops, halves := e.store.queues.Lookup(OpTopicName, 0), e.store.queues.Lookup(HalfTopicName, 0)
	_, endOps := bounds(ops)
	_, endHalves := bounds(halves)
	for at, ok := e.set.nextHalf(endHalves); ok; at, ok = e.set.nextHalf(endHalves) {
		u, err := halves.Get(at)
		var h *half
		if err == nil && !u.IsFiller() {
			err = e.store.withUnit(halves, at, u, func(r *commitlog.Record) {
				read := halfOf(r)
				read.Number = at
				h = &read
			})
		}
		if err := e.passable(HalfTopicName, at, err); err != nil {
			return err
		}
		e.set.read(at, h)
	}
	for at, ok := e.set.nextOp(endOps); ok; at, ok = e.set.nextOp(endOps) {
		u, err := ops.Get(at)
		var numbers []int64
		if err == nil && !u.IsFiller() {
			err = e.store.withUnit(ops, at, u, func(r *commitlog.Record) { numbers = opNumbers(r) })
		}
		if err := e.passable(OpTopicName, at, err); err != nil {
			return err
		}
		e.set.readOp(at, numbers, u.PhysicalOffset)
	}
	e.set.setLoaded()
	return nil
}

// passable turns the error of a message that is gone or damaged into a word in the log: it cannot be served, and must not
// hold up all others.
func (e *halfEngine) passable(topic string, offset int64, err error) error {
	if err == nil || errors.Is(err, mappedfile.ErrOutOfRange) {
		return nil
	}
	if errors.Is(err, mappedfile.ErrCorrupt) {
		e.store.opts.Logger.Error("message of a transaction passed over", "topic", topic, "offset", offset, "err", err)
		return nil
	}
	return err
}

// withUnit reads the record of a queue's unit for f.
func (s *Store) withUnit(q *consumequeue.Queue, at int64, u consumequeue.Unit, f func(*commitlog.Record)) error {
	r, v, err := s.recordOf(q, at, &u)
	if err != nil {
		return err
	}
	defer v.Release()
	f(&r)
	return nil
}

// advance stores how far the two topics are finished. The file may be durable before the log is: a progress is stored once
// the records that it rests on are, or a power cut would hide transactions whose ends it took.
func (e *halfEngine) advance() error {
	e.reading.Lock()
	defer e.reading.Unlock()
	if !e.set.isLoaded() {
		return nil
	}
	if err := e.read(); err != nil {
		return err
	}
	for range 2 { // what was pending, and what is durable already
		if e.pendingEnd > 0 && e.store.log.Flushed() >= e.pendingEnd {
			e.store.setProgress(HalfTopicName, e.pending.half)
			e.store.setProgress(OpTopicName, e.pending.op)
			e.pendingEnd = 0
		}
		if e.pendingEnd > 0 {
			return nil
		}
		e.pending = e.set.progress()
		_, e.pendingEnd = e.store.log.Bounds()
	}
	return nil
}
