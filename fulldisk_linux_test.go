package rocketstore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// smallDisk is one that is soon full: a tmpfs where the system allows that, else one on the heap. Room gives some of it back.
func smallDisk(t *testing.T) (fsys mappedfile.FS, room func()) {
	const size, ballast = 4 << 20, 1 << 20
	dir := golden.TempDir(t)
	if err := syscall.Mount("rocketstore", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Logf("no tmpfs: %v", err)
		fsys := memfs.New()
		fsys.Limit(size - ballast)
		return fsys, func() { fsys.Limit(size) }
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	filler := filepath.Join(dir, "filler")
	require.NoError(t, os.WriteFile(filler, make([]byte, ballast), 0o600))
	fsys, err := mappedfile.OpenDir(filepath.Join(dir, "store"), nil)
	require.NoError(t, err)
	return fsys, func() { require.NoError(t, os.RemoveAll(filler)) }
}

// On a full disk puts are refused with an error, and no signal comes; all that was acknowledged can be read, and is there after
// a kill; and when there is room the store goes on by itself, or opens (R-E-038, R-E-077).
func TestFullDisk(t *testing.T) {
	for _, write := range []mappedfile.WriteMode{mappedfile.Mapped, mappedfile.Pwrite, mappedfile.Staged} {
		for _, killed := range []bool{false, true} {
			for _, sparse := range []bool{false, true} {
				t.Run(fmt.Sprintf("mode %v, killed %t, sparse %t", write, killed, sparse), func(t *testing.T) {
					o := small()
					o.SegmentSize, o.Write, o.Sparse, o.Sync = 1<<18, write, sparse, rocketstore.SyncGroup
					fullDisk(t, o, killed)
				})
			}
		}
	}
}

func fullDisk(t *testing.T, o *rocketstore.Options, killed bool) {
	var room func()
	o.FS, room = smallDisk(t)
	s, err := rocketstore.Open("", o)
	require.NoError(t, err)
	acknowledged := map[int64]string{}
	n := 0
	put := func() error {
		n++
		body := fmt.Sprintf("%d:%s", n, strings.Repeat("x", 2000))
		r, err := s.Put(t.Context(), msg("T", 0, body, "tag", "key"))
		if err == nil {
			acknowledged[r.QueueOffset] = body
		}
		return err
	}
	for err == nil {
		err = put()
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Greater(t, n, 500)
	if killed {
		require.NoError(t, s.Abandon())
		again, err := rocketstore.Open("", o)
		switch {
		case err == nil:
			require.NoError(t, again.Abandon())
		case !errors.Is(err, mappedfile.ErrFault): // a tmpfs takes a block even to read a hole through a mapping
			require.ErrorIs(t, err, syscall.ENOSPC)
		}
		room()
		s, err = rocketstore.Open("", o)
		require.NoError(t, err)
	}
	room()
	for err = put(); errors.Is(err, syscall.ENOSPC); { // until the dispatch has tried again
		err = put()
	}
	require.NoError(t, err)
	for range 2 {
		_, end := s.Bounds()
		require.NoError(t, s.WaitDispatched(t.Context(), end))
		got := bodies(t, s, "T", 0)
		for at, body := range acknowledged {
			require.Equal(t, body, got[at])
		}
		require.NoError(t, s.Close(t.Context()))
		s, err = rocketstore.Open("", o)
		require.NoError(t, err)
		require.Empty(t, s.Report().Warnings)
	}
}
