package inspect_test

import (
	"crypto/md5"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// sums gives the MD5 of each file below a folder of a directory, by path.
func sums(t *testing.T, dir, folder string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	require.NoError(t, filepath.WalkDir(filepath.Join(dir, folder), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		sum := md5.Sum(b)
		inside, err := filepath.Rel(dir, name)
		all[filepath.ToSlash(inside)] = hex.EncodeToString(sum[:])
		return err
	}))
	return all
}

// State table and redo log that are made from the log of a clean store are Java's files byte for byte; after a crash of the
// original each open transaction has the number that its message carries, and nothing else is open (R-B-50 to R-B-52).
func TestTransactionFilesAreMadeAsJavaWroteThem(t *testing.T) {
	t.Parallel()
	equal := 0
	for _, name := range golden.Names("3.1.4") {
		exp, base := golden.Load(t, name), filepath.Base(name)
		t.Run(base, func(t *testing.T) {
			d, to := open(t, golden.Unpack(t, name)), golden.TempDir(t)
			fsys, err := mappedfile.OpenDir(to, nil)
			require.NoError(t, err)
			made, err := d.Rebuild(t.Context(), fsys, inspect.RebuildOptions{
				Derived: inspect.Derived{States: true, Redo: true}, Sizes: inspect.Sizes{StateTable: 288},
			}, func(inspect.Finding) {})
			require.NoError(t, err)
			files := sums(t, to, "transaction")
			if base == "clean" || base == "mid-transaction" || base == "abort" || base == "abort-oneredo" {
				want := make(map[string]string)
				for _, f := range exp.Files() {
					if strings.HasPrefix(f.Path, "transaction/") {
						want[f.Path] = f.MD5
					}
				}
				require.Equal(t, want, files)
				equal++
			}
			rebuilt := open(t, to)
			var got []golden.OpenTransaction
			n := int64(0)
			for s, err := range rebuilt.StateTable(t.Context(), func(inspect.Finding) {}) {
				require.NoError(t, err)
				if n++; s.State == 4 {
					got = append(got, golden.OpenTransaction{PhysicalOffset: s.CommitOffset, Number: s.Number})
				}
			}
			require.ElementsMatch(t, exp.Derived().OpenTransactions, got)
			require.Equal(t, n, made.States)
			require.Positive(t, made.RedoUnits)
		})
	}
	require.Equal(t, 4, equal)
}
