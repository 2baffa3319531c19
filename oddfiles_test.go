package rocketstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// Files of queues and index whose length is not that of the others are refused by name, and nothing is changed, unless it is
// clear what they are: the last one of a queue, or an index file without a byte (R-E-008).
func TestFilesOfOddLength(t *testing.T) {
	const queue = "consumequeue/GoldenNormal/1/"
	shape := &rocketstore.Options{IndexSlots: 100, IndexEntries: 400, HoldDelayed: true}
	index := func(t *testing.T, dir string) string {
		files, err := filepath.Glob(filepath.Join(dir, "index", "*"))
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, files[0])
		require.NoError(t, err)
		return filepath.ToSlash(rel)
	}
	for _, tt := range []struct {
		name, file string // no file: an index file
		size       int64
		opens      bool
	}{
		{"middle queue file without a byte", queue + "00000000000000001000", 0, false},
		{"short middle queue file", queue + "00000000000000001000", 500, false},
		{"long middle queue file", queue + "00000000000000001000", 1020, false},
		{"last queue file without a byte", queue + "00000000000000002000", 0, true},
		{"short last queue file", queue + "00000000000000002000", 490, true},
		{"index file without a byte", "", 0, true},
		{"short index file", "", 8420, false},
		{"long index file", "", 8441, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
			want := queueModel(t, "4.9", golden.Load(t, "rocketmq-4.9.7/clean").Records())
			file := tt.file
			if file == "" {
				file = index(t, dir)
			}
			require.NoError(t, os.Truncate(filepath.Join(dir, file), tt.size))
			before := golden.Snapshot(t, dir)
			s, err := rocketstore.Open(dir, shape)
			if !tt.opens {
				require.ErrorIs(t, err, rocketstore.ErrCorrupt)
				require.ErrorContains(t, err, file)
				for name, f := range golden.Snapshot(t, dir) {
					require.True(t, name == "lock" || name == "." || f == before[name], name)
				}
				return
			}
			require.NoError(t, err)
			require.NotEmpty(t, s.Report().Warnings)
			require.Equal(t, want, readQueues(t, s))
			require.NoError(t, s.Close(t.Context()))
		})
	}
}

// An index without an entry does not show its shape, unless it has the default one: it is refused, and opened when the options
// or our note say what the shape is.
func TestIndexWithoutEntriesShowsNoShape(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	files, err := filepath.Glob(filepath.Join(dir, "index", "*"))
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, os.WriteFile(f, make([]byte, 8440), 0o600))
	}
	_, err = rocketstore.Open(dir, nil)
	require.ErrorIs(t, err, rocketstore.ErrCorrupt)
	require.ErrorContains(t, err, "8440 bytes")
	s := open(t, dir, &rocketstore.Options{IndexSlots: 100, IndexEntries: 400, HoldDelayed: true})
	for _, r := range golden.Load(t, "rocketmq-4.9.7/clean").Records() {
		for key := range message.Keys(r.Properties[message.PropertyKeys]) {
			checkKey(t, s, r.Topic, key, r.PhysicalOffset)
		}
	}
	require.NoError(t, s.Close(t.Context()))
}

// Damage of the log's very first record is damage like any other, with good records behind it, and no empty log: whoever
// starts anew would throw them away (R-E-071).
func TestDamageOfTheFirstRecordIsNoEmptyLog(t *testing.T) {
	for _, harm := range [][]byte{make([]byte, 8), []byte("whatever")} {
		dir := golden.Unpack(t, "rocketmq-4.9.7/abort")
		f, err := os.OpenFile(filepath.Join(dir, "commitlog/00000000000000000000"), os.O_RDWR, 0)
		require.NoError(t, err)
		_, err = f.WriteAt(harm, 0)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		_, err = rocketstore.Open(dir, &rocketstore.Options{Recovery: recovery.Options{StartAnew: true}})
		refused, ok := errors.AsType[*recovery.RefusedError](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, recovery.KindDamage, refused.Kind)
		require.ErrorContains(t, err, "good records")
	}
}

// A note with sizes that cannot be is as good as none.
func TestAbsurdNoteIsNotBelieved(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	for _, name := range []string{"consumequeue", "index"} {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config/rocketstore.json"), []byte(`{"queueSegmentSize":13,"indexSlots":-1,"segmentSize":-4}`), 0o600))
	s := open(t, dir, &rocketstore.Options{QueueSegmentSize: 1000, IndexSlots: 100, IndexEntries: 400, HoldDelayed: true})
	require.Equal(t, queueModel(t, "4.9", golden.Load(t, "rocketmq-4.9.7/clean").Records()), readQueues(t, s))
	require.NoError(t, s.Close(t.Context()))
}
