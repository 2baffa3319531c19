package commitlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// A reader gives records together as it gives them one by one, over the ends of segments, and stays at one that is damaged (R-E-033).
func TestAReaderGivesRecordsTogether(t *testing.T) {
	l := openLog(t, memfs.New(), commitlog.Options{})
	var places []int64
	for i := range 30 {
		res, err := l.Append(t.Context(), record(t, string(make([]byte, 20*i))), nil, false)
		require.NoError(t, err)
		places = append(places, res.PhysicalOffset)
	}
	require.Greater(t, places[29], int64(2*4096), "several segments")
	damaged := l.NewReader(0)
	defer damaged.Close()
	for _, room := range []int{1, 7, 100} {
		r, dst := l.NewReader(0), make([]commitlog.Record, room)
		defer r.Close()
		var got []int64
		for {
			n, err := r.Read(dst)
			require.NoError(t, err)
			if n == 0 {
				break
			}
			for i := range dst[:n] {
				got = append(got, dst[i].PhysicalOffset)
			}
			require.Equal(t, dst[n-1].PhysicalOffset+int64(dst[n-1].Size), r.Offset())
		}
		require.Equal(t, places, got)
	}
	require.NoError(t, l.Queue().WriteAt([]byte("?"), places[5]+90))
	dst := make([]commitlog.Record, 100)
	n, err := damaged.Read(dst)
	require.NoError(t, err)
	require.Equal(t, 5, n)
	for range 3 {
		_, err = damaged.Read(dst)
		require.ErrorIs(t, err, commitlog.ErrCRC)
		_, err = damaged.Next()
		require.ErrorIs(t, err, commitlog.ErrCRC)
		require.Equal(t, places[5], damaged.Offset())
	}
}
