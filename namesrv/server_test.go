package namesrv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/properties"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/namesrv"
)

func TestANilServerIsAnInvalidArgument(t *testing.T) { // R-C-10
	var s *namesrv.Server
	require.ErrorIs(t, s.Serve(t.Context(), nil), namesrv.ErrInvalidArgument)
	require.ErrorIs(t, s.Shutdown(t.Context()), namesrv.ErrInvalidArgument)
}

func TestWrongOptionsAreNamedAndNothingIsLeft(t *testing.T) { // R-C-11, R-G-01
	_, err := namesrv.New(&namesrv.Options{BrokerTimeout: -1, Port: 70000})
	require.ErrorContains(t, err, "BrokerTimeout -1")
	require.ErrorContains(t, err, "70000")
	for _, tls := range []namesrv.TLS{{Mode: "sometimes"}, {Mode: "enforcing"}, {CertFile: "absent", KeyFile: "absent"}} {
		_, err = namesrv.New(&namesrv.Options{TLS: tls})
		require.Error(t, err)
	}
}

func TestStopAnswersClosesAndIsIdempotent(t *testing.T) { // R-C-12, R-C-14, R-G-09, R-G-10
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		w := newWorld(t, nil)
		require.True(t, w.server.Ready())
		p := w.peer()
		p.register(brokerA())
		silent, err := w.pipe.Dial(t.Context(), "a")
		require.NoError(t, err)
		require.NoError(t, w.server.Shutdown(t.Context()))
		require.False(t, w.server.Ready())
		_, err = silent.Read(make([]byte, 1))
		require.Error(t, err)
		require.NoError(t, w.server.Shutdown(t.Context()))
		require.ErrorIs(t, w.server.Serve(t.Context(), remoting.NewPipe()), namesrv.ErrClosed)
	})
}

func TestServeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := namesrv.New(nil)
		require.NoError(t, err)
		require.False(t, s.Ready())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		require.NoError(t, s.Serve(ctx, remoting.NewPipe()))
		require.False(t, s.Ready())
	})
}

func TestStopWithoutServe(t *testing.T) {
	s, err := namesrv.New(nil)
	require.NoError(t, err)
	require.NoError(t, s.Shutdown(t.Context()))
}

// lines is a log that may be written to by many goroutines.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestTheTablesArePrintedAtDebugLevel(t *testing.T) { // R-C-57, R-C-09
	for level, want := range map[slog.Level]bool{slog.LevelDebug: true, slog.LevelInfo: false} {
		log := &lines{}
		o := &namesrv.Options{Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level})), PrintEvery: 2 * time.Minute}
		inWorld(t, o, func(t *testing.T, w *world) {
			p, b := w.peer(), brokerA()
			b.filters = []string{"10.0.0.1:1"}
			put(p, "ns", "k", "hidden")
			for range 2 {
				p.register(b)
				time.Sleep(61 * time.Second)
			}
			synctest.Wait()
			for _, part := range []string{"topic table", "broker table", "cluster table", "live table", "filter table", "key-value table"} {
				require.Equal(t, want, strings.Contains(log.String(), part), part)
			}
			require.NotContains(t, log.String(), "hidden")
		})
	}
}

func TestPropertiesHaveTheNamesOfTheOriginal(t *testing.T) { // R-C-06, R-C-08, R-G-01, R-G-02
	o := &namesrv.Options{Port: 1, OrderMessages: true}
	unknown, err := o.SetProperties("rocketmqHome=/opt/mq\nlistenPort=9999\nbindAddress=127.0.0.2\norderMessageEnable=false\n" +
		"serverWorkerThreads=8\nserverChannelMaxIdleTimeSeconds=60\nscanNotActiveBrokerInterval=5000\ntls.server.mode=enforcing\n")
	require.NoError(t, err)
	require.Equal(t, []string{"serverWorkerThreads"}, unknown)
	require.Equal(t, &namesrv.Options{
		Home: "/opt/mq", Port: 9999, BindAddress: "127.0.0.2", Idle: time.Minute, ScanEvery: 5 * time.Second, TLS: namesrv.TLS{Mode: "enforcing"},
	}, o)
	addr, err := o.Address()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.2:9999", addr)

	text, err := (&namesrv.Options{Home: "/opt/mq"}).Properties()
	require.NoError(t, err)
	pairs, err := properties.Parse(text)
	require.NoError(t, err)
	effective := map[string]string{}
	for _, p := range pairs {
		effective[p.Name] = p.Value
	}
	require.Equal(t, map[string]string{
		"rocketmqHome": "/opt/mq", "kvConfigPath": filepath.Join("/opt/mq", "namesrv", "kvConfig.json"),
		"configStorePath": filepath.Join("/opt/mq", "namesrv", "namesrv.properties"), "productEnvName": "center", "clusterTest": "false", "bindAddress": "127.0.0.1", "listenPort": "9876",
		"orderMessageEnable": "false", "needWaitForService": "false", "waitSecondsForService": "45", "scanNotActiveBrokerInterval": "10000",
		"serverChannelMaxIdleTimeSeconds": "120", "tls.server.mode": "", "tls.server.certPath": "", "tls.server.keyPath": "", "tls.server.keyPassword": "",
		"tls.server.trustCertPath": "", "tls.server.need.client.auth": "", "brokerTimeoutMillis": "120000", "printIntervalMillis": "600000",
		"maxConnections": "10000", "frameMaxLength": "16777216",
	}, effective)
}

func TestRefusedPropertiesAreNamedWithWhatIsAllowed(t *testing.T) { // R-G-02
	for text, want := range map[string]string{
		"listenPort=70000":                  `listenPort = "70000": allowed: 0 (any) to 65535`,
		"\norderMessageEnable=yes":          `line 2: property refused: orderMessageEnable = "yes": allowed: true, false`,
		"scanNotActiveBrokerInterval=0":     `allowed: 1 to 86400000`,
		"serverChannelMaxIdleTimeSeconds=x": `allowed: 1 to 86400`,
		"maxConnections=-1":                 `allowed: 1 to`,
		"clusterTest=true":                  `clusterTest = "true": allowed: false`,
		"tls.server.keyPassword=secret":     `tls.server.keyPassword = "…": allowed: nothing`,
	} {
		_, err := new(namesrv.Options).SetProperties(text)
		require.ErrorIs(t, err, namesrv.ErrProperty)
		require.ErrorContains(t, err, want)
	}
	_, err := new(namesrv.Options).SetProperties(`a=\u12`)
	require.Error(t, err)
	o := new(namesrv.Options)
	_, err = o.SetProperties("listenPort=0")
	require.NoError(t, err)
	addr, err := o.Address()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:0", addr)
	_, err = (&namesrv.Options{Idle: -1}).Properties()
	require.Error(t, err)
}

func TestConfigurationChangesWhileRunning(t *testing.T) { // requests 318 and 319, R-G-02
	home := t.TempDir()
	stored := filepath.Join(home, "namesrv", "namesrv.properties")
	inWorld(t, &namesrv.Options{Home: home}, func(t *testing.T, w *world) {
		p := w.peer()
		change := func(text string) *remoting.Command {
			req := remoting.NewRequest(remoting.UpdateNameServerConfig)
			req.Body = []byte(text)
			return p.send(req)
		}
		p.register(brokerA())
		put(p, "ORDER_TOPIC_CONFIG", "T1", "a:4")
		require.Empty(t, w.route("T1").OrderConf)
		require.Equal(t, remoting.Success, change("orderMessageEnable=true").Code)
		require.Equal(t, "a:4", w.route("T1").OrderConf)
		current := string(p.ask(remoting.GetNameServerConfig).Body)
		require.Contains(t, current, "orderMessageEnable=true\n")
		content, err := os.ReadFile(stored)
		require.NoError(t, err)
		require.Equal(t, current, string(content))
		require.Equal(t, remoting.Success, change(current).Code) // all of it sent back changes nothing

		resp := change("orderMessageEnable=false\nlistenPort=1")
		require.Equal(t, remoting.NoPermission, resp.Code)
		require.Contains(t, resp.Remark, "listenPort")
		require.Equal(t, "a:4", w.route("T1").OrderConf) // none of them was taken
		require.Equal(t, remoting.SystemError, change("nonsense=1").Code)
		require.Equal(t, remoting.SystemError, change("orderMessageEnable=perhaps").Code)
		require.Equal(t, remoting.SystemError, change(`a=\u1`).Code)
		require.NoError(t, os.RemoveAll(filepath.Join(home, "namesrv")))
		require.NoError(t, os.WriteFile(filepath.Join(home, "namesrv"), nil, 0o600))
		require.Equal(t, remoting.SystemError, change("orderMessageEnable=false").Code) // it cannot be kept
		require.Equal(t, "a:4", w.route("T1").OrderConf)
	})
}

// ExampleServer starts a name server on a free port and asks it something.
func ExampleServer() {
	s, err := namesrv.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- s.Serve(context.Background(), l) }()

	nc, err := net.Dial("tcp", l.Addr().String())
	fmt.Println(err)
	err = errors.Join(nc.Close(), s.Shutdown(context.Background()), <-done)
	fmt.Println(err, s.Stats().Topics)
	// Output:
	// <nil>
	// <nil> 0
}

func ExampleOptions_SetProperties() {
	var o namesrv.Options
	unknown, err := o.SetProperties("listenPort=9877\nserverWorkerThreads=8\n")
	fmt.Println(o.Port, unknown, err)
	// Output: 9877 [serverWorkerThreads] <nil>
}
