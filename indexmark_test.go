package rocketstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// A kill does not cost the last index file: our last checkpoint noted a hash of the entries that were durable, and what fits it is
// kept; slots, header and what came later are made again from there. What does not fit is made again from the log. All
// keys are found either way, each once (R-E-058, R-E-066, R-E-068).
func TestAKilledStoreTakesItsIndexUpWhereOurNoteProvesIt(t *testing.T) {
	t.Parallel()
	const slots, entries, noted, all = 50, 1000, 200, 260
	entry := func(n int64) int64 { return index.HeaderSize + slots*index.SlotSize + n*index.EntrySize }
	for _, tt := range []struct {
		name string
		harm func(t *testing.T, file string)
		kept bool
	}{
		{"killed", func(*testing.T, string) {}, true},
		{"slots lost", func(t *testing.T, file string) {
			writeAt(t, file, index.HeaderSize, make([]byte, slots*index.SlotSize))
		}, true},
		{"slots of entries that were lost", func(t *testing.T, file string) {
			writeAt(t, file, index.HeaderSize+80, []byte{0, 0, 1, 3, 0, 0, 1, 2})
			writeAt(t, file, entry(noted+10), make([]byte, 20*index.EntrySize))
		}, true},
		{"an entry lost that came later", func(t *testing.T, file string) { writeAt(t, file, entry(noted+1), make([]byte, index.EntrySize)) }, true},
		{"an entry lost", func(t *testing.T, file string) { writeAt(t, file, entry(noted/2), make([]byte, index.EntrySize)) }, false},
		{"a bit of an entry", func(t *testing.T, file string) { writeAt(t, file, entry(7)+3, []byte{0xFF}) }, false},
		{"header of before", func(t *testing.T, file string) { writeAt(t, file, 36, []byte{0, 0, 0, 9}) }, false},
		{"note of another file", func(t *testing.T, file string) { require.NoError(t, os.Rename(file, file[:len(file)-1]+"x")) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := golden.TempDir(t)
			o := &rocketstore.Options{SegmentSize: 8192, IndexSlots: slots, IndexEntries: entries}
			s := open(t, dir, o)
			var last int64
			for i := range all {
				r, err := s.Put(t.Context(), msg("T", int32(i%3), fmt.Sprint("body ", i), "tag", fmt.Sprint("key-", i)))
				require.NoError(t, err)
				require.NoError(t, s.WaitDispatched(t.Context(), r.PhysicalOffset+1))
				if i == noted-1 {
					last = r.PhysicalOffset
					require.NoError(t, s.Checkpoint(t.Context()))
				}
			}
			require.NoError(t, s.Abandon())
			files := indexFiles(t, dir)
			require.Len(t, files, 1)
			tt.harm(t, files[0])

			_, changes, err := rocketstore.Plan(t.Context(), dir, o)
			require.NoError(t, err)
			from := int64(0)
			if tt.kept {
				from = last
			}
			require.Contains(t, fmt.Sprint(changes), fmt.Sprintf("made again from physical offset %d on", from))

			s = open(t, dir, o)
			for i := range all {
				n := 0
				for r, err := range s.Query(t.Context(), rocketstore.QueryRequest{Topic: "T", Key: fmt.Sprint("key-", i)}) {
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint("body ", i), string(r.Body))
					n++
				}
				require.Equal(t, 1, n, i)
			}
			require.NoError(t, s.Close(t.Context()))
			files = indexFiles(t, dir)

			// A rebuild from the log alone gives the same bytes: nothing is left of what was taken back.
			kept, err := os.ReadFile(files[0])
			require.NoError(t, err)
			require.NoError(t, os.Remove(files[0]))
			require.NoError(t, open(t, dir, o).Close(t.Context()))
			again, err := os.ReadFile(indexFiles(t, dir)[0])
			require.NoError(t, err)
			require.Equal(t, again, kept)
		})
	}
}

// The plan says that a file will change of which only the slots are wrong, and says nothing when all is as our note has it.
func TestThePlanTellsOfAnIndexThatEndsAgainWhereItWas(t *testing.T) {
	t.Parallel()
	for _, harm := range []bool{false, true} {
		dir := golden.TempDir(t)
		o := &rocketstore.Options{SegmentSize: 8192, IndexSlots: 50, IndexEntries: 1000}
		s := open(t, dir, o)
		for i := range 50 {
			_, err := s.Put(t.Context(), msg("T", 0, fmt.Sprint("body ", i), "tag", fmt.Sprint("key-", i)))
			require.NoError(t, err)
		}
		require.NoError(t, s.Close(t.Context()))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "abort"), nil, 0o600))
		file := indexFiles(t, dir)[0]
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		if harm {
			writeAt(t, file, index.HeaderSize+40, []byte{0, 0, 0, 99})
		}
		plan, changes, err := rocketstore.Plan(t.Context(), dir, o)
		require.NoError(t, err)
		before := golden.Snapshot(t, dir)
		s = open(t, dir, o)
		comparePlan(t, plan, changes, s, before, dir)
		require.Equal(t, harm, strings.Contains(fmt.Sprint(changes), "ends again where our last checkpoint left it"))
		require.NoError(t, s.Close(t.Context()))
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
