package rocketstore

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"

	"github.com/google/btree"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// The topics and the group of the half-message engine (docs/formats.md, half topic).
const (
	HalfTopicName    = "RMQ_SYS_TRANS_HALF_TOPIC"
	OpTopicName      = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
	TransactionGroup = "CID_RMQ_SYS_TRANS"
)

// halfEngine keeps transactions as 4.3 and later do: a half message waits in a topic of its own, and a message of the op
// topic that names its queue offset there ends it.
type halfEngine struct {
	store *Store

	mu     sync.Mutex          // guards all below
	loaded bool                // open holds what the two topics said at that time, kept up to date since
	halves *btree.BTreeG[half] // by queue offset in the half topic
	byKey  map[string]int64    // newest open half of a unique key and group
	byAt   map[int64]int64     // queue offset of an open half by physical offset
}

// half is an open half message.
type half struct {
	OpenTransaction
	key string // UNIQ_KEY and PGROUP, "" without a UNIQ_KEY
}

const btreeDegree = 32

func (e *halfEngine) put(ctx context.Context, m *message.Message) (PutResult, error) {
	h := *m
	h.Properties = m.Properties.Delete(message.PropertyDelay)
	for _, p := range [][2]string{{message.PropertyRealTopic, m.Topic}, {message.PropertyRealQueueID, strconv.Itoa(int(m.QueueID))}} {
		var err error
		if h.Properties, err = h.Properties.Set(p[0], p[1]); err != nil {
			return PutResult{}, err
		}
	}
	if unique, ok := m.Properties.Get(message.PropertyUniqueKey); ok && e.store.dialect.NamesTransaction {
		var err error
		if h.Properties, err = h.Properties.Set(message.PropertyTransactionID, unique); err != nil {
			return PutResult{}, err
		}
	}
	h.Topic, h.QueueID, h.SysFlag = HalfTopicName, 0, m.SysFlag.WithTransaction(0)
	return e.append(ctx, &h, waits(m))
}

// append stores a half message and takes it up as open.
func (e *halfEngine) append(ctx context.Context, h *message.Message, wait bool) (PutResult, error) {
	if err := e.load(ctx); err != nil {
		return PutResult{}, err
	}
	queue, err := e.store.queue(HalfTopicName, 0)
	if err != nil {
		return PutResult{}, err
	}
	// Held over the append, so that no end can come between the record and the note of it.
	e.mu.Lock()
	res, err := e.store.append(ctx, h, queue, false)
	if err == nil {
		e.add(half{OpenTransaction{
			Number: res.QueueOffset, PhysicalOffset: res.PhysicalOffset, Size: int32(res.Size), StoreTimestamp: res.StoreTimestamp,
			GroupHash: groupHash(h.Properties), Checks: checkTimes(h.Properties),
		}, halfKey(h.Properties)})
	}
	e.mu.Unlock()
	if err == nil && wait {
		err = e.store.log.Wait(ctx, res.PhysicalOffset+int64(res.Size))
	}
	return res, err
}

func groupHash(p message.Properties) int32 {
	group, _ := p.Get(message.PropertyProducerGroup)
	return message.HashString(group)
}

func checkTimes(p message.Properties) int {
	v, _ := p.Get(message.PropertyTransactionCheckTimes)
	n, _ := strconv.Atoi(v)
	return n
}

func halfKey(p message.Properties) string {
	unique, ok := p.Get(message.PropertyUniqueKey)
	if !ok {
		return ""
	}
	group, _ := p.Get(message.PropertyProducerGroup)
	return unique + "\x00" + group
}

// add takes up an open half message; an older copy of it, which a check left, is no longer open. The caller holds mu.
func (e *halfEngine) add(h half) {
	if older, ok := e.byKey[h.key]; ok && h.key != "" {
		e.remove(older)
	}
	e.halves.ReplaceOrInsert(h)
	e.byAt[h.PhysicalOffset] = h.Number
	if h.key != "" {
		e.byKey[h.key] = h.Number
	}
}

// remove takes out a half message that was ended. The caller holds mu.
func (e *halfEngine) remove(number int64) {
	h, ok := e.halves.Delete(half{OpenTransaction: OpenTransaction{Number: number}})
	if !ok {
		return
	}
	delete(e.byAt, h.PhysicalOffset)
	if e.byKey[h.key] == number {
		delete(e.byKey, h.key)
	}
}

// end writes the committed message into its own topic, and then the op message that ends the half one. An answer that
// names an older copy ends the newest.
func (e *halfEngine) end(ctx context.Context, t TransactionEnd) (PutResult, error) {
	if err := e.load(ctx); err != nil {
		return PutResult{}, err
	}
	m, err := e.halfMessage(t)
	if err != nil {
		return PutResult{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	number, ok := e.byAt[t.PreparedOffset]
	if !ok {
		if number, ok = e.byKey[halfKey(m.Properties)]; !ok || halfKey(m.Properties) == "" {
			return PutResult{}, ErrAlreadyEnded
		}
	}
	res := PutResult{PhysicalOffset: -1, QueueOffset: -1}
	if t.Commit {
		if res, err = e.commit(ctx, m, t.PreparedOffset); err != nil {
			return res, err
		}
	}
	if err := e.op(ctx, number); err != nil {
		return res, err
	}
	e.remove(number)
	if number != t.Number {
		return res, e.op(ctx, t.Number)
	}
	return res, nil
}

func (e *halfEngine) halfMessage(t TransactionEnd) (*message.Message, error) {
	r, v, err := e.store.log.Read(t.PreparedOffset)
	switch {
	case errors.Is(err, mappedfile.ErrOutOfRange), errors.Is(err, mappedfile.ErrCorrupt):
		return nil, errors.Join(ErrNoPrepared, err)
	case err != nil:
		return nil, err
	}
	defer v.Release()
	switch {
	case string(r.Topic) != HalfTopicName:
		return nil, ErrNoPrepared
	case string(message.Lookup(r.Properties, message.PropertyProducerGroup)) != t.ProducerGroup:
		return nil, ErrWrongGroup
	case r.QueueOffset != t.Number:
		return nil, ErrWrongNumber
	}
	return r.Message(), nil
}

// commit appends the message of a half one to its real queue; the property text stays as it is (protocol.md E1).
func (e *halfEngine) commit(ctx context.Context, m *message.Message, preparedOffset int64) (PutResult, error) {
	topic, _ := m.Properties.Get(message.PropertyRealTopic)
	id, _ := m.Properties.Get(message.PropertyRealQueueID)
	n, err := strconv.ParseInt(id, 10, 32)
	if err != nil || !message.ValidTopic(topic) || n < 0 {
		return PutResult{}, &commitlog.LimitError{What: "half message", Text: "its REAL_TOPIC and REAL_QID name no queue"}
	}
	real := *m
	real.Topic, real.QueueID = topic, int32(n)
	real.SysFlag, real.PreparedTransactionOffset = m.SysFlag.WithTransaction(message.FlagCommit), preparedOffset
	queue, err := e.store.queue(real.Topic, real.QueueID)
	if err != nil {
		return PutResult{}, err
	}
	return e.store.append(ctx, &real, queue, false)
}

// op appends the message that ends the half one at a queue offset. It holds the plain number, which every line reads.
func (e *halfEngine) op(ctx context.Context, number int64) error {
	queue, err := e.store.queue(OpTopicName, 0)
	if err != nil {
		return err
	}
	p, err := message.NewProperties(message.PropertyTags, "d", message.PropertyWait, "true")
	if err != nil {
		return err
	}
	_, err = e.store.append(ctx, &message.Message{Topic: OpTopicName, Body: strconv.AppendInt(nil, number, 10), Properties: p}, queue, false)
	return err
}

func (e *halfEngine) open(ctx context.Context) iter.Seq2[OpenTransaction, error] {
	return func(yield func(OpenTransaction, error) bool) {
		if err := e.load(ctx); err != nil {
			yield(OpenTransaction{}, err)
			return
		}
		const page = 256
		for from := int64(0); ; {
			var some []half
			e.mu.Lock()
			e.halves.AscendGreaterOrEqual(half{OpenTransaction: OpenTransaction{Number: from}}, func(h half) bool {
				some = append(some, h)
				return len(some) < page
			})
			e.mu.Unlock()
			for _, h := range some {
				if !yield(h.OpenTransaction, nil) {
					return
				}
				from = h.Number + 1
			}
			if len(some) < page {
				return
			}
		}
	}
}

// load reads the two topics once: open is every half message from the stored progress on that no op message names, nor
// names the one that it is a copy of, and that has no later copy (protocol.md 16).
func (e *halfEngine) load(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.loaded {
		return nil
	}
	if err := e.store.readable(ctx); err != nil {
		return err
	}
	e.halves = btree.NewG(btreeDegree, func(a, b half) bool { return a.Number < b.Number })
	e.byKey, e.byAt = make(map[string]int64), make(map[int64]int64)
	named, err := e.readOps()
	if err != nil {
		return err
	}
	for r, err := range e.store.Messages(HalfTopicName, 0, e.store.progress(HalfTopicName)) {
		if err != nil {
			return err
		}
		p := message.Properties(r.Properties)
		if first, ok := p.Get(message.PropertyPreparedQueueOffset); ok && named[parseOffset(first)] {
			named[r.QueueOffset] = true
		}
		h := half{OpenTransaction{
			Number: r.QueueOffset, PhysicalOffset: r.PhysicalOffset, Size: r.Size, StoreTimestamp: r.StoreTimestamp,
			GroupHash: groupHash(p), Checks: checkTimes(p),
		}, halfKey(p)}
		if named[r.QueueOffset] {
			// An op for an older or newer copy settles all of them.
			continue
		}
		e.add(h)
	}
	e.loaded = true
	return nil
}

// readOps collects the half queue offsets that op messages name.
func (e *halfEngine) readOps() (map[int64]bool, error) {
	named := make(map[int64]bool)
	for r, err := range e.store.Messages(OpTopicName, 0, e.store.progress(OpTopicName)) {
		if err != nil {
			return nil, err
		}
		for word := range strings.SplitSeq(string(r.Body), ",") {
			if n := parseOffset(word); n >= 0 {
				named[n] = true
			}
		}
	}
	return named, nil
}

func parseOffset(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
