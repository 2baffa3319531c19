package remoting

import (
	"context"
	"time"
)

// Every calls f after first, then a period after each call's end, and whenever kick has a token (nil: never), until ctx ends.
func Every(ctx context.Context, first, period time.Duration, kick <-chan struct{}, f func()) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-kick:
		case <-ctx.Done():
			return
		}
		f()
		timer.Reset(period)
	}
}
