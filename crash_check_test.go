package rocketstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// tally counts what was looked at.
type tally struct {
	images      int // disks opened and checked
	interrupted int // of these, after a recovery that was cut off by another power cut
	refused     map[string]int
	records     int // in the logs of all images
	aside       int // records that were whole but behind a missing one, and found in lost+found
}

func (n *tally) add(o tally) {
	n.images, n.interrupted, n.records = n.images+o.images, n.interrupted+o.interrupted, n.records+o.records
	n.aside += o.aside
	if n.refused == nil {
		n.refused = map[string]int{}
	}
	for kind, count := range o.refused {
		n.refused[kind] += count
	}
}

// openAnyhow opens a store, taking the choice that recovery may ask for.
func openAnyhow(o *rocketstore.Options, n *tally) (*rocketstore.Store, error) {
	s, err := rocketstore.Open("", o)
	refused, ok := errors.AsType[*recovery.RefusedError](err)
	if !ok {
		return s, err
	}
	n.add(tally{refused: map[string]int{refused.Kind: 1}})
	forced := *o
	switch refused.Kind {
	case recovery.KindDamage:
		forced.Recovery.OnDamage = recovery.CutAndKeep
	case recovery.KindEmptyLog:
		forced.Recovery.StartAnew = true
	}
	return rocketstore.Open("", &forced)
}

// check compares all that a store shows with the model of its log.
func (m *model) check(s *rocketstore.Store) error {
	for _, check := range []func(*rocketstore.Store) error{m.checkQueues, m.checkKeys, m.checkTransactions, m.checkIDs} {
		if err := check(s); err != nil {
			return err
		}
	}
	return nil
}

// checkQueues wants each queue to hold its records, once, in order and without a gap.
func (m *model) checkQueues(s *rocketstore.Store) error {
	want := m.queues()
	for q, err := range s.Queues(context.Background()) {
		if err != nil {
			return err
		}
		k := queueKey{q.Topic, q.QueueID}
		if n := int64(len(want[k])); q.Max != n || q.Min != 0 {
			return fmt.Errorf("queue %v holds %d to %d, want 0 to %d", k, q.Min, q.Max, n)
		}
		if err := sameQueue(s, k, want[k]); err != nil {
			return err
		}
		delete(want, k)
	}
	for k, records := range want {
		return fmt.Errorf("queue %v with %d records is missing", k, len(records))
	}
	return nil
}

func sameQueue(s *rocketstore.Store, k queueKey, want []*commitlog.Record) error {
	at := 0
	for r, err := range s.Messages(k.topic, k.id, 0) {
		if err != nil {
			return fmt.Errorf("queue %v at %d: %w", k, at, err)
		}
		if at >= len(want) || !reflect.DeepEqual(keep(&r), *want[at]) || r.QueueOffset != int64(at) {
			return fmt.Errorf("queue %v at %d: record at %d with queue offset %d is not the one that was put", k, at, r.PhysicalOffset, r.QueueOffset)
		}
		at++
	}
	if at != len(want) {
		return fmt.Errorf("queue %v: %d of %d records read", k, at, len(want))
	}
	return sameTags(s, k, want)
}

// sameTags wants the tags codes of the units to be those of the records.
func sameTags(s *rocketstore.Store, k queueKey, want []*commitlog.Record) error {
	if k.topic == recovery.ScheduleTopic || len(want) == 0 {
		return nil
	}
	at := 0
	res, err := s.Get(context.Background(), rocketstore.GetRequest{Topic: k.topic, QueueID: k.id, Max: len(want), MaxBytes: 1 << 30, Filter: func(code int64) bool {
		tag, _ := message.Properties(want[min(at, len(want)-1)].Properties).Get(message.PropertyTags)
		at++
		return code == message.TagsCode(tag)
	}})
	if err != nil {
		return err
	}
	defer res.Release()
	if len(res.Records) != len(want) {
		return fmt.Errorf("queue %v: %d of %d units have the right tags code", k, len(res.Records), len(want))
	}
	return nil
}

// checkKeys wants each record to be found by each of its keys, once, and nothing else.
func (m *model) checkKeys(s *rocketstore.Store) error {
	for k, want := range m.keys() {
		var got []int64
		for r, err := range s.Query(context.Background(), rocketstore.QueryRequest{Topic: k[0], Key: k[1]}) {
			if err != nil {
				return fmt.Errorf("key %v: %w", k, err)
			}
			got = append(got, r.PhysicalOffset)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("key %v finds the records at %v, want %v", k, got, want)
		}
	}
	return nil
}

// checkTransactions wants what is open to be what the log says, under the original numbers (R-B-57).
func (m *model) checkTransactions(s *rocketstore.Store) error {
	want, next := m.open()
	var got []transaction
	for tx, err := range s.OpenTransactions(context.Background()) {
		if err != nil {
			return err
		}
		got = append(got, transaction{tx.Number, tx.PhysicalOffset})
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("open transactions %v, the log says %v", got, want)
	}
	info, ok := s.StateTableInfo()
	if !ok {
		return nil
	}
	events := int64(0)
	for i := range m.records {
		if m.records[i].SysFlag.Transaction() != 0 {
			events++
		}
	}
	if info.Next != next || info.RedoUnits != events {
		return fmt.Errorf("state table ends at %d, redo log has %d units; the log says %d and %d", info.Next, info.RedoUnits, next, events)
	}
	return nil
}

// checkIDs wants each record to be found by its offset message id.
func (m *model) checkIDs(s *rocketstore.Store) error {
	for i := range m.records {
		r := &m.records[i]
		found, at, err := s.Lookup(r.ID())
		if err != nil {
			return fmt.Errorf("id of the record at %d: %w", r.PhysicalOffset, err)
		}
		if at != r.PhysicalOffset || string(found.Body) != string(r.Body) {
			return fmt.Errorf("id of the record at %d finds the one at %d", r.PhysicalOffset, at)
		}
	}
	return nil
}

// examine opens the disk as it may be after a power cut, and checks everything that is promised. With interrupt another
// power cut comes during the recovery.
func (h *history) examine(snapshot *crashfs.Snapshot, image uint64, interrupt bool) error {
	m := *h.model
	opts := h.opts
	opts.HoldDelayed = true
	h.tally.images++
	if interrupt {
		h.tally.interrupted++
		disk, kept, err := h.interrupted(opts, snapshot, image)
		if err != nil {
			return err
		}
		opts.FS = disk
		if err := h.examineDisk(&opts, &m); err == nil && len(m.records) != kept {
			return fmt.Errorf("%d records after a recovery that was cut off, %d after one that was not", len(m.records), kept)
		} else if err != nil {
			return fmt.Errorf("after a recovery that was cut off: %w", err)
		}
	} else {
		opts.FS = snapshot.Image(image)
		if err := h.examineDisk(&opts, &m); err != nil {
			return err
		}
	}
	h.tally.records += len(m.records)
	if err := recoverAgain(&opts, &m); err != nil {
		return err
	}
	return goOn(&opts, &m)
}

func (h *history) examineDisk(o *rocketstore.Options, m *model) error {
	before, err := diskContents(o.FS)
	if err != nil {
		return err
	}
	s, err := openAnyhow(o, &h.tally)
	if err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	log, err := readLog(s, 0)
	if err == nil {
		err = m.adopt(log)
	}
	if err == nil {
		err = m.check(s)
	}
	if err = errors.Join(err, s.Abandon()); err != nil {
		return err
	}
	return h.keptAside(o, before, len(log))
}

// keptAside wants every record that was whole on the disk but is not in the recovered log, since something before it was
// missing, to be in lost+found.
func (h *history) keptAside(o *rocketstore.Options, before map[string]string, kept int) error {
	after, err := diskContents(o.FS)
	if err != nil {
		return err
	}
	var aside strings.Builder
	for name, b := range after {
		if strings.HasPrefix(name, recovery.LostAndFound) {
			aside.WriteString(b)
		}
	}
	for i := kept; i < len(h.model.records) && h.skew == 0; i++ { // older than what is before it, it may be left over
		r := &h.model.records[i]
		raw := string(r.AppendTo(nil))
		segment, at := mappedfile.SegmentName(r.PhysicalOffset-r.PhysicalOffset%o.SegmentSize), r.PhysicalOffset%o.SegmentSize
		if b := before["commitlog/"+segment]; int64(len(b)) < at || !strings.HasPrefix(b[at:], raw) {
			continue
		}
		if h.tally.aside++; !strings.Contains(aside.String(), raw) {
			return fmt.Errorf("the record at %d was whole on the disk, and is neither in the log nor in lost+found", r.PhysicalOffset)
		}
	}
	return nil
}

// interrupted recovers an image twice, to the end and up to some step. It gives the disk after the second one, and how
// many records the first one kept.
func (h *history) interrupted(opts rocketstore.Options, snapshot *crashfs.Snapshot, image uint64) (mappedfile.FS, int, error) {
	whole := crashfs.New(snapshot.Image(image))
	opts.FS = whole
	s, err := openAnyhow(&opts, &h.tally)
	if err != nil {
		return nil, 0, fmt.Errorf("recovery: %w", err)
	}
	log, err := readLog(s, 0)
	if err = errors.Join(err, s.Abandon()); err != nil {
		return nil, 0, err
	}
	part := crashfs.New(snapshot.Image(image))
	rng := rand.New(rand.NewPCG(image, uint64(whole.Steps())))
	part.CrashAfter(rng.IntN(whole.Steps() + 1))
	opts.FS = part
	if s, err := openAnyhow(&opts, &h.tally); err == nil {
		err = s.Abandon()
		if err != nil {
			return nil, 0, err
		}
	} else if !errors.Is(err, crashfs.ErrCrashed) {
		return nil, 0, fmt.Errorf("recovery without power: %w", err)
	}
	return part.Image(rng.Uint64N(20)), len(log), nil
}

// recoverAgain wants a second recovery to change not a byte (R-E-073, R-B-60).
func recoverAgain(o *rocketstore.Options, m *model) error {
	first, err := diskContents(o.FS)
	if err != nil {
		return err
	}
	s, err := rocketstore.Open("", o)
	if err != nil {
		return fmt.Errorf("second recovery: %w", err)
	}
	if err := errors.Join(m.check(s), s.Abandon()); err != nil {
		return fmt.Errorf("second recovery: %w", err)
	}
	second, err := diskContents(o.FS)
	if err != nil {
		return err
	}
	names := maps.Clone(first)
	maps.Copy(names, second)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if first[name] != second[name] {
			return fmt.Errorf("second recovery changed %s: %q before, %q after", name, shorten(first[name]), shorten(second[name]))
		}
	}
	return nil
}

// shorten leaves out the zeros at the end.
func shorten(s string) string {
	end := len(s)
	for end > 0 && s[end-1] == 0 {
		end--
	}
	return s[:end]
}

// diskContents gives the bytes of all files.
func diskContents(fsys mappedfile.FS) (map[string]string, error) {
	files := make(map[string]string)
	var walk func(dir string) error
	walk = func(dir string) error {
		entries, err := fsys.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				err = walk(name)
			} else {
				files[name], err = diskContent(fsys, name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return files, walk(".")
}

func diskContent(fsys mappedfile.FS, name string) (_ string, err error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, fs.FileMode(0))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, err := f.Size()
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	return string(b), err
}

// goOn puts a message into each queue, a prepared one, and ends every open transaction under its original number; all that
// must work, go on without a gap, and be there after a clean stop.
func goOn(o *rocketstore.Options, m *model) (err error) {
	s, err := rocketstore.Open("", o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Abandon()) }()
	ctx := context.Background()
	queues := m.queues()
	for _, k := range slices.SortedFunc(maps.Keys(queues), func(a, b queueKey) int { return int(a.id-b.id)*2 + len(a.topic) - len(b.topic) }) {
		if k.topic == rocketstore.HalfTopicName || k.topic == rocketstore.OpTopicName {
			continue
		}
		p, _ := message.NewProperties(message.PropertyKeys, "afterwards key"+strconv.Itoa(int(k.id)))
		msg := &message.Message{Topic: k.topic, QueueID: k.id, Body: []byte("afterwards"), Properties: p}
		m.doing = append(m.doing, plain(msg))
		res, err := s.Put(ctx, msg)
		if err != nil || res.QueueOffset != int64(len(queues[k])) {
			return fmt.Errorf("put afterwards into %v with %d records: queue offset %d, %w", k, len(queues[k]), res.QueueOffset, err)
		}
	}
	open, next := m.open()
	p, _ := message.NewProperties(message.PropertyTransactionPrepared, "true", message.PropertyProducerGroup, producerGroup)
	res, err := s.Put(ctx, &message.Message{Topic: "TopicA", Body: []byte("prepared"), Properties: p})
	if err != nil || res.QueueOffset != next {
		return fmt.Errorf("put prepared afterwards: number %d, want %d, %w", res.QueueOffset, next, err)
	}
	m.doing = append(m.doing, wanted{topic: map[bool]string{true: "TopicA", false: rocketstore.HalfTopicName}[m.table], loose: true})
	for i, tx := range open {
		commit := i%2 == 0
		m.doing = append(m.doing, m.ending(tx, commit)...)
		if _, err := s.EndTransaction(ctx, rocketstore.TransactionEnd{ProducerGroup: producerGroup, PreparedOffset: tx.PhysicalOffset, Number: tx.Number, Commit: commit}); err != nil {
			return fmt.Errorf("ending transaction %d afterwards: %w", tx.Number, err)
		}
	}
	if err := s.Close(ctx); err != nil {
		return fmt.Errorf("closing afterwards: %w", err)
	}
	if s, err = rocketstore.Open("", o); err != nil {
		return fmt.Errorf("after a clean stop: %w", err)
	}
	if !s.Report().Trusted {
		return errors.New("after a clean stop: the note of it is not believed")
	}
	m.durable = m.all()
	log, err := readLog(s, 0)
	if err == nil {
		err = m.adopt(log)
	}
	if err == nil {
		err = m.check(s)
	}
	return err
}
