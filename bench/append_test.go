package bench_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/message"
)

// BenchmarkAppend puts messages through the store: sync policy, body size and number of writers.
func BenchmarkAppend(b *testing.B) {
	for _, sync := range []struct {
		name   string
		policy commitlog.SyncPolicy
	}{{"interval", commitlog.SyncInterval}, {"group", commitlog.SyncGroup}} {
		for _, body := range []int{128, 1 << 10, 4 << 10} {
			for _, writers := range []int{1, 4} {
				b.Run(fmt.Sprintf("sync=%s/body=%d/writers=%d", sync.name, body, writers), func(b *testing.B) {
					benchAppend(b, sync.policy, body, writers)
				})
			}
		}
	}
}

func benchAppend(b *testing.B, policy commitlog.SyncPolicy, size, writers int) {
	s, err := rocketstore.Open(b.TempDir(), &rocketstore.Options{SegmentSize: 256 << 20, Sync: policy, IndexSlots: 1 << 20, IndexEntries: 8 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close(b.Context()) }()
	properties, err := message.NewProperties("TAGS", "tag", "KEYS", "key")
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, size)
	warm := &message.Message{Topic: "Bench", Body: body, Properties: properties}
	for i := range int32(writers) {
		warm.QueueID = i
		if _, err := s.Put(b.Context(), warm); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	var group sync.WaitGroup
	for w := range writers {
		n := b.N / writers
		if w == 0 {
			n = b.N - n*(writers-1)
		}
		group.Go(func() {
			m := &message.Message{Topic: "Bench", QueueID: int32(w), Body: body, Properties: properties}
			for range n {
				if _, err := s.Put(b.Context(), m); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
}
