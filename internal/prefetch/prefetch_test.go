package prefetch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/prefetch"
)

// Asking changes nothing, whatever the length and the place.
func TestAskingForBytesChangesNothing(t *testing.T) {
	b := make([]byte, 4096)
	for i := range b {
		b[i] = byte(i)
	}
	for from := range 130 {
		for n := range 200 {
			prefetch.Bytes(b[from : from+n])
		}
	}
	prefetch.Bytes(nil)
	prefetch.Bytes(b)
	for i := range b {
		require.Equal(t, byte(i), b[i])
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { prefetch.Bytes(b) }))
}
