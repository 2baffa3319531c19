//go:build interop

package interop_test

import (
	"context"
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
	"github.com/rocketstore/rocketstore/internal/remoting"
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
	// A producer makes a topic where it sends to first, and may come to know that broker only: so each gets a message by hand.
	for _, addr := range []string{b.broker.Addr(), "127.0.0.1:10911"} {
		makeTopic(t, addr, topic)
	}
	for _, addr := range addrs {
		asked.addr = addr
		eventually(t, patience, other, "the topic on both brokers at "+addr, func() bool { return len(asked.brokers(t, topic)) == 2 })
	}
	client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	client.do(t, "producer", both, "PG")
	client.do(t, "send", "sync", topic, "both-", "64", "0")
	require.Equal(t, int64(1+32), b.broker.Stats().Sent) // the producer takes all queues in turn; the rest is the other one's
	client.do(t, "push", "c1", both, "CGBOTH", topic, "TagA,TagB", "cluster", "first")
	bodies := map[string]bool{}
	eventually(t, patience, client, "all of both", func() bool {
		for _, r := range parseReceived(t, client.do(t, "seen", "c1")) {
			bodies[r.body] = true
		}
		return len(bodies) == 64
	})
	b.stop(t)
	for _, addr := range addrs { // it said goodbye to both
		asked.addr = addr
		eventually(t, patience, other, "one broker at "+addr, func() bool { return len(asked.brokers(t, topic)) == 1 })
	}
	client.do(t, "send", "sync", topic, "alone-", "8", "0")
	proved(t, "4.9.7", mixed, "send sync", "push with tags")
}

// makeTopic sends one message without a tag to a broker, which makes the topic there with four queues.
func makeTopic(t *testing.T, addr, topic string) {
	t.Helper()
	c, err := remoting.NewClient(nil)
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req := remoting.NewRequest(remoting.SendMessageV2)
	for _, f := range [][2]string{{"a", "PG"}, {"b", topic}, {"c", "TBW102"}, {"d", "4"}, {"e", "0"}, {"f", "0"}, {"g", "1"}, {"h", "0"}, {"i", ""}} {
		req.Fields = append(req.Fields, remoting.String(f[0], f[1]))
	}
	req.Body = []byte("made")
	resp, err := c.Call(ctx, addr, req)
	require.NoError(t, err)
	require.Equal(t, remoting.Success, resp.Code, resp.Remark)
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
	proved(t, "4.9.7", ours49, compressions)
}
