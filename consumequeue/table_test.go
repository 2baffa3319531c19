package consumequeue_test

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumequeue"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

func keys(table *consumequeue.Table) (all []string) {
	for q := range table.All() {
		all = append(all, strings.TrimPrefix(q.Dir(), root+"/"))
	}
	return all
}

// R-E-049.
func TestTableListsQueuesInOrder(t *testing.T) {
	fsys := memfs.New()
	table := openTable(t, fsys, nil)
	require.Empty(t, keys(table))
	require.Nil(t, table.Lookup("a", 0))
	require.Nil(t, table.LookupBytes([]byte("a"), 0))
	for _, q := range []struct {
		topic string
		id    int32
	}{{"b", 2}, {"b", 10}, {"a", 0}, {"b", 0}, {"%RETRY%g", 0}, {"a.b", 1}, {"a", 1}} {
		appendRange(t, ensure(t, table, q.topic, q.id), 0, 1)
	}
	want := []string{"%RETRY%g/0", "a/0", "a/1", "a.b/1", "b/0", "b/2", "b/10"}
	again := openTable(t, fsys, nil)
	require.Empty(t, again.Notices())
	for _, table := range []*consumequeue.Table{table, again} {
		require.Equal(t, want, keys(table))
		require.Equal(t, []string{"%RETRY%g", "a", "a.b", "b"}, slices.Collect(table.Topics()))
		var ids []int32
		for q := range table.Queues("b") {
			require.Equal(t, "b", q.Topic())
			ids = append(ids, q.ID())
		}
		require.Equal(t, []int32{0, 2, 10}, ids)
		require.Empty(t, slices.Collect(table.Queues("c")))
		require.Equal(t, "b/10", strings.TrimPrefix(table.LookupBytes([]byte("b"), 10).Dir(), root+"/"))
		require.Same(t, table.Lookup("b", 10), ensure(t, table, "b", 10))
		require.Equal(t, 7, table.Stats().Queues)
		require.Equal(t, root, table.Dir())
	}
}

// An iteration sees the table as it was and does not lock it.
func TestTableMayChangeWhileItIsListed(t *testing.T) {
	table := openTable(t, memfs.New(), nil)
	ensure(t, table, "a", 0)
	ensure(t, table, "c", 0)
	var seen []string
	for topic := range table.Topics() {
		ensure(t, table, topic+"x", 0)
		seen = append(seen, topic)
	}
	for q := range table.All() {
		require.False(t, q.Removed())
		require.NoError(t, table.Remove(q))
		require.True(t, q.Removed())
	}
	require.Equal(t, []string{"a", "c"}, seen)
	require.Empty(t, keys(table))
	for range openTable(t, memfs.New(), nil).Topics() {
		t.Fatal("a table without queues has no topics")
	}
}

// R-E-068: nothing leaves the directory, whatever a message calls its topic.
func TestEnsureRefusesWhatCannotBeAFolder(t *testing.T) {
	fsys := memfs.New()
	table := openTable(t, fsys, nil)
	for _, topic := range []string{"", ".", "..", "a/b", "/", "../x", "a\x00b", strings.Repeat("x", 256)} {
		_, err := table.Ensure(topic, 0)
		require.ErrorContains(t, err, "cannot be the name of a folder", "%q", topic)
	}
	_, err := table.Ensure("T", -1)
	require.ErrorContains(t, err, "queue id -1 of topic \"T\" is negative")
	require.Empty(t, keys(table))
	for _, topic := range []string{"%RETRY%g", "...", "-", " ", "ü", strings.Repeat("x", 255)} {
		require.NoError(t, ensure(t, table, topic, 0).Append(0, nth(0)))
	}
	require.Len(t, keys(openTable(t, fsys, nil)), 6)
}

// What is no queue is left alone and named.
func TestForeignFilesAndFoldersAreNoticed(t *testing.T) {
	fsys := memfs.New()
	foreign := []string{
		"consumequeue/.DS_Store", "consumequeue/T/.DS_Store", "consumequeue/T/0/.DS_Store", "consumequeue/T/0/00000000000000000100.bak",
		"consumequeue/T/0/100", "consumequeue/T/1", "consumequeue/T/00/00000000000000000000", "consumequeue/T/+1/x", "consumequeue/T/-1/x",
		"consumequeue/T/2147483648/x", "consumequeue/T/99999999999999999999/x", "consumequeue/T/0x1/x", "consumequeue/T/ 1/x", "consumequeue/U/x",
	}
	for _, name := range foreign {
		writeFile(t, fsys, name, []byte("mine"))
	}
	writeFile(t, fsys, segmentName(0), pad(units(nth(0)), small))
	require.NoError(t, fsys.MkdirAll("consumequeue/T/0/folder", 0o755))
	require.NoError(t, fsys.MkdirAll("consumequeue/T/2147483647", 0o755))

	table := openTable(t, fsys, nil)
	require.Equal(t, []string{"T/0", "T/2147483647"}, keys(table))
	requireUnits(t, table.Lookup("T", 0), 0, 1)
	var noticed []string
	for _, n := range table.Notices() {
		require.Equal(t, mappedfile.ForeignFile, n.Kind)
		noticed = append(noticed, n.File)
	}
	require.ElementsMatch(t, []string{
		"consumequeue/.DS_Store", "consumequeue/T/.DS_Store", "consumequeue/T/0/.DS_Store", "consumequeue/T/0/00000000000000000100.bak",
		"consumequeue/T/0/100", "consumequeue/T/1", "consumequeue/T/00", "consumequeue/T/+1", "consumequeue/T/-1",
		"consumequeue/T/2147483648", "consumequeue/T/99999999999999999999", "consumequeue/T/0x1", "consumequeue/T/ 1", "consumequeue/U/x",
		"consumequeue/T/0/folder",
	}, noticed)
	appendRange(t, table.Lookup("T", 0), 1, 7)
	for _, name := range foreign {
		require.Equal(t, "mine", string(readFile(t, fsys, name)))
	}

	// Removing the queue leaves them too.
	require.NoError(t, table.Remove(table.Lookup("T", 0)))
	require.ElementsMatch(t, []string{".DS_Store", "00000000000000000100.bak", "100", "folder"}, names(t, fsys, "consumequeue/T/0"))
}

// R-E-009: files that contradict the segment size are an error that names the file and both sizes.
func TestFilesOfAnotherSizeAreRefused(t *testing.T) {
	five := units(nth(0), nth(1), nth(2), nth(3), nth(4))
	for _, tt := range []struct {
		name  string
		files map[int64][]byte
		size  int64
		want  []string
	}{
		{"longer", map[int64][]byte{0: pad(five, 200)}, small, []string{segmentName(0), "200", "100"}},
		{"name is no multiple", map[int64][]byte{0: five, 60: five}, small, []string{segmentName(60), "100", "60"}},
		{"short in the middle", map[int64][]byte{0: five[:60], 100: five}, small, []string{segmentName(0), "60", "100"}},
		{"read with the default size", map[int64][]byte{0: five, 100: five}, 0, []string{segmentName(100), "100", "6000000"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := memfs.New()
			for start, b := range tt.files {
				writeFile(t, fsys, segmentName(start), b)
			}
			_, err := consumequeue.OpenTable(fsys, root, &consumequeue.Options{SegmentSize: tt.size})
			require.ErrorIs(t, err, mappedfile.ErrCorrupt)
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
			for start, b := range tt.files {
				require.Equal(t, b, readFile(t, fsys, segmentName(start)))
			}
		})
	}
}

func TestConsumequeueThatIsAFileIsAnError(t *testing.T) {
	fsys := memfs.New()
	writeFile(t, fsys, root, []byte("not a directory"))
	_, err := consumequeue.OpenTable(fsys, root, nil)
	require.ErrorContains(t, err, "list consumequeue")
}

func TestRemoveDeletesFilesAndEmptyFolders(t *testing.T) {
	fsys := memfs.New()
	table := openTable(t, fsys, nil)
	zero, one := ensure(t, table, "T", 0), ensure(t, table, "T", 1)
	appendRange(t, zero, 0, 7)
	appendRange(t, one, 0, 1)
	require.NoError(t, table.Remove(zero))
	require.Nil(t, table.Lookup("T", 0))
	require.Equal(t, []string{"1"}, names(t, fsys, "consumequeue/T"))
	require.NoError(t, table.Sync(0), "a queue that is gone needs no sync")
	_, err := zero.Get(0)
	require.ErrorIs(t, err, mappedfile.ErrClosed)
	require.NoError(t, table.Remove(one))
	require.Empty(t, names(t, fsys, root))
	require.Empty(t, slices.Collect(table.Topics()))

	never := ensure(t, table, "V", 0)
	require.NoError(t, table.Remove(never), "nothing is on disk yet")
	appendRange(t, ensure(t, table, "T", 0), 0, 2)
	requireUnits(t, table.Lookup("T", 0), 0, 2)
}

func TestReadOnlyTableWritesNothing(t *testing.T) {
	fsys := memfs.New()
	writer := openTable(t, fsys, nil)
	appendRange(t, ensure(t, writer, "T", 0), 0, 7)
	table := openTable(t, fsys, &consumequeue.Options{SegmentSize: small, ReadOnly: true})
	q := table.Lookup("T", 0)
	requireUnits(t, q, 0, 7)
	_, err := table.Ensure("T", 1)
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	require.Same(t, q, ensure(t, table, "T", 0))
	require.ErrorIs(t, q.Append(7, nth(7)), mappedfile.ErrReadOnly)
	require.ErrorIs(t, q.Append(0, nth(0)), mappedfile.ErrReadOnly)
	require.ErrorIs(t, q.Set(0, nth(7)), mappedfile.ErrReadOnly)
	require.ErrorIs(t, q.TruncateAfter(0), mappedfile.ErrReadOnly)
	require.ErrorIs(t, table.Remove(q), mappedfile.ErrReadOnly)
	_, err = q.Repair()
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	_, err = q.DeleteBefore(1 << 40)
	require.ErrorIs(t, err, mappedfile.ErrReadOnly)
	requireUnits(t, q, 0, 7)
	require.NoError(t, table.Sync(0))
	require.NoError(t, table.Close())
}

// R-E-046: pages below the threshold stay dirty and are not forgotten.
func TestSyncRemembersWhatItLeftOut(t *testing.T) {
	fsys := &countingFS{FS: memfs.New()}
	table := openTable(t, fsys, &consumequeue.Options{SegmentSize: 1 << 20})
	q := ensure(t, table, "T", 0)
	require.NoError(t, table.Sync(0))
	require.Zero(t, fsys.dirSyncs)
	appendRange(t, q, 0, 100)
	require.NoError(t, table.Sync(2))
	require.Zero(t, fsys.dirSyncs, "one page")
	require.NoError(t, table.Sync(2))
	appendRange(t, q, 100, 300)
	require.NoError(t, table.Sync(2))
	require.NotZero(t, fsys.dirSyncs, "two pages")
	after := fsys.rangeSyncs
	require.NoError(t, table.Sync(0))
	require.Equal(t, after, fsys.rangeSyncs, "nothing is dirty")
	require.NoError(t, q.Set(5, nth(6)))
	require.NoError(t, table.Sync(2), "what is set in place is always synced")
	require.Equal(t, after+1, fsys.rangeSyncs)
	require.NoError(t, q.Sync(0))
}

// countingFS counts what is synced.
type countingFS struct {
	mappedfile.FS
	dirSyncs, rangeSyncs int
}

type countingFile struct {
	mappedfile.File
	fs *countingFS
}

type countingMapping struct {
	mappedfile.Mapping
	fs *countingFS
}

func (f *countingFS) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	return &countingFile{file, f}, err
}

func (f *countingFS) SyncDir(name string) error {
	f.dirSyncs++
	return f.FS.SyncDir(name)
}

func (f *countingFile) Map(size int64, access mappedfile.Access) (mappedfile.Mapping, error) {
	m, err := f.File.Map(size, access)
	return &countingMapping{m, f.fs}, err
}

func (m *countingMapping) SyncRange(off, n int) error {
	m.fs.rangeSyncs++
	return m.Mapping.SyncRange(off, n)
}

// A table remembers the queues that were looked up last: each is found by its own name only, and none that was removed.
func TestWhatIsRememberedOfLookups(t *testing.T) {
	table := openTable(t, memfs.New(), nil)
	made := map[string]*consumequeue.Queue{}
	for i := range 200 { // more than are remembered
		topic := "T" + strings.Repeat("x", i%3) + strconv.Itoa(i%7)
		name := topic + "/" + strconv.Itoa(i)
		made[name] = ensure(t, table, topic, int32(i))
		require.Nil(t, table.Lookup(topic+"y", int32(i)))
		require.Nil(t, table.Lookup("", int32(i)))
	}
	for range 2 {
		for name, q := range made {
			require.Same(t, q, table.Lookup(q.Topic(), q.ID()), name)
			require.Same(t, q, table.LookupBytes([]byte(q.Topic()), q.ID()), name)
			require.Nil(t, table.Lookup(q.Topic(), q.ID()+1000))
		}
	}
	for _, q := range made {
		require.NotNil(t, table.Lookup(q.Topic(), q.ID()))
		require.NoError(t, table.Remove(q))
		require.Nil(t, table.Lookup(q.Topic(), q.ID()))
		require.NotSame(t, q, ensure(t, table, q.Topic(), q.ID()))
	}
}
