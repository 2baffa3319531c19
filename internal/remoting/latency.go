package remoting

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Latencies is a histogram: bucket i counts what took less than 2^i microseconds and no less than half of that; the last one has all
// that took longer.
type Latencies [32]int64

// Bound is the upper bound of bucket i.
func (l Latencies) Bound(i int) time.Duration { return time.Duration(1<<i) * time.Microsecond }

// Count is how many were counted.
func (l Latencies) Count() (all int64) {
	for _, n := range l {
		all += n
	}
	return all
}

// Percentile is the upper bound of the bucket in which a share of all, such as 0.99, is reached; 0 when nothing was counted.
func (l Latencies) Percentile(share float64) time.Duration {
	all := l.Count()
	rest := min(int64(share*float64(all)), all-1)
	for i, n := range l {
		if rest -= n; rest < 0 && all > 0 {
			return l.Bound(i)
		}
	}
	return 0
}

// LatencyCounter fills a histogram; adding takes no lock.
type LatencyCounter struct {
	buckets [len(Latencies{})]atomic.Int64
	sum     atomic.Int64
}

// Add counts what took so long.
func (c *LatencyCounter) Add(took time.Duration) {
	took = max(took, 0)
	c.buckets[min(bits.Len64(uint64(took.Microseconds())), len(c.buckets)-1)].Add(1)
	c.sum.Add(int64(took))
}

// Load is the histogram of now.
func (c *LatencyCounter) Load() (l Latencies) {
	for i := range c.buckets {
		l[i] = c.buckets[i].Load()
	}
	return l
}

// Sum is how long all took together.
func (c *LatencyCounter) Sum() time.Duration { return time.Duration(c.sum.Load()) }
