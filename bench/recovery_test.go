package bench_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/bench"
)

var recovered = flag.Int64("bench.recover", 256<<20, "bytes of the log to recover")

// fill makes a store of about size bytes with bodies of 1 KiB, each with a key of its own, and leaves it as a kill would.
func fill(b *testing.B, dir string, size int64) int64 {
	b.Helper()
	s, err := rocketstore.Open(dir, &rocketstore.Options{SegmentSize: *segment})
	if err != nil {
		b.Fatal(err)
	}
	w := bench.Workload{Body: 1024}
	end, err := w.Fill(b.Context(), s, size/1200)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Abandon(); err != nil {
		b.Fatal(err)
	}
	return end
}

// BenchmarkRecovery opens a store: after a kill, after a kill with queues and index gone, and after a clean stop.
func BenchmarkRecovery(b *testing.B) {
	for _, kind := range []string{"unclean", "rebuild", "clean"} {
		b.Run("stop="+kind, func(b *testing.B) {
			dir := b.TempDir()
			b.SetBytes(fill(b, dir, *recovered))
			if kind == "clean" {
				reopen(b, dir, true)
			}
			for b.Loop() {
				if kind == "rebuild" {
					b.StopTimer()
					_ = os.RemoveAll(filepath.Join(dir, "consumequeue"))
					_ = os.RemoveAll(filepath.Join(dir, "index"))
					b.StartTimer()
				}
				reopen(b, dir, kind == "clean")
			}
		})
	}
}

func reopen(b *testing.B, dir string, clean bool) {
	b.Helper()
	s, err := rocketstore.Open(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	if clean {
		err = s.Close(b.Context())
	} else {
		err = s.Abandon()
	}
	if err != nil {
		b.Fatal(err)
	}
}
