package commitlog

import "time"

// clock reads the system's clock once in each millisecond, and in between the monotonic one, which takes half the time. When the system's
// clock is set it follows within a millisecond. The zero value is ready.
type clock struct {
	read   time.Time     // just before the system's clock was read
	millis int64         // since 1970
	rest   time.Duration // of that millisecond
}

func (c *clock) now() int64 {
	if d := time.Since(c.read); d < 0 || d >= c.rest {
		// Apart: time.Now reads the system's clock first, and the processor may be gone before it reads the other.
		c.read = time.Now()
		now := time.Now()
		c.millis = now.UnixMilli()
		c.rest = time.Millisecond - time.Duration(now.Nanosecond())%time.Millisecond
	}
	return c.millis
}
