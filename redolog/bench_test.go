package redolog_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/redolog"
)

func benchLog(b *testing.B) *redolog.Log {
	b.Helper()
	fsys, err := mappedfile.OpenDir(b.TempDir(), nil)
	require.NoError(b, err)
	return open(b, fsys, nil)
}

func BenchmarkAppend(b *testing.B) {
	log := benchLog(b)
	b.SetBytes(redolog.UnitSize)
	b.ReportAllocs()
	n := int64(0)
	for b.Loop() {
		if _, err := log.Append(unit(n)); err != nil {
			b.Fatal(err)
		}
		n++
	}
}

// event is one of ten million events: each transaction of which all but one in a thousand ends, distance events later.
func event(n, distance int64) redolog.Unit {
	u := redolog.Unit{PhysicalOffset: n * 200, Size: 200, TagsCode: redolog.Prepared}
	if n%2 == 1 && n > distance && n%2000 != 1 {
		u.TagsCode = (n - distance) / 2 * 2 * 200
	}
	return u
}

// BenchmarkReplay folds the 10 000 000 units of five full files into the set of open transactions (R-B-59: less than 5 s
// and 1 GB). With distance=5000000 all that is prepared stays open for half of the run.
func BenchmarkReplay(b *testing.B) {
	const units = 10_000_000
	for _, distance := range []int64{100, 5_000_000} {
		b.Run(fmt.Sprintf("distance=%d", distance), func(b *testing.B) {
			log := benchLog(b)
			for n := range int64(units) {
				if _, err := log.Append(event(n, distance)); err != nil {
					b.Fatal(err)
				}
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			open := 0
			b.ResetTimer()
			for b.Loop() {
				set, err := log.OpenSet()
				if err != nil {
					b.Fatal(err)
				}
				open = set.Len()
			}
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(open), "open")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/1e6, "MB-alloc/op")
			b.ReportMetric(units*float64(b.N)/b.Elapsed().Seconds(), "units/s")
		})
	}
}
