package bench_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/message"
)

// fill makes a store of about size bytes with bodies of 1 KiB and leaves it as a kill would.
func fill(b *testing.B, dir string, size int64) int64 {
	b.Helper()
	s, err := rocketstore.Open(dir, &rocketstore.Options{SegmentSize: 64 << 20, IndexSlots: 1 << 20, IndexEntries: 4 << 20})
	if err != nil {
		b.Fatal(err)
	}
	p, err := message.NewProperties("TAGS", "tag", "KEYS", "key")
	if err != nil {
		b.Fatal(err)
	}
	m := &message.Message{Topic: "Bench", Body: make([]byte, 1024), Properties: p}
	end := int64(0)
	for i := int32(0); end < size; i++ {
		m.QueueID = i % 4
		r, err := s.Put(b.Context(), m)
		if err != nil {
			b.Fatal(err)
		}
		end = r.PhysicalOffset + int64(r.Size)
	}
	if err := s.WaitDispatched(b.Context(), end); err != nil {
		b.Fatal(err)
	}
	if err := s.Abandon(); err != nil {
		b.Fatal(err)
	}
	return end
}

// BenchmarkRecovery opens a store: after a kill, after a kill with queues and index gone, and after a clean stop.
func BenchmarkRecovery(b *testing.B) {
	const size = 256 << 20
	for _, kind := range []string{"unclean", "rebuild", "clean"} {
		b.Run("stop="+kind, func(b *testing.B) {
			dir := b.TempDir()
			b.SetBytes(fill(b, dir, size))
			if kind == "clean" {
				reopen(b, dir, true)
			}
			for b.Loop() {
				if kind == "rebuild" {
					_ = os.RemoveAll(filepath.Join(dir, "consumequeue"))
					_ = os.RemoveAll(filepath.Join(dir, "index"))
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
