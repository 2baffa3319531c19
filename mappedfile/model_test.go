package mappedfile_test

import (
	"bytes"
	"path"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// model is a queue as a slice of bytes.
type model struct {
	t     *rapid.T
	fsys  *memfs.FS
	o     mappedfile.Options
	q     *mappedfile.Queue
	b     []byte // from offset 0 on
	start int64
}

func (m *model) open() {
	q, err := mappedfile.Open(m.fsys, "log", &m.o)
	require.NoError(m.t, err)
	require.Empty(m.t, q.Notices())
	if len(q.Segments()) > 0 {
		require.NoError(m.t, q.SetEnd(int64(len(m.b))))
	} else if len(m.b) > 0 {
		require.NoError(m.t, q.Begin(int64(len(m.b))))
	}
	m.q = q
}

func (m *model) bytes(most int64, label string) []byte {
	return rapid.SliceOfN(rapid.Byte(), 1, int(min(most, 3000))).Draw(m.t, label)
}

func (m *model) append(*rapid.T) {
	b := m.bytes(m.o.SegmentSize, "bytes")
	off, err := m.q.Append(b)
	if left := m.o.SegmentSize - int64(len(m.b))%m.o.SegmentSize; int64(len(b)) > left {
		require.ErrorIs(m.t, err, mappedfile.ErrSegmentFull)
		return
	}
	require.NoError(m.t, err)
	require.Equal(m.t, int64(len(m.b)), off)
	m.b = append(m.b, b...)
}

func (m *model) fill(t *rapid.T) {
	left := m.q.Remaining()
	if left == m.o.SegmentSize || left < 5 {
		t.Skip("nothing to fill") // rapid: choose another operation
	}
	require.NoError(t, m.q.Fill([]byte("blank")))
	m.b = append(append(m.b, "blank"...), make([]byte, left-5)...)
}

func (m *model) overwrite(t *rapid.T) {
	if m.start >= int64(len(m.b)) {
		t.Skip("empty")
	}
	off := rapid.Int64Range(m.start, int64(len(m.b))-1).Draw(t, "off")
	b := m.bytes(min(int64(len(m.b))-off, m.o.SegmentSize-off%m.o.SegmentSize), "bytes")
	require.NoError(t, m.q.WriteAt(b, off))
	copy(m.b[off:], b)
}

func (m *model) truncate(t *rapid.T) {
	off := rapid.Int64Range(m.start, int64(len(m.b))).Draw(t, "off")
	require.NoError(t, m.q.TruncateAfter(off))
	m.b = m.b[:off]
	require.Equal(t, off, m.q.Flushed())
}

func (m *model) delete(t *rapid.T) {
	off := rapid.Int64Range(m.start, int64(len(m.b))).Draw(t, "off")
	require.NoError(t, m.q.Commit())
	names, err := m.q.DeleteBefore(off)
	require.NoError(t, err)
	for i, name := range names {
		require.Equal(t, mappedfile.SegmentName(m.start+int64(i)*m.o.SegmentSize), path.Base(name))
	}
	m.start += int64(len(names)) * m.o.SegmentSize
	require.True(t, m.start <= off || len(names) == 0)
}

func (m *model) sync(t *rapid.T) {
	require.NoError(t, m.q.Sync(rapid.IntRange(0, 2).Draw(t, "pages")))
}

func (m *model) reopen(t *rapid.T) {
	require.NoError(t, m.q.Close())
	m.open()
}

// check compares everything that can be seen.
func (m *model) check(t *rapid.T) {
	start, end := m.q.Bounds()
	require.Equal(t, int64(len(m.b)), m.q.Written())
	require.LessOrEqual(t, end, m.q.Written())
	require.LessOrEqual(t, m.q.Flushed(), end)
	if len(m.q.Segments()) > 0 {
		require.LessOrEqual(t, start, m.start)
		m.start = start
	}
	for off := start; off < end; {
		v, err := m.q.ViewFrom(off)
		require.NoError(t, err)
		require.True(t, bytes.Equal(m.b[off:off+int64(len(v.Bytes()))], v.Bytes()), "bytes from %d on", off)
		off += int64(len(v.Bytes()))
		v.Release()
	}
	require.Empty(t, m.fsys.Unreserved())
}

// R-E-001 to R-E-004, R-E-012: a queue behaves like a slice, in every mode.
func TestQueueIsASliceOfBytes(t *testing.T) {
	for name, o := range map[string]mappedfile.Options{
		"mapped": {SegmentSize: page, Step: page},
		"odd":    {SegmentSize: 1000, Ahead: true, Populate: 100},
		"pwrite": {SegmentSize: 2 * page, Mode: mappedfile.Pwrite, Reserve: mappedfile.ReserveWhole, Budget: mappedfile.NewBudget(1)},
		"zeros": {
			SegmentSize: 2 * page, Mode: mappedfile.Pwrite, Reserve: mappedfile.ReserveWhole, Ahead: true, ZeroAhead: 4 * page,
		},
		"staged": {SegmentSize: page, Mode: mappedfile.Staged, StageSize: 777},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := &model{t: t, fsys: memfs.New(), o: o}
				m.open()
				defer func() { require.NoError(t, m.q.Abandon()) }()
				t.Repeat(map[string]func(*rapid.T){
					"": m.check, "append": m.append, "append again": m.append, "fill": m.fill, "overwrite": m.overwrite,
					"truncate": m.truncate, "delete": m.delete, "sync": m.sync, "reopen": m.reopen,
				})
			})
		})
	}
}
