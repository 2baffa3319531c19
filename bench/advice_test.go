package bench_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/bench"
)

func result(name string, rate, bytes float64, p50, p99, p999 time.Duration) bench.Result {
	return bench.Result{Name: name, Ops: 1, Rate: rate, Bytes: bytes, P50: p50, P99: p99, P999: p999}
}

// Advice follows the figures: of a disk on which blocks that were written before are twice as fast to sync, as of one on which
// they are not.
func TestAdviceFollowsTheFigures(t *testing.T) {
	of := func(zeroed float64, pwrite float64) map[string]string {
		values := make(map[string]string)
		for _, a := range bench.Advise([]bench.Result{
			result("device/how=pwrite/blocks=reserved/size=65536", 4000, 0, 255*time.Microsecond, 0, 0),
			result("device/how=pwrite/blocks=zeroed/size=65536", zeroed, 0, 114*time.Microsecond, 0, 0),
			result("append/write=mapped/sync=interval/body=1024/writers=1", 1_000_000, 0, 0, 0, 0),
			result("append/write=staged/sync=interval/body=1024/writers=1", 1_500_000, 0, 0, 0, 0),
			result("append/write=mapped/sync=group/body=1024/writers=16", 20_000, 0, 0, 0, 0),
			result("append/write=pwrite/sync=group/body=1024/writers=16", pwrite, 0, 0, 0, 0),
			result("sync/write=mapped/pages=1", 0, 40e6, 0, 0, 0),
			result("sync/write=mapped/pages=16", 0, 900e6, 0, 0, 0),
			result("sync/write=mapped/pages=256", 0, 1000e6, 0, 0, 0),
		}) {
			require.Regexp(t, `2 times|1\.3 times|80 %`, a.Why, "the rule")
			values[strings.Fields(a.Setting)[0]] = a.Value
		}
		return values
	}
	require.Equal(t, map[string]string{
		"Reserve": "ReserveZero for SyncGroup, else ReserveWhole", "FlushPages": "16", "Write": "mapped for sync=interval, pwrite for sync=group",
	}, of(8500, 48_000))
	require.Equal(t, map[string]string{
		"Reserve": "ReserveWhole", "FlushPages": "16", "Write": "mapped for sync=interval, mapped for sync=group",
	}, of(4100, 20_100))
	require.Empty(t, bench.Advise(nil))
}
