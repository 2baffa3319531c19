//go:build !linux || !amd64

package rocketstore

import "time"

// systemClock is the time in ms since 1970 UTC.
func systemClock() int64 { return time.Now().UnixMilli() }
