package mappedfile_test

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

var (
	seedFlag = flag.Uint64("seed", 0, "seed of random tests; 0: by the clock")
	// roundsFlag counts workloads; each is cut at many points and each cut gives some images.
	roundsFlag = flag.Int("rounds", 10, "workloads of the power-cut test in each mode")
	opsFlag    = flag.Int("ops", 0, "view operations of the concurrency tests; 0: 1000000, with -short 50000")
)

// randomSeed gives the seed of this run, which is printed when the test fails.
func randomSeed(t testing.TB) uint64 {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("run again with -seed %d", seed)
		}
	})
	return seed
}

// R-E-006: views are right and stay readable while segments are made, synced, evicted, deleted, cut and closed. On the heap
// the race detector watches; on real mappings a mistake is a fault.
func TestViewsOutliveTheirSegmentsUnderConcurrency(t *testing.T) {
	total := *opsFlag
	switch {
	case total > 0:
	case testing.Short():
		total = 50_000
	default:
		total = 1_000_000
	}
	for name, fsys := range map[string]mappedfile.FS{"memfs": memfs.New(), "os": openDir(t, t.TempDir())} {
		for mode, o := range map[string]mappedfile.Options{
			"mapped": {Ahead: true, Populate: page}, "budget": {Budget: mappedfile.NewBudget(3)}, "pwrite": {Mode: mappedfile.Pwrite, Ahead: true, Budget: mappedfile.NewBudget(2)},
			"zeros":  {Mode: mappedfile.Pwrite, Ahead: true, Reserve: mappedfile.ReserveWhole, ZeroAhead: 4 * page},
			"staged": {Mode: mappedfile.Staged, StageSize: 1000, Ahead: true, StageEvery: time.Millisecond},
		} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				churn(t, fsys, mode, o, total/10)
			})
		}
	}
}

// churn lets one goroutine write, sync, delete and cut while others read, total views in all.
func churn(t *testing.T, fsys mappedfile.FS, dir string, o mappedfile.Options, total int) {
	o.SegmentSize = 2 * page
	q, err := mappedfile.Open(fsys, dir, &o)
	require.NoError(t, err)
	seed := randomSeed(t)
	var views, failures atomic.Int64
	var wg sync.WaitGroup
	for r := range 3 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(r)))
			var held []mappedfile.View
			for views.Add(1) < int64(total) {
				if err := look(q, rng, &held); err != nil {
					failures.Add(1)
					t.Error(err)
					break
				}
			}
			for _, v := range held {
				v.Release()
			}
		})
	}
	wg.Go(func() {
		for views.Load() < int64(total) {
			if err := errors.Join(q.Sync(1), q.Commit()); err != nil && !errors.Is(err, mappedfile.ErrClosed) {
				t.Error(err)
				return
			}
			flushed := q.Flushed()
			if _, end := q.Bounds(); flushed > end {
				t.Error("flushed beyond the end")
			}
		}
	})
	write(t, q, rand.New(rand.NewPCG(seed, 100)), func() bool { return views.Load() < int64(total) && failures.Load() == 0 })
	require.NoError(t, q.Close())
	wg.Wait()
	require.Zero(t, q.Stats().Mapped)
	if m, ok := fsys.(*memfs.FS); ok {
		require.Zero(t, m.Mappings())
		require.Empty(t, m.Unreserved())
	}
}

// look takes a view somewhere, checks that each word in it is its own offset, and keeps or releases views.
func look(q *mappedfile.Queue, rng *rand.Rand, held *[]mappedfile.View) error {
	start, end := q.Bounds()
	if end > start {
		off := start + rng.Int64N(end-start)/8*8
		v, err := q.View(off, 8)
		switch {
		case errors.Is(err, mappedfile.ErrOutOfRange), errors.Is(err, mappedfile.ErrClosed):
		case err != nil:
			return err
		default:
			if got := binary.BigEndian.Uint64(v.Bytes()); got != uint64(off) {
				v.Release()
				return fmt.Errorf("%x at %x", got, off)
			}
			*held = append(*held, v)
		}
	}
	for len(*held) > 20 || len(*held) > 0 && rng.IntN(3) == 0 {
		i := rng.IntN(len(*held))
		binary.BigEndian.Uint64((*held)[i].Bytes()) // still mapped
		(*held)[i].Release()
		(*held)[i] = (*held)[len(*held)-1]
		*held = (*held)[:len(*held)-1]
	}
	return nil
}

// write appends words that say where they are, and shortens the queue at both ends, while more says so. It cuts only what
// no reader can have seen: the owner keeps readers away from bytes that change.
func write(t *testing.T, q *mappedfile.Queue, rng *rand.Rand, more func() bool) {
	b := make([]byte, 256)
	for more() {
		n := 8 * (1 + rng.IntN(32))
		n = int(min(int64(n), q.Remaining()))
		off := q.Written()
		for i := 0; i < n; i += 8 {
			binary.BigEndian.PutUint64(b[i:], uint64(off)+uint64(i))
		}
		if _, err := q.Append(b[:n]); err != nil {
			t.Error(err)
			return
		}
		if rng.IntN(100) > 0 {
			continue
		}
		start, end := q.Bounds()
		if _, err := q.DeleteBefore(start + rng.Int64N(end-start+1)); err != nil {
			t.Error(err)
		}
		if rng.IntN(3) == 0 {
			if err := q.TruncateAfter(q.Written()); err != nil {
				t.Error(err)
			}
		}
	}
}

// Many readers map, and many evictions unmap, the same few segments.
func TestEvictionRacesWithViews(t *testing.T) {
	fsys := memfs.New()
	q := open(t, fsys, "log", mappedfile.Options{SegmentSize: page, Budget: mappedfile.NewBudget(1)})
	for i := range 4 {
		put(t, q, string(make([]byte, page-1))+string(rune('a'+i)))
	}
	var wg sync.WaitGroup
	for r := range 4 {
		wg.Go(func() {
			for i := range 5000 {
				s := int64(i+r) % 4
				v, err := q.View(s*page+page-1, 1)
				if err != nil || v.Bytes()[0] != byte('a'+s) {
					t.Error(err, s)
					return
				}
				v.Release()
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, fsys.Mappings(), 1)
}
