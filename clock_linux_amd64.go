package rocketstore

import "syscall"

// systemClock is the time in ms since 1970 UTC. A put asks twice, and here Gettimeofday is one call of the vDSO, where time.Now
// is two, for it reads the monotonic clock as well.
func systemClock() int64 {
	var now syscall.Timeval
	_ = syscall.Gettimeofday(&now) // it fails for a bad address only
	return now.Sec*1000 + now.Usec/1000
}
