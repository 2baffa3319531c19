package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
)

// TestOperatingDoc runs the commands that docs/operating.md shows and compares what they print. A comment before a block,
// <!-- store NAME -->, puts a fresh copy of a golden store at ./store; "echo BYTES >> FILE@OFFSET" writes bytes over a file.
// "go test ./storectl -run OperatingDoc -update" writes the output in the document anew.
func TestOperatingDoc(t *testing.T) {
	name, err := filepath.Abs(filepath.Join("..", "docs", "operating.md"))
	require.NoError(t, err)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	t.Chdir(golden.TempDir(t))
	var got []string
	lines := strings.Split(string(text), "\n")
	commands := 0
	for i := 0; i < len(lines); i++ {
		got = append(got, lines[i])
		if comment, ok := strings.CutPrefix(lines[i], "<!-- "); ok {
			kind, store, _ := strings.Cut(strings.TrimSuffix(comment, " -->"), " ")
			fresh(t, kind, store)
		}
		if lines[i] != "```console" {
			continue
		}
		for i++; lines[i] != "```"; i++ {
			command, ok := strings.CutPrefix(lines[i], "$ storectl ")
			if !ok {
				continue // printed by the one before
			}
			commands++
			got = append(got, lines[i])
			got = append(got, transcript(t, strings.Fields(command))...)
		}
		got = append(got, lines[i])
	}
	require.Greater(t, commands, 10)
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(strings.Join(got, "\n")), 0o600))
		return
	}
	require.Equal(t, lines, got)
}

// fresh puts a copy of a golden store or of a case at ./store.
func fresh(t *testing.T, kind, name string) {
	t.Helper()
	require.NoError(t, os.RemoveAll("store"))
	require.NoError(t, os.RemoveAll("new"))
	var dir string
	switch kind {
	case "store":
		dir = golden.Unpack(t, name)
	case "case":
		dir = golden.LoadCase(t, name).Store
	default:
		t.Fatalf("comment %q", kind)
	}
	require.NoError(t, os.CopyFS("store", os.DirFS(dir)))
}

// transcript is what a command prints, with the exit status when it is not 0.
func transcript(t *testing.T, args []string) []string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), args, &stdout, &stderr)
	text := strings.TrimSuffix(stderr.String()+stdout.String(), "\n")
	text = regexp.MustCompile(`looked at \S+Z`).ReplaceAllString(text, "looked at 2026-11-30T09:00:00.000Z")
	var lines []string
	if text != "" {
		lines = strings.Split(text, "\n")
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	if status != statusFine {
		lines = append(lines, fmt.Sprintf("(exit status %d)", status))
	}
	return lines
}

// Each verb that looks at a directory or mends it has its place in the document.
func TestOperatingDocNamesEveryVerb(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "operating.md"))
	require.NoError(t, err)
	for _, g := range newApp(nil, nil).groups() {
		for _, cmd := range g.verbs {
			require.Regexp(t, "`"+cmd.Name()+"[ `]", string(text), "the verb %s", cmd.Name())
		}
	}
}
