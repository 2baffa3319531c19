package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/golden"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// runningNamesrv is the verb, running in this process.
type runningNamesrv struct {
	namesrv, http string // where it listens
	status        chan int
	log           *guarded
}

// guarded is a buffer for many goroutines.
type guarded struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (g *guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.Write(p)
}

func (g *guarded) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.String()
}

func startNamesrv(t *testing.T, args ...string) *runningNamesrv {
	t.Helper()
	r, w := io.Pipe()
	n := &runningNamesrv{status: make(chan int, 1), log: &guarded{}}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		n.status <- run(ctx, append([]string{"namesrv", "--port", "0", "--http", ":0"}, args...), w, n.log)
		_ = w.Close()
	}()
	lines := bufio.NewScanner(r)
	for _, to := range []*string{&n.namesrv, &n.http} {
		require.True(t, lines.Scan(), n.log.String())
		_, *to, _ = strings.Cut(lines.Text(), " on ")
		require.True(t, strings.HasPrefix(*to, "127.0.0.1:"), lines.Text()) // R-F-23
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return n
}

func (n *runningNamesrv) get(t *testing.T, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.http+path, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	http.DefaultClient.CloseIdleConnections()
	return string(b)
}

func TestNamesrvServesAndStopsOnSIGTERM(t *testing.T) { // R-C-08, R-C-12, R-C-13, R-G-05, R-G-06, R-G-10
	home := golden.TempDir(t)
	file := filepath.Join(home, "namesrv.properties")
	require.NoError(t, os.WriteFile(file, []byte("rocketmqHome="+home+"\norderMessageEnable=false\nserverWorkerThreads=8\n"), 0o600))
	n := startNamesrv(t, "-c", file, "--set", "orderMessageEnable=true")
	c, err := remoting.NewClient(nil)
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	resp, err := c.Call(ctx, n.namesrv, remoting.NewRequest(remoting.PutKVConfig,
		remoting.String("namespace", "ns"), remoting.String("key", "k"), remoting.String("value", "v")))
	require.NoError(t, err)
	require.Equal(t, remoting.Success, resp.Code)
	require.FileExists(t, filepath.Join(home, "namesrv", "kvConfig.json"))
	resp, err = c.Call(ctx, n.namesrv, remoting.NewRequest(remoting.GetNameServerConfig))
	require.NoError(t, err)
	require.Contains(t, string(resp.Body), "orderMessageEnable=true\n") // the flag is later than the file
	_, err = c.Call(ctx, n.namesrv, remoting.NewRequest(4711))
	require.NoError(t, err)

	require.Equal(t, "ok\n", n.get(t, "/healthz"))
	require.Equal(t, "ok\n", n.get(t, "/readyz"))
	metrics := n.get(t, "/metrics")
	require.Contains(t, metrics, "\nrocketstore_namesrv_connections 1\n")
	require.Contains(t, metrics, "\nrocketstore_namesrv_requests_total{code=\"-1\"} 1\n")
	require.Contains(t, metrics, "\ngo_goroutines ")

	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	require.NoError(t, self.Signal(syscall.SIGTERM))
	require.Equal(t, statusFine, <-n.status, n.log.String())
	require.Contains(t, n.log.String(), "property without a meaning here")
	require.Contains(t, n.log.String(), "serverWorkerThreads")
	_, err = c.Call(ctx, n.namesrv, remoting.NewRequest(remoting.GetClusterInfo))
	require.Error(t, err)
}

func TestNamesrvHomeComesFromTheEnvironment(t *testing.T) { // R-C-06, R-G-03
	t.Setenv("ROCKETMQ_HOME", "/opt/from-env")
	for want, args := range map[string][]string{"/opt/from-env": nil, "/opt/from-flag": {"--home", "/opt/from-flag"}} {
		var out, errOut bytes.Buffer
		require.Equal(t, statusFine, run(t.Context(), append([]string{"namesrv", "-p"}, args...), &out, &errOut), errOut.String())
		require.Contains(t, out.String(), "rocketmqHome="+want+"\n")
	}
}
