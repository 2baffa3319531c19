package mappedfile

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// background is the goroutine of a queue that makes segments ahead, faults pages in and commits staged bytes. It starts
// with the first append and ends with Close. Its lock comes after Queue.mu, and while it makes a
// segment it holds neither. A queue that needs none has nil, for which all methods do nothing.
type background struct {
	q *Queue

	mu      sync.Mutex
	idle    sync.Cond // signalled when busy or zeroing ends
	started bool
	stopped bool
	want    int64    // start of the segment to make; none is -1
	busy    bool     // one is being made
	ready   *segment // made and not taken

	wake chan struct{}
	quit chan struct{}
	done chan struct{}

	scarce int64 // of the goroutine: for so many bytes zeros are written in place of faulting pages in

	// Zeros are written from readied on; what is before it is written, zeroed or faulted in. An append that ends behind it moves it there
	// first, so that no zeros come over its bytes, and waits for the end of zeroing. Both are stored under mu.
	readied atomic.Int64
	zeroing bool
	held    bool // no zeros are written
	zeros   []byte
}

const (
	// zerosAtOnce is how many bytes of zeros are kept from the appends at a time: one that gets there waits for so many.
	zerosAtOnce = 256 << 10
	// zerosBeside is how many are written over the segment made ahead at a time: a sync of the log that meets them at the device waits for them.
	zerosBeside = 64 << 10
	// zeroWrite is the length of one write. Longer ones take their memory in pieces that may have to be cleared, or be supplied
	// by a virtual machine's host.
	zeroWrite = 64 << 10
	// populatePiece is faulted in at a time; when that takes longer than slowPopulate, memory in pieces as long is not at hand, and when the appends
	// catch up zeros are written instead, for scarceFor bytes. A millisecond says nothing yet: of memory at hand the kernel may ready 8 MiB in it.
	populatePiece = 1 << 20
	slowPopulate  = 3 * time.Millisecond
	scarceFor     = 64 << 20
)

// newBackground gives nil when the options want nothing of it.
func newBackground(q *Queue) *background {
	if q.opts.ReadOnly || !q.opts.Ahead && q.opts.Mode != Staged {
		return nil
	}
	g := &background{q: q, want: -1, wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{})}
	g.idle.L = &g.mu
	return g
}

// request asks for the segment that starts at start, if the options want segments ahead.
func (g *background) request(start int64) {
	if g == nil {
		return
	}
	g.mu.Lock()
	if g.stopped {
		g.mu.Unlock()
		return
	}
	if g.q.opts.Ahead && g.ready == nil && g.q.find(start) == nil && start >= 0 {
		g.want = start
	}
	if !g.started {
		g.started = true
		go g.run()
	}
	g.mu.Unlock()
	g.signal()
}

func (g *background) signal() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// nudge is told of each append, and wakes the goroutine when another part of Options.Populate or ZeroAhead is used up.
func (g *background) nudge(from, to int64) {
	if g == nil || !g.q.opts.Ahead {
		return
	}
	part := g.populatePart()
	if ahead := g.q.opts.ZeroAhead / 4; ahead > 0 {
		part = min(ahead, zerosBeside)
	}
	if part > 0 && from/part != to/part {
		g.signal()
	}
}

// populatePart is how many bytes of what is faulted in the appends use up before the background faults in more.
func (g *background) populatePart() int64 { return min(g.q.opts.Populate/4, populatePiece) }

// pass is called before bytes up to end are written, and returns when no zeros will come there.
func (g *background) pass(end int64) {
	if g == nil || !g.q.mayZero() || end <= g.readied.Load() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.zeroing {
		g.idle.Wait()
	}
	g.reach(end)
}

// reach moves readied to an offset. It never goes back: what an append saw of it must stay true until it has written. The caller holds mu.
func (g *background) reach(offset int64) { g.readied.Store(max(g.readied.Load(), offset)) }

// hold ends the writing of zeros until release: a cut looks at what they go over.
func (g *background) hold() (release func()) {
	if g == nil {
		return func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = true
	for g.zeroing {
		g.idle.Wait()
	}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.held = false
	}
}

// take gives the segment that starts at start if it is made or just being made, else nil: then the caller makes it.
func (g *background) take(start int64) *segment {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.busy {
		g.idle.Wait()
	}
	g.want = -1
	s := g.ready
	if s == nil || s.start != start {
		return nil
	}
	g.ready = nil
	g.reach(start + s.readied)
	return s
}

// takeAny gives whatever is made, and calls off what is not.
func (g *background) takeAny() *segment {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.busy {
		g.idle.Wait()
	}
	g.want = -1
	s := g.ready
	g.ready = nil
	return s
}

// stop ends the goroutine and waits for it. Queue.mu must not be held.
func (g *background) stop() {
	if g == nil {
		return
	}
	g.mu.Lock()
	started, first := g.started, !g.stopped
	g.stopped = true
	g.mu.Unlock()
	if first {
		close(g.quit)
	}
	if started {
		<-g.done
	}
}

func (g *background) run() {
	defer close(g.done)
	var tick <-chan time.Time
	if g.q.opts.Mode == Staged {
		t := time.NewTicker(g.q.opts.StageEvery)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-g.quit:
			return
		case <-tick:
			g.commit()
		case <-g.wake:
			g.makeAhead()
			g.populate()
			g.zeroAhead()
		}
	}
}

func (g *background) commit() {
	if err := g.q.Commit(); err != nil && !errors.Is(err, g.q.failure()) {
		g.q.opts.Logger.Error("committing staged bytes", "file", g.q.dir, "err", err)
	}
}

// makeAhead makes the segment that is wanted. A failure is no harm yet: the roll tries again and reports it.
func (g *background) makeAhead() {
	g.mu.Lock()
	start := g.want
	if start < 0 || g.stopped || g.q.failure() != nil {
		g.mu.Unlock()
		return
	}
	g.want, g.busy = -1, true
	g.mu.Unlock()
	var s *segment
	err := g.q.settle() // as in roll: the names before it first
	if err == nil {
		s, err = g.q.make(start, true)
	}
	if err != nil {
		g.q.opts.Logger.Warn("making a segment ahead", "file", g.q.pathOf(start), "err", err)
	} else {
		g.readyStart(s)
	}
	g.mu.Lock()
	g.ready, g.busy = s, false
	g.idle.Broadcast()
	g.mu.Unlock()
}

// readyStart faults in the start of a segment made ahead.
func (g *background) readyStart(s *segment) {
	n := min(g.q.opts.Populate, g.q.opts.SegmentSize)
	if n == 0 {
		return
	}
	if g.scarce == 0 || g.writeZeros(s, 0, n) != nil {
		g.populateSegment(s, 0, n)
	}
	s.readied = n
}

// populate readies the pages that will be written next.
func (g *background) populate() {
	if g.q.opts.Populate == 0 || !g.q.opts.Ahead {
		return
	}
	for g.populateSome() {
	}
}

// populateSome faults pages in, in pieces as large as the kernel has them, which need few faults and few entries in page tables. Where these have to
// come from far, it writes zeros for a while, which take small ones.
func (g *background) populateSome() bool {
	q := g.q
	if g.scarce > 0 {
		if !g.zeroSome(q.opts.Populate, zerosAtOnce) {
			return false
		}
		g.scarce -= zerosAtOnce
		return true
	}
	end := q.written.Load()
	s := q.find(end)
	if s == nil {
		return false
	}
	from := max(end, min(g.readied.Load(), s.end()))
	to := min(from+populatePiece, end+q.opts.Populate, s.end())
	if from >= to || to < s.end() && to-from < g.populatePart() {
		return false // the appends wake us again; following each of them would cost a call for each
	}
	begun := time.Now()
	g.populateSegment(s, from-s.start, to-from)
	slow := to-from == populatePiece && time.Since(begun) > slowPopulate
	if slow && q.mayZero() && to-q.written.Load() < q.opts.Populate/2 { // and the appends use up what is ready
		g.scarce = scarceFor
	}
	g.mu.Lock()
	g.reach(to)
	g.mu.Unlock()
	return true
}

// mayZero says whether zeros may be written ahead of the end: a full disk can be no surprise there.
func (q *Queue) mayZero() bool {
	return q.opts.Ahead && q.opts.Reserve != ReserveStep && q.opts.ZeroAhead+q.opts.Populate > 0
}

// zeroAhead writes zeros where the next appends will go: the next sync takes them to the device, before they are reached. And it writes them over the
// segment that is made ahead, and is done with that when four fifths of the one before it are written: as another file's, these hold up no
// sync of what is appended.
func (g *background) zeroAhead() {
	ahead := g.q.opts.ZeroAhead
	if !g.q.mayZero() || ahead == 0 {
		return
	}
	for g.zeroSome(ahead, min(ahead/4, zerosAtOnce)) {
	}
	for g.zeroReadySome() {
	}
}

// zeroSome writes n bytes of zeros, less at the end of the segment, no more than ahead of the end, in whole pages that no append has
// reached. What cannot be written is no harm: the appends do without.
func (g *background) zeroSome(ahead, n int64) bool {
	q := g.q
	g.mu.Lock()
	end := q.written.Load()
	s := q.find(end)
	if s == nil {
		g.mu.Unlock()
		return false
	}
	pos := max(end, g.readied.Load()) - s.start
	pos += -pos & (PageSize - 1)
	n = min(n, q.opts.SegmentSize-pos)
	g.zeroing = !g.held && n > 0 && s.start+pos+n <= end+ahead
	g.mu.Unlock()
	if !g.zeroing { // only this goroutine sets it
		return false
	}
	err := g.writeZeros(s, pos, n)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		g.reach(s.start + pos + n)
	} else {
		g.scarce = 0
	}
	g.zeroing = false
	g.idle.Broadcast()
	return err == nil
}

// zeroReadySome writes a part of the segment made ahead, and sends it to the device: few at a time and without a flush of the device, for a sync of the log
// waits there for its turn.
func (g *background) zeroReadySome() bool {
	g.mu.Lock()
	s := g.ready
	if s == nil || g.stopped {
		g.mu.Unlock()
		return false
	}
	size := g.q.opts.SegmentSize
	from, filled := s.readied, g.q.written.Load()-(s.start-size)
	to := min(from+min(zerosBeside, g.q.opts.ZeroAhead), size)
	g.busy = from < to && from <= filled+filled/4
	g.mu.Unlock()
	if !g.busy { // only this goroutine sets it
		return false
	}
	err := g.writeZeros(s, from, to-from)
	if err == nil {
		err = g.syncZeros(s, from, to)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		s.readied = to
	}
	g.busy = false
	g.idle.Broadcast()
	return err == nil
}

// syncStarter is what a [File] has that can send bytes to the device without waiting for them there.
type syncStarter interface {
	StartSync(off, n int64) error
}

// syncZeros sends zeros of a segment made ahead to the device; the last ones with all that they changed.
func (g *background) syncZeros(s *segment, from, to int64) error {
	h, err := s.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	if f, ok := h.file.(syncStarter); ok && to < g.q.opts.SegmentSize && f.StartSync(from, to-from) == nil {
		return nil
	}
	return h.file.Sync()
}

// writeZeros writes n bytes of zeros to s from pos on.
func (g *background) writeZeros(s *segment, pos, n int64) error {
	h, err := s.acquire()
	if err != nil {
		return err
	}
	defer h.release()
	if h.shared {
		return ErrReadOnly
	}
	if g.zeros == nil {
		g.zeros = make([]byte, min(zeroWrite, g.q.opts.SegmentSize))
	}
	err = writeZeros(h.file, pos, pos+n, g.zeros)
	if err != nil {
		g.q.opts.Logger.Debug("writing zeros ahead", "file", s.name, "offset", pos, "err", err)
	}
	return err
}

func (g *background) populateSegment(s *segment, pos, n int64) {
	if n <= 0 {
		return
	}
	h, err := s.acquire()
	if err != nil {
		return
	}
	defer h.release()
	if err := h.m.Advise(int(pos), int(n), Populate); err != nil {
		g.q.opts.Logger.Debug("faulting pages in", "file", s.name, "err", err)
	}
}
