package recovery

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// queueKey names a consume queue.
type queueKey struct {
	topic string
	id    int32
}

// span is what a walk saw of one queue.
type span struct {
	topic         []byte
	id            int32
	number        int32 // among those of its segment
	first, last   int64 // queue offsets: of the first record, and the greatest
	firstPhysical int64 // of the record at first
	lastPhysical  int64 // of the last record
	// missing are the queue offsets between those of two records that follow one another, first and behind the last of each run.
	missing [][2]int64
}

// maxMissing bounds the runs that are noted of a queue.
const maxMissing = 1 << 16

// reach notes a record behind those that were seen: of queue offsets up to last, the first of them at from and at firstPhysical.
func (sp *span) reach(from, last, firstPhysical int64) {
	if from > sp.last+1 && len(sp.missing) < maxMissing && believable(from-sp.last-1, sp.lastPhysical, firstPhysical) {
		sp.missing = append(sp.missing, [2]int64{sp.last + 1, from})
	}
	sp.last = max(sp.last, last)
}

// hole is damage in the log that is passed over by choice.
type hole struct {
	from, to int64 // physical offsets, within one segment
	why      *mappedfile.CorruptError
}

// walk is a pass over the log's records from a start on.
type walk struct {
	log    *commitlog.Log
	derive *Deriver
	index  []index.FileInfo // all files, oldest first
	keep   *keeper          // nil: nothing is kept for the replay
	skip   bool             // damage with good records behind it is passed over
	// unclean: a power cut may have left records of which a sector is missing.
	unclean   bool
	badBlanks map[int64]bool // physical offsets of blanks that an earlier walk found to be damage
	taken     func(p Placement, end int64) bool
	// progress is called with the bytes that the segments walked so far hold.
	progress func(done int64)

	queues    map[queueKey]*span
	records   int64
	bytes     int64
	lastTime  int64 // store time of the last record
	last      int64 // physical offset of the last record, -1 none
	lastKeyed int64 // physical offset of the last record with keys, -1 none
	unindexed int64 // physical offset of the first record with keys that lies between two index files, -1 none
	end       int64 // where the log ends
	gaps      []Gap
	holes     []hole
	hidden    []*hidden  // records behind blanks
	redo      *redoCheck // nil: no redo log
	kept      []*kept    // of the segments in order
	stop      error      // why the log ends there, when that is damage
	beyond    Beyond
}

func newWalk(log *commitlog.Log, d *Deriver) *walk {
	return &walk{log: log, derive: d, queues: make(map[queueKey]*span), last: -1, lastKeyed: -1, unindexed: -1}
}

// run walks from start to the end of what can be read, and looks at what is behind it.
func (w *walk) run(ctx context.Context, start int64) error {
	for {
		segments, err := w.pass(ctx, start)
		if err != nil || segments == nil {
			return err
		}
		if err := w.look(ctx, segments); err != nil {
			return err
		}
		next, ok := w.overHole(segments[0])
		if !ok {
			return nil
		}
		start = next
	}
}

// pass walks from start to the first place where the log stops in the middle of a segment, and gives that segment and all
// later ones; nil when the log goes on to the end of its last segment.
func (w *walk) pass(ctx context.Context, start int64) ([]mappedfile.SegmentInfo, error) {
	size := w.log.SegmentSize()
	segments := w.log.Queue().Segments()
	segments = segments[slices.IndexFunc(append(segments, mappedfile.SegmentInfo{Start: start}), func(s mappedfile.SegmentInfo) bool { return s.Start+size > start }):]
	w.end = start
	ctx, cancel := context.WithCancel(ctx)
	var walkers sync.WaitGroup
	defer walkers.Wait()
	defer cancel()
	parts := w.ahead(ctx, &walkers, segments, start)
	for i, s := range segments {
		if i > 0 && s.Start != segments[i-1].Start+size {
			w.gaps = append(w.gaps, Gap{From: segments[i-1].Start + size, To: s.Start})
		}
		p := <-parts[i]
		if p.err != nil {
			return nil, p.err
		}
		w.take(p)
		if w.progress != nil {
			w.progress(s.Start + size - start)
		}
		if !p.goesOn {
			return segments[i:], nil
		}
	}
	return nil, nil
}

// ahead walks the segments side by side, as many at a time as there are processors. Each part comes on its own channel.
func (w *walk) ahead(ctx context.Context, walkers *sync.WaitGroup, segments []mappedfile.SegmentInfo, start int64) []chan *part {
	parts := make([]chan *part, len(segments))
	for i := range parts {
		parts[i] = make(chan *part, 1)
	}
	todo := make(chan int, len(segments))
	for i := range segments {
		todo <- i
	}
	close(todo)
	for range min(runtime.GOMAXPROCS(0), len(segments)) {
		walkers.Go(func() {
			for i := range todo {
				if ctx.Err() != nil {
					parts[i] <- &part{err: ctx.Err()}
					continue
				}
				parts[i] <- w.walkSegment(ctx, segments[i].Start, max(start, segments[i].Start))
			}
		})
	}
	return parts
}

// take adds what was seen of the next segment.
func (w *walk) take(p *part) {
	w.records += p.records
	w.bytes += p.bytes
	w.end, w.stop = p.end, p.stop
	w.kept = append(w.kept, p.kept)
	if p.last >= 0 {
		w.last, w.lastTime = p.last, p.lastTime
	}
	if p.lastKeyed >= 0 {
		w.lastKeyed = p.lastKeyed
	}
	if w.unindexed < 0 {
		w.unindexed = p.unindexed
	}
	for _, h := range w.hidden {
		h.meet(p.queues)
	}
	if p.hidden != nil {
		w.hidden = append(w.hidden, p.hidden)
	}
	for k, sp := range p.queues {
		if have := w.queues[k]; have != nil {
			have.reach(sp.first, sp.last, sp.firstPhysical)
			have.missing = append(have.missing, sp.missing...)
			have.lastPhysical = sp.lastPhysical
		} else {
			w.queues[k] = sp
		}
	}
	if w.redo != nil {
		w.redo.highest = max(w.redo.highest, p.number)
		for _, u := range p.events {
			w.redo.meet(u)
		}
	}
}

// overHole passes over damage by choice: it notes the hole up to the first good record behind it, or up to the end of the
// segment when there is none in it, and says where to go on.
func (w *walk) overHole(s mappedfile.SegmentInfo) (int64, bool) {
	if !w.skip || w.beyond.Records == 0 {
		return 0, false
	}
	to := min(w.beyond.First, s.Start+w.log.SegmentSize())
	why := w.stop.(*mappedfile.CorruptError) //nolint:errorlint // look and walkSegment make it, unwrapped
	if inSegment := to == w.beyond.First; inSegment && to-w.end < commitlog.MinRecordSize {
		return 0, false // no record that fills the hole is so short
	}
	w.holes = append(w.holes, hole{w.end, to, why})
	next := w.beyond.First
	w.beyond, w.stop = Beyond{}, nil
	return next, true
}

// sortedQueues gives the queues that the walk saw in a fixed order.
func (w *walk) sortedQueues() []queueKey {
	keys := make([]queueKey, 0, len(w.queues))
	for k := range w.queues {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b queueKey) int {
		if c := strings.Compare(a.topic, b.topic); c != 0 {
			return c
		}
		return int(a.id) - int(b.id)
	})
	return keys
}

func (k queueKey) String() string { return fmt.Sprintf("%s/%d", k.topic, k.id) }
