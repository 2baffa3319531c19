package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
)

// memTarget keeps a snapshot in memory.
type memTarget struct {
	files  map[string]*memFile
	shared []string
}

type memFile struct{ b []byte }

func (f *memFile) ReadAt(b []byte, off int64) (int, error) {
	return bytes.NewReader(f.b).ReadAt(b, off)
}
func (f *memFile) WriteAt(b []byte, off int64) (int, error) { return copy(f.b[off:], b), nil }
func (f *memFile) Close() error                             { return nil }

func (m *memTarget) Share(name string) error { m.shared = append(m.shared, name); return nil }
func (m *memTarget) Mkdir(string) error      { return nil }
func (m *memTarget) Create(name string, size int64) (inspect.SnapshotFile, error) {
	if m.files == nil {
		m.files = make(map[string]*memFile)
	}
	m.files[name] = &memFile{make([]byte, size)}
	return m.files[name], nil
}

func (m *memTarget) Open(name string) (inspect.SnapshotFile, error) {
	if f := m.files[name]; f != nil {
		return f, nil
	}
	return nil, errors.New(name)
}

// What is being written at the moment of a snapshot is left out: half a record, a unit that is not whole, one that points behind
// the log, an index entry that the header does not count.
func TestASnapshotLeavesOutWhatIsNotWhole(t *testing.T) {
	s := newTree()
	s.put("abort", nil)
	s.log(0, 4096, records(0, 3), blank(4096, 3*recordSize))
	half := record(4096+recordSize, "body")
	s.log(4096, 4096, record(4096, "body"), half[:60])
	s.queue("TopicA", 0, 0, 10, unit(0, recordSize), unit(4096, recordSize), unit(4096+recordSize, recordSize), unit(5000, 0))
	x := indexFile([]string{"a", "b"}, []int64{0, 4096})
	x[39] = 2 // it counts the first only
	s.put("index/20240101000000000", indexFile([]string{"k", "l"}, []int64{0, recordSize}))
	s.put("index/20240101000000001", x)
	m := &memTarget{}
	got, err := mustOpen(s).Snapshot(t.Context(), m, func(f inspect.Finding) { t.Fatal(f) })
	require.NoError(t, err)
	require.Equal(t, int64(4096+recordSize), got.LogEnd)
	require.Positive(t, got.LeftOut)
	require.Equal(t, []string{"commitlog/00000000000000000000"}, m.shared)

	copied := newTree()
	copied.MapFS = fstest.MapFS{"commitlog/00000000000000000000": s.MapFS["commitlog/00000000000000000000"]}
	for name, f := range m.files {
		copied.put(name, f.b)
	}
	at, c := offsets(t, copied, inspect.LogRange{})
	require.Len(t, at, 4)
	require.Empty(t, c.all)
	units, c := indexes(t, copied)
	require.Equal(t, []int64{0, 1}, units)
	require.Empty(t, c.all)
	for f, err := range mustOpen(copied).Check(t.Context(), inspect.CheckOptions{}) {
		require.NoError(t, err)
		require.NotContains(t, []inspect.Kind{inspect.UnitBeyond, inspect.BadIndex, inspect.EntryBeyond, inspect.BadUnit}, f.Kind, f)
	}
}

func ExampleDir_Snapshot() {
	s := exampleStore()
	m := &memTarget{} // a directory: see storectl snapshot
	got, err := mustOpen(s).Snapshot(context.Background(), m, func(inspect.Finding) {})
	fmt.Println(got.LogEnd, got.Shared, got.Copied, err)
	// Output: 4211 1 4 <nil>
}
