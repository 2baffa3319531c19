package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/bench"
	"github.com/rocketstore/rocketstore/internal/golden"
)

// The matrix is run in a directory, which is left as it was; figures, advice and a page come out (R-E-086, R-E-087, R-E-090).
func TestBenchMeasuresAndAdvises(t *testing.T) {
	dir, page := golden.TempDir(t), filepath.Join(golden.TempDir(t), "report.html")
	var out, errOut bytes.Buffer
	args := []string{"bench", dir, "--each", "1us", "--segment-size", "1048576", "--pages", "1,2", "--html", page}
	require.Equal(t, statusFine, run(t.Context(), append(args, "--json"), &out, &errOut), errOut.String())
	require.Empty(t, errOut.String())
	results, advice := 0, 0
	for line := range strings.Lines(out.String()) {
		var row struct {
			Host   *bench.Host
			Result *bench.Result
			Advice *bench.Advice
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row), line)
		switch {
		case row.Result != nil:
			results++
			require.Positive(t, row.Result.Ops)
		case row.Advice != nil:
			advice++
			require.NotEmpty(t, row.Advice.Value)
			require.NotEmpty(t, row.Advice.Why)
		default:
			require.NotEmpty(t, row.Host.Kernel)
		}
	}
	require.Equal(t, len(bench.Cases(&bench.Options{Pages: []int{1, 2}})), results)
	require.Equal(t, 5, advice)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "<svg")
	require.NotContains(t, string(html), "<script")
	require.NotContains(t, string(html), "http")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestBenchRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"bench"},
		{"bench", filepath.Join(golden.TempDir(t), "nowhere")},
		{"bench", golden.TempDir(t), "--each", "0s"},
		{"bench", golden.TempDir(t), "--segment-size", "4096"},
		{"bench", golden.TempDir(t), "--pages", "0"},
	} {
		var out, errOut bytes.Buffer
		require.Equal(t, statusTrouble, run(t.Context(), args, &out, &errOut), args)
		require.NotEmpty(t, errOut.String())
	}
}
