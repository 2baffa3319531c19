package index_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/index"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
)

// markIn puts the first records of a log and gives the mark of then.
func markIn(t *testing.T, fsys mappedfile.FS, log []index.Keys) *index.Mark {
	t.Helper()
	x := open(t, fsys, crashShape, nil)
	for _, k := range log {
		require.NoError(t, x.Put(k))
	}
	m, err := x.Mark()
	require.NoError(t, err)
	require.NotNil(t, m)
	require.NoError(t, x.Close())
	return m
}

// The entries that a mark counts are what they were when the hash says so: then the file is taken up there, whatever stands in
// its slots, in its header and behind them, and holds the same bytes as one that was never interrupted.
func TestAFileIsTakenUpWhereAMarkProvesIt(t *testing.T) {
	log := randomLog(rand.New(rand.NewPCG(7, 7)), 120)
	fsys, whole := memfs.New(), memfs.New()
	m := markIn(t, fsys, log[:60])
	require.Equal(t, m, markIn(t, whole, log[:60]))
	require.NotEqual(t, m, markIn(t, fsys, log[60:100]), "it goes on with what came later")
	markIn(t, whole, log[60:])

	name := "index/" + m.File
	b := content(t, fsys)[0]
	for slot := range int64(crashShape.Slots) {
		if slot%3 == 0 {
			copy(b[index.HeaderSize+slot*index.SlotSize:], []byte{0, 0, 1, 9})
		}
	}
	b[len(b)-1] = 9 // far behind the end nothing is looked for
	require.NoError(t, fsys.WriteFile(name, b))

	x := open(t, fsys, crashShape, nil)
	p, err := x.Prove(m)
	require.NoError(t, err)
	require.True(t, p.Changed)
	require.Equal(t, b, content(t, fsys)[0], "nothing was changed yet")
	require.NoError(t, x.TakeUp(p))
	again, err := x.Mark()
	require.NoError(t, err)
	require.Equal(t, m, again)
	p, err = x.Prove(m)
	require.NoError(t, err)
	require.False(t, p.Changed)
	for _, k := range log {
		if k.PhysicalOffset >= m.Header.EndOffset {
			require.NoError(t, x.Put(k))
		}
	}
	require.NoError(t, x.Sync())
	got, want := content(t, fsys)[0], content(t, whole)[0]
	require.Equal(t, want[:len(want)-1], got[:len(got)-1])
}

// Whatever is not as the mark says proves nothing, and is no error: the file is made again.
func TestAMarkThatDoesNotFitProvesNothing(t *testing.T) {
	log := randomLog(rand.New(rand.NewPCG(8, 8)), 80)
	for name, spoil := range map[string]func(m *index.Mark, file []byte){
		"no file of that name":     func(m *index.Mark, _ []byte) { m.File = "20991231235959999" },
		"another hash":             func(m *index.Mark, _ []byte) { m.Sum++ },
		"more entries than it has": func(m *index.Mark, _ []byte) { m.Header.IndexCount++ },
		"fewer entries":            func(m *index.Mark, _ []byte) { m.Header.IndexCount-- },
		"no entries":               func(m *index.Mark, _ []byte) { m.Header.IndexCount = 1 },
		"impossible header":        func(m *index.Mark, _ []byte) { m.Header.BeginOffset = -1 },
		"another end":              func(m *index.Mark, _ []byte) { m.Header.EndOffset++ },
		"an entry changed": func(_ *index.Mark, b []byte) {
			b[index.HeaderSize+index.SlotSize*int(crashShape.Slots)+20*index.EntrySize+7] ^= 1
		},
		"an entry lost": func(_ *index.Mark, b []byte) {
			clear(b[index.HeaderSize+index.SlotSize*int(crashShape.Slots)+20*index.EntrySize:][:index.EntrySize])
		},
		"header that says less":      func(_ *index.Mark, b []byte) { b[39]-- },
		"header that cannot be true": func(_ *index.Mark, b []byte) { b[36] = 0xff },
		"no header":                  func(_ *index.Mark, b []byte) { clear(b[:index.HeaderSize]) },
	} {
		t.Run(name, func(t *testing.T) {
			fsys := memfs.New()
			m := markIn(t, fsys, log)
			b, file := content(t, fsys)[0], "index/"+m.File
			spoil(m, b)
			require.NoError(t, fsys.WriteFile(file, b))
			x := open(t, fsys, crashShape, nil)
			p, err := x.Prove(m)
			require.NoError(t, err)
			require.Nil(t, p)
		})
	}
}

// A full file has no mark, FullThrough speaks for it; nor has one without entries, or an index for reading.
func TestThereIsNoMarkOfAFullFile(t *testing.T) {
	fsys := memfs.New()
	x := open(t, fsys, tiny, nil)
	none := func(x *index.Index) {
		m, err := x.Mark()
		require.NoError(t, err)
		require.Nil(t, m)
	}
	none(x)
	put(t, x, 100, start, "a")
	m, err := x.Mark()
	require.NoError(t, err)
	require.Equal(t, int32(2), m.Header.IndexCount)
	put(t, x, 200, start, "b")
	none(x)
	put(t, x, 300, start, "") // makes the next file
	none(x)
	put(t, x, 300, start, "c")
	p, err := x.Prove(m)
	require.NoError(t, err)
	require.ErrorContains(t, x.TakeUp(p), "not the last file")
	r, err := index.Open(fsys, "index", &index.Options{Slots: tiny.Slots, Entries: tiny.Entries, ReadOnly: true})
	require.NoError(t, err)
	none(r)
	p, err = r.Prove(m)
	require.NoError(t, err)
	require.ErrorIs(t, r.TakeUp(p), mappedfile.ErrReadOnly)
	require.NoError(t, r.Close())
	require.NoError(t, x.Close())
	none(x)
}

// Taken over from a note, the state saves reading the file; of another file, or one that has grown, it is passed over.
func TestAMarkGoesOnFromOneThatIsTakenOver(t *testing.T) {
	log := randomLog(rand.New(rand.NewPCG(9, 9)), 100)
	fsys := memfs.New()
	m := markIn(t, fsys, log[:50])
	for _, from := range []*index.Mark{m, nil, {File: m.File, Header: m.Header, State: []byte("xxh")}, {File: "x", Header: m.Header, State: m.State}} {
		x := open(t, fsys, crashShape, nil)
		x.Resume(from)
		again, err := x.Mark()
		require.NoError(t, err)
		require.Equal(t, m, again)
		require.NoError(t, x.Close())
	}
	x := open(t, fsys, crashShape, nil)
	for _, k := range log[50:] {
		require.NoError(t, x.Put(k))
	}
	x.Resume(m) // too late
	grown, err := x.Mark()
	require.NoError(t, err)
	require.NoError(t, x.Close())
	other := memfs.New()
	require.Equal(t, markIn(t, other, log), grown)
}
