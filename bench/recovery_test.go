package bench_test

import (
	"errors"
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
	if err := errors.Join(s.Checkpoint(b.Context()), s.Abandon()); err != nil {
		b.Fatal(err)
	}
	return end
}

// gone is what a store lacks in each kind of stop, besides the end of a clean one.
var gone = map[string][]string{
	"checkpointed": nil,
	"unclean":      {"checkpoint", "config/rocketstore.json"},
	"rebuild":      {"checkpoint", "config/rocketstore.json", "consumequeue", "index"},
	"clean":        nil,
}

// BenchmarkRecovery opens a store: killed when a checkpoint had covered all, killed before its first checkpoint, the same with
// queues and index gone, and stopped.
func BenchmarkRecovery(b *testing.B) {
	for _, kind := range []string{"checkpointed", "unclean", "rebuild", "clean"} {
		b.Run("stop="+kind, func(b *testing.B) {
			dir := b.TempDir()
			b.SetBytes(fill(b, dir, *recovered))
			if kind == "clean" {
				reopen(b, dir, true)
			}
			for b.Loop() {
				b.StopTimer()
				for _, name := range gone[kind] {
					_ = os.RemoveAll(filepath.Join(dir, name))
				}
				b.StartTimer()
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
