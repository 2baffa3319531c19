package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

func TestTheCollectorIsLeftToWhoSetIt(t *testing.T) {
	set := map[string]string{}
	getenv := func(name string) string { return set[name] }
	require.Len(t, headroom(getenv), 32<<20)
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		set = map[string]string{name: "200"}
		require.Nil(t, headroom(getenv))
	}
}

func TestBrokerServesAndStopsOnSIGTERM(t *testing.T) { // R-F-04, R-F-05, R-F-23, R-G-05, R-G-06, R-G-10
	names := startNamesrv(t)
	dir := filepath.Join(golden.TempDir(t), "store")
	file := filepath.Join(golden.TempDir(t), "broker.conf")
	require.NoError(t, os.WriteFile(file, []byte("brokerName=b\nmappedFileSizeCommitLog=1048576\nmaxHashSlotNum=100\nmaxIndexNum=400\n"), 0o600))
	r, w := io.Pipe()
	log, status := &guarded{}, make(chan int, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		status <- run(ctx, []string{"broker", "-c", file, "--store", dir, "--port", "0", "--http", ":0", "-n", names.namesrv}, w, log)
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	addrs := make([]string, 2)
	for i := range addrs {
		require.True(t, lines.Scan(), log.String())
		_, addrs[i], _ = strings.Cut(lines.Text(), " on ")
		require.True(t, strings.HasPrefix(addrs[i], "127.0.0.1:"), lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	c, err := remoting.NewClient(nil)
	require.NoError(t, err)
	defer c.Close()
	req := remoting.NewRequest(remoting.SendMessageV2)
	for _, f := range [][2]string{{"a", "PG"}, {"b", "T"}, {"c", "TBW102"}, {"d", "4"}, {"e", "0"}, {"f", "0"}, {"g", "1"}, {"h", "0"}} {
		req.Fields = append(req.Fields, remoting.String(f[0], f[1]))
	}
	req.Body = []byte("hello")
	resp, err := c.Call(ctx, addrs[0], req)
	require.NoError(t, err)
	require.Equal(t, remoting.Success, resp.Code, resp.Remark)
	resp, err = c.Call(ctx, names.namesrv, remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", "T")))
	require.NoError(t, err)
	require.Contains(t, string(resp.Body), addrs[0])

	resp, err = c.Call(ctx, addrs[0], remoting.NewRequest(remoting.UpdateConsumerOffset, remoting.String("consumerGroup", "CG"), remoting.String("topic", "T"),
		remoting.Int("queueId", 0), remoting.Int("commitOffset", 0)))
	require.NoError(t, err)
	require.Equal(t, remoting.Success, resp.Code, resp.Remark)

	http := figuresOf{t, addrs[1]}
	require.Equal(t, "ok\n", http.get("/healthz"))
	require.Equal(t, "ok\n", http.get("/readyz"))
	metrics := http.get("/metrics")
	require.Contains(t, metrics, "\nrocketstore_broker_consumer_lag_messages{group=\"CG\",topic=\"T\"} 1\n")
	require.Contains(t, metrics, "\nrocketstore_broker_consumer_oldest_seconds{group=\"CG\",topic=\"T\"} ")
	require.Contains(t, metrics, "\nrocketstore_broker_messages_sent_total 1\n")
	require.Contains(t, metrics, "\nrocketstore_broker_put_seconds_count 1\n")
	require.Contains(t, metrics, "\nrocketstore_broker_put_seconds_bucket{le=\"67.108864\"} 1\n")
	require.Contains(t, metrics, "\ngo_gc_duration_seconds_count ")
	require.Contains(t, metrics, "\nrocketstore_broker_requests_total{code=\"310\"} 1\n")
	require.Contains(t, metrics, "\nrocketstore_broker_name_servers_registered 1\n")

	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(syscall.SIGTERM)) // both stop
	require.Equal(t, statusFine, <-status, log.String())
	require.Equal(t, statusFine, <-names.status, names.log.String())
	require.NoFileExists(t, filepath.Join(dir, "abort"))
	require.FileExists(t, filepath.Join(dir, "config", "topics.json"))
}

// figuresOf reads what is served about a server.
type figuresOf struct {
	t    *testing.T
	addr string
}

func (f figuresOf) get(path string) string {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://"+f.addr+path, nil)
	require.NoError(f.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(f.t, err)
	defer resp.Body.Close()
	require.Equal(f.t, http.StatusOK, resp.StatusCode)
	b, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	http.DefaultClient.CloseIdleConnections()
	return string(b)
}
