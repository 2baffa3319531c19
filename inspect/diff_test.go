package inspect_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
)

// compared compares two directories.
func compared(t *testing.T, a, b string) (*inspect.DiffResult, *collector) {
	t.Helper()
	first, err := inspect.Open(os.DirFS(a))
	require.NoError(t, err)
	second, err := inspect.Open(os.DirFS(b))
	require.NoError(t, err)
	c := &collector{}
	r, err := inspect.Diff(t.Context(), first, second, inspect.DiffOptions{}, c.add)
	require.NoError(t, err)
	return r, c
}

// R-E-100, R-E-102: what rebuild makes is what the brokers made, and a store is equal to itself.
func TestDiffFindsNothingBetweenAStoreAndItsRebuild(t *testing.T) {
	for _, name := range []string{"rocketmq-3.1.4/mid-transaction", "rocketmq-4.9.7/clean", "rocketmq-5.3.3/crc"} {
		dir, to := golden.Unpack(t, name), golden.TempDir(t)
		before := golden.Snapshot(t, dir)
		d, err := inspect.Open(os.DirFS(dir))
		require.NoError(t, err)
		fsys, err := mappedfile.OpenDir(to, nil)
		require.NoError(t, err)
		derived := inspect.Derived{Queues: true, Index: true, States: d.HasStateTable(), Redo: d.HasStateTable()}
		_, err = d.Rebuild(t.Context(), fsys, inspect.RebuildOptions{Derived: derived}, func(inspect.Finding) {})
		require.NoError(t, err)
		for _, other := range []string{to, dir} {
			r, c := compared(t, dir, other)
			require.Empty(t, c.all, name)
			require.Empty(t, r.Different)
			require.Positive(t, r.Equal)
		}
		require.Equal(t, before, golden.Snapshot(t, dir))
	}
}

func TestDiffNamesEachDifference(t *testing.T) {
	a, b := golden.Unpack(t, "rocketmq-4.9.7/clean"), golden.Unpack(t, "rocketmq-4.9.7/clean")
	const queue = "consumequeue/GoldenTiny/0/00000000000000000000"
	change := func(dir, file string, at int64, with ...byte) {
		f, err := os.OpenFile(filepath.Join(dir, filepath.FromSlash(file)), os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt(with, at)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	change(b, queue, 40+15, 1)                                           // another tags code
	change(a, queue, 3*20, make([]byte, 20)...)                          // no unit
	change(b, "commitlog/00000000000000262144", 206170+16, 0, 0, 0, 0x7) // another flag
	r, c := compared(t, a, b)
	require.Equal(t, []string{
		"different|commitlog/00000000000000262144|206170",
		"different|" + queue + "|40",
		"only in the second|" + queue + "|60",
	}, c.brief())
	require.Len(t, r.Different, 2)
	require.Equal(t, int64(3), r.Findings)
}

func ExampleDiff() {
	r, err := inspect.Diff(context.Background(), mustOpen(exampleStore()), mustOpen(exampleStore()), inspect.DiffOptions{}, func(inspect.Finding) {})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Compared, r.Equal, len(r.Different))
	// Output: [messages queue units index entries] 3 0
}
