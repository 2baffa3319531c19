package mappedfile_test

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
)

func TestIOFSReadsAnyFileSystem(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/a", []byte("abc"), 0o600))
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	f, err := w.Create("a")
	require.NoError(t, err)
	_, err = f.Write([]byte("abc"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	zipped, err := zip.NewReader(bytes.NewReader(archive.Bytes()), int64(archive.Len()))
	require.NoError(t, err)

	for name, fsys := range map[string]fs.FS{
		"dir": os.DirFS(dir),
		"zip": zipped, // its files have no ReadAt
		"map": fstest.MapFS{"a": {Data: []byte("abc")}},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := mappedfile.IOFS(fsys)
			refusesChanges(t, fsys)
			f, err := fsys.OpenFile("a", os.O_RDONLY, 0)
			require.NoError(t, err)
			m, err := f.Map(2, mappedfile.ReadOnly)
			require.NoError(t, err)
			require.Equal(t, "ab", string(m.Bytes()))
			require.NoError(t, m.Advise(0, 2, mappedfile.Sequential))
			for _, err := range []error{
				m.SyncRange(0, 1), f.Sync(), f.Truncate(0), f.Allocate(0, 1),
				second(f.WriteAt([]byte("x"), 0)), second(f.Map(2, mappedfile.ReadWrite)),
			} {
				require.ErrorIs(t, err, mappedfile.ErrReadOnly)
			}
			require.Error(t, second(f.Map(4, mappedfile.ReadOnly)))
			require.NoError(t, m.Unmap())
			require.NoError(t, f.Close())
			require.Error(t, second(fsys.OpenFile(".", os.O_RDONLY, 0)), "a directory")
		})
	}
}

// A store in an archive is read through the same queue as one on disk.
func TestQueueReadsOutOfAnArchive(t *testing.T) {
	q, err := mappedfile.Open(mappedfile.IOFS(fstest.MapFS{
		"log/00000000000000000000": {Data: []byte("abcd")},
		"log/00000000000000000004": {Data: []byte("efgh")},
	}), "log", &mappedfile.Options{SegmentSize: 4, ReadOnly: true})
	require.NoError(t, err)
	defer q.Close()
	v, err := q.View(5, 2)
	require.NoError(t, err)
	defer v.Release()
	require.Equal(t, "fg", string(v.Bytes()))
	_, err = q.Append([]byte("x"))
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
}
