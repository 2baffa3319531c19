package commitlog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// Whole segments go from the oldest on, never the last one; what is held stays readable; then nothing goes any more (R-E-006, R-G-17).
func TestDeleteBeforeKeepsTheLastSegmentAndHeldViews(t *testing.T) {
	log, err := commitlog.Open(memfs.New(), &commitlog.Options{SegmentSize: 4096})
	require.NoError(t, err)
	require.NoError(t, log.SetEnd(0, 0))
	require.NoError(t, log.AppendRaw(t.Context(), 0, make([]byte, 3*4096+10), false))
	v, err := log.Queue().ViewFrom(5)
	require.NoError(t, err)
	names, err := log.DeleteBefore(4095)
	require.NoError(t, err)
	require.Empty(t, names)
	names, err = log.DeleteBefore(1 << 40)
	require.NoError(t, err)
	require.Equal(t, []string{
		"commitlog/" + mappedfile.SegmentName(0), "commitlog/" + mappedfile.SegmentName(4096), "commitlog/" + mappedfile.SegmentName(8192),
	}, names)
	require.Len(t, v.Bytes(), 4091)
	v.Release()
	start, end := log.Bounds()
	require.EqualValues(t, 3*4096, start)
	require.EqualValues(t, 3*4096+10, end)
	require.NoError(t, log.Close())
	_, err = log.DeleteBefore(1 << 40)
	require.ErrorIs(t, err, mappedfile.ErrClosed)
}
