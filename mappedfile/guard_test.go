package mappedfile_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
)

func TestGuardMakesAnErrorOfACutFile(t *testing.T) {
	dir := t.TempDir()
	fsys := openDir(t, dir)
	f := create(t, fsys, "a", make([]byte, 64<<10))
	m, err := f.Map(64<<10, mappedfile.ReadOnly)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Unmap()) }()
	require.NoError(t, os.Truncate(dir+"/a", 100)) // by somebody else

	sum := 0
	err = mappedfile.Guard("a", func() error {
		for _, c := range m.Bytes() {
			sum += int(c)
		}
		return nil
	})
	require.ErrorIs(t, err, mappedfile.ErrFault)
	require.ErrorContains(t, err, "a")
	require.Error(t, mappedfile.Guard("a", func() error { copy(make([]byte, 10), m.Bytes()[40000:]); return nil }))
}

func TestGuardLetsErrorsAndOtherPanicsThrough(t *testing.T) {
	require.NoError(t, mappedfile.Guard("a", func() error { return nil }))
	mine := errors.New("mine")
	require.Equal(t, mine, mappedfile.Guard("a", func() error { return mine }))
	require.PanicsWithValue(t, "a bug", func() { _ = mappedfile.Guard("a", func() error { panic("a bug") }) })
	require.Panics(t, func() {
		_ = mappedfile.Guard("a", func() error {
			var p *int
			*p = 1
			return nil
		})
	})
	require.Panics(t, func() {
		_ = mappedfile.Guard("a", func() error { return []error{}[len(os.Args)] })
	})
}

func TestGuardDoesNotAllocate(t *testing.T) {
	b, sum := make([]byte, 100), 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := mappedfile.Guard("a", func() error {
			for _, c := range b {
				sum += int(c)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}))
}

// A queue whose file was cut short by somebody else says so and does not die.
func TestAppendIntoACutFileIsAFault(t *testing.T) {
	dir := t.TempDir()
	q, err := mappedfile.Open(openDir(t, dir), "log", &mappedfile.Options{SegmentSize: 64 << 10})
	require.NoError(t, err)
	defer q.Close()
	_, err = q.Append(make([]byte, 5000))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(dir+"/log/00000000000000000000", 0))
	_, err = q.Append([]byte("abc"))
	require.ErrorIs(t, err, mappedfile.ErrFault)
	require.ErrorContains(t, err, "log/00000000000000000000")
	require.Equal(t, int64(5000), q.Written())
	require.ErrorIs(t, q.WriteAt([]byte("abc"), 10), mappedfile.ErrFault)
}

// What interrupts an append in the middle, here a fault behind the border of a page, leaves the front unwritten.
func TestTheHeadOfAnAppendIsWrittenLast(t *testing.T) {
	dir := t.TempDir()
	q, err := mappedfile.Open(openDir(t, dir), "log", &mappedfile.Options{SegmentSize: 64 << 10, HeadLast: 8})
	require.NoError(t, err)
	defer q.Close()
	const border, before = 16 << 10, 100
	_, err = q.Append(make([]byte, border-before))
	require.NoError(t, err)
	record := bytes.Repeat([]byte("0123456789"), 25)
	name := filepath.Join(dir, "log", "00000000000000000000")
	require.NoError(t, os.Truncate(name, border))
	_, err = q.Append(record)
	require.ErrorIs(t, err, mappedfile.ErrFault)
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 8), b[border-before:][:8])

	require.NoError(t, os.Truncate(name, 64<<10))
	for _, size := range []int{len(record), 8, 7, 1} {
		off, err := q.Append(record[:size])
		require.NoError(t, err)
		b, err = os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, record[:size], b[off:off+int64(size)])
	}
}

func BenchmarkGuard(b *testing.B) {
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := mappedfile.Guard("a", func() error { n++; return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
