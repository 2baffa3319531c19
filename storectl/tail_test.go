package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/message"
)

// lines gives what is written to it, line by line.
type lines struct {
	ch   chan string
	rest []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.ch <- string(line)
		l.rest = append([]byte{}, rest...)
	}
}

func TestTailPrintsWhatComes(t *testing.T) {
	dir := filepath.Join(golden.TempDir(t), "live")
	s, err := rocketstore.Open(dir, &rocketstore.Options{SegmentSize: 4096, QueueSegmentSize: 1000, IndexSlots: 100, IndexEntries: 200})
	require.NoError(t, err)
	put := func(body string) {
		_, err := s.Put(t.Context(), &message.Message{Topic: "T", Body: []byte(body)})
		require.NoError(t, err)
	}
	put("before")
	ctx, stop := context.WithCancel(t.Context())
	out := &lines{ch: make(chan string, 100)}
	var problems bytes.Buffer
	status := make(chan int, 1)
	go func() { status <- run(ctx, []string{"tail", dir, "-f", "--json", "--body", "text"}, out, &problems) }()
	require.Contains(t, <-out.ch, `"body":"before"`)
	for range 3 {
		for range 20 { // over the end of the file
			put(strings.Repeat("x", 100))
		}
		for range 20 {
			require.Contains(t, <-out.ch, `"body":"xxxx`)
		}
	}
	stop()
	require.Equal(t, statusFine, <-status)
	require.Empty(t, problems.String())
	require.NoError(t, s.Close(t.Context()))
}
