package index_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/message"
)

// tiny has room for two keys a file, small for eight.
var (
	tiny  = index.Shape{Slots: 2, Entries: 3}
	small = index.Shape{Slots: 4, Entries: 9}
)

const start = int64(1_700_000_000_000) // ms, 2023-11-14 22:13:20 UTC

// folder is a directory of the operating system.
func folder(tb testing.TB, dir string) mappedfile.FS {
	tb.Helper()
	fsys, err := mappedfile.OpenDir(dir, nil)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		if c, ok := fsys.(io.Closer); ok {
			require.NoError(tb, c.Close())
		}
	})
	return fsys
}

func open(tb testing.TB, fsys mappedfile.FS, s index.Shape, d *dialect.Dialect) *index.Index {
	tb.Helper()
	x, err := index.Open(fsys, "index", &index.Options{Slots: s.Slots, Entries: s.Entries, Dialect: d})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, x.Close()) })
	return x
}

// put indexes a record of topic T.
func put(tb testing.TB, x *index.Index, offset, storeTime int64, keys string) {
	tb.Helper()
	require.NoError(tb, x.Put(record(offset, storeTime, keys)))
}

func record(offset, storeTime int64, keys string) index.Keys {
	return index.Keys{Topic: []byte("T"), Keys: []byte(keys), PhysicalOffset: offset, StoreTimestamp: storeTime}
}

// offsets asks for a key of topic T at all times and wants no error.
func offsets(tb testing.TB, x *index.Index, key string) []int64 {
	tb.Helper()
	return offsetsIn(tb, x, "T", key, 0, 1<<62)
}

func offsetsIn(tb testing.TB, x *index.Index, topic, key string, begin, end int64) []int64 {
	tb.Helper()
	found := []int64{}
	for h, err := range x.Query(topic, key, begin, end) {
		require.NoError(tb, err)
		found = append(found, h.PhysicalOffset)
	}
	return found
}

// answers asks for a key of topic T and gives offsets and errors apart.
func answers(x *index.Index, key string) (found []int64, errs []error) {
	for h, err := range x.Query("T", key, 0, 1<<62) {
		if err != nil {
			errs = append(errs, err)
		} else {
			found = append(found, h.PhysicalOffset)
		}
	}
	return found, errs
}

// names are the files of the directory index.
func names(tb testing.TB, fsys mappedfile.FS) []string {
	tb.Helper()
	entries, err := fsys.ReadDir("index")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(tb, err)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

// content is the bytes of every file of the directory index, by name.
func content(tb testing.TB, fsys mappedfile.FS) [][]byte {
	tb.Helper()
	var all [][]byte
	for _, name := range names(tb, fsys) {
		all = append(all, read(tb, fsys, name))
	}
	return all
}

func read(tb testing.TB, fsys mappedfile.FS, name string) []byte {
	tb.Helper()
	f, err := fsys.OpenFile("index/"+name, os.O_RDONLY, 0)
	require.NoError(tb, err)
	size, err := f.Size()
	require.NoError(tb, err)
	b := make([]byte, size)
	if size > 0 {
		_, err = f.ReadAt(b, 0)
		require.NoError(tb, err)
	}
	require.NoError(tb, f.Close())
	return b
}

func write(tb testing.TB, fsys mappedfile.FS, name string, b []byte) {
	tb.Helper()
	require.NoError(tb, fsys.MkdirAll("index", 0o750))
	f, err := fsys.OpenFile("index/"+name, os.O_RDWR|os.O_CREATE, 0o640)
	require.NoError(tb, err)
	require.NoError(tb, f.Truncate(int64(len(b))))
	_, err = f.WriteAt(b, 0)
	require.NoError(tb, err)
	require.NoError(tb, f.Close())
}

// shapeOf is how a golden store's index is shaped.
func shapeOf(e *golden.Expected) index.Shape {
	return index.Shape{Slots: e.Config().IndexSlots, Entries: e.Config().IndexEntries}
}

func lineOf(tb testing.TB, e *golden.Expected) *dialect.Dialect {
	tb.Helper()
	d, err := dialect.Parse(e.Line())
	require.NoError(tb, err)
	return d
}

// keysOf is what the dispatcher gives for a record of a golden log.
func keysOf(r golden.Record, d *dialect.Dialect) index.Keys {
	k := index.Keys{Topic: []byte(r.Topic), PhysicalOffset: r.PhysicalOffset, StoreTimestamp: r.StoreTimestamp}
	if index.Indexed(d, message.SysFlag(r.SysFlag)) {
		k.UniqueKey = []byte(r.Properties[message.PropertyUniqueKey])
		k.Keys = []byte(r.Properties[message.PropertyKeys])
	}
	return k
}

// goldenFiles is the bytes of a golden store's index files, in order.
func goldenFiles(tb testing.TB, store string) [][]byte {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(store, "index", "*"))
	require.NoError(tb, err)
	slices.Sort(paths)
	var all [][]byte
	for _, path := range paths {
		b, err := os.ReadFile(path)
		require.NoError(tb, err)
		all = append(all, b)
	}
	return all
}

// faulty lets the operations of a file layer fail or counts them.
type faulty struct {
	mappedfile.FS
	allocate, sync, syncDir error // what the next calls give; nil: they work
	dirSyncs                atomic.Int32
}

func (f *faulty) OpenFile(name string, flag int, perm fs.FileMode) (mappedfile.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f}, nil
}

func (f *faulty) SyncDir(name string) error {
	f.dirSyncs.Add(1)
	if f.syncDir != nil {
		return f.syncDir
	}
	return f.FS.SyncDir(name)
}

type faultyFile struct {
	mappedfile.File
	fs *faulty
}

func (f *faultyFile) Allocate(off, n int64) error {
	if f.fs.allocate != nil {
		return f.fs.allocate
	}
	return f.File.Allocate(off, n)
}

func (f *faultyFile) Map(size int64, access mappedfile.Access) (mappedfile.Mapping, error) {
	m, err := f.File.Map(size, access)
	if err != nil {
		return nil, err
	}
	return &faultyMapping{m, f.fs}, nil
}

type faultyMapping struct {
	mappedfile.Mapping
	fs *faulty
}

func (m *faultyMapping) SyncRange(off, n int) error {
	if m.fs.sync != nil {
		return m.fs.sync
	}
	return m.Mapping.SyncRange(off, n)
}
