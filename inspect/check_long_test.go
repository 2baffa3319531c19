package inspect_test

import (
	"flag"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

var long = flag.Bool("check.long", false, "check a store of 4 GiB of bodies of 200 bytes, which takes minutes and 8 GiB of disk")

// peak is the greatest resident size of this process since it was last reset, in bytes; 0 where the system does not tell.
func peak(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	require.NotNil(t, m)
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(t, err)
	return n << 10
}

// The memory of a check does not grow with the log (R-E-017): some MiB on a small store, below 256 MiB on 4 GiB of small
// messages with -check.long.
func TestMemoryOfACheckIsBounded(t *testing.T) {
	bytes := int64(4 << 20)
	if *long {
		bytes = 4 << 30
	}
	dir := golden.TempDir(t)
	fillStore(t, dir, bytes, 200)
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // resets the peak, where there is one
	before, start := peak(t), time.Now()
	d, err := inspect.Open(os.DirFS(dir))
	require.NoError(t, err)
	var stats inspect.CheckStats
	for f, err := range d.Check(t.Context(), inspect.CheckOptions{Stats: &stats}) {
		require.NoError(t, err)
		require.Equal(t, inspect.Info, f.Severity, f)
	}
	require.Equal(t, bytes/200, stats.Records)
	after := peak(t)
	t.Logf("%d records, log of %d bytes in %v; peak %d MiB, %d MiB before", stats.Records, stats.LogEnd, time.Since(start), after>>20, before>>20)
	if *long {
		require.Less(t, after, int64(256<<20))
	}
}
