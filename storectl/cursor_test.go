package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
)

func TestAStoppedCheckGoesOnFromItsCursor(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	cursor := filepath.Join(golden.TempDir(t), "cursor")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var stdout, stderr bytes.Buffer
	require.Equal(t, statusTrouble, run(ctx, []string{"check", dir, "--cursor", cursor}, &stdout, &stderr))
	stdout.Reset()
	require.Equal(t, statusFine, run(t.Context(), []string{"check", dir, "--cursor", cursor}, &stdout, &stderr), stderr.String())
	require.Contains(t, stdout.String(), "377 records")
	_, err := os.Stat(cursor)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(cursor, []byte("x"), 0o600))
	require.Equal(t, statusTrouble, run(t.Context(), []string{"check", dir, "--cursor", cursor}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "no note of a check")
}
