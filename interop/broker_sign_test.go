//go:build interop

package interop_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/namesrv"
)

// signedRules permit one account one topic, with group CGSIGN, and another one all.
const signedRules = `accounts:
- accessKey: someone1
  secretKey: '12345678'
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms:
  - TopicSigned=PUB|SUB
  - TopicShut=SUB
  groupPerms:
  - CGSIGN=SUB
- accessKey: admin123
  secretKey: '87654321'
  admin: true
dataVersion:
- counter: 2
  timestamp: 1796020352750
`

// signed is our broker with access rules, and real Java clients of it.
type signed struct {
	t            *testing.T
	addr         string // of the name server
	broker       *broker.Broker
	client, tool *javaProcess
}

// key has both Java programs sign what starts from now on; "" has them not sign.
func (s *signed) key(access, secret string) {
	s.t.Helper()
	for _, p := range []*javaProcess{s.client, s.tool} {
		p.do(s.t, strings.Fields("key "+access+" "+secret)...)
	}
}

// refused wants the real client to be told of code 1 with that reason, the broker to have counted it, and nothing to be stored.
func (s *signed) refused(p *javaProcess, why string, words ...string) {
	s.t.Helper()
	before, sent := s.broker.Stats().Denied, s.broker.Stats().Sent
	err := p.fails(s.t, words...)
	require.Contains(s.t, err, "CODE: 1 ", "%v", words)
	require.Contains(s.t, err, why, "%v", words)
	require.Greater(s.t, s.broker.Stats().Denied, before, "%v", words)
	require.Equal(s.t, sent, s.broker.Stats().Sent, "%v", words)
}

// TestSignedJavaClientsAreServed has the real clients of 4.9.7 sign with their own hook (AclClientRPCHook): they send, consume and
// administer as the rules say. Unsigned, wrongly signed and not permitted requests get code 1, as from the real broker, and so do those
// that 4.9.7 forgets: 320, 325, 37 and 222. R-G-13, R-G-34, protocol.md 12.1 and 16.
func TestSignedJavaClientsAreServed(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	const topic, shut, group = "TopicSigned", "TopicShut", "CGSIGN"
	file := filepath.Join(t.TempDir(), "plain_acl.yml")
	require.NoError(t, os.WriteFile(file, []byte(signedRules), 0o600))
	ns := startOurs(t, namesrv.Options{})
	b := startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir(), ACL: true, ACLFile: file})
	eventually(t, patience, &javaProcess{log: &tail{}}, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
	l := wireLines()[1]
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, "conf"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(home, "conf", "tools.yml"), []byte("accessKey: admin123\nsecretKey: '87654321'\n"), 0o600)) // of mqadmin
	s := &signed{
		t, ns.addr, b.broker, l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver"),
		l.startJava(t, home, true, "rocketstore.interop.WireDriver"),
	}
	tool := &mqadmin{t, s.tool, ns.addr}
	for _, name := range []string{topic, shut} {
		tool.shows(`127\.0\.0\.1:10911 success`, "updateTopic", "-c", "DefaultCluster", "-t", name, "-r", "1", "-w", "1")
	}
	signedFlow(s, topic, group)
	for _, bad := range []struct{ access, secret, why string }{
		{"", "", "no access key"}, {"someone1", "87654321", "does not fit"}, {"nobody12", "12345678", "no account"},
	} {
		s.key(bad.access, bad.secret)
		s.client.do(t, "producer", ns.addr, "PGBAD")
		s.refused(s.client, bad.why, "send", "sync", topic, "bad-", "1", "0")
		s.refused(s.client, bad.why, "send", "batch", topic, "bad-", "2", "0")
		s.refused(s.client, bad.why, "reply", "DefaultCluster_REPLY_TOPIC", "c")
		s.refused(s.client, bad.why, "pull", ns.addr, group, topic, "*")
		s.refused(s.tool, bad.why, "ext", ns.addr, "resetOffsetByTimestamp", topic, group, "0", "true")
	}
	signedWithoutRights(s, topic, shut)
	proved(t, "4.9.7", ours49, signing)
}

// signedFlow is what the account may do, in every way.
func signedFlow(s *signed, topic, group string) {
	s.t.Helper()
	s.key("someone1", "12345678")
	s.client.do(s.t, "producer", s.addr, "PG")
	for _, kind := range []string{"sync", "async", "batch", "oneway"} {
		s.client.do(s.t, "send", kind, topic, kind+"-", "4", "0")
	}
	s.client.do(s.t, "transaction", s.addr, "PGTX", topic, "tx")
	s.client.do(s.t, "push", "c", s.addr, group, topic, "*", "cluster", "first")
	require.Len(s.t, seen(s.t, s.client, "c", 17), 17)
	rows := strings.Join(s.client.do(s.t, "seen", "c"), "\n")
	for _, body := range []string{"sync-3", "async-3", "batch-3", "oneway-3", "tx0"} {
		require.Contains(s.t, rows, " "+body)
	}
	// 223 goes on to the client, whose answer comes through us.
	eventually(s.t, patience, s.client, "what the consumer says", func() bool {
		return strings.Contains(strings.Join(s.tool.do(s.t, "ext", s.addr, "getConsumeStatus", topic, group, "-"), "\n"),
			"@c={MessageQueue [topic="+topic+", brokerName=broker-ours, queueId=0]=17}")
	})
	eventually(s.t, patience, s.client, "its offset", func() bool {
		at, _ := s.broker.Store().ConsumerOffset(topic, group, 0)
		return at == 17
	})
	s.tool.do(s.t, "ext", s.addr, "resetOffsetByTimestamp", topic, group, "0", "true")
	seen(s.t, s.client, "c", 34)
	s.client.do(s.t, "stop", "c")
	require.Zero(s.t, s.broker.Stats().Denied)
}

// signedWithoutRights is what the account must not do.
func signedWithoutRights(s *signed, topic, shut string) {
	s.t.Helper()
	s.key("someone1", "12345678")
	s.client.do(s.t, "producer", s.addr, "PG")
	s.refused(s.client, "not permitted", "send", "sync", shut, "no-", "1", "0")
	s.refused(s.client, "not permitted", "send", "batch", shut, "no-", "2", "0")
	s.refused(s.client, "not permitted", "reply", "DefaultCluster_REPLY_TOPIC", "c")
	s.refused(s.client, "not permitted", "pull", s.addr, "CGOTHER", topic, "*")
	s.refused(s.client, "not permitted", "transaction", s.addr, "PGTX", shut, "no")
	s.refused(s.tool, "not permitted", "ext", s.addr, "resetOffsetByTimestamp", topic, "CGOTHER", "0", "true")

	// The end of a transaction has no answer: unsigned, it leaves the half message open.
	s.client.do(s.t, "key", "someone1", "12345678", "37")
	before := s.broker.Stats()
	s.client.do(s.t, "transaction", s.addr, "PGTX2", topic, "open")
	eventually(s.t, patience, s.client, "the refusal", func() bool { return s.broker.Stats().Denied > before.Denied })
	require.Equal(s.t, before.Sent+1, s.broker.Stats().Sent)
	open := 0
	for _, err := range s.broker.Store().OpenTransactions(s.t.Context()) {
		require.NoError(s.t, err)
		open++
	}
	require.Equal(s.t, 1, open)
}
