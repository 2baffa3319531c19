package rocketstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// errPowerOff ends a history: the power is off.
var errPowerOff = errors.New("the power is off")

// history is a seeded workload over a store on a simulated disk. It has one or more lives of the store; each ends with a
// clean stop, a kill or a power cut. It runs in a synctest bubble.
type history struct {
	rng     *rand.Rand
	opts    rocketstore.Options
	past    []int                  // how the lives before the last one end
	often   []func(*history) error // operations that come more often than usual
	last    []func(*history) error // those of the last life
	does    []func(*history) error // all operations, if not chosen by the seed
	long    int                    // so many times longer than usual
	idle    bool                   // after some messages all but one queue are idle
	harm    []func(*call)          // planted bugs
	disk    *crashfs.FS
	turns   turns
	store   *rocketstore.Store
	model   *model
	alive   int   // records that a kill cannot take away
	skew    int64 // of the store's clock, ms
	made    int   // messages made
	waiting int   // delayed messages made
	tally   tally
	trace   func(format string, args ...any)
}

// newHistory makes the history of a seed. What the seed chooses of the store's options stays the same in all its lives.
func newHistory(seed uint64) *history {
	h := &history{rng: rand.New(rand.NewPCG(seed, 5)), trace: func(string, ...any) {}}
	h.opts = rocketstore.Options{
		SegmentSize: 4096, QueueSegmentSize: 100, IndexSlots: 10, IndexEntries: 16, StateSegmentSize: 96, RedoSegmentSize: 100,
		FlushEvery: 1000 * time.Hour, CheckpointEvery: 1000 * time.Hour, DelayLevels: "1s 3s",
		Now: func() int64 { return time.Now().UnixMilli() + h.skew },
	}
	for range h.rng.IntN(3) {
		h.past = append(h.past, h.rng.IntN(3))
	}
	h.idle = h.rng.IntN(2) == 0
	o := &h.opts
	engine := h.rng.IntN(4)
	h.use([]string{"3.1", "4.9", "5.3", "4.9"}[engine], engine == 3)
	o.Sync = []commitlog.SyncPolicy{commitlog.SyncGroup, commitlog.SyncInterval}[h.rng.IntN(2)]
	o.Write = []mappedfile.WriteMode{mappedfile.Mapped, mappedfile.Mapped, mappedfile.Mapped, mappedfile.Pwrite, mappedfile.Staged}[h.rng.IntN(5)]
	o.HoldDelayed = h.rng.IntN(2) == 0
	o.NoIndex = h.rng.IntN(6) == 0
	if h.rng.IntN(2) == 0 {
		o.Recovery.VerifyBytes = 1 // only the last segment and what the checkpoint does not vouch for
	}
	return h
}

// use chooses the line whose rules the store follows, and the state table where the line has none.
func (h *history) use(line string, table bool) {
	d, err := dialect.Parse(line)
	if err != nil {
		panic(err)
	}
	h.opts.Dialect, h.opts.Transactions = line, rocketstore.EngineByDirectory
	if table {
		h.opts.Transactions = rocketstore.StateTable
	}
	h.model = &model{dialect: d, table: d.HasStateTable || table}
}

// mount gives the store another disk.
func (h *history) mount(inner mappedfile.FS) {
	h.disk, h.turns = crashfs.New(inner), turns{h.rng.IntN(2) == 0, h.opts.Write == mappedfile.Staged}
	h.opts.FS = &hooked{FS: h.disk, hooks: append([]func(*call){h.turns.hook}, h.harm...)}
}

// run goes through all lives, and cuts the power after so many steps of the last one, or at its end. It gives the number of
// steps that the last life had.
func (h *history) run(cut int) (steps int, err error) {
	h.mount(memfs.New())
	h.model.noIndex = h.opts.NoIndex
	for _, end := range h.past {
		h.disk.CrashAfter(whole)
		if err := h.life(end); err != nil {
			return 0, err
		}
	}
	h.often = append(h.often, h.last...)
	before := h.disk.Steps()
	h.disk.CrashAfter(before + cut)
	err = h.life(endClose)
	if errors.Is(err, errPowerOff) {
		err = nil
	}
	steps = h.disk.Steps() - before
	h.disk.Crash()
	return steps, err
}

// The ends of a life.
const (
	endClose = iota
	endKill
	endCut
)

// life opens the store, works with it and ends it.
func (h *history) life(end int) error {
	if end == endCut {
		h.disk.CrashAfter(h.disk.Steps() + 5 + h.rng.IntN(150))
	}
	err := h.work((8 + h.rng.IntN(40)) * max(1, h.long))
	if err == nil && end == endKill {
		h.trace("kill")
		if h.alive = h.model.all(); h.opts.Write == mappedfile.Staged {
			h.alive = h.model.durable
		}
		return h.store.Abandon()
	}
	if err == nil {
		err = h.do("close", nil, func() (bool, error) { return true, h.store.Close(context.Background()) })
	}
	if errors.Is(err, errPowerOff) && end == endCut {
		h.disk.Crash()
		seed := h.rng.Uint64N(12)
		h.trace("power cut, image %d", seed)
		h.mount(h.disk.Image(seed))
		h.alive = 0
		return nil
	}
	return err
}

// work opens the store and does so many operations.
func (h *history) work(operations int) error {
	if err := h.open(); err != nil {
		return err
	}
	// A segment that the first append makes itself is made durable by whoever comes first, under a lock: nobody waits here.
	if err := h.putWith(h.message(), false); err != nil {
		return errors.Join(err, h.store.Abandon())
	}
	does := h.does
	if does == nil {
		does = slices.Repeat([]func(*history) error{(*history).operation}, operations)
	}
	for _, do := range does {
		if err := do(h); err != nil {
			return errors.Join(err, h.store.Abandon())
		}
	}
	return nil
}

func (h *history) open() (err error) {
	h.trace("open")
	h.store, err = openAnyhow(&h.opts, &h.tally)
	if err != nil {
		return h.powerOff(err)
	}
	log, err := readLog(h.store, 0)
	if err == nil && len(log) < h.alive {
		err = fmt.Errorf("killed process: %d records kept of %d", len(log), h.alive)
	}
	h.model.time = h.model.time || !h.opts.HoldDelayed
	if err == nil {
		err = h.model.adopt(log)
	}
	if err == nil {
		err = h.model.check(h.store)
	}
	return err
}

// powerOff is errPowerOff when the power is off, else err.
func (h *history) powerOff(err error) error {
	if _, off := h.disk.ReadDir("."); off != nil {
		return errPowerOff
	}
	return err
}

// do does one operation that is to bring some records into the log, lets the background catch up and compares. The
// operation says whether all that is in the log is durable now.
func (h *history) do(name string, doing []wanted, f func() (durable bool, err error)) error {
	h.trace("%s (step %d)", name, h.disk.Steps())
	m := h.model
	m.doing = append(m.doing, doing...)
	durable, err := f()
	if err == nil && durable {
		m.durable = m.all()
	}
	m.time = !h.opts.HoldDelayed
	time.Sleep(time.Duration(1+h.rng.IntN(20)) * time.Millisecond) // the background catches up
	synctest.Wait()
	if off := h.powerOff(err); off != nil || name == "close" {
		return off
	}
	more, err := readLog(h.store, m.end())
	if err != nil {
		return err
	}
	return m.grow(more)
}

// readLog copies the records from a physical offset on.
func readLog(s *rocketstore.Store, from int64) ([]commitlog.Record, error) {
	var log []commitlog.Record
	for r, err := range s.Records(from) {
		if err != nil {
			return nil, fmt.Errorf("reading the log: %w", err)
		}
		log = append(log, keep(r))
	}
	return log, nil
}

// operation does one operation of the workload.
func (h *history) operation() error {
	if len(h.often) > 0 && h.rng.IntN(2) == 0 {
		return h.often[h.rng.IntN(len(h.often))](h)
	}
	switch n := h.rng.IntN(100); {
	case n < 38:
		return h.put(h.message())
	case n < 46:
		return h.putDelayed()
	case n < 54:
		return h.putBatch()
	case n < 66:
		return h.prepare()
	case n < 78:
		return h.finish()
	case n < 83:
		return h.sync()
	case n < 88:
		return h.checkpoint()
	case n < 92:
		return h.writeback()
	case n < 98 || !h.opts.HoldDelayed:
		return h.timePasses()
	}
	h.skew -= h.rng.Int64N(20_000)
	return h.do("clock goes back", nil, func() (bool, error) { return false, nil })
}

// message makes a message.
func (h *history) message() *message.Message {
	h.made++
	body := fmt.Sprintf("message %d:", h.made)
	body += strings.Repeat(string(rune('a'+h.made%26)), h.rng.IntN([]int{60, 300, 1200}[h.rng.IntN(3)]))
	pairs := []string{message.PropertyTags, "tag" + strconv.Itoa(h.rng.IntN(3))}
	switch h.rng.IntN(3) {
	case 0:
		pairs = append(pairs, message.PropertyKeys, fmt.Sprintf("key%d all", h.made))
	case 1:
		pairs = append(pairs, message.PropertyUniqueKey, fmt.Sprintf("U%d", h.made), message.PropertyKeys, fmt.Sprintf("key%d", h.made%7))
	}
	p, err := message.NewProperties(pairs...)
	if err != nil {
		panic(err)
	}
	topic, id := []string{"TopicA", "TopicA", "TopicA", "TopicB", "Rare"}[h.rng.IntN(5)], int32(h.rng.IntN(2))
	if h.idle && h.made > 15 {
		topic, id = "TopicA", 0
	}
	return &message.Message{Topic: topic, QueueID: id, Body: []byte(body), Properties: p}
}

// with sets properties of a message.
func with(m *message.Message, namesAndValues ...string) *message.Message {
	for i := 0; i < len(namesAndValues); i += 2 {
		p, err := m.Properties.Set(namesAndValues[i], namesAndValues[i+1])
		if err != nil {
			panic(err)
		}
		m.Properties = p
	}
	return m
}

// plain is the record of a message that goes straight into its queue.
func plain(m *message.Message) wanted {
	return wanted{topic: m.Topic, queue: m.QueueID, body: string(m.Body), props: m.Properties.Map()}
}

func (h *history) checkpoint() error {
	if len(h.model.doing) > 0 { // the checkpoint itself must not begin a dispatch of what is staged
		return h.sync()
	}
	return h.do("checkpoint", nil, func() (bool, error) { return true, h.store.Checkpoint(context.Background()) })
}

// writeback is what the kernel does in its own time.
func (h *history) writeback() error {
	return h.do("writeback", nil, func() (bool, error) { return false, h.disk.Writeback(h.rng.Uint64()) })
}

func (h *history) timePasses() error {
	return h.do("time passes", nil, func() (bool, error) {
		h.model.time = !h.opts.HoldDelayed
		time.Sleep(time.Duration(h.rng.IntN(10_000)) * time.Millisecond)
		return false, nil
	})
}

func (h *history) sync() error {
	return h.do("sync", nil, func() (bool, error) { return true, h.store.Sync() })
}

// acknowledged says whether a put that waits is durable when it returns.
func (h *history) acknowledged() bool { return h.opts.Sync == commitlog.SyncGroup }

func (h *history) put(m *message.Message) error { return h.putWith(m, h.rng.IntN(5) > 0) }

func (h *history) putWith(m *message.Message, waits bool) error {
	if !waits {
		with(m, message.PropertyWait, "false")
	}
	return h.do("put", []wanted{plain(m)}, func() (bool, error) {
		_, err := h.store.Put(context.Background(), m)
		return waits && h.acknowledged(), err
	})
}

// mostDelayed keeps what is delivered in one go below a segment, so that the log rolls once at the most.
const mostDelayed = 8

func (h *history) putDelayed() error {
	if h.waiting++; h.waiting > mostDelayed {
		return h.put(h.message())
	}
	m := h.message()
	m.Body = m.Body[:min(len(m.Body), 60)]
	level := 1 + h.rng.IntN(2)
	with(m, message.PropertyDelay, strconv.Itoa(level))
	w := plain(m)
	w.props[message.PropertyRealTopic], w.props[message.PropertyRealQueueID] = m.Topic, strconv.Itoa(int(m.QueueID))
	w.topic, w.queue = recovery.ScheduleTopic, int32(level-1)
	return h.do("put delayed", []wanted{w}, func() (bool, error) {
		_, err := h.store.Put(context.Background(), m)
		return h.acknowledged(), err
	})
}

func (h *history) putBatch() error {
	var batch []*message.Message
	var doing []wanted
	for range 2 + h.rng.IntN(3) {
		m := h.message()
		m.Body = m.Body[:min(len(m.Body), 400)]
		if len(batch) > 0 {
			m.Topic, m.QueueID = batch[0].Topic, batch[0].QueueID
		}
		batch, doing = append(batch, m), append(doing, plain(m))
	}
	return h.do("put batch", doing, func() (bool, error) {
		_, err := h.store.PutBatch(context.Background(), batch)
		return h.acknowledged(), err
	})
}

// producerGroup is that of all transactions here.
const producerGroup = "GroupA"

func (h *history) prepare() error {
	m := with(h.message(), message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, producerGroup)
	w := plain(m)
	if h.model.table {
		w.tx = message.FlagPrepared
	} else {
		w.props[message.PropertyRealTopic], w.props[message.PropertyRealQueueID] = m.Topic, strconv.Itoa(int(m.QueueID))
		if unique := w.props[message.PropertyUniqueKey]; unique != "" && h.model.dialect.NamesTransaction {
			w.props[message.PropertyTransactionID] = unique
		}
		w.topic, w.queue = rocketstore.HalfTopicName, 0
	}
	return h.do("prepare", []wanted{w}, func() (bool, error) {
		_, err := h.store.Put(context.Background(), m)
		return h.acknowledged(), err
	})
}

// finish commits or rolls back one of the open transactions.
func (h *history) finish() error {
	commit := h.rng.IntN(2) == 0
	open, _ := h.model.open()
	if len(h.model.doing) > 0 { // among what is staged there may be ends
		return h.sync()
	}
	if len(open) == 0 {
		return h.prepare()
	}
	tx := open[h.rng.IntN(len(open))]
	return h.do(fmt.Sprintf("end %d, commit %t", tx.Number, commit), h.model.ending(tx, commit), func() (bool, error) {
		_, err := h.store.EndTransaction(context.Background(), rocketstore.TransactionEnd{
			ProducerGroup: producerGroup, PreparedOffset: tx.PhysicalOffset, Number: tx.Number, Commit: commit,
		})
		return false, err
	})
}

// ending is what the end of a transaction brings into the log.
func (m *model) ending(tx transaction, commit bool) []wanted {
	var r *commitlog.Record
	for i := range m.records {
		if m.records[i].PhysicalOffset == tx.PhysicalOffset {
			r = &m.records[i]
		}
	}
	w := wanted{topic: string(r.Topic), queue: r.QueueID, props: message.Properties(r.Properties).Map(), prepared: r.PhysicalOffset}
	w.tx = message.FlagRollback
	if commit {
		w.tx, w.body = message.FlagCommit, string(r.Body)
	}
	if m.table {
		return []wanted{w}
	}
	op := wanted{topic: rocketstore.OpTopicName, loose: true}
	if !commit {
		return []wanted{op}
	}
	id, _ := strconv.Atoi(w.props[message.PropertyRealQueueID])
	w.topic, w.queue = w.props[message.PropertyRealTopic], int32(id)
	return []wanted{w, op}
}
