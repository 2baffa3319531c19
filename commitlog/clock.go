package commitlog

import "time"

// clock reads the system's clock once in each millisecond, and in between the monotonic one, which takes half the time. When the system's
// clock is set it follows within a millisecond. The zero value is ready.
type clock struct {
	read   time.Time
	millis int64         // since 1970, at read
	rest   time.Duration // of that millisecond
}

func (c *clock) now() int64 {
	if d := time.Since(c.read); d < 0 || d >= c.rest {
		c.read = time.Now()
		c.millis = c.read.UnixMilli()
		c.rest = time.Millisecond - time.Duration(c.read.Nanosecond())%time.Millisecond
	}
	return c.millis
}
