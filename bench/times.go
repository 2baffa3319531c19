package bench

import (
	"math/bits"
	"time"
)

// The buckets: each power of two of nanoseconds is parted into 32, so a time is known to 3 %.
const (
	subBits = 5
	buckets = (64 - subBits) << subBits
)

// Times counts how long things took. It needs the same memory for a few as for billions. It is for one goroutine.
type Times struct {
	counts [buckets]int64
	total  int64
}

func bucketOf(ns uint64) int {
	if ns < 1<<subBits {
		return int(ns)
	}
	shift := bits.Len64(ns) - 1 - subBits
	return (shift+1)<<subBits + int(ns>>shift) - 1<<subBits
}

// least is the smallest time of a bucket.
func least(bucket int) uint64 {
	if bucket < 1<<subBits {
		return uint64(bucket)
	}
	shift := bucket>>subBits - 1
	return uint64(bucket&(1<<subBits-1)+1<<subBits) << shift
}

// Add counts one time.
func (t *Times) Add(d time.Duration) {
	t.counts[min(bucketOf(uint64(max(d, 0))), buckets-1)]++
	t.total++
}

// Merge adds another's counts.
func (t *Times) Merge(o *Times) {
	for i, n := range o.counts {
		t.counts[i] += n
	}
	t.total += o.total
}

// Count is how many times were counted.
func (t *Times) Count() int64 { return t.total }

// At gives the time that the part q of all stays below or at, 0.5 for the median; 0 when nothing was counted.
func (t *Times) At(q float64) time.Duration {
	want := int64(q * float64(t.total))
	seen := int64(0)
	for i, n := range t.counts {
		if seen += n; n > 0 && seen > want || seen == t.total && seen > 0 {
			return time.Duration(least(i))
		}
	}
	return 0
}
