package properties_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/properties"
)

func TestSavedFilesKeepTheOldContentAside(t *testing.T) { // R-C-08, R-G-02
	dir := t.TempDir()
	file, link := filepath.Join(dir, "new", "a.conf"), filepath.Join(dir, "b.conf")
	require.NoError(t, properties.SaveFile(file, []byte("1")))
	require.NoFileExists(t, file+".bak")
	require.NoError(t, os.Chmod(file, 0o600))
	require.NoError(t, os.Symlink(file, link))
	require.NoError(t, properties.SaveFile(link, []byte("2")))
	for name, want := range map[string]string{file: "2", file + ".bak": "1", link: "2"} {
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(got), name)
	}
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	for _, name := range []string{file, file + ".bak"} {
		info, err := os.Stat(name)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, left, 2)
	require.Error(t, properties.SaveFile(filepath.Join(file, "below"), nil))
}
