package mappedfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rocketstore/rocketstore/mappedfile"
)

// A look at what is behind the end of a new segment costs nothing for what was only reserved, and does not bring it into memory,
// where the next look would find it: opening a store of some MiB took seconds (R-E-074).
func TestALookBehindTheEndLeavesWhatIsReservedWhereItIs(t *testing.T) {
	const size = 64 << 20
	dir := t.TempDir()
	q := open(t, openDir(t, dir), "log", mappedfile.Options{SegmentSize: size, Reserve: mappedfile.ReserveWhole})
	put(t, q, "abc")
	f, err := os.Open(filepath.Join(dir, "log", seg(0)))
	require.NoError(t, err)
	defer f.Close()
	if dataFrom(t, f, size/2) {
		t.Log("this file system tells nothing of blocks that are reserved")
		return
	}
	// Reading at the end, as a walk does, has the kernel read ahead, and mark where to read on.
	v, err := q.ViewSegment(0)
	require.NoError(t, err)
	require.Zero(t, v.Bytes()[8192])
	v.Release()
	for range 3 {
		end, err := q.NonZeroEnd(0, 0)
		require.NoError(t, err)
		require.EqualValues(t, 3, end)
	}
	require.False(t, dataFrom(t, f, size-mappedfile.PageSize))
}

func dataFrom(t *testing.T, f *os.File, off int64) bool {
	t.Helper()
	_, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return false
	}
	require.NoError(t, err)
	return true
}
