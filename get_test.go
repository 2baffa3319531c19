package rocketstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// A damaged record ends the batch before it, and is an error of its own, after which the rest follows (R-E-036); with trust, that
// are only those whose damage is seen.
func TestADamagedRecordEndsTheBatchBeforeIt(t *testing.T) {
	const all, body, magic = 40, 10, 20 // of 40 records the body of one is damaged, and the magic of another
	dir := golden.TempDir(t)
	s := open(t, dir, small())
	places := make([]commitlog.Place, all)
	for i := range places {
		r, err := s.Put(t.Context(), msg("T", 0, string(make([]byte, 300+i)), "tag", ""))
		require.NoError(t, err)
		places[i] = commitlog.Place{Offset: r.PhysicalOffset, Size: int32(r.Size)}
	}
	_, end := s.Bounds()
	require.NoError(t, s.WaitDispatched(t.Context(), end))
	harm := func(at int64) {
		f, err := os.OpenFile(filepath.Join(dir, "commitlog", mappedfile.SegmentName(at-at%8192)), os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("?"), at%8192)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	harm(places[body].Offset + 100)
	harm(places[magic].Offset + 4)
	for trust, damaged := range [][]int64{commitlog.TrustNothing: {body, magic}, commitlog.TrustBodies: {magic}, commitlog.TrustAll: nil} {
		for _, filter := range []func(int64) bool{nil, func(int64) bool { return true }} {
			req := rocketstore.GetRequest{Topic: "T", Trust: commitlog.Trust(trust), Filter: filter}
			var given, wrong []int64
			for req.Offset < all {
				res, err := s.Get(t.Context(), req)
				if err != nil {
					require.ErrorIs(t, err, rocketstore.ErrCorrupt)
					require.Empty(t, res.Records)
					require.Equal(t, req.Offset+1, res.Next)
					wrong = append(wrong, req.Offset)
				}
				for i, r := range res.Records {
					want := places[res.Offsets[i]]
					require.Equal(t, want, commitlog.Place{Offset: r.PhysicalOffset, Size: r.Size})
					raw := res.Raw(i)
					require.Len(t, raw, int(want.Size))
					if res.Offsets[i] != magic {
						of, err := commitlog.Decode(raw)
						require.NoError(t, err)
						require.Equal(t, res.Offsets[i], of.QueueOffset)
					}
					require.Equal(t, req.Trust == commitlog.TrustAll, r.Body == nil)
				}
				given, req.Offset = append(given, res.Offsets...), res.Next
				res.Release()
			}
			require.Equal(t, damaged, wrong)
			require.Len(t, given, all-len(damaged))
		}
	}
}
