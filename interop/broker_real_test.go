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

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	goproducer "github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
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
	client := besideOnBoth(t, l, b, addrs, topic)
	if everything() {
		for _, l := range []wireLine{wireLines()[0], wireLines()[2]} {
			besideOnBoth(t, l, b, addrs, topic+l.module)
		}
	}
	goBesideOnBoth(t, b, addrs, topic+"Go")
	b.stop(t)
	for _, addr := range addrs { // it said goodbye to both
		asked.addr = addr
		eventually(t, patience, other, "one broker at "+addr, func() bool { return len(asked.brokers(t, topic)) == 1 })
	}
	client.do(t, "send", "sync", topic, "alone-", "8", "0")
}

// onBothBrokers makes a topic on the real broker and on ours. A producer makes one where it sends to first, and may come to know that
// broker only: so each gets a message by hand.
func onBothBrokers(t *testing.T, b *ourBroker, addrs []string, topic string) (sent int64) {
	t.Helper()
	for _, addr := range []string{b.broker.Addr(), "127.0.0.1:10911"} {
		makeTopic(t, addr, topic)
	}
	for _, addr := range addrs {
		asked := &ours{addr: addr}
		eventually(t, patience, &javaProcess{log: &tail{}}, "the topic on both brokers at "+addr, func() bool { return len(asked.brokers(t, topic)) == 2 })
	}
	return b.broker.Stats().Sent
}

// besideOnBoth has the client of a line send to both brokers and read from both.
func besideOnBoth(t *testing.T, l wireLine, b *ourBroker, addrs []string, topic string) *javaProcess {
	t.Helper()
	before := onBothBrokers(t, b, addrs, topic)
	both := strings.Join(addrs, ";")
	client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	client.do(t, "producer", both, "PG")
	client.do(t, "send", "sync", topic, "both-", "64", "0")
	shared(t, b.broker.Stats().Sent-before)
	client.do(t, "push", "c1", both, "CGBOTH"+l.module, topic, "TagA,TagB", "cluster", "first")
	bodies := map[string]bool{}
	eventually(t, patience, client, "all of both", func() bool {
		for _, r := range parseReceived(t, client.do(t, "seen", "c1")) {
			bodies[r.body] = true
		}
		return len(bodies) == 64
	})
	proved(t, l.version, mixed, "send sync", "push with tags")
	return client
}

// shared wants both brokers to have a good part of 64 messages, of which ours got so many. The producer takes all queues in turn,
// but goes on at the next broker when one is busy.
func shared(t *testing.T, ours int64) {
	t.Helper()
	require.InDelta(t, 32, ours, 24)
}

// goBesideOnBoth is the same with the Go client.
func goBesideOnBoth(t *testing.T, b *ourBroker, addrs []string, topic string) {
	t.Helper()
	rlog.SetLogLevel("fatal")
	before := onBothBrokers(t, b, addrs, topic)
	p, err := rocketmq.NewProducer(goproducer.WithNameServer(primitive.NamesrvAddr(addrs)), goproducer.WithGroupName("PG_BOTH"), goproducer.WithInstanceName("both"))
	require.NoError(t, err)
	require.NoError(t, p.Start())
	var want []string
	for i := range 64 {
		m := goMessage(topic, "both-", i, 0)
		m.WithProperty("n", "v"+strconv.Itoa(i))
		_, err := p.SendSync(t.Context(), m)
		require.NoError(t, err)
		want = append(want, goRow("both-", i))
	}
	require.NoError(t, p.Shutdown())
	shared(t, b.broker.Stats().Sent-before)
	seen, c := startGoConsumer(t, "both", strings.Join(addrs, ";"), "CGBOTHGO", topic, "TagA||TagB")
	eventually(t, patience, &javaProcess{log: &tail{}}, "all of both", func() bool { return len(seen.all()) >= len(want) })
	require.ElementsMatch(t, want, seen.all())
	require.NoError(t, c.Shutdown())
	proved(t, goClient, mixed, "send sync", "push with tags")
}

// makeTopic sends one message without a tag to a broker, which makes the topic there with four queues.
func makeTopic(t *testing.T, addr, topic string) {
	t.Helper()
	req := remoting.NewRequest(remoting.SendMessageV2)
	for _, f := range [][2]string{{"a", "PG"}, {"b", topic}, {"c", "TBW102"}, {"d", "4"}, {"e", "0"}, {"f", "0"}, {"g", "1"}, {"h", "0"}, {"i", ""}} {
		req.Fields = append(req.Fields, remoting.String(f[0], f[1]))
	}
	req.Body = []byte("made")
	resp := ask(t, 10*time.Second, addr, req)
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
