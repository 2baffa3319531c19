//go:build interop

package interop_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/broker"
	"github.com/rocketstore/rocketstore/namesrv"
)

// TestSignedGoClientsAreServed has the real Go client sign what it asks, and one that does not. R-G-13.
func TestSignedGoClientsAreServed(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	rlog.SetLogLevel("fatal")
	const topic = "TopicSigned"
	file := filepath.Join(t.TempDir(), "plain_acl.yml")
	require.NoError(t, os.WriteFile(file, []byte("accounts:\n- accessKey: someone\n  secretKey: 12345678\n  defaultTopicPerm: DENY\n  defaultGroupPerm: SUB\n"+
		"  topicPerms:\n  - "+topic+"=PUB|SUB\n"), 0o600))
	ns := startOurs(t, namesrv.Options{})
	b := startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir(), ACL: true, ACLFile: file})
	eventually(t, patience, &javaProcess{log: &tail{}}, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
	key := primitive.Credentials{AccessKey: "someone", SecretKey: "12345678"}
	send := func(name, topic string, options ...producer.Option) error {
		p, err := rocketmq.NewProducer(append(options, producer.WithNameServer(primitive.NamesrvAddr{ns.addr}), producer.WithGroupName("PG"+name),
			producer.WithInstanceName(name), producer.WithRetry(0))...)
		require.NoError(t, err)
		require.NoError(t, p.Start())
		defer func() { require.NoError(t, p.Shutdown()) }()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := p.SendSync(ctx, goMessage(topic, "one-", 0, 0)); err != nil {
			return err
		}
		_, err = p.SendSync(ctx, goMessage(topic, "batch-", 1, 0), goMessage(topic, "batch-", 2, 0))
		return err
	}
	require.NoError(t, send("signed", topic, producer.WithCredentials(key)))
	require.ErrorContains(t, send("unsigned", topic), "no access key")
	require.ErrorContains(t, send("liar", topic, producer.WithCredentials(primitive.Credentials{AccessKey: "someone", SecretKey: "wrong"})), "does not fit")
	require.ErrorContains(t, send("other", "TopicOther", producer.WithCredentials(key)), "not permitted")
	require.Equal(t, int64(3), b.broker.Stats().Sent)
	seen, c := startGoConsumer(t, "c", ns.addr, "CG", topic, "*", consumer.WithCredentials(key))
	eventually(t, patience, &javaProcess{log: &tail{}}, "three messages", func() bool { return len(seen.all()) == 3 })
	require.NoError(t, c.Shutdown())
	require.GreaterOrEqual(t, b.broker.Stats().Denied, int64(3))
	proved(t, goClient, ours49, signing)
}

// TestJavaClientsEncrypt has the client of 4.9.7 use our name server and broker over TLS only. R-G-12, protocol.md 12.2.
func TestJavaClientsEncrypt(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	t.Setenv("JAVA_TOOL_OPTIONS", "-Dtls.enable=true")
	l := wireLines()[1]
	cert, key := certificate(t)
	ns := startOurs(t, namesrv.Options{TLS: namesrv.TLS{Mode: "permissive", CertFile: cert, KeyFile: key}}) // the broker speaks plainly to it
	b := startOurBroker(t, broker.Options{
		Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir(),
		TLS: broker.TLS{Mode: "enforcing", CertFile: cert, KeyFile: key},
	})
	eventually(t, patience, &javaProcess{log: &tail{}}, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
	client := l.startJava(t, t.TempDir(), true, "rocketstore.interop.BrokerDriver")
	client.do(t, "producer", ns.addr, "PG")
	client.do(t, "send", "sync", "TopicTLS", "tls-", "16", "0")
	client.do(t, "push", "c", ns.addr, "CG", "TopicTLS", "*", "cluster", "first")
	requireSent(t, byQueue(seen(t, client, "c", 16)), "tls-", 16, 0, "*")
	client.do(t, "stop", "c")
	require.Equal(t, int64(16), b.broker.Stats().Sent)
	proved(t, "4.9.7", ours49, encryption)
}
