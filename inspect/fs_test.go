package inspect_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// A zip archive's files can only be read from their start on.
func TestAZipArchiveReadsLikeTheDirectory(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"rocketmq-4.9.7/abort-badcrc", "rocketmq-5.3.3/batchcq", "rocketmq-3.1.4/clean"} {
		t.Run(name, func(t *testing.T) {
			dir := golden.Unpack(t, name)
			archive := filepath.Join(golden.TempDir(t), "store.zip")
			f, err := os.Create(archive)
			require.NoError(t, err)
			w := zip.NewWriter(f)
			require.NoError(t, w.AddFS(os.DirFS(dir)))
			require.NoError(t, w.Close())
			require.NoError(t, f.Close())
			r, err := zip.OpenReader(archive)
			require.NoError(t, err)
			defer r.Close()
			d, err := inspect.Open(r)
			require.NoError(t, err)

			want := golden.Load(t, name)
			compareLog(t, d, want)
			compareQueues(t, d, want)
			compareIndex(t, d, want)
			compareKeys(t, d, want)
			compareIdentity(t, d, want)
		})
	}
}

// R-E-014: a directory that may not be written to is read all the same, and stays as it is.
func TestADirectoryWithoutPermissionToWriteIsReadAndLeftAsItIs(t *testing.T) {
	const name = "rocketmq-5.3.3/ext"
	dir, want := golden.Unpack(t, name), golden.Load(t, name)
	chmod(t, dir, 0o555, 0o444)
	t.Cleanup(func() { chmod(t, dir, 0o755, 0o644) })
	before, d := golden.Snapshot(t, dir), open(t, dir)
	compareLog(t, d, want)
	compareQueues(t, d, want)
	compareExtensions(t, d, want)
	compareIndex(t, d, want)
	compareIdentity(t, d, want)
	require.Equal(t, before, golden.Snapshot(t, dir))
}

// chmod sets the mode of all folders and files of a tree.
func chmod(t *testing.T, dir string, folders, files os.FileMode) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, folders)
		}
		return os.Chmod(path, files)
	}))
}

// Files of real stores are sparse: 1 GiB, of which little is written. Holes are not read where the system says where
// they are, so this takes no time; elsewhere it is slow and still right.
func TestSparseFilesAreReadWithoutTheirHoles(t *testing.T) {
	dir := golden.TempDir(t)
	sparse := func(name string, size int64, parts map[int64][]byte) {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		f, err := os.Create(name)
		require.NoError(t, err)
		for at, b := range parts {
			_, err := f.WriteAt(b, at)
			require.NoError(t, err)
		}
		require.NoError(t, f.Truncate(size))
		require.NoError(t, f.Close())
	}
	const size = 1 << 30
	far := int64(700 << 20)
	// The first bytes of the far record are zeros that lie in the hole.
	sparse("commitlog/00000000000000000000", size, map[int64][]byte{0: records(0, 3), far - 1: records(far-1, 2)})
	sparse("commitlog/00000000001073741824", size, nil)
	sparse("consumequeue/TopicA/0/00000000000000000000", 6_000_000, map[int64][]byte{0: unit(0, 101), 4_000_000: unit(101, 101)})
	got, c := offsets(t, os.DirFS(dir), inspect.LogRange{})
	require.Equal(t, []int64{0, 101, 202, far - 1, far + 100}, got)
	require.Equal(t, []string{"zeros with data behind them|commitlog/00000000000000000000|303"}, c.brief())
	units, c := indexes(t, os.DirFS(dir))
	require.Equal(t, []int64{0, 200_000}, units)
	require.Len(t, c.all, 1)
}

func TestSegmentsMayBeLinks(t *testing.T) {
	dir, elsewhere := golden.TempDir(t), golden.TempDir(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "commitlog"), 0o755))
	target := filepath.Join(elsewhere, "disk2")
	require.NoError(t, os.WriteFile(target, file(4096, records(0, 3)), 0o644))
	if err := os.Symlink(target, filepath.Join(dir, "commitlog/00000000000000000000")); err != nil {
		t.Logf("no links here, so nothing to see: %v", err)
		return
	}
	got, c := offsets(t, os.DirFS(dir), inspect.LogRange{})
	require.Len(t, got, 3)
	require.Empty(t, c.all)
}

func TestRequireNamesFileAndBothSizes(t *testing.T) {
	d := open(t, golden.Unpack(t, "rocketmq-3.1.4/clean"))
	require.NoError(t, d.Require(inspect.Sizes{}))
	right := inspect.Sizes{CommitLog: 65536, Queue: 400, StateTable: 288, RedoLog: 500, IndexSlots: 50, IndexEntries: 40}
	require.NoError(t, d.Require(right))
	right.Queue = 385 // rounded up, as RocketMQ does
	require.NoError(t, d.Require(right))
	for _, tt := range []struct {
		wrong inspect.Sizes
		want  []string
	}{
		{inspect.Sizes{CommitLog: 4096}, []string{"commitlog/00000000000000000000", "65536", "4096"}},
		{inspect.Sizes{Queue: 1000}, []string{"consumequeue/%RETRY%CG_one/0/00000000000000000000", "400", "1000"}},
		{inspect.Sizes{StateTable: 240}, []string{"transaction/statetable/00000000000000000000", "288", "240"}},
		{inspect.Sizes{RedoLog: 1000}, []string{"transaction/redolog/TRANSACTION_REDOLOG_TOPIC_XXXX/0/00000000000000000000", "500", "1000"}},
		{inspect.Sizes{IndexSlots: 100}, []string{"index/20261129202850936", "50 slots", "100"}},
		{inspect.Sizes{IndexEntries: 100}, []string{"index/20261129202850936", "40 entries", "100"}},
	} {
		err := d.Require(tt.wrong)
		for _, want := range tt.want {
			require.ErrorContains(t, err, want)
		}
	}
}
