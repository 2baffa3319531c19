package rocketstore_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/recovery"
)

// The tests here are of what broken directories found, one for each mended bug.

// No checksum covers a record's queue offset. One that is more than the log has room for moves neither the record nor the
// queue's end, and fills no disk, with queues and without (R-E-043, R-E-078).
func TestAWildQueueOffsetLeavesTheQueueAsItIs(t *testing.T) {
	for _, wild := range []uint64{2000, 100_000, 10_000_000, 1 << 24, 1 << 48, 1<<48 + 1, math.MaxInt64, 1 << 63} {
		for _, clean := range []bool{true, false} {
			for _, queues := range []bool{true, false} {
				h := newHarmed(t, "4.9", clean)
				writeAt(t, h.log(), h.put[5].PhysicalOffset+20, binary.BigEndian.AppendUint64(nil, wild))
				remove(t, h.path("config/rocketstore.json"))
				if !queues {
					remove(t, h.path("consumequeue"))
				}
				s := open(t, h.dir, &h.opts)
				for q, err := range s.Queues(t.Context()) {
					require.NoError(t, err)
					require.EqualValues(t, 10, q.Max, "%d, clean %v, queues %v", wild, clean, queues)
				}
				require.Len(t, bodies(t, s, "T", 0), 10)
				require.NoError(t, s.Close(t.Context()))
				files, err := os.ReadDir(h.path("consumequeue/T/0"))
				require.NoError(t, err)
				require.Len(t, files, 1)
			}
		}
	}
}

// What lies behind the units of a queue and is none is made zeros after a clean stop too, so that no other program comes
// upon it (R-E-012, R-E-068).
func TestWhatIsNoUnitBehindAQueueIsMadeZeros(t *testing.T) {
	for name, junk := range map[string][]byte{
		"impossible units":    bytes.Repeat([]byte{0xFF}, 40),
		"half a unit":         append(make([]byte, 19), 5),
		"units behind a hole": append(make([]byte, 60), 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9),
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarmed(t, "4.9", true)
			remove(t, h.path("config/rocketstore.json"))
			whole, err := os.ReadFile(h.queue())
			require.NoError(t, err)
			writeAt(t, h.queue(), 200, junk)
			_, changes, err := rocketstore.Plan(t.Context(), h.dir, &h.opts)
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(changes, func(c recovery.Change) bool { return c.File == "consumequeue/T/0" }), "%v", changes)
			s := open(t, h.dir, &h.opts)
			require.Len(t, bodies(t, s, "T", 0), 10)
			require.NoError(t, s.Close(t.Context()))
			mended, err := os.ReadFile(h.queue())
			require.NoError(t, err)
			require.Equal(t, whole, mended)
		})
	}
}

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
