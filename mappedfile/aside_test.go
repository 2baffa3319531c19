package mappedfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/crashfs"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// A process that is killed while it makes a segment leaves no file of a wrong length under a segment's name; what it was
// making is removed by the next writer (R-E-002, R-E-008).
func TestKilledWhileMakingASegment(t *testing.T) {
	for step := range uint64(40) {
		fsys := crashfs.New(memfs.New())
		fsys.CrashAfter(int(step))
		q, err := mappedfile.Open(fsys, "log", &mappedfile.Options{SegmentSize: 4096, Reserve: mappedfile.ReserveWhole})
		for i := 0; err == nil && i < 20; i++ {
			_, err = q.Append(make([]byte, 1024))
		}
		killed := fsys.Image(1) // all that was written is there, as after a kill
		entries, _ := killed.ReadDir("log")
		for _, e := range entries {
			info, err := e.Info()
			require.NoError(t, err)
			require.EqualValues(t, 4096, info.Size(), "%s after step %d", e.Name(), step)
		}
		require.NoError(t, mappedfile.RemoveAside(killed))
		root, err := killed.ReadDir(".")
		require.NoError(t, err)
		require.LessOrEqual(t, len(root), 1)
	}
}

// A segment can be made however long its directory's name is.
func TestSegmentInADirectoryWithALongName(t *testing.T) {
	fsys, err := mappedfile.OpenDir(t.TempDir(), nil)
	require.NoError(t, err)
	dir := "consumequeue/%RETRY%" + strings.Repeat("g", 240) + "/0"
	q, err := mappedfile.Open(fsys, dir, &mappedfile.Options{SegmentSize: 4096})
	require.NoError(t, err)
	_, err = q.Append([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, q.Close())
}
