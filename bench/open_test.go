package bench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// BenchmarkCleanOpen opens and closes a store of 100 sparse segments of 1 GiB with 1000 queues after a clean stop: the time
// must not grow with the log (R-E-074).
func BenchmarkCleanOpen(b *testing.B) {
	for _, segments := range []int{1, 100} {
		b.Run(fmt.Sprintf("segments=%d/queues=1000", segments), func(b *testing.B) {
			dir := b.TempDir()
			makeLarge(b, dir, segments)
			for b.Loop() {
				s, err := rocketstore.Open(dir, nil)
				if err != nil {
					b.Fatal(err)
				}
				if !s.Report().Trusted {
					b.Fatal("the clean stop was not believed")
				}
				b.StopTimer()
				if err := s.Close(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// makeLarge makes a log whose segments but the last hold a blank only, and 1000 queues with their records in the last.
func makeLarge(b *testing.B, dir string, segments int) {
	b.Helper()
	const size = 1 << 30
	if err := os.MkdirAll(filepath.Join(dir, "commitlog"), 0o750); err != nil {
		b.Fatal(err)
	}
	for i := range segments - 1 {
		f, err := os.Create(filepath.Join(dir, "commitlog", mappedfile.SegmentName(int64(i)*size)))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.Write(commitlog.AppendBlank(nil, size)); err != nil {
			b.Fatal(err)
		}
		if err := f.Truncate(size); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
	s, err := rocketstore.Open(dir, &rocketstore.Options{Sparse: true, SegmentSize: size})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 3000 {
		m := &message.Message{Topic: fmt.Sprint("Topic", i%1000/4), QueueID: int32(i % 4), Body: make([]byte, 100)}
		if _, err := s.Put(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
