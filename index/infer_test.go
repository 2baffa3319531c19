package index_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/dialect"
	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// filledFile is the bytes of a file of that shape with so many entries, the first at offset first.
func filledFile(t *testing.T, s index.Shape, d *dialect.Dialect, first int64, keys int) []byte {
	t.Helper()
	fsys := memfs.New()
	x := open(t, fsys, s, d)
	for i := range int64(keys) {
		put(t, x, first+i*100, start+i*700, fmt.Sprintf("key%d", i*i%997))
	}
	require.Len(t, names(t, fsys), 1)
	return content(t, fsys)[0]
}

// R-E-051: the shape is not in the file, but its chains tell it.
func TestInferShapeFindsTheOneThatFitsTheChains(t *testing.T) {
	for _, s := range []index.Shape{{Slots: 1, Entries: 300}, {Slots: 7, Entries: 300}, {Slots: 50, Entries: 40}, {Slots: 1000, Entries: 400}, {Slots: 99_999, Entries: 2000}} {
		for _, d := range []*dialect.Dialect{dialect.V31(), dialect.V49()} {
			for _, first := range []int64{0, 1, 1 << 40} {
				for _, keys := range []int{1, 2, 3, 20, int(min(s.Entries-1, 299))} {
					t.Run(fmt.Sprintf("%v/%s/%d/%d", s, d.Name, first, keys), func(t *testing.T) {
						b := filledFile(t, s, d, first, keys)
						found, ok, err := index.InferShape("f", bytes.NewReader(b), int64(len(b)))
						require.NoError(t, err)
						require.True(t, ok)
						require.Equal(t, s, found)
					})
				}
			}
		}
	}
}

func TestInferShapeSaysWhenAFileDoesNotTell(t *testing.T) {
	empty := make([]byte, 8440)
	damaged := filledFile(t, index.Shape{Slots: 100, Entries: 400}, nil, 5, 30)
	copy(damaged, index.Header{IndexCount: 31, BeginOffset: 6, EndOffset: 2905}.AppendTo(nil))
	for name, b := range map[string][]byte{
		"no entries": empty, "damaged": damaged,
		"more keys than bytes": append(index.Header{IndexCount: math.MaxInt32}.AppendTo(nil), empty[40:]...),
		"noise":                append(index.Header{IndexCount: 3}.AppendTo(nil), bytes.Repeat([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 840)...),
	} {
		t.Run(name, func(t *testing.T) {
			s, ok, err := index.InferShape("f", bytes.NewReader(b), int64(len(b)))
			require.NoError(t, err)
			require.False(t, ok)
			require.Zero(t, s)
		})
	}
	usual := index.Shape{Slots: index.DefaultSlots, Entries: index.DefaultEntries}
	s, ok, err := index.InferShape("f", zeros{}, usual.Size())
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, usual, s)
}

// zeros is a file of any size without an entry.
type zeros struct{}

func (zeros) ReadAt(b []byte, _ int64) (int, error) {
	clear(b)
	return len(b), nil
}

// hostile is a file whose header says that an entry like any other is the first and the last one.
type hostile struct{ reads *int }

func (h hostile) ReadAt(b []byte, off int64) (int, error) {
	*h.reads++
	for i := range b {
		b[i] = 0
		if (off+int64(i))%4 == 3 && (off+int64(i))%20 == 3 {
			b[i] = 1
		}
	}
	if off == 0 {
		copy(b, index.Header{IndexCount: 1000}.AppendTo(nil))
	}
	return len(b), nil
}

func TestInferShapeDoesBoundedWork(t *testing.T) {
	reads := 0
	_, ok, err := index.InferShape("f", hostile{&reads}, index.Shape{Slots: index.DefaultSlots, Entries: index.DefaultEntries}.Size())
	require.NoError(t, err)
	require.False(t, ok)
	require.Less(t, reads, 300_000)
}

func TestInferShapeGivesErrorsOfSizeAndReading(t *testing.T) {
	for _, size := range []int64{0, 39, 40, 83, 85, 86, 87, math.MaxInt32 + 1, math.MaxInt64, -1, math.MinInt64} {
		_, _, err := index.InferShape("index/f", zeros{}, size)
		requireCorrupt(t, err, "index/f", 0, "no index file has this size")
	}
	_, _, err := index.InferShape("index/f", bytes.NewReader(nil), 8440)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	failing := io.NewSectionReader(readerAt{iotest.ErrReader(errors.New("device gone"))}, 0, 1<<20)
	_, _, err = index.InferShape("index/f", failing, 8440)
	require.ErrorContains(t, err, "device gone")
}

type readerAt struct{ io.Reader }

func (r readerAt) ReadAt(b []byte, _ int64) (int, error) { return r.Read(b) }

func TestInferDirTakesTheNewestFileThatTells(t *testing.T) {
	fsys := memfs.New()
	_, ok, err := index.InferDir(fsys, "index")
	require.NoError(t, err)
	require.False(t, ok)

	write(t, fsys, "20240101000000000", filledFile(t, index.Shape{Slots: 100, Entries: 400}, nil, 0, 50))
	write(t, fsys, "20240102000000000", make([]byte, 8440))
	write(t, fsys, "20240103000000000", make([]byte, 41))
	write(t, fsys, "20240104000000000", nil)
	write(t, fsys, "foreign", make([]byte, 3))
	s, ok, err := index.InferDir(fsys, "index")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, index.Shape{Slots: 100, Entries: 400}, s)

	require.NoError(t, fsys.Remove("index/20240101000000000"))
	_, ok, err = index.InferDir(fsys, "index")
	require.False(t, ok)
	requireCorrupt(t, err, "index/20240103000000000", 0, "41 bytes")
}
