package inspect_test

import (
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// fixture is a golden store in memory: its files by name.
func fixture(tb testing.TB, name string) (fstest.MapFS, []string) {
	tb.Helper()
	dir := golden.Unpack(tb, name)
	files := fstest.MapFS{}
	var names []string
	for file, s := range golden.Snapshot(tb, dir) {
		if s.Hash == "" {
			continue // a folder
		}
		b, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(tb, err)
		files[file] = &fstest.MapFile{Data: b, Mode: 0o644}
		names = append(names, file)
	}
	slices.Sort(names)
	return files, names
}

// FuzzCheckOfFixtures checks stores of the three real lines after changes anywhere in their files: bytes, cuts, a file that
// is gone. Whatever they are, a check ends, without a panic and without an error of reading, and each finding lies in a file.
func FuzzCheckOfFixtures(f *testing.F) {
	type store struct {
		files fstest.MapFS
		names []string
	}
	var stores []store
	for _, name := range []string{store31, store49, "rocketmq-5.3.3/clean", storeBCQ} {
		files, names := fixture(f, name)
		stores = append(stores, store{files, names})
	}
	f.Add(uint8(0), []byte{})
	f.Add(uint8(0), []byte{0, 3, 0, 0, 2, 0, 9, 1, 7, 0, 0, 60, 0, 0xFF})
	f.Add(uint8(1), []byte{1, 0, 0, 0, 40, 0, 0, 2, 5, 0, 0, 0, 0, 0})
	f.Add(uint8(2), []byte{0, 1, 0, 1, 0, 3, 0x80})
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		s := stores[int(which)%len(stores)]
		changed := maps.Clone(s.files)
		for range 8 {
			if len(changes) < 7 {
				break
			}
			name := s.names[int(changes[1])%len(s.names)]
			at := int(binary.BigEndian.Uint32(changes[2:6]) & 0xFFFFFF)
			if file := changed[name]; file != nil && len(file.Data) > 0 {
				b := slices.Clone(file.Data)
				at %= len(b)
				switch changes[0] % 4 {
				case 1:
					b = b[:at]
				case 2:
					clear(b[at:min(len(b), at+int(changes[6])*16)])
				default:
					b[at] ^= changes[6]
				}
				changed[name] = &fstest.MapFile{Data: b, Mode: 0o644}
				if changes[0]%4 == 3 && changes[6] > 0xF0 {
					delete(changed, name)
				}
			}
			changes = changes[7:]
		}
		d, err := inspect.Open(changed)
		if err != nil {
			return
		}
		for f, err := range d.Check(t.Context(), inspect.CheckOptions{Max: 10}) {
			require.NoError(t, err)
			require.NotEmpty(t, f.File)
			require.GreaterOrEqual(t, f.Offset, int64(0))
		}
	})
}
