package remoting_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

func TestEveryCallsAfterItsPeriodsAndWhenKicked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		kick := make(chan struct{}, 1)
		began := time.Now()
		var calls []time.Duration
		go remoting.Every(ctx, time.Second, time.Minute, kick, func() { calls = append(calls, time.Since(began)) })
		time.Sleep(62 * time.Second)
		kick <- struct{}{}
		time.Sleep(time.Minute + time.Second)
		stop()
		synctest.Wait()
		time.Sleep(time.Hour)
		require.Equal(t, []time.Duration{time.Second, 61 * time.Second, 62 * time.Second, 122 * time.Second}, calls)
	})
}
