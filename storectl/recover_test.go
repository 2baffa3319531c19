package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
)

// A file that fits no size is a refusal with the file's name, not trouble, and nothing is changed (R-E-008).
func TestRecoverRefusesAFileOfNoSize(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	files, err := filepath.Glob(filepath.Join(dir, "index", "*"))
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, os.Truncate(f, 1383))
	}
	for _, verb := range []string{"plan", "recover"} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, statusFindings, run(t.Context(), []string{verb, "--json", dir}, &stdout, &stderr), stderr.String())
		var out struct {
			Open  string
			Error struct{ File, Text string }
		}
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &out))
		require.Equal(t, "refuse", out.Open)
		require.Equal(t, "index", path.Dir(out.Error.File))
		require.Contains(t, out.Error.Text, "1383")
		require.Empty(t, stderr.String())
	}
}
