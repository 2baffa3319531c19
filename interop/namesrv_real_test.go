//go:build interop

package interop_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/properties"
	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/namesrv"
)

// innerEnv marks the process that runs a test inside a network namespace.
const innerEnv = "ROCKETSTORE_INTEROP_INNER"

// inNamespace reports whether this process has a loopback of its own, which real brokers need since they bind the wildcard
// address and fixed ports. If not, it runs the calling test once more in a process that has, and takes over its result.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(innerEnv) != "" {
		return true
	}
	prefix := namespace()
	if prefix == nil {
		missing(t, "network namespaces cannot be made")
	}
	for _, tool := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing(t, tool+" is not on the path")
		}
	}
	_, err := builtJava()
	require.NoError(t, err)
	args := append(prefix, os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "20m")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), innerEnv+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("in a network namespace:\n%s", out)
	require.NoError(t, err)
	return false
}

// wireLine is a line as far as the network is concerned.
type wireLine struct {
	version, module, pkg string
	mapped               string        // 3.1 says "maped"
	report               time.Duration // between two reports of a broker
}

func wireLines() []wireLine {
	return []wireLine{
		{"3.1.4", "wire31", "com.alibaba.rocketmq", "maped", 30 * time.Second},
		{"4.9.7", "wire49", "org.apache.rocketmq", "mapped", 10 * time.Second},
		{"5.3.3", "wire53", "org.apache.rocketmq", "mapped", 10 * time.Second},
	}
}

// startJava starts a class of a line; the test's end kills it.
func (l wireLine) startJava(t *testing.T, home string, stdio bool, class string, args ...string) *javaProcess {
	t.Helper()
	dir, err := builtJava()
	require.NoError(t, err)
	classpath, err := os.ReadFile(filepath.Join(dir, l.module, "classpath"))
	require.NoError(t, err)
	for _, name := range []string{"logback_broker.xml", "logback_tools.xml", "logback_client.xml"} {
		conf := filepath.Join(home, "conf")
		require.NoError(t, os.MkdirAll(conf, 0o750))
		require.NoError(t, os.WriteFile(filepath.Join(conf, name), []byte(`<configuration><root level="OFF"/></configuration>`), 0o600))
	}
	words := []string{
		"java", "-Xmx512m", "-XX:MaxDirectMemorySize=512m", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", "-Duser.home=" + home,
		"-Drocketmq.home.dir=" + home, "-Drocketmq.client.rebalance.waitInterval=1000", "-Drocketmq.client.logRoot=" + home,
		"-Drocketmq.broker.diskSpaceWarningLevelRatio=0.98", "-Drocketmq.broker.diskSpaceCleanForciblyRatio=0.99",
	}
	for _, open := range []string{"java.base/java.nio", "java.base/sun.nio.ch", "java.base/jdk.internal.ref", "java.base/java.lang"} {
		words = append(words, "--add-opens="+open+"=ALL-UNNAMED")
	}
	for _, export := range []string{"java.base/sun.nio.ch", "java.base/jdk.internal.ref"} {
		words = append(words, "--add-exports="+export+"=ALL-UNNAMED")
	}
	words = append(words, "-cp", filepath.Join(dir, l.module, "classes")+string(os.PathListSeparator)+string(classpath), class)
	p := &javaProcess{cmd: exec.Command(words[0], append(words[1:], args...)...), log: &tail{}, gone: make(chan struct{})}
	p.cmd.Stderr, p.cmd.Stdout = p.log, p.log
	if stdio {
		p.cmd.Stdout = nil
		p.in, err = p.cmd.StdinPipe()
		require.NoError(t, err)
		out, err := p.cmd.StdoutPipe()
		require.NoError(t, err)
		p.out = bufio.NewReader(out)
	}
	require.NoError(t, p.cmd.Start())
	go func() {
		if !stdio {
			_ = p.cmd.Wait()
		} else {
			_, _ = p.cmd.Process.Wait()
		}
		close(p.gone)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.gone
	})
	return p
}

// javaProcess is a broker or a driver.
type javaProcess struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	log  *tail
	gone chan struct{}
}

// do sends a command to a WireDriver and returns the rows of its answer.
func (p *javaProcess) do(t *testing.T, words ...string) []string {
	t.Helper()
	rows, end := p.answer(t, words)
	require.Equal(t, "ok", end, "%v: %s", words, p.log)
	return rows
}

// fails gives the error of a command that must not succeed.
func (p *javaProcess) fails(t *testing.T, words ...string) string {
	t.Helper()
	_, end := p.answer(t, words)
	text, ok := strings.CutPrefix(end, "error ")
	require.True(t, ok, "%v: %s: %s", words, end, p.log)
	return text
}

func (p *javaProcess) answer(t *testing.T, words []string) (rows []string, end string) {
	t.Helper()
	watchdog := time.AfterFunc(answerTime, func() { _ = p.cmd.Process.Kill() })
	defer watchdog.Stop()
	_, err := fmt.Fprintln(p.in, strings.Join(words, " "))
	require.NoError(t, err, "%v: %s", words, p.log)
	for {
		text, err := p.out.ReadString('\n')
		require.NoError(t, err, "%v: %s", words, p.log)
		text = strings.TrimSuffix(text, "\n")
		row, ok := strings.CutPrefix(text, "| ")
		if !ok {
			return rows, text
		}
		rows = append(rows, row)
	}
}

func (p *javaProcess) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}

// startBroker starts the real broker of a line.
func (l wireLine) startBroker(t *testing.T, namesrvs string, more map[string]string) *javaProcess {
	t.Helper()
	home := t.TempDir()
	store := filepath.Join(home, "store")
	settings := map[string]string{
		"brokerClusterName": "DefaultCluster", "brokerName": "broker-a", "brokerId": "0", "brokerIP1": "127.0.0.1", "brokerIP2": "127.0.0.1",
		"listenPort": "10911", "namesrvAddr": namesrvs, "storePathRootDir": store, "storePathCommitLog": filepath.Join(store, "commitlog"),
		l.mapped + "FileSizeCommitLog": strconv.Itoa(4 << 20), l.mapped + "FileSizeConsumeQueue": "60000", "maxHashSlotNum": "1000",
		"maxIndexNum": "4000", "autoCreateTopicEnable": "true", "registerNameServerPeriod": "10000", "diskMaxUsedSpaceRatio": "95",
		"haListenPort": "10912",
	}
	maps.Copy(settings, more)
	var text []byte
	for k, v := range settings {
		text = properties.Append(text, k, v)
	}
	file := filepath.Join(home, "broker.conf")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return l.startJava(t, home, false, l.pkg+".broker.BrokerStartup", "-c", file)
}

// ours is one of our name servers, on a port of its own that outlives it.
type ours struct {
	addr string
	opts namesrv.Options

	server *namesrv.Server
	kill   context.CancelFunc
	served chan error
}

func startOurs(t *testing.T, opts namesrv.Options) *ours {
	t.Helper()
	o := &ours{addr: "127.0.0.1:0", opts: opts}
	o.start(t)
	t.Cleanup(func() { o.halt(t) })
	return o
}

func (o *ours) start(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", o.addr)
	require.NoError(t, err)
	o.addr = l.Addr().String()
	o.server, err = namesrv.New(&o.opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	o.kill, o.served = cancel, make(chan error, 1)
	go func() { o.served <- o.server.Serve(ctx, l) }()
}

// halt ends it without a goodbye to anybody.
func (o *ours) halt(t *testing.T) {
	t.Helper()
	if o.kill != nil {
		o.kill()
		require.NoError(t, <-o.served)
		o.kill = nil
	}
}

// ask sends one request on a connection of its own.
func (o *ours) ask(t *testing.T, code int32, fields ...remoting.Field) *remoting.Command {
	t.Helper()
	return ask(t, 5*time.Second, o.addr, remoting.NewRequest(code, fields...))
}

// ask sends a request to a name server or a broker, on a connection of its own.
func ask(t *testing.T, limit time.Duration, addr string, req *remoting.Command) *remoting.Command {
	t.Helper()
	c, err := remoting.NewClient(nil)
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	resp, err := c.Call(ctx, addr, req)
	require.NoError(t, err)
	return resp
}

// brokers are the addresses of the brokers that a topic's route names.
func (o *ours) brokers(t *testing.T, topic string) (addrs []string) {
	t.Helper()
	resp := o.ask(t, remoting.GetRouteByTopic, remoting.String("topic", topic))
	if resp.Code == remoting.TopicNotExist {
		return nil
	}
	require.Equal(t, remoting.Success, resp.Code, resp.Remark)
	r, err := route.ParseTopic(resp.Body)
	require.NoError(t, err)
	for _, b := range r.Brokers {
		for _, addr := range b.Addrs {
			addrs = append(addrs, addr)
		}
	}
	return addrs
}

// storedOffsets is the sum of the offsets that the broker of a topic has of a group.
func (o *ours) storedOffsets(t *testing.T, topic, group string, queues int64) (sum int64) {
	t.Helper()
	addrs := o.brokers(t, topic)
	require.Len(t, addrs, 1)
	for id := range queues {
		resp := ask(t, 5*time.Second, addrs[0], remoting.NewRequest(remoting.QueryConsumerOffset,
			remoting.String("consumerGroup", group), remoting.String("topic", topic), remoting.Int("queueId", id)))
		if resp.Code == remoting.Success {
			offset, err := strconv.ParseInt(resp.Fields.Get("offset"), 10, 64)
			require.NoError(t, err)
			sum += offset
		}
	}
	return sum
}

// eventually waits until a condition holds; broker is asked for its log if it does not.
func eventually(t *testing.T, limit time.Duration, broker *javaProcess, what string, holds func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			t.Fatalf("not within %v: %s\n%s", limit, what, broker.log)
		}
		time.Sleep(200 * time.Millisecond)
	}
	return time.Since(began)
}

// certificate makes a self-signed pair and returns its files.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return certFile, keyFile
}
