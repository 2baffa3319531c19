package rocketstore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/recovery"
)

// What a rebuild makes does not depend on how much of the log the check has kept for the replay: nothing, a part of a segment,
// or all (issue 5, point 8). So whether records are decoded once or twice, queues and index are the same bytes.
func TestRebuiltFilesDoNotDependOnWhatTheCheckKept(t *testing.T) {
	dir, want := t.TempDir(), map[string][]byte(nil)
	derived := manyKinds(t, dir)
	for _, memory := range []int64{-1, 1, 300_000, 1_000_000, 0} {
		for _, name := range []string{"consumequeue", "index"} {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
		}
		s, err := rocketstore.Open(dir, &rocketstore.Options{Recovery: recovery.Options{ReplayMemory: memory}})
		require.NoError(t, err)
		require.EqualValues(t, 12_000, s.Report().Dispatched, memory)
		require.NoError(t, s.Abandon())
		got := derived()
		if want == nil {
			want = got
		}
		require.Len(t, got, len(want), memory)
		for name, b := range want {
			require.Equal(t, xxhash.Sum64(b), xxhash.Sum64(got[name]), "%s with %d bytes", name, memory)
		}
	}
	require.Greater(t, len(want), 10)
}

// manyKinds makes a store of several segments and index files: many topics and queues, delayed messages, light queues, no, one or more keys.
// It leaves it as a kill would and gives a reader of queues and index.
func manyKinds(t *testing.T, dir string) func() map[string][]byte {
	t.Helper()
	s, err := rocketstore.Open(dir, &rocketstore.Options{SegmentSize: 1 << 20, IndexSlots: 1000, IndexEntries: 4000})
	require.NoError(t, err)
	end := int64(0)
	for i := range 12_000 {
		m := &message.Message{Topic: fmt.Sprint("Topic", i%3), QueueID: int32(i % 4), Body: make([]byte, i%100)}
		switch i % 4 {
		case 0:
			m.Properties, err = message.NewProperties("KEYS", fmt.Sprintf("a%d b%d  c", i, i%7), "TAGS", fmt.Sprint("t", i%5))
		case 1:
			m.Properties, err = message.NewProperties("UNIQ_KEY", fmt.Sprint("u", i), "KEYS", "k")
		case 2:
			m.Properties, err = message.NewProperties("DELAY", "18", "TAGS", "late")
		case 3: // light queues, once at an offset that is not believed
			m.Properties, err = message.NewProperties("INNER_MULTI_DISPATCH", "%LMQ%a,%LMQ%b",
				"INNER_MULTI_QUEUE_OFFSET", fmt.Sprintf("%d,%d", i/4, max(i/4, i/6003%2<<50)))
		}
		require.NoError(t, err)
		r, err := s.Put(t.Context(), m)
		require.NoError(t, err)
		end = r.PhysicalOffset + int64(r.Size)
	}
	require.NoError(t, s.WaitDispatched(t.Context(), end))
	require.NoError(t, s.Abandon())
	return func() map[string][]byte {
		files := make(map[string][]byte)
		for _, pattern := range []string{"consumequeue/*/*/*", "index/*"} {
			names, err := filepath.Glob(filepath.Join(dir, pattern))
			require.NoError(t, err)
			for _, name := range names {
				b, err := os.ReadFile(name)
				require.NoError(t, err)
				files[name] = b
			}
		}
		return files
	}
}
