//go:build interop

package interop_test

import (
	"context"
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

// TestTheGoClientRequestsAndReplies has one Go client ask and another answer over our broker. R-G-32, protocol.md 4.7.
func TestTheGoClientRequestsAndReplies(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	rlog.SetLogLevel("fatal")
	const topic = "TopicRequest"
	ns := startOurs(t, namesrv.Options{})
	b := startOurBroker(t, broker.Options{Name: "broker-ours", Port: 10911, NameServers: []string{ns.addr}, Dir: t.TempDir()})
	nobody := &javaProcess{log: &tail{}}
	eventually(t, patience, nobody, "registration", func() bool { return len(ns.brokers(t, "TBW102")) == 1 })
	start := func(name string) rocketmq.Producer {
		p, err := rocketmq.NewProducer(producer.WithNameServer(primitive.NamesrvAddr{ns.addr}), producer.WithGroupName("PG"+name), producer.WithInstanceName(name))
		require.NoError(t, err)
		require.NoError(t, p.Start())
		t.Cleanup(func() { _ = p.Shutdown() })
		return p
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	asking, answering := start("asking"), start("answering")
	_, err := asking.SendSync(ctx, goMessage(topic, "first-", 0, 0)) // so that it knows the broker, which its next heartbeat goes to
	require.NoError(t, err)
	eventually(t, patience, nobody, "the heartbeat of who asks", func() bool { return b.broker.Stats().ProducerGroups > 0 })

	failed := make(chan error, 10)
	c, err := rocketmq.NewPushConsumer(consumer.WithNameServer(primitive.NamesrvAddr{ns.addr}), consumer.WithGroupName("CG"), consumer.WithInstance("c"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	require.NoError(t, err)
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}
	require.NoError(t, c.Subscribe(topic, selector, func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, m := range messages {
			if consumer.GetReplyToClient(m) == "" {
				continue // the first
			}
			reply, err := consumer.CreateReplyMessage(m, nil)
			if err == nil {
				reply.Body = append([]byte("answer to "), m.Body...) // which CreateReplyMessage takes for properties
				_, err = answering.SendSync(ctx, reply)
			}
			failed <- err
		}
		return consumer.ConsumeSuccess, nil
	}))
	require.NoError(t, c.Start())
	defer func() { require.NoError(t, c.Shutdown()) }()
	answer, err := asking.Request(ctx, time.Minute, primitive.NewMessage(topic, []byte("question")))
	require.NoError(t, err)
	require.Equal(t, "answer to question", string(answer.Body))
	require.NoError(t, <-failed)
	proved(t, goClient, ours49, requestReply)
}
