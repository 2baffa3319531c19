package mappedfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// ledger knows what a queue may hold after a power cut.
type ledger struct {
	synced  []byte // as of the last sync that succeeded, by offset
	writes  []written
	flushed int64 // below it everything must be there
	start   int64 // ... and from here on: what was deleted or was being deleted may be gone
}

// written is one write that may be on the disk or not, byte by byte.
type written struct {
	off int64
	b   []byte
}

const ledgerSize = 24 * page

func (l *ledger) wrote(off int64, b []byte) {
	l.writes = append(l.writes, written{off, append([]byte(nil), b...)})
}

func (l *ledger) settled(end int64) {
	for _, w := range l.writes {
		copy(l.synced[w.off:], w.b)
	}
	l.writes, l.flushed = nil, end
}

// check opens an image and says what is wrong with it.
func (l *ledger) check(fsys mappedfile.FS, o mappedfile.Options) error {
	q, err := mappedfile.Open(fsys, "log", &o)
	if err != nil {
		return err
	}
	defer func() { _ = q.Abandon() }()
	for _, n := range q.Notices() {
		if n.Kind == mappedfile.Gap || n.Kind == mappedfile.ForeignFile {
			return errors.New(n.Text)
		}
	}
	if _, err := q.Repair(); err != nil {
		return err
	}
	segs := q.Segments()
	for off := l.start; off < l.flushed; off += o.SegmentSize - off%o.SegmentSize {
		v, err := q.ViewSegment(off - off%o.SegmentSize)
		if err != nil {
			return fmt.Errorf("synced bytes at %d: %w", off, err)
		}
		v.Release()
	}
	for _, s := range segs {
		if err := l.checkSegment(q, s.Start); err != nil {
			return err
		}
	}
	if len(segs) > 0 {
		// It goes on from there.
		end := max(l.flushed, segs[0].Start)
		if err := q.TruncateAfter(end); err != nil {
			return err
		}
		if _, err := q.Append([]byte("x")); err != nil {
			return err
		}
	}
	return q.Sync(0)
}

func (l *ledger) checkSegment(q *mappedfile.Queue, start int64) error {
	v, err := q.ViewSegment(start)
	if err != nil {
		return err
	}
	defer v.Release()
	if bytes.Equal(v.Bytes(), l.synced[start:start+int64(len(v.Bytes()))]) {
		return nil
	}
	fine := make([]bool, len(v.Bytes()))
	for i, c := range v.Bytes() {
		fine[i] = c == l.synced[start+int64(i)]
	}
	for _, w := range l.writes {
		for i, c := range w.b {
			if p := w.off + int64(i) - start; p >= 0 && p < int64(len(fine)) && v.Bytes()[p] == c {
				fine[p] = true
			}
		}
	}
	for i, ok := range fine {
		if !ok {
			return fmt.Errorf("byte %d is %d, was %d when last synced at %d", start+int64(i), v.Bytes()[i], l.synced[start+int64(i)], l.flushed)
		}
	}
	return nil
}

// workload runs random operations until the power is cut or it has done enough.
func workload(q *mappedfile.Queue, fsys *crashfs.FS, l *ledger, rng *rand.Rand) error {
	for range 40 {
		if q.Written() > ledgerSize-2*q.SegmentSize() {
			return nil
		}
		if err := step(q, fsys, l, rng); err != nil {
			return err
		}
	}
	return nil
}

func step(q *mappedfile.Queue, fsys *crashfs.FS, l *ledger, rng *rand.Rand) error {
	start, end := q.Bounds()
	switch op := rng.IntN(21); {
	case op == 20:
		return fsys.Writeback(rng.Uint64()) // the kernel writes some pages back in its own time
	case op < 9:
		b := make([]byte, min(1+rng.Int64N(3000), q.Remaining()))
		for i := range b {
			b[i] = byte(1 + rng.IntN(255))
		}
		l.wrote(q.Written(), b)
		_, err := q.Append(b)
		return err
	case op < 10 && q.Remaining() > 8:
		l.wrote(q.Written(), []byte("blank"))
		return q.Fill([]byte("blank"))
	case op < 13 && end > start:
		off := start + rng.Int64N(end-start)
		b := make([]byte, min(1+rng.Int64N(20), end-off, q.SegmentSize()-off%q.SegmentSize()))
		for i := range b {
			b[i] = byte(1 + rng.IntN(255))
		}
		l.wrote(off, b)
		return q.WriteAt(b, off)
	case op < 14 && end > start:
		to := start + rng.Int64N(end-start+1)
		l.start = max(l.start, to-to%q.SegmentSize())
		return second(q.DeleteBefore(to))
	case op < 15 && end > start:
		to := start + 1 + rng.Int64N(end-start)
		l.wrote(to, make([]byte, ledgerSize-to))
		l.flushed = min(l.flushed, to)
		if err := q.TruncateAfter(to); err != nil {
			return err
		}
		l.settled(to)
	default:
		if err := q.Sync(0); err != nil {
			return err
		}
		l.settled(q.Flushed())
	}
	return nil
}

// cut runs the workload of a seed, cuts the power after n steps, and checks some images of that moment.
func cut(o mappedfile.Options, seed uint64, n, images int, plant func(*crashfs.FS)) (steps int, err error) {
	fsys := crashfs.New(memfs.New())
	plant(fsys)
	if n > 0 {
		fsys.CrashAfter(n)
	}
	q, err := mappedfile.Open(fsys, "log", &o)
	if err != nil {
		return 0, err
	}
	l := &ledger{synced: make([]byte, ledgerSize)}
	err = workload(q, fsys, l, rand.New(rand.NewPCG(seed, 1)))
	if err = errors.Join(err, q.Abandon()); err != nil && !errors.Is(err, crashfs.ErrCrashed) {
		return 0, err
	}
	s := fsys.Snapshot()
	for i := range images {
		check := o
		check.Ahead = false
		if err := l.check(s.Image(uint64(i)), check); err != nil {
			return 0, fmt.Errorf("workload %d cut after %d steps, image %d: %w", seed, n, i, err)
		}
	}
	return fsys.Steps(), nil
}

var crashModes = map[string]mappedfile.Options{
	"mapped": {SegmentSize: 2 * page, Step: page},
	"whole":  {SegmentSize: 2 * page, Reserve: mappedfile.ReserveWhole, Budget: mappedfile.NewBudget(1)},
	"ahead":  {SegmentSize: 2 * page, Ahead: true},
	"pwrite": {SegmentSize: 2 * page, Mode: mappedfile.Pwrite, Reserve: mappedfile.ReserveZero},
	"staged": {SegmentSize: 2*page + 1000, Mode: mappedfile.Staged, StageSize: 1000},
}

// R-E-080, R-E-081, and for the queue alone R-E-082: what was synced is there after any power cut, and nothing is there
// that was never written.
func TestSyncedBytesSurviveAnyPowerCut(t *testing.T) {
	rounds := *roundsFlag
	if testing.Short() {
		rounds = min(rounds, 2)
	}
	for name, o := range crashModes {
		t.Run(name, func(t *testing.T) {
			seed := randomSeed(t)
			for round := range rounds {
				seed := seed + uint64(round)
				steps, err := cut(o, seed, 0, 4, func(*crashfs.FS) {})
				require.NoError(t, err)
				for n := 1 + round%7; n <= steps; n += 7 {
					_, err := cut(o, seed, n, 4, func(*crashfs.FS) {})
					require.NoError(t, err)
				}
			}
		})
	}
}

// A test that finds no planted bug proves nothing.
func TestPowerCutsFindPlantedBugs(t *testing.T) {
	for _, tt := range []struct {
		mode string
		op   crashfs.Op
	}{
		{"mapped", crashfs.OpSyncDir},
		{"mapped", crashfs.OpSyncRange},
		{"mapped", crashfs.OpSync},
		{"whole", crashfs.OpSyncRange},
		{"ahead", crashfs.OpSyncDir},
		{"pwrite", crashfs.OpSync},
		{"staged", crashfs.OpSync},
		{"staged", crashfs.OpSyncDir},
	} {
		t.Run(fmt.Sprintf("%s without %s", tt.mode, tt.op), func(t *testing.T) {
			found := 0
			for seed := range uint64(20) {
				if _, err := cut(crashModes[tt.mode], seed, 0, 4, func(c *crashfs.FS) { c.Ignore(tt.op, "") }); err != nil {
					found++
				}
			}
			require.Greater(t, found, 10)
		})
	}
}
