package rocketstore_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/recovery"
)

// The tests here are of what broken directories found, one for each mended bug.

// A table that the store needs and that cannot be read is a refusal, which planning foresees; it is never taken for an
// empty one (R-E-064).
func TestADamagedTableIsARefusal(t *testing.T) {
	h := newHarmed(t, "4.9", false)
	const name = "config/consumerOffset.json"
	require.NoError(t, os.MkdirAll(h.path("config"), 0o750))
	require.NoError(t, os.WriteFile(h.path(name), make([]byte, 83), 0o600))
	remove(t, h.path(name+".bak"))
	before := golden.Snapshot(t, h.dir)
	_, _, planned := rocketstore.Plan(t.Context(), h.dir, &h.opts)
	_, err := rocketstore.Open(h.dir, &h.opts)
	require.EqualError(t, planned, err.Error())
	var refused *recovery.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, recovery.KindDamagedTable, refused.Kind)
	require.Equal(t, name, refused.File)
	require.ErrorContains(t, err, name)
	var damage *config.DamageError
	require.ErrorAs(t, err, &damage)
	require.Equal(t, before, golden.Snapshot(t, h.dir))
}
