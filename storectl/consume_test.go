package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/producer"
)

// exchanged starts a name server and a broker and sends so many messages m0, m1, … to topic T. It gives the name server's address.
func exchanged(t *testing.T, n int) string {
	t.Helper()
	names := startNamesrv(t)
	o := &broker.Options{Name: "b", Port: -1, NameServers: []string{names.namesrv}, Dir: golden.TempDir(t)}
	o.Store.SegmentSize = 1 << 20
	b, err := broker.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Shutdown(context.Background())) })
	p, err := producer.New(&producer.Options{Group: "PG", NameServers: []string{names.namesrv}})
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context()))
	defer func() { require.NoError(t, p.Shutdown(context.Background())) }()
	require.Eventually(t, func() bool { return b.Stats().Registered > 0 }, 10*time.Second, 5*time.Millisecond)
	for i := range n {
		m := &message.Message{Topic: "T", Body: []byte("m" + string(rune('0'+i)))}
		require.NoError(t, m.SetTag("tag"))
		_, err := p.Send(t.Context(), m)
		require.NoError(t, err)
	}
	return names.namesrv
}

func TestConsumePrintsATopic(t *testing.T) { // R-G-28, R-G-29
	addr := exchanged(t, 6)
	status, out, log := consumeVerb(t, "-n", addr, "-t", "T", "--from", "first", "--count", "6", "--json")
	require.Equal(t, statusFine, status, log)
	var bodies []string
	for row := range strings.Lines(out) {
		var m struct{ Topic, Broker, Body string }
		require.NoError(t, json.Unmarshal([]byte(row), &m))
		require.Equal(t, "T b", m.Topic+" "+m.Broker)
		bodies = append(bodies, m.Body)
	}
	require.ElementsMatch(t, []string{"m0", "m1", "m2", "m3", "m4", "m5"}, bodies)
	require.Contains(t, log, `{"lag":0,"queues":4}`)

	status, out, log = consumeVerb(t, "-n", addr, "-t", "T", "-g", "CG", "--from", "first", "--count", "4")
	require.Equal(t, statusFine, status, log)
	require.Equal(t, 1+4, strings.Count(out, "\n"), out)
	require.Contains(t, log, "lag 2 in 4 queues\n")
	require.Regexp(t, `(?m)^T/b/[0-3] +0 2.*Z +tag +m[0-5]$`, out)
	status, out, log = consumeVerb(t, "-n", addr, "-t", "T", "-g", "CG", "--from", "first", "--count", "2")
	require.Equal(t, statusFine, status)
	require.Contains(t, log, "lag 0 in 4 queues\n", "the retry topic is not the topic")
	require.Equal(t, 1+2, strings.Count(out, "\n"), "the group goes on where it was: %s", out)
}

func TestTheLastLagIsWhatWasNotPrinted(t *testing.T) { // R-G-28
	addr := exchanged(t, 9)
	for i, args := range [][]string{{"-g", "G1"}, {"-g", "G2"}, nil, {"-g", "G4"}} {
		n := i + 1
		status, out, log := consumeVerb(t, append([]string{"-n", addr, "-t", "T", "--from", "first", "--lag-every", "0", "--count", strconv.Itoa(n)}, args...)...)
		require.Equal(t, statusFine, status, log)
		require.Equal(t, 1+n, strings.Count(out, "\n"), out)
		require.Equal(t, fmt.Sprintf("lag %d in 4 queues\n", 9-n), log)
	}
}

func TestWithoutAGroupLastIsTheEnd(t *testing.T) { // R-G-28
	addr := exchanged(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, status := &guarded{}, make(chan int, 1)
	var out bytes.Buffer
	go func() {
		status <- run(ctx, []string{"consume", "-n", addr, "-t", "T", "--lag-every", "5ms"}, &out, log)
	}()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "lag 0 in 4 queues\n") }, 30*time.Second, 5*time.Millisecond)
	cancel() // as a signal does
	require.Equal(t, statusFine, <-status, log.String())
	require.NotContains(t, out.String(), "m0")
	require.NotContains(t, log.String(), "lag 3", "nothing that was there is waited for")
}

func TestAGroupThatWaitsForItsTopicSaysSoOnce(t *testing.T) {
	addr := exchanged(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, status := &guarded{}, make(chan int, 1)
	go func() {
		status <- run(ctx, []string{"consume", "-n", addr, "-t", "Nope", "-g", "G", "--lag-every", "5ms"}, io.Discard, log)
	}()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "lag not known") }, 30*time.Second, 5*time.Millisecond)
	cancel() // as a signal does
	require.Equal(t, statusFine, <-status, log.String())
	require.LessOrEqual(t, strings.Count(log.String(), "lag not known"), 2, "once, and at the end")
	require.NotContains(t, log.String(), "lag 0")
}

func TestWhatIsSaidAgainIsSaidAtGrowingIntervals(t *testing.T) {
	var q quieted
	now := time.UnixMilli(0)
	var times []int
	for second := range 600 {
		if q.due("down", now.Add(time.Duration(second)*time.Second)) {
			times = append(times, second)
		}
	}
	require.Equal(t, []int{0, 30, 90, 210, 450}, times)
	require.True(t, q.due("another", now))
	require.False(t, q.due("another", now))
	q.forget()
	require.True(t, q.due("another", now), "after things went well")
	for i := range 1000 {
		require.True(t, q.due(strconv.Itoa(i), now))
	}
	require.LessOrEqual(t, len(q.said), maxSaid)
}

func TestConsumeStopsAtASignalAndTellsTheLag(t *testing.T) {
	addr := exchanged(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, w := io.Pipe()
	log, status := &guarded{}, make(chan int, 1)
	go func() {
		status <- run(ctx, []string{"consume", "-n", addr, "-t", "T", "-g", "CG", "--from", "first", "--lag-every", "5ms"}, w, log)
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	for range 4 {
		require.True(t, lines.Scan(), log.String())
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "lag 0 in 4 queues\n") }, 30*time.Second, 5*time.Millisecond)
	cancel() // as the signal does
	require.Equal(t, statusFine, <-status, log.String())
}

func TestConsumeSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		want string
		args []string
	}{
		{`required flag(s) "topic" not set`, nil},
		{`--from "noon"`, []string{"-t", "T", "--from", "noon"}},
		{"must not be negative", []string{"-t", "T", "--count", "-1"}},
		{"subscription expression", []string{"-t", "T", "-g", "G", "--tag", "||"}},
		{"no name server", []string{"-t", "T", "-n", "127.0.0.1:1"}},
	} {
		status, _, log := consumeVerb(t, tt.args...)
		require.Equal(t, statusTrouble, status, tt.want)
		require.Contains(t, log, tt.want)
	}
}

func consumeVerb(t *testing.T, args ...string) (status int, out, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdout bytes.Buffer
	stderr := &guarded{}
	status = run(ctx, append([]string{"consume"}, args...), &stdout, stderr)
	return status, stdout.String(), stderr.String()
}
