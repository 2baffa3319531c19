package redolog_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/mappedfile/memfs"
	"github.com/rocketstore/rocketstore/redolog"
)

func FuzzDecode(f *testing.F) {
	f.Add(redolog.Unit{PhysicalOffset: 1 << 40, Size: 96, TagsCode: 17}.AppendTo(nil))
	f.Add(redolog.Unit{PhysicalOffset: -1, Size: 1 << 30, TagsCode: -9}.AppendTo(nil))
	f.Add(make([]byte, 20))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if u, err := redolog.Decode(b); err == nil {
			require.Equal(t, b[:redolog.UnitSize], u.AppendTo(nil))
			require.True(t, u.PhysicalOffset >= 0 && u.Size > 0 && u.TagsCode >= -1)
		}
	})
}

func FuzzScan(f *testing.F) {
	good := unitBytes(2)
	f.Add(good, int64(len(good)), int64(0))
	f.Add(append(bytes.Clone(good), make([]byte, 30)...), int64(70), int64(40))
	f.Add(append(bytes.Clone(good), 1, 2, 3), int64(1<<40), int64(-20))
	f.Fuzz(func(t *testing.T, b []byte, size, base int64) {
		at := 0
		for e, err := range redolog.Scan("f", base, bytes.NewReader(b), size) {
			if err != nil {
				require.ErrorIs(t, err, mappedfile.ErrCorrupt)
				continue // it must be the last one, or the lines below fail
			}
			require.Equal(t, b[at:at+redolog.UnitSize], e.AppendTo(nil))
			require.Equal(t, (base+int64(at))/redolog.UnitSize, e.Index)
			at += redolog.UnitSize
		}
	})
}

// FuzzOpenSet folds any units and compares with a plain map.
func FuzzOpenSet(f *testing.F) {
	f.Add(unitBytes(9))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s redolog.OpenSet
		model := map[int64]bool{}
		for ; len(b) >= 2; b = b[2:] { // small offsets, so that they meet
			u := redolog.Unit{PhysicalOffset: int64(b[0]), Size: 1, TagsCode: int64(int8(b[1]))}
			s.Apply(u)
			if u.Prepares() {
				model[u.PhysicalOffset] = true
			} else {
				delete(model, u.TagsCode)
			}
		}
		requireOpen(t, model, &s)
	})
}

// FuzzLog opens a log over any bytes, looks at all of it and goes on writing.
func FuzzLog(f *testing.F) {
	f.Add(unitBytes(3), unitBytes(perFile))
	f.Add(unitBytes(perFile), append(unitBytes(2), 1, 2, 3))
	f.Add(bytes.Repeat([]byte{0xFF}, 200), make([]byte, 200))
	f.Add(append(make([]byte, 40), unitBytes(1)...), []byte{})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		fsys := memfs.New()
		require.NoError(t, fsys.MkdirAll(redolog.Dir, 0o750))
		for start, b := range map[int64][]byte{200: first, 400: second} {
			file, err := fsys.OpenFile(redolog.Dir+"/"+mappedfile.SegmentName(start), os.O_RDWR|os.O_CREATE, 0o640)
			require.NoError(t, err)
			_, err = file.WriteAt(b[:min(len(b), 200)], 0)
			require.NoError(t, err)
			require.NoError(t, file.Close())
		}
		log, err := redolog.Open(fsys, redolog.Dir, small())
		if err != nil {
			require.ErrorIs(t, err, mappedfile.ErrCorrupt) // a short file in the middle
			return
		}
		use(t, log)
		require.NoError(t, log.Abandon())
	})
}

// use calls everything; a recovery's calls must make the log good for writing.
func use(t *testing.T, log *redolog.Log) {
	t.Helper()
	last := int64(-1)
	for e, err := range log.Replay(0) {
		require.Greater(t, e.Index, last)
		if last = e.Index; err != nil {
			require.ErrorIs(t, err, mappedfile.ErrCorrupt)
		}
	}
	if _, _, err := log.Find(1000); err != nil {
		require.ErrorIs(t, err, mappedfile.ErrCorrupt)
	}
	_, err := log.Repair()
	require.NoError(t, err)
	end, err := log.FindEnd(true)
	require.NoError(t, err)
	require.NoError(t, log.TruncateAfter(end))
	_, err = log.DeleteBefore(1 << 62)
	require.NoError(t, err)
	_, next := log.Bounds()
	u := redolog.Unit{Size: 1}
	if last, ok := log.Last(); ok {
		u.PhysicalOffset = last.PhysicalOffset + 1
	}
	if u.PhysicalOffset >= 0 { // the last one was not the greatest number
		appended, err := log.Append(u)
		require.NoError(t, err)
		require.True(t, appended)
		end, err = log.FindEnd(true)
		require.NoError(t, err)
		require.Equal(t, next+1, end)
	}
	require.NoError(t, log.RemoveAll())
}
