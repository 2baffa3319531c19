//go:build unix

package inspect_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// Opening a pipe would wait for a writer for ever.
func TestPipesAreNotOpened(t *testing.T) {
	dir := golden.TempDir(t)
	for _, name := range []string{
		"commitlog/00000000000000000000", "consumequeue/TopicA/0/00000000000000000000", "index/20240101000000000", "checkpoint",
		"config/topics.json",
	} {
		name = filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, syscall.Mkfifo(name, 0o644))
	}
	id, err := open(t, dir).Identify(t.Context())
	require.NoError(t, err)
	c := collector{id.Findings}
	require.Subset(t, c.brief(), []string{
		"foreign file|commitlog/00000000000000000000|0", "foreign file|consumequeue/TopicA/0/00000000000000000000|0",
		"foreign file|index/20240101000000000|0",
	})
	require.Equal(t, int64(0), id.CommitLog.Records)
	require.IsType(t, inspect.Sizes{}, id.Sizes)
}
