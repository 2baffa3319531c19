package mappedfile_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

var writeModes = map[string]mappedfile.WriteMode{"mapped": mappedfile.Mapped, "pwrite": mappedfile.Pwrite, "staged": mappedfile.Staged}

// R-E-091: nothing is allocated per append, view, overwrite and sync.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	for name, fsys := range map[string]mappedfile.FS{"os": openDir(t, t.TempDir()), "memfs": memfs.New()} {
		for mode, m := range writeModes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				o := mappedfile.Options{SegmentSize: 8 << 20, Mode: m, Budget: mappedfile.NewBudget(10), StageSize: 1 << 20}
				q := open(t, fsys, mode, o)
				b := make([]byte, 1000)
				_, err := q.Append(b)
				require.NoError(t, err)
				require.NoError(t, q.WriteAt(b, 0))
				require.NoError(t, q.Sync(0))
				require.Zero(t, testing.AllocsPerRun(1000, func() {
					if _, err := q.Append(b); err != nil {
						t.Error(err)
					}
				}), "append")
				require.Zero(t, testing.AllocsPerRun(100, func() {
					if err := q.WriteAt(b[:20], 100); err != nil {
						t.Error(err)
					}
				}), "overwrite")
				require.NoError(t, q.Sync(0))
				require.Zero(t, testing.AllocsPerRun(100, func() {
					v, err := q.View(100, 500)
					if err != nil {
						t.Error(err)
					}
					v.Release()
					if v, err = q.ViewFrom(1000); err != nil {
						t.Error(err)
					}
					v.Release()
				}), "view")
				require.Zero(t, testing.AllocsPerRun(10, func() {
					if _, err := q.Append(b); err != nil {
						t.Error(err)
					}
					if err := q.Sync(0); err != nil {
						t.Error(err)
					}
				}), "sync")
			})
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for mode, m := range writeModes {
		for _, reserve := range []mappedfile.Reserve{mappedfile.ReserveStep, mappedfile.ReserveWhole} {
			for _, size := range []int{128, 1024, 4096} {
				b.Run(fmt.Sprintf("write=%s/reserve=%d/size=%d", mode, reserve, size), func(b *testing.B) {
					q := open(b, openDir(b, b.TempDir()), "log", mappedfile.Options{
						SegmentSize: 64 << 20, Mode: m, Reserve: reserve, Ahead: true, Populate: 1 << 20,
					})
					rec := make([]byte, size)
					b.SetBytes(int64(size))
					b.ReportAllocs()
					for b.Loop() {
						if _, err := q.Append(rec); err != nil {
							b.Fatal(err)
						}
						if q.Written()%(256<<20) < int64(size) { // keep the disk from filling up
							if _, err := q.DeleteBefore(q.Written()); err != nil {
								b.Fatal(err)
							}
						}
					}
				})
			}
		}
	}
}

func BenchmarkSync(b *testing.B) {
	for mode, m := range writeModes {
		b.Run("write="+mode, func(b *testing.B) {
			q := open(b, openDir(b, b.TempDir()), "log", mappedfile.Options{SegmentSize: 64 << 20, Mode: m, Reserve: mappedfile.ReserveZero})
			rec := make([]byte, 1024)
			b.SetBytes(int64(len(rec)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := q.Append(rec); err != nil {
					b.Fatal(err)
				}
				if err := q.Sync(0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkView(b *testing.B) {
	for _, budget := range []*mappedfile.Budget{nil, mappedfile.NewBudget(100)} {
		for _, readers := range []int{1, 4} {
			b.Run(fmt.Sprintf("budget=%t/readers=%d", budget != nil, readers), func(b *testing.B) {
				q := open(b, openDir(b, b.TempDir()), "log", mappedfile.Options{SegmentSize: 1 << 20, Budget: budget})
				for range 16 {
					_, err := q.Append(make([]byte, 1<<20))
					require.NoError(b, err)
				}
				b.ReportAllocs()
				b.SetParallelism(readers)
				b.ResetTimer()
				var seed atomic.Int64
				b.RunParallel(func(pb *testing.PB) {
					off := seed.Add(1 << 18)
					for pb.Next() {
						off = (off*31 + 17) % (16<<20 - 1<<10)
						off -= off % 1024
						v, err := q.View(off, 1024)
						if err != nil {
							b.Error(err)
							return
						}
						v.Release()
						off++
					}
				})
			})
		}
	}
}

// What a view costs when its segment has to be mapped first.
func BenchmarkViewEvicted(b *testing.B) {
	q := open(b, openDir(b, b.TempDir()), "log", mappedfile.Options{SegmentSize: 1 << 20, Budget: mappedfile.NewBudget(1)})
	for range 2 {
		_, err := q.Append(make([]byte, 1<<20))
		require.NoError(b, err)
	}
	b.ReportAllocs()
	off := int64(0)
	for b.Loop() {
		v, err := q.View(off, 10)
		if err != nil {
			b.Fatal(err)
		}
		v.Release()
		off = 1<<20 - off
	}
}
