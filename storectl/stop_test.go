package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
)

// countdown is a context that ends when it was asked so many times whether it has: Ctrl-C at that moment.
type countdown struct {
	context.Context
	cancel context.CancelFunc

	mu   sync.Mutex
	left int
}

func newCountdown(ctx context.Context, asked int) *countdown {
	ctx, cancel := context.WithCancel(ctx)
	return &countdown{Context: ctx, cancel: cancel, left: asked}
}

// Err implements context.Context.
func (c *countdown) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// Ctrl-C ends each verb at any moment: the status says that it was not done, one line why, what was printed are whole lines, and the
// source is as it was.
func TestCtrlCEndsVerbsCleanly(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	before := golden.Snapshot(t, dir)
	input := exportOf(t, dir)
	id := "7F00000100002A9F0000000000082A6F"
	for _, args := range [][]string{
		{"check", dir},
		{"cat", dir, "--json"},
		{"export", dir},
		{"carve", filepath.Join(dir, "commitlog", "00000000000000000000"), filepath.Join(dir, "commitlog", "00000000000000262144")},
		{"import", "NEW", input, "--segment-size", "262144"},
		{"stat", dir},
		{"top", dir},
		{"diff", dir, dir},
		{"tx", dir},
		{"queues", dir},
		{"index", dir},
		{"why", dir, id},
		{"trace", dir, "none"},
		{"get", dir, "--id", "none"},
		{"tail", dir},
		{"identify", dir},
		{"plan", dir},
		{"rebuild", dir, "--to", "NEW"},
		{"snapshot", dir, "--to", "NEW"},
		{"report", dir, "-o", "NEW"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			whole := statusFine
			for _, asked := range []int{1 << 30, 0, 1, 2, 5, 20, 100} {
				args := append([]string{}, args...)
				for i := range args {
					if args[i] == "NEW" {
						args[i] = filepath.Join(golden.TempDir(t), "new")
					}
				}
				var out, problems bytes.Buffer
				status := run(newCountdown(t.Context(), asked), args, &out, &problems)
				if out.Len() > 0 {
					require.True(t, strings.HasSuffix(out.String(), "\n"))
				}
				if asked == 1<<30 {
					whole = status
				}
				if status == whole {
					require.NotContains(t, problems.String(), "stopped")
					continue // it was done before
				}
				require.Equal(t, statusTrouble, status, "%d: %s", asked, problems.String())
				require.Equal(t, 1, strings.Count(problems.String(), "stopped before the end"), "%d: %s", asked, problems.String())
				require.NotContains(t, problems.String(), "context canceled")
			}
		})
	}
	t.Cleanup(func() { require.Equal(t, before, golden.Snapshot(t, dir)) })
}

// What was stopped goes on with its cursor, and both together print what one run does.
func TestAStoppedListGoesOnFromItsCursor(t *testing.T) {
	dir := golden.Unpack(t, "rocketmq-4.9.7/clean")
	for _, verb := range []string{"cat", "export"} {
		_, whole, _ := call(t, verb, dir, "--json")
		cursor := filepath.Join(golden.TempDir(t), "cursor")
		var all bytes.Buffer
		stops := 0
		for status := statusTrouble; status != statusFine; stops++ {
			require.Less(t, stops, 100)
			var problems bytes.Buffer
			status = run(newCountdown(t.Context(), 40), []string{verb, dir, "--json", "--cursor", cursor}, &all, &problems)
			if status != statusFine {
				require.Contains(t, problems.String(), "stopped before the end; the same call goes on there ("+cursor+")")
			}
		}
		require.Greater(t, stops, 2)
		require.Equal(t, whole, all.String())
	}
}

// An import that was stopped leaves a store that is closed in order, and says what it holds.
func TestAStoppedImportLeavesASoundStore(t *testing.T) {
	dir, to := golden.Unpack(t, "rocketmq-4.9.7/clean"), filepath.Join(golden.TempDir(t), "new")
	_, out, _ := call(t, "export", dir)
	ctx, stop := context.WithCancel(t.Context())
	input := filepath.Join(golden.TempDir(t), "lines")
	require.NoError(t, os.WriteFile(input, []byte(out), 0o600))
	f, err := os.Open(input)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	w := &writing{}
	w.opts.SegmentSize = 65536
	var text, problems bytes.Buffer
	a := newApp(&text, &problems)
	err = a.newStore(ctx, to, w, &stopAfter{f, 200_000, stop})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "holds the ")
	status, verdict, errOut := call(t, "check", to)
	require.Zero(t, status, verdict+errOut)
	require.Contains(t, verdict, "stopped cleanly")
}

// stopAfter ends a context when so many bytes were read.
type stopAfter struct {
	f    *os.File
	left int
	stop context.CancelFunc
}

func (s *stopAfter) Read(b []byte) (int, error) {
	n, err := s.f.Read(b)
	if s.left -= n; s.left < 0 {
		s.stop()
	}
	return n, err
}
