package consumequeue

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/btree"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// maxTopicLength is the length in bytes that a topic's name may have as a folder.
const maxTopicLength = 255

// btreeDegree of the ordered registry.
const btreeDegree = 16

// recentQueues is how many queues a table finds without its map, at most. A power of two.
const recentQueues = 64

// Table is all consume queues of a store. Its methods may be called from many goroutines.
//
// Lock order: mu and dirtyMu are never held together, and no lock of package mappedfile is taken under them.
type Table struct {
	fsys mappedfile.FS
	dir  string
	opts Options

	mu      sync.RWMutex
	topics  map[string]map[int32]*Queue // for looking up without allocation; guarded by mu
	order   *btree.BTreeG[*Queue]       // the same by topic and id; guarded by mu
	notices []mappedfile.Notice         // guarded by mu

	recent [recentQueues]atomic.Pointer[Queue] // queues looked up last, where Slot says: found without a lock; some are removed since

	syncMu  sync.Mutex // held by Sync
	dirtyMu sync.Mutex
	dirty   []*Queue // queues that were written since they were synced; guarded by dirtyMu
	spare   []*Queue // guarded by syncMu

	holes atomic.Int64
}

// Stats are figures of a [Table].
type Stats struct {
	Queues      int
	HolesFilled int64 // units filled since the table was opened because queue offsets were skipped
}

// OpenTable lists all queues below dir, usually "consumequeue", without opening their files; a missing dir is a table
// without queues. It changes nothing. What is no queue is left alone and reported by [Table.Notices]. A queue whose files
// contradict the segment size is a [*mappedfile.CorruptError] that names the file and both sizes.
func OpenTable(fsys mappedfile.FS, dir string, o *Options) (*Table, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("consume queue options: %w", err)
	}
	t := &Table{
		fsys: fsys, dir: dir, opts: opts,
		topics: make(map[string]map[int32]*Queue),
		order:  btree.NewG(btreeDegree, (*Queue).before),
	}
	if err := t.list(); err != nil {
		return nil, errors.Join(err, t.Abandon())
	}
	return t, nil
}

// before is the order of the registry.
func (q *Queue) before(other *Queue) bool {
	if q.topic != other.topic {
		return q.topic < other.topic
	}
	return q.id < other.id
}

// list enters all queues that the directory has.
func (t *Table) list() error {
	topics, err := t.fsys.ReadDir(t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", t.dir, err)
	}
	found := make([]listing, len(topics))
	err = inParallel(len(topics), func(i int) error {
		if !topics[i].IsDir() {
			found[i].foreign(path.Join(t.dir, topics[i].Name()), "not the folder of a topic")
			return nil
		}
		return t.listTopic(topics[i].Name(), &found[i])
	})
	for _, l := range found {
		for _, q := range l.queues {
			t.enter(q)
		}
		t.notices = append(t.notices, l.notices...)
	}
	return err
}

// listing is what the folder of one topic has.
type listing struct {
	queues  []*Queue
	notices []mappedfile.Notice
}

func (l *listing) foreign(name, text string) {
	l.notices = append(l.notices, mappedfile.Notice{Kind: mappedfile.ForeignFile, File: name, Text: text + ": " + name})
}

func (t *Table) listTopic(topic string, l *listing) error {
	dir := path.Join(t.dir, topic)
	entries, err := t.fsys.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir, err)
	}
	for _, entry := range entries {
		id, ok := parseID(entry.Name())
		if !ok || !entry.IsDir() {
			l.foreign(path.Join(dir, entry.Name()), "not the folder of a queue")
			continue
		}
		q, err := t.open(topic, id)
		if err != nil {
			return err
		}
		l.queues = append(l.queues, q)
		l.notices = append(l.notices, q.segs.Notices()...)
	}
	return nil
}

// lookers is how many goroutines look at many queues; most of the time they wait for the disk.
const lookers = 8

// inParallel calls f for each number below n, several at a time, and gives the error of the lowest that failed.
func inParallel(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, n)
	var failed atomic.Bool
	for range min(n, lookers) {
		wg.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1) - 1)
				if i >= n {
					return
				}
				if errs[i] = f(i); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Load finds out where each queue ends, several at a time. Without it each queue does so when it is first used, one after
// the other.
func (t *Table) Load() error {
	queues := slices.Collect(t.All())
	return inParallel(len(queues), func(i int) error { return queues[i].load() })
}

// parseID reads a queue id as the name of its folder has it: decimal, without sign or leading zeros.
func parseID(name string) (int32, bool) {
	id, err := strconv.ParseInt(name, 10, 32)
	if err != nil || id < 0 || strconv.FormatInt(id, 10) != name {
		return 0, false
	}
	return int32(id), true
}

// open makes the queue of a folder, which may be missing.
func (t *Table) open(topic string, id int32) (*Queue, error) {
	q := &Queue{table: t, topic: topic, id: id, dir: path.Join(t.dir, topic, strconv.FormatInt(int64(id), 10))}
	segs, err := mappedfile.Open(t.fsys, q.dir, t.opts.segmentOptions())
	if err != nil {
		return nil, fmt.Errorf("open queue %s/%d: %w", topic, id, err)
	}
	q.segs = segs
	start, _ := segs.Bounds()
	q.min.Store(start / UnitSize)
	q.files = len(segs.Segments()) > 0
	q.short = slices.ContainsFunc(segs.Notices(), func(n mappedfile.Notice) bool {
		return n.Kind == mappedfile.ShortSegment || n.Kind == mappedfile.EmptySegment
	})
	return q, nil
}

// enter adds q to the registry. The caller holds mu, or nobody else knows the table yet.
func (t *Table) enter(q *Queue) {
	ids := t.topics[q.topic]
	if ids == nil {
		ids = make(map[int32]*Queue, 1)
		t.topics[q.topic] = ids
	}
	ids[q.id] = q
	t.order.ReplaceOrInsert(q)
}

// Dir is the directory of the queues, inside the store directory.
func (t *Table) Dir() string { return t.dir }

// SegmentSize is the length in bytes of a queue's files.
func (t *Table) SegmentSize() int64 { return t.opts.SegmentSize }

// Notices says what opening found that is no queue, or no ordinary one: foreign files and folders, empty and short files,
// gaps.
func (t *Table) Notices() []mappedfile.Notice {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Clone(t.notices)
}

// Stats gives the figures of now.
func (t *Table) Stats() Stats {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return Stats{Queues: t.order.Len(), HolesFilled: t.holes.Load()}
}

// Lookup gives a queue, nil when there is none. It does not allocate.
func (t *Table) Lookup(topic string, id int32) *Queue { return lookup(t, topic, id) }

// LookupBytes is [Table.Lookup] for a topic that is not a string yet. It does not allocate.
func (t *Table) LookupBytes(topic []byte, id int32) *Queue { return lookup(t, topic, id) }

func lookup[T string | []byte](t *Table, topic T, id int32) *Queue {
	recent := &t.recent[Slot(topic, id, recentQueues)]
	if q := recent.Load(); q != nil && q.id == id && q.topic == string(topic) && !q.removed.Load() {
		return q
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	q := t.topics[string(topic)][id]
	if q != nil {
		recent.Store(q)
	}
	return q
}

// Slot is where n places, a power of two, remember a queue. Topics of one length mostly differ at the end.
func Slot[T string | []byte](topic T, id int32, n int) int {
	at := int(id) + len(topic)
	if len(topic) > 0 {
		at += int(topic[len(topic)-1]) * 5
	}
	return at & (n - 1)
}

// Ensure gives a queue and makes it when there is none. Nothing is created on disk before the first unit. A topic that
// cannot be the name of a folder, and a negative id, match [ErrName]; a new queue of a read-only table is
// [mappedfile.ErrReadOnly].
func (t *Table) Ensure(topic string, id int32) (*Queue, error) {
	if q := t.Lookup(topic, id); q != nil {
		return q, nil
	}
	if err := CheckName(topic, id); err != nil {
		return nil, err
	}
	if t.opts.ReadOnly {
		return nil, fmt.Errorf("make queue %s/%d: %w", topic, id, mappedfile.ErrReadOnly)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.topics[topic][id]; q != nil {
		return q, nil
	}
	q, err := t.open(strings.Clone(topic), id)
	if err != nil {
		return nil, err
	}
	t.enter(q)
	t.notices = append(t.notices, q.segs.Notices()...)
	return q, nil
}

// ErrName says that a queue cannot be, whatever the disk holds.
var ErrName = errors.New("no name of a queue")

// CheckName refuses what cannot be the folder of a queue; the error matches [ErrName].
func CheckName(topic string, id int32) error {
	switch {
	case topic == "" || topic == "." || topic == ".." || strings.ContainsAny(topic, "/\x00"):
		return fmt.Errorf("%w: topic %q cannot be the name of a folder", ErrName, topic)
	case len(topic) > maxTopicLength:
		return fmt.Errorf("%w: topic %.20q… of %d bytes cannot be the name of a folder, at most %d can", ErrName, topic, len(topic), maxTopicLength)
	case id < 0:
		return fmt.Errorf("%w: queue id %d of topic %q is negative", ErrName, id, topic)
	}
	return nil
}

// All gives all queues by topic, then by id, as they are when the iteration starts.
func (t *Table) All() iter.Seq[*Queue] {
	return func(yield func(*Queue) bool) {
		t.snapshot().Ascend(yield)
	}
}

// Topics gives the topics that have queues, sorted.
func (t *Table) Topics() iter.Seq[string] {
	return func(yield func(string) bool) {
		order := t.snapshot()
		for q, ok := order.Min(); ok; {
			if !yield(q.topic) {
				return
			}
			past := &Queue{topic: q.topic + "\x00"} // the least name behind this topic's
			ok = false
			order.AscendGreaterOrEqual(past, func(next *Queue) bool {
				q, ok = next, true
				return false
			})
		}
	}
}

// Queues gives the queues of a topic by id.
func (t *Table) Queues(topic string) iter.Seq[*Queue] {
	return func(yield func(*Queue) bool) {
		t.snapshot().AscendRange(&Queue{topic: topic}, &Queue{topic: topic + "\x00"}, yield)
	}
}

// snapshot is the ordered registry as it is now.
func (t *Table) snapshot() *btree.BTreeG[*Queue] {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.order.Clone()
}
