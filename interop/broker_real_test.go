//go:build interop

package interop_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/internal/properties"
	"github.com/rocketstore/rocketstore/namesrv"
)

// startRealNamesrv runs the name server of a line on a port of its own.
func (l wireLine) startRealNamesrv(t *testing.T, port int) *javaProcess {
	t.Helper()
	home := t.TempDir()
	text := properties.Append(nil, "listenPort", strconv.Itoa(port))
	text = properties.Append(text, "kvConfigPath", filepath.Join(home, "kvConfig.json"))
	file := filepath.Join(home, "namesrv.conf")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(home, "conf"), 0o750))
	quiet := []byte(`<configuration><root level="OFF"/></configuration>`)
	require.NoError(t, os.WriteFile(filepath.Join(home, "conf", "logback_namesrv.xml"), quiet, 0o600))
	return l.startJava(t, home, false, l.pkg+".namesrv.NamesrvStartup", "-c", file)
}

// TestOurBrokerStandsBesideARealOne has one topic on a real 4.9.7 broker and on ours, under a real 4.9.7 and a real 5.3.3 name
// server at once: clients use both. R-F-17, R-F-21.
func TestOurBrokerStandsBesideARealOne(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	const topic = "TopicBeside"
	l := wireLines()[1]
	var addrs []string
	for i, line := range wireLines()[1:] {
		p := line.startRealNamesrv(t, 9876+i)
		addr := "127.0.0.1:" + strconv.Itoa(9876+i)
		eventually(t, patience, p, "name server "+line.version, func() bool {
			c, err := net.DialTimeout("tcp", addr, time.Second)
			if err == nil {
				_ = c.Close()
			}
			return err == nil
		})
		addrs = append(addrs, addr)
	}
	both := strings.Join(addrs, ";")
	b := startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10921, NameServers: addrs, Dir: t.TempDir()})
	eventually(t, patience, &javaProcess{log: &tail{}}, "our registration with both", func() bool { return b.broker.Stats().Registered == 2 })
	other := l.startBroker(t, both, nil)
	asked := &ours{}
	for _, addr := range addrs {
		asked.addr = addr
		eventually(t, patience, other, "both brokers at "+addr, func() bool { return len(asked.brokers(t, "TBW102")) == 2 })
	}
	client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	client.do(t, "producer", both, "PG")
	client.do(t, "send", "sync", topic, "both-", "64", "0")
	sent := b.broker.Stats().Sent
	require.Positive(t, sent)
	require.Less(t, sent, int64(64)) // the rest is the other one's
	client.do(t, "push", "c1", both, "CGBOTH", topic, "*", "cluster", "first")
	bodies := map[string]bool{}
	for _, r := range seen(t, client, "c1", 64) {
		bodies[r.body] = true
	}
	require.Len(t, bodies, 64)
	for _, addr := range addrs {
		asked.addr = addr
		require.Len(t, asked.brokers(t, topic), 2)
	}
	b.stop(t)
	for _, addr := range addrs { // it said goodbye to both
		asked.addr = addr
		require.Len(t, asked.brokers(t, topic), 1)
	}
	client.do(t, "send", "sync", topic, "alone-", "8", "0")
}

// TestCompressedBodiesPassThrough has the real 4.9.7 client compress in each way that it has; the broker does not look into it.
func TestCompressedBodiesPassThrough(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	l := wireLines()[1]
	ns := startOurs(t, namesrv.Options{})
	b := startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir()})
	for i, kind := range []string{"ZLIB", "LZ4", "ZSTD"} {
		t.Setenv("JAVA_TOOL_OPTIONS", "-Drocketmq.message.compressType="+kind)
		client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
		client.do(t, "producer", ns.addr, "PG"+kind)
		topic := "Topic" + kind
		client.do(t, "send", "sync", topic, "big-", "8", "20000")
		require.Less(t, b.broker.Stats().SentBytes, int64((i+1)*8*20000/4))
		client.do(t, "push", "c", ns.addr, "CG"+kind, topic, "*", "cluster", "first")
		requireSent(t, byQueue(seen(t, client, "c", 8)), "big-", 8, 20000, "*")
	}
}
