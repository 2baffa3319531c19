package inspect_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// reopened is what expected.json says of a store that the real program opened and stopped again.
type reopened struct {
	AfterStart struct {
		Queues []struct {
			Topic   string
			QueueID int32 `json:"queueId"`
			Entries [][]any
		}
	}
	AfterShutdown struct {
		Files []struct{ Path string }
	}
}

// TestStoresThatTheRealProgramRecoveredAreListed looks at the stores as recovery by the real program left them: rebuilt
// queues with pre-blank fillers, cut logs whose tail is still there, index files made anew.
func TestStoresThatTheRealProgramRecoveredAreListed(t *testing.T) {
	t.Parallel()
	for _, name := range golden.Names("4.9.7", "5.3.3") {
		base := filepath.Base(name)
		if !strings.HasPrefix(base, "abort") && !strings.HasPrefix(base, "missing") || base == "abort-short" {
			continue // never reopened, or refused
		}
		t.Run(name, func(t *testing.T) {
			var want reopened
			require.NoError(t, json.Unmarshal(golden.Load(t, name).Raw("opened"), &want))
			dir := golden.Unpack(t, name)
			overlay(t, dir, golden.Unpack(t, name+".reopened"), &want)

			got := make(map[string]map[int64]inspect.QueueUnit)
			c := &collector{}
			d := open(t, dir)
			for u, err := range d.Queues(t.Context(), inspect.QueueFilter{}, c.add) {
				require.NoError(t, err)
				if got[u.Topic] == nil {
					got[u.Topic] = make(map[int64]inspect.QueueUnit)
				}
				got[u.Topic][int64(u.QueueID)<<40|u.Index] = u
			}
			require.NotEmpty(t, want.AfterStart.Queues)
			for _, q := range want.AfterStart.Queues {
				for _, e := range q.Entries {
					u := got[q.Topic][int64(q.QueueID)<<40|int64(e[0].(float64))]
					want := []any{int64(e[1].(float64)), int32(e[2].(float64))}
					require.Equal(t, want, []any{u.PhysicalOffset, u.Size}, "%s/%d %v", q.Topic, q.QueueID, e[0])
				}
			}
			require.Empty(t, c.all)
			id, err := d.Identify(t.Context())
			require.NoError(t, err)
			require.True(t, id.Clean)
		})
	}
}

// overlay makes dir what the real program left: changed files replaced, files that it removed gone.
func overlay(t *testing.T, dir, changed string, want *reopened) {
	t.Helper()
	if len(want.AfterShutdown.Files) == 0 {
		return
	}
	keep := make(map[string]bool)
	for _, f := range want.AfterShutdown.Files {
		keep[f.Path] = true
	}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(dir, path)
		if err != nil || relErr != nil || e.IsDir() || keep[filepath.ToSlash(name)] {
			return err
		}
		return os.Remove(path)
	}))
	if _, err := os.Stat(changed); err != nil {
		return // nothing in it: nothing changed
	}
	require.NoError(t, filepath.WalkDir(changed, func(path string, e fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(changed, path)
		if err != nil || relErr != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if e.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	}))
}
