package inspect_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/message"
)

var benchBytes = flag.Int64("check.bytes", 32<<20, "bytes of bodies in the stores that the benchmarks of Check make")

// fillStore makes a store in dir with bodies of a size, over 16 queues of four topics; each message has a tag and a key.
func fillStore(tb testing.TB, dir string, bytes int64, body int) {
	tb.Helper()
	s, err := rocketstore.Open(dir, &rocketstore.Options{SegmentSize: 64 << 20})
	require.NoError(tb, err)
	text := make([]byte, body)
	for i := range text {
		text[i] = byte('a' + i*i%26)
	}
	for i := range bytes / int64(body) {
		p, err := message.NewProperties(message.PropertyKeys, fmt.Sprintf("k%d", i), message.PropertyTags, fmt.Sprintf("t%d", i%7))
		require.NoError(tb, err)
		_, err = s.Put(tb.Context(), &message.Message{Topic: fmt.Sprintf("Topic%d", i%4), QueueID: int32(i / 4 % 4), Body: text, Properties: p})
		require.NoError(tb, err)
	}
	require.NoError(tb, s.Close(tb.Context()))
}

// BenchmarkCheck measures a whole check with CRC of a warm store; the rate is over the bytes of the commit log.
func BenchmarkCheck(b *testing.B) {
	for _, body := range []int{200, 1024} {
		b.Run(fmt.Sprintf("body=%d", body), func(b *testing.B) {
			dir := b.TempDir()
			fillStore(b, dir, *benchBytes, body)
			d, err := inspect.Open(os.DirFS(dir))
			require.NoError(b, err)
			var stats inspect.CheckStats
			for b.Loop() {
				for f, err := range d.Check(b.Context(), inspect.CheckOptions{Stats: &stats}) {
					require.NoError(b, err)
					require.Equal(b, inspect.Info, f.Severity, f)
				}
			}
			b.SetBytes(stats.LogEnd - stats.LogStart)
		})
	}
}
