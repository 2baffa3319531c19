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
	"time"

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

// examine opens the disk as it may be after a power cut, and checks everything that is promised.
func (h *history) examine(disk mappedfile.FS) error {
	m, opts := *h.model, h.opts
	opts.FS, opts.HoldDelayed = disk, true
	h.tally.images++
	seen, err := onlyRead(opts)
	if err != nil {
		return fmt.Errorf("opened for reading: %w", err)
	}
	if err := h.examineDisk(&opts, &m); err != nil {
		return err
	}
	if !reflect.DeepEqual(seen, m.records) {
		return fmt.Errorf("opened for reading it shows %d records, recovered %d", len(seen), len(m.records))
	}
	return h.afterwards(&opts, &m)
}

// onlyRead opens the store for reading, which shows the log that recovery is going to make, and changes nothing.
func onlyRead(o rocketstore.Options) ([]commitlog.Record, error) {
	before, err := diskContents(o.FS)
	if err != nil {
		return nil, err
	}
	o.ReadOnly = true
	s, err := rocketstore.Open("", &o)
	if err != nil {
		return nil, err
	}
	log, err := readLog(s, 0)
	if err = errors.Join(err, s.Close(context.Background())); err != nil {
		return nil, err
	}
	after, err := diskContents(o.FS)
	if err == nil && !maps.Equal(before, after) {
		err = errors.New("files were changed")
	}
	return log, err
}

// examineInterrupted does that with another power cut in the middle of the recovery; fresh gives the disk before it.
func (h *history) examineInterrupted(fresh func() mappedfile.FS, seed uint64) error {
	m, opts := *h.model, h.opts
	opts.HoldDelayed = true
	h.tally.images++
	h.tally.interrupted++
	uncut := crashfs.New(fresh())
	opts.FS = uncut
	s, err := openAnyhow(&opts, &h.tally)
	if err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	want, err := readLog(s, 0)
	if err = errors.Join(err, s.Abandon()); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, uint64(uncut.Steps())))
	disk := crashfs.New(fresh())
	disk.CrashAfter(rng.IntN(uncut.Steps() + 1))
	opts.FS = disk
	switch s, err := openAnyhow(&opts, &h.tally); {
	case err == nil:
		if err := s.Abandon(); err != nil {
			return err
		}
	case !errors.Is(err, crashfs.ErrCrashed):
		return fmt.Errorf("recovery that is cut off: %w", err)
	}
	opts.FS = disk.Image(rng.Uint64N(20))
	if err := h.examineDisk(&opts, &m); err != nil {
		return fmt.Errorf("after a recovery that was cut off: %w", err)
	}
	if !reflect.DeepEqual(m.records, want) {
		return fmt.Errorf("%d records after a recovery that was cut off, %d after one that was not", len(m.records), len(want))
	}
	return h.afterwards(&opts, &m)
}

// afterwards wants a recovered store to stay as it is and to go on.
func (h *history) afterwards(o *rocketstore.Options, m *model) error {
	h.tally.records += len(m.records)
	if err := recoverAgain(o, m); err != nil {
		return err
	}
	if !h.opts.HoldDelayed {
		if err := deliverAll(o, m); err != nil {
			return err
		}
	}
	return goOn(o, m)
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

// deliverAll lets the time pass in which all delayed messages are delivered, and wants each of them to be, at the least once.
func deliverAll(o *rocketstore.Options, m *model) error {
	opts := *o
	opts.HoldDelayed = false
	s, err := rocketstore.Open("", &opts)
	if err != nil {
		return err
	}
	time.Sleep(time.Minute) // in the bubble
	more, err := readLog(s, m.end())
	if err == nil {
		m.time = true
		err = m.grow(more)
	}
	if err == nil {
		err = m.check(s)
	}
	if err = errors.Join(err, s.Abandon()); err != nil {
		return fmt.Errorf("delivering: %w", err)
	}
	for i := range m.records {
		waits, ok := deliveryOf(&m.records[i])
		if ok && !slices.ContainsFunc(m.records, func(r commitlog.Record) bool { return waits.fits(&r) == nil }) {
			return fmt.Errorf("the delayed message at %d is not delivered", m.records[i].PhysicalOffset)
		}
	}
	return nil
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
