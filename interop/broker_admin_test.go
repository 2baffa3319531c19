//go:build interop

package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/namesrv"
)

// mqadmin runs commands of the real tool.
type mqadmin struct {
	t       *testing.T
	process *javaProcess
	namesrv string
}

// run gives what a command prints.
func (a *mqadmin) run(words ...string) string {
	a.t.Helper()
	return strings.Join(a.process.do(a.t, append(append([]string{"admin"}, words...), "-n", a.namesrv)...), "\n")
}

// shows wants a command to print what a pattern describes.
func (a *mqadmin) shows(pattern string, words ...string) string {
	a.t.Helper()
	text := a.run(words...)
	require.Regexp(a.t, pattern, text, "%v", words)
	return text
}

// lists waits until clusterList shows what a pattern describes of a real broker, which refuses to tell its version until it has
// taken its first sample of rates, a second after its start.
func (a *mqadmin) lists(broker *javaProcess, pattern string) {
	a.t.Helper()
	want := regexp.MustCompile(pattern)
	eventually(a.t, patience, broker, pattern, func() bool { return want.MatchString(a.run("clusterList")) })
}

// TestMqadminWorksWithOurBroker runs the real mqadmin 4.9.7 on our broker beside a real 4.9.7 one. R-G-34, R-G-35.
func TestMqadminWorksWithOurBroker(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	const topic, group, ourAddr = "TopicTool", "CGTOOL", "127.0.0.1:10921"
	l := wireLines()[1]
	ns := startOurs(t, namesrv.Options{})
	file := filepath.Join(t.TempDir(), "broker.conf")
	b := startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10921, NameServers: []string{ns.addr}, Dir: t.TempDir(), ConfigFile: file})
	other := l.startBroker(t, ns.addr, nil)
	client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	tool := &mqadmin{t, l.startJava(t, t.TempDir(), true, "rocketstore.interop.WireDriver"), ns.addr}
	eventually(t, patience, other, "both brokers", func() bool { return len(ns.brokers(t, "TBW102")) == 2 })

	tool.shows(`(?m)^DefaultCluster +broker-ours +0 +127\.0\.0\.1:10921 +V4_9_7 +0\.00\(0,0ms\) +0\.00\(0,0ms\) +0 `, "clusterList")
	tool.lists(other, `(?m)^DefaultCluster +broker-a +0 +127\.0\.0\.1:10911 +V4_9_7`)
	tool.shows(`(?s)127\.0\.0\.1:10911 success.*127\.0\.0\.1:10921 success|127\.0\.0\.1:10921 success.*127\.0\.0\.1:10911 success`,
		"updateTopic", "-c", "DefaultCluster", "-t", topic, "-r", "4", "-w", "4")
	tool.shows(`(?m)^`+topic+`$`, "topicList")
	tool.shows(`(?s)"brokerName":"broker-a".*"brokerName":"broker-ours"`, "topicRoute", "-t", topic)
	eventually(t, patience, other, "the topic on both", func() bool { return len(ns.brokers(t, topic)) == 2 })

	client.do(t, "producer", ns.addr, "PG")
	client.do(t, "send", "sync", topic, "tool-", "16", "0")
	// Two in each queue, unless the real broker was too busy for some: the producer then sends them to ours.
	state := tool.shows(`(?m)^broker-a +3 +0 +\d+ +`, "topicStatus", "-t", topic)
	first := regexp.MustCompile(`(?m)^broker-ours +0 +0 +([1-9]\d*) +20\d\d-`).FindStringSubmatch(state)
	require.NotNil(t, first, state)
	n := first[1]
	client.do(t, "push", "c", ns.addr, group, topic, "TagA,TagB", "cluster", "first")
	require.Len(t, seen(t, client, "c", 16), 16)
	toolOnGroup(t, tool, client, topic, group, n)
	toolOnMessages(t, tool, topic)

	status := tool.shows(fmt.Sprintf(`(?m)^msgPutTotalTodayNow +: %d$`, b.broker.Stats().Sent), "brokerStatus", "-b", ourAddr)
	for _, name := range []string{"putTps", "getTransferedTps", "bootTimestamp", "earliestMessageTimeStamp", "commitLogMaxOffset", "brokerVersionDesc"} {
		require.Regexp(t, `(?m)^`+name+` +: `, status)
	}
	tool.shows(`update broker config success, `+ourAddr, "updateBrokerConfig", "-b", ourAddr, "-k", "brokerPermission", "-v", "4")
	tool.shows(`brokerPermission +=  4`, "getBrokerConfig", "-b", ourAddr)
	eventually(t, patience, other, "a drained broker", func() bool { return strings.Contains(tool.run("topicRoute", "-t", topic), `"perm":4`) })
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "brokerPermission=4\n", string(written)) // it outlives a restart
	tool.shows(`update broker config success, `+ourAddr, "updateBrokerConfig", "-b", ourAddr, "-k", "brokerPermission", "-v", "6")
	tool.shows(`(?m)^success`, "deleteExpiredCommitLog", "-b", ourAddr)

	client.do(t, "stop", "c")
	tool.run("resetOffsetByTime", "-g", group, "-t", topic, "-s", "0") // nobody is online: the tool itself stores offsets
	tool.shows(`(?m)^`+topic+` +broker-ours +0 +`+n+` +0 `, "consumerProgress", "-g", group)

	// Wiped at the name server, a broker takes no new messages; its own registrations leave that as it is.
	tool.shows(`wipe write perm of broker\[broker-ours\] in name server\[`+ns.addr+`\] OK, [1-9]`, "wipeWritePerm", "-b", "broker-ours")
	drained := func() bool {
		before := b.broker.Stats().Sent
		client.do(t, "send", "sync", topic, "drain-", "8", "0")
		return b.broker.Stats().Sent == before
	}
	eventually(t, patience, other, "no more messages", drained)
	tool.shows(`OK, [1-9]`, "addWritePerm", "-b", "broker-ours")
	eventually(t, patience, other, "messages again", func() bool { return !drained() })
	tool.shows(`delete topic \[`+topic+`\] from cluster \[DefaultCluster\] success`, "deleteTopic", "-c", "DefaultCluster", "-t", topic)
	require.Nil(t, ns.brokers(t, topic))
	require.NotRegexp(t, `(?m)^`+topic+`$`, tool.run("topicList"))
	proved(t, "4.9.7", mixed, adminTool)
}

// toolOnGroup looks at a consumer group that has read all, of the first queue of our broker n, and has it read again.
func toolOnGroup(t *testing.T, tool *mqadmin, client *javaProcess, topic, group, n string) {
	t.Helper()
	connected := tool.shows(`(?m)^\S+@c +127\.0\.0\.1:\d+ +JAVA +V4_9_7`, "consumerConnection", "-g", group)
	require.Contains(t, connected, "ConsumeType: CONSUME_PASSIVELY")
	require.Contains(t, connected, "MessageModel: CLUSTERING")
	require.Contains(t, connected, "ConsumeFromWhere: CONSUME_FROM_FIRST_OFFSET")
	require.Regexp(t, `(?m)^`+topic+` +TagA \|\| TagB$`, connected)
	eventually(t, patience, client, "all offsets", func() bool {
		return regexp.MustCompile(`(?m)^Consume Diff Total: 0$|^Diff Total: 0$`).MatchString(tool.run("consumerProgress", "-g", group))
	})
	tool.shows(`(?m)^`+topic+` +broker-ours +0 +`+n+` +`+n+` `, "consumerProgress", "-g", group)
	tool.shows(`(?m)^`+topic+` +`+group+` +broker-ours +0 +`+n+` +`+n+` +0 `, "brokerConsumeStats", "-b", "127.0.0.1:10921", "-l", "0")
	tool.shows(`(?m)^`+topic+` +`+group+` +0 +[0-9.]+ +[0-9.]+ +16 +16$`, "statsAll", "-t", topic)
	tool.shows(`(?m)^`+group+` +1 +V4_9_7 +PUSH +CLUSTERING`, "consumerProgress")
	reset := tool.shows(`(?s)broker-a +0 +0.*`, "resetOffsetByTime", "-g", group, "-t", topic, "-s", "0")
	require.Regexp(t, `(?m)^broker-ours +0 +0`, reset)
	// The real client takes ten seconds for a reset, and one that meets another's, for the other broker, may be lost.
	asked := time.Now()
	eventually(t, patience, client, "all messages again", func() bool {
		if time.Since(asked) > 30*time.Second {
			tool.run("resetOffsetByTime", "-g", group, "-t", topic, "-s", "0")
			asked = time.Now()
		}
		return len(parseReceived(t, client.do(t, "seen", "c"))) >= 32
	})
}

// toolOnMessages finds one message of our broker in all ways.
func toolOnMessages(t *testing.T, tool *mqadmin, topic string) {
	t.Helper()
	printed := tool.shows(`BODY: tool-0\b`, "printMsg", "-t", topic, "-d", "true")
	for _, body := range []string{"tool-1", "tool-7", "tool-15"} {
		require.Contains(t, printed, body)
	}
	line := regexp.MustCompile(`(?m)^.*\[brokerName=broker-ours.*$`).FindString(printed)
	word := func(pattern string) string {
		found := regexp.MustCompile(pattern).FindStringSubmatch(line)
		require.NotNil(t, found, printed)
		return found[1]
	}
	id, unique, key := word(`\bmsgId=([0-9A-F]{32})`), word(`\bUNIQ_KEY=([0-9A-F]{32})`), word(`\bKEYS=(key\d+)`)
	tool.shows(unique, "queryMsgByKey", "-t", topic, "-k", key)
	tool.shows(`(?m)^Keys: +\[`+key+`\]$`, "queryMsgByUniqueKey", "-t", topic, "-i", unique)
	byID := tool.run("queryMsgById", "-i", id)
	require.Contains(t, byID, unique)
	require.Regexp(t, key+`\b`, byID)
}
