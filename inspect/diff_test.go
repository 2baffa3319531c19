package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// Files under config and the checkpoint are compared by their values: what was set differs, what moves all the time is only told.
func TestDiffComparesConfigAndCheckpoint(t *testing.T) {
	a, b := golden.Unpack(t, "rocketmq-4.9.7/clean"), golden.Unpack(t, "rocketmq-4.9.7/clean")
	edit := func(name string, change func([]byte) []byte) {
		file := filepath.Join(b, filepath.FromSlash(name))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		changed := change(text)
		require.False(t, bytes.Equal(text, changed), name)
		require.NoError(t, os.WriteFile(file, changed, 0o600))
	}
	edit("config/topics.json", func(text []byte) []byte {
		return bytes.Replace(text, []byte(`"readQueueNums":`), []byte(`"readQueueNums":1`), 1)
	})
	edit("config/consumerOffset.json", func(text []byte) []byte { return bytes.Replace(text, []byte("0:"), []byte("0:1"), 1) })
	edit("config/subscriptionGroup.json", func(text []byte) []byte { return append(text, '\n') }) // spaces only
	edit("checkpoint", func(text []byte) []byte { return append([]byte{0, 0, 2}, text[3:]...) })
	require.NoError(t, os.WriteFile(filepath.Join(b, "config", "more.json"), []byte("{}"), 0o600))
	r, c := compared(t, a, b)
	require.Equal(t, []string{
		"checkpoint differs|checkpoint|0", "config differs|config/consumerOffset.json|0", "config differs|config/topics.json|0",
		"only in the second|config/more.json|0",
	}, slices.Sorted(slices.Values(c.brief())))
	require.EqualValues(t, 1, r.Findings, "progress and checkpoint do not count")
	require.Len(t, r.Files, 4)
	for _, f := range c.all {
		if f.File == "config/topics.json" {
			require.Equal(t, inspect.Warning, f.Severity)
			require.Regexp(t, `^1 value differs: topicConfigTable\.\S+\.readQueueNums \(\d+, in the second 1\d+\)$`, f.Text)
		} else {
			require.Equal(t, inspect.Info, f.Severity)
		}
	}
	edit("config/topics.json", func(text []byte) []byte { return text[:len(text)/2] })
	edit("checkpoint", func(text []byte) []byte { return text[:20] })
	r, c = compared(t, a, b)
	require.Contains(t, c.brief(), "config differs|config/topics.json|0")
	require.Contains(t, c.brief(), "damaged file|checkpoint|0")
	require.EqualValues(t, 2, r.Findings)
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
