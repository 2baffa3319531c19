package inspect_test

import (
	"encoding/binary"
	"iter"
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

// fixtures are golden stores in memory, changed by a fuzzer.
type fixtures []struct {
	files fstest.MapFS
	names []string
}

func fuzzedFixtures(f *testing.F) (all fixtures) {
	f.Helper()
	for _, name := range []string{store31, store49, "rocketmq-5.3.3/clean", storeBCQ} {
		files, names := fixture(f, name)
		all = append(all, struct {
			files fstest.MapFS
			names []string
		}{files, names})
	}
	f.Add(uint8(0), []byte{})
	f.Add(uint8(0), []byte{0, 3, 0, 0, 2, 0, 9, 1, 7, 0, 0, 60, 0, 0xFF})
	f.Add(uint8(1), []byte{1, 0, 0, 0, 40, 0, 0, 2, 5, 0, 0, 0, 0, 0})
	f.Add(uint8(2), []byte{0, 1, 0, 1, 0, 3, 0x80})
	return all
}

// changed is one of the stores with up to 8 changes: bytes, cuts, stretches of zeros, files that are gone or took another's place.
func (all fixtures) changed(which uint8, changes []byte) fstest.MapFS {
	s := all[int(which)%len(all)]
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
			switch {
			case changes[0]%4 == 3 && changes[6] > 0xF0:
				delete(changed, name)
			case changes[0]%4 == 3 && changes[6] > 0xE0: // the file of another name
				changed[name] = changed[s.names[at%len(s.names)]]
				if changed[name] == nil {
					delete(changed, name)
				}
			}
		}
		changes = changes[7:]
	}
	return changed
}

// FuzzCheckOfFixtures checks stores of the three real lines after changes anywhere in their files: bytes, cuts, a file that
// is gone. Whatever they are, a check ends, without a panic and without an error of reading, and each finding lies in a file.
func FuzzCheckOfFixtures(f *testing.F) {
	stores := fuzzedFixtures(f)
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		d, err := inspect.Open(stores.changed(which, changes))
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

// FuzzVerbsOfFixtures does with such stores what else looks at a whole directory: statistics, transactions, the way of a message, its
// timeline, the comparison with the store as it was, a snapshot. None panics, runs for ever, or fails to read.
func FuzzVerbsOfFixtures(f *testing.F) {
	stores := fuzzedFixtures(f)
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		whole, err := inspect.Open(stores[int(which)%len(stores)].files)
		require.NoError(t, err)
		files := stores.changed(which, changes)
		d, err := inspect.Open(files)
		if err != nil {
			return
		}
		c := &collector{}
		s, err := d.Stat(t.Context(), inspect.StatOptions{}, c.add)
		require.NoError(t, err)
		require.GreaterOrEqual(t, s.Log.Records, int64(0))
		for _, list := range []iter.Seq2[inspect.Transaction, error]{d.Transactions(t.Context(), c.add), d.HalfTransactions(t.Context(), c.add)} {
			for tx, err := range list {
				require.NoError(t, err)
				require.GreaterOrEqual(t, tx.Number, int64(0))
			}
		}
		for _, err := range d.RedoUnits(t.Context(), c.add) {
			require.NoError(t, err)
		}
		n := 0
		for r, err := range d.Log(t.Context(), inspect.LogRange{}, c.add) {
			require.NoError(t, err)
			if n++; n%97 != 1 || n > 500 {
				continue
			}
			id, topic, queue, offset := r.ID(), string(r.Topic), r.QueueID, r.QueueOffset
			if w, err := d.Why(t.Context(), inspect.WhyRequest{ID: id}, c.add); err == nil {
				require.Less(t, w.Break, len(w.Steps))
			}
			_, _ = d.Why(t.Context(), inspect.WhyRequest{Topic: topic, QueueID: queue, QueueOffset: offset}, c.add)
			_, _ = d.Trace(t.Context(), id, inspect.TraceOptions{}, c.add)
		}
		_, err = inspect.Diff(t.Context(), whole, d, inspect.DiffOptions{Max: 10}, c.add)
		require.NoError(t, err)
		m := &memTarget{}
		_, err = d.Snapshot(t.Context(), m, c.add)
		require.NoError(t, err)
		for name, file := range m.files {
			require.LessOrEqual(t, len(file.b), len(files[name].Data))
		}
	})
}
