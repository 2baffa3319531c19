package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
)

func TestServeAnswersUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	var stderr bytes.Buffer
	status := make(chan int, 1)
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	go func() {
		status <- run(ctx, []string{"serve", dir, "--listen", "127.0.0.1:0"}, in, &stderr)
		_ = in.Close()
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(url), nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Contains(t, string(text), "Healthy.")
	stop()
	require.Equal(t, statusFine, <-status, stderr.String())
}
