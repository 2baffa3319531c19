//go:build interop

package interop_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/namesrv"
)

// patience bounds what needs a Java program to start, on a machine that has other things to do.
const patience = 2 * time.Minute

// TestRealBrokersAndClientsUseOurNameServers runs each line's broker and client with two of our name servers: they register,
// send and consume, one server is killed and comes back, the broker stops. R-C-01 to R-C-05, R-C-22, R-C-23, R-C-54 to R-C-56.
func TestRealBrokersAndClientsUseOurNameServers(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	for _, l := range wireLines() {
		t.Run(l.version, func(t *testing.T) {
			one, two := startOurs(t, namesrv.Options{}), startOurs(t, namesrv.Options{})
			both := one.addr + ";" + two.addr
			broker := l.startBroker(t, both, nil)
			client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.WireDriver")
			for _, o := range []*ours{one, two} {
				eventually(t, patience, broker, "registration", func() bool { return len(o.brokers(t, "TBW102")) == 1 })
			}
			client.do(t, "producer", both, "PG")
			client.do(t, "send", "TopicWire", "first-", "20")
			require.Len(t, client.do(t, "consume", both, "CG1", "TopicWire", "first-", "20", "60"), 20)
			if l.version != "3.1.4" { // whose broker cannot read the language GO in a header
				useGoClient(t, both)
			}

			one.halt(t)
			client.do(t, "send", "TopicWire", "second-", "20") // R-C-56
			require.Len(t, client.do(t, "consume", both, "CG2", "TopicWire", "second-", "20", "60"), 20)
			one.start(t)
			took := eventually(t, l.report+20*time.Second, broker, "registration after a restart", func() bool { return len(one.brokers(t, "TopicWire")) == 1 })
			t.Logf("complete %v after the restart", took.Round(time.Second))
			two.halt(t)
			client.do(t, "send", "TopicWire", "third-", "20")
			require.Len(t, client.do(t, "consume", both, "CG3", "TopicWire", "third-", "20", "60"), 20)

			broker.signal(t, syscall.SIGTERM)
			eventually(t, patience, broker, "goodbye", func() bool { return one.brokers(t, "TBW102") == nil })
			stats := one.server.Stats()
			require.Equal(t, int64(1), stats.Unregistered) // it said so, before its connection was lost
			require.Zero(t, stats.Expired)
			require.Zero(t, stats.Topics)
		})
	}
}

// TestABrokerThatDiesDisappears kills a real broker, which is seen at once, and freezes one, which is seen after the
// time-out. It is a broker that encrypts, compresses its registration and uses the binary header. R-C-29, R-C-40, R-C-42, R-G-12.
func TestABrokerThatDiesDisappears(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	l := wireLines()[1]
	t.Setenv("JAVA_TOOL_OPTIONS", "-Dtls.enable=true -Drocketmq.serialize.type=ROCKETMQ")
	tls := namesrv.TLS{Mode: "permissive"}
	tls.CertFile, tls.KeyFile = certificate(t)
	o := startOurs(t, namesrv.Options{BrokerTimeout: 15 * time.Second, ScanEvery: time.Second, TLS: tls})
	encrypted := startOurs(t, namesrv.Options{TLS: namesrv.TLS{Mode: "enforcing", CertFile: tls.CertFile, KeyFile: tls.KeyFile}})
	broker := l.startBroker(t, o.addr+";"+encrypted.addr, map[string]string{"compressedRegister": "true"})
	there := func() bool { return len(o.brokers(t, "TBW102")) == 1 }
	eventually(t, patience, broker, "registration", there)
	eventually(t, patience, broker, "encrypted registration", func() bool { return encrypted.server.Stats().Topics > 5 })
	broker.signal(t, syscall.SIGSTOP)
	gone := func() bool { return !there() }
	took := eventually(t, 20*time.Second, broker, "expiry", gone)
	require.Equal(t, int64(1), o.server.Stats().Expired)
	t.Logf("frozen: gone after %v", took)
	broker.signal(t, syscall.SIGCONT)
	eventually(t, 30*time.Second, broker, "registration after the freeze", there)
	broker.signal(t, syscall.SIGKILL)
	took = eventually(t, 5*time.Second, broker, "loss", gone)
	t.Logf("killed: gone after %v", took)
	require.Equal(t, int64(1), o.server.Stats().Lost)
}

// TestMqadminWorksWithOurNameServer runs commands of the real mqadmin 4.9.7. R-C-45, R-C-51, R-C-52.
func TestMqadminWorksWithOurNameServer(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	l := wireLines()[1]
	o := startOurs(t, namesrv.Options{KVConfigPath: t.TempDir() + "/kvConfig.json"})
	broker := l.startBroker(t, o.addr, nil)
	tool := &mqadmin{t, l.startJava(t, t.TempDir(), true, "rocketstore.interop.WireDriver"), o.addr}
	eventually(t, patience, broker, "registration", func() bool { return len(o.brokers(t, "TBW102")) == 1 })
	admin := tool.run
	require.Contains(t, admin("updateTopic", "-c", "DefaultCluster", "-t", "TopicAdmin"), "success")
	tool.lists(broker, `(?m)^DefaultCluster +broker-a +0 +127\.0\.0\.1:10911 +V4_9_7 `)
	topics := admin("topicList")
	for _, topic := range []string{"TopicAdmin", "TBW102", "DefaultCluster", "broker-a"} {
		require.Regexp(t, `(?m)^`+topic+`$`, topics)
	}
	require.Contains(t, admin("topicList", "-c"), "TopicAdmin")
	shown := admin("topicRoute", "-t", "TopicAdmin")
	require.Contains(t, shown, `"brokerName":"broker-a"`)
	require.Contains(t, shown, `127.0.0.1:10911`)
	require.Contains(t, admin("topicClusterList", "-t", "TopicAdmin"), "DefaultCluster")

	require.Contains(t, admin("updateKvConfig", "-s", "NS", "-k", "key", "-v", "value"), "success")
	require.Equal(t, "value", o.ask(t, remoting.GetKVConfig, remoting.String("namespace", "NS"), remoting.String("key", "key")).Fields.Get("value"))
	require.Contains(t, admin("deleteKvConfig", "-s", "NS", "-k", "key"), "success")
	require.Equal(t, remoting.QueryNotFound, o.ask(t, remoting.GetKVConfig, remoting.String("namespace", "NS"), remoting.String("key", "key")).Code)

	wiped := admin("wipeWritePerm", "-b", "broker-a")
	require.Regexp(t, `wipe write perm of broker\[broker-a\] in name server\[`+o.addr+`\] OK, [1-9][0-9]*`, wiped)
	require.Contains(t, admin("topicRoute", "-t", "TopicAdmin"), `"perm":4`)
	require.Regexp(t, `OK, [1-9][0-9]*`, admin("addWritePerm", "-b", "broker-a"))
	require.Contains(t, admin("topicRoute", "-t", "TopicAdmin"), `"perm":6`)
	require.Contains(t, admin("getNamesrvConfig"), "orderMessageEnable")
	require.Contains(t, admin("updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "true"), "success")
	require.Contains(t, string(o.ask(t, remoting.GetNameServerConfig).Body), "orderMessageEnable=true")
	require.Contains(t, admin("deleteTopic", "-c", "DefaultCluster", "-t", "TopicAdmin"), "success")
	require.Nil(t, o.brokers(t, "TopicAdmin"))
}
