package inspect_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// archives are a directory as archives of each kind.
func archives(t testing.TB, root fs.FS) map[string][]byte {
	t.Helper()
	var tarred, deflated, stored bytes.Buffer
	w := tar.NewWriter(&tarred)
	require.NoError(t, w.AddFS(root))
	require.NoError(t, w.Close())
	z := zip.NewWriter(&deflated)
	require.NoError(t, z.AddFS(root))
	require.NoError(t, z.Close())
	z = zip.NewWriter(&stored)
	require.NoError(t, fs.WalkDir(root, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		require.NoError(t, err)
		b, err := fs.ReadFile(root, name)
		require.NoError(t, err)
		_, err = f.Write(b)
		return err
	}))
	require.NoError(t, z.Close())
	return map[string][]byte{"tar": tarred.Bytes(), "zip": deflated.Bytes(), "stored zip": stored.Bytes()}
}

func TestStoresInArchivesAreReadAsDirectories(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-5.3.3/lmq")
	want, c := offsets(t, os.DirFS(dir), inspect.LogRange{})
	require.Empty(t, c.all)
	for _, root := range []string{dir, filepath.Dir(dir)} {
		for kind, b := range archives(t, os.DirFS(root)) {
			fsys, err := inspect.OpenArchive(bytes.NewReader(b), int64(len(b)))
			require.NoError(t, err, kind)
			if root == dir && kind == "tar" {
				names, err := fs.Glob(os.DirFS(dir), "*/*")
				require.NoError(t, err)
				require.NoError(t, fstest.TestFS(fsys, names...), kind)
			}
			got, c := offsets(t, fsys, inspect.LogRange{})
			require.Empty(t, c.all, kind)
			require.Equal(t, want, got, kind)
		}
	}
}

func FuzzOpenArchive(f *testing.F) {
	s := exampleStore()
	for _, b := range archives(f, s.MapFS) {
		f.Add(b[:min(len(b), 4096)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fsys, err := inspect.OpenArchive(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		_ = fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				if f, err := fsys.Open(name); err == nil {
					_, _ = f.Read(make([]byte, 100))
				}
			}
			return err
		})
	})
}

func ExampleOpenArchive() {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.AddFS(exampleStore().MapFS); err != nil {
		fmt.Println(err)
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	fsys, err := inspect.OpenArchive(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := inspect.Open(fsys)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, ok, err := d.RecordAt(4096, func(inspect.Finding) {})
	fmt.Println(string(r.Body), ok, err)
	// Output: hello true <nil>
}

func TestAnArchiveThatIsCompressedIsNamedSo(t *testing.T) {
	for name, magic := range map[string]string{"gzip": "\x1f\x8b\x08\x00", "bzip2": "BZh9", "xz": "\xfd7zXZ\x00", "zstd": "\x28\xb5\x2f\xfd", "lz4": "\x04\x22\x4d\x18"} {
		b := []byte(magic + strings.Repeat("x", 1000))
		_, err := inspect.OpenArchive(bytes.NewReader(b), int64(len(b)))
		require.ErrorIs(t, err, inspect.ErrNoArchive)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "decompress it first")
	}
}
