//go:build interop

package interop_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore"
)

// goTransactions are the local transactions of a Go producer: their outcomes by body, and what it was asked.
type goTransactions struct {
	outcome map[string]primitive.LocalTransactionState
	answer  primitive.LocalTransactionState

	mu    sync.Mutex
	asked []string
}

func (x *goTransactions) ExecuteLocalTransaction(m *primitive.Message) primitive.LocalTransactionState {
	return x.outcome[string(m.Body)]
}

func (x *goTransactions) CheckLocalTransaction(m *primitive.MessageExt) primitive.LocalTransactionState {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked = append(x.asked, string(m.Body))
	return x.answer
}

func (x *goTransactions) wasAsked(body string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Contains(x.asked, body)
}

func goTransactionProducer(t *testing.T, name, namesrvs, group string, x *goTransactions) rocketmq.TransactionProducer {
	t.Helper()
	p, err := rocketmq.NewTransactionProducer(x, producer.WithNameServer(primitive.NamesrvAddr{namesrvs}), producer.WithGroupName(group),
		producer.WithInstanceName(name))
	require.NoError(t, err)
	require.NoError(t, p.Start())
	return p
}

// TestTheGoClientRetriesDelaysAndTransacts has the real Go client fail until messages are dead, send with delays and in
// transactions, with both engines. R-F-12, R-F-13, R-F-15.
func TestTheGoClientRetriesDelaysAndTransacts(t *testing.T) {
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	t.Setenv("XDG_CACHE_HOME", cache)
	if !inNamespace(t) {
		return
	}
	rlog.SetLogLevel("fatal")
	for _, engine := range []rocketstore.Engine{rocketstore.HalfTopic, rocketstore.StateTable} {
		t.Run(engine.String(), func(t *testing.T) {
			ns, b := systemBroker(t, engine)
			suffix := strings.ToUpper(engine.String())
			goTransacts(t, ns, b, suffix)
			proved(t, goClient, ours49, transacting(engine))
			if engine == rocketstore.HalfTopic || everything() {
				goRetries(t, ns, b, suffix)
				proved(t, goClient, ours49, deadLetter, delays)
			}
		})
	}
}

func goTransacts(t *testing.T, ns *ours, b *ourBroker, suffix string) {
	t.Helper()
	topic, group := "TopicGoTx"+suffix, "PGGO"+suffix
	outcomes := map[string]primitive.LocalTransactionState{
		"kept": primitive.CommitMessageState, "dropped": primitive.RollbackMessageState, "asked": primitive.UnkonwnState, "left": primitive.UnkonwnState,
	}
	send := func(p rocketmq.TransactionProducer, body string) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := p.SendMessageInTransaction(ctx, primitive.NewMessage(topic, []byte(body)))
		require.NoError(t, err)
	}
	one := &goTransactions{outcome: outcomes, answer: primitive.CommitMessageState}
	p1 := goTransactionProducer(t, "p1"+suffix, ns.addr, group, one)
	for _, body := range []string{"kept", "dropped", "asked"} {
		send(p1, body)
	}
	seen, c := startGoConsumer(t, "tx"+suffix, ns.addr, "CGGO"+suffix, topic, "*")
	bodies := func() (list []string) {
		for _, row := range seen.all() {
			list = append(list, strings.Fields(row)[0])
		}
		return list
	}
	eventually(t, patience, &javaProcess{log: &tail{}}, "what was committed, also after a check", func() bool { return len(bodies()) >= 2 })
	require.ElementsMatch(t, []string{"kept", "asked"}, bodies())
	require.True(t, one.wasAsked("asked"))

	silent := &goTransactions{outcome: outcomes, answer: primitive.UnkonwnState}
	p2 := goTransactionProducer(t, "p2"+suffix, ns.addr, group, silent)
	require.NoError(t, p1.Shutdown())
	send(p2, "left")
	require.NoError(t, p2.Shutdown())
	other := &goTransactions{outcome: outcomes, answer: primitive.CommitMessageState}
	p3 := goTransactionProducer(t, "p3"+suffix, ns.addr, group, other)
	send(p3, "dropped") // it says that it is there where it has sent to
	eventually(t, patience, &javaProcess{log: &tail{}}, "the answer of another producer", func() bool { return slices.Contains(bodies(), "left") })
	eventually(t, patience, &javaProcess{log: &tail{}}, "no open transaction", func() bool { return len(openOf(t, b)) == 0 })
	require.ElementsMatch(t, []string{"kept", "asked", "left"}, bodies())
	require.NoError(t, p3.Shutdown())
	require.NoError(t, c.Shutdown())
}

func goRetries(t *testing.T, ns *ours, b *ourBroker, suffix string) {
	t.Helper()
	topic, group := "TopicGoRetry"+suffix, "CGGOR"+suffix
	p, err := rocketmq.NewProducer(producer.WithNameServer(primitive.NamesrvAddr{ns.addr}), producer.WithGroupName("PGGOR"+suffix), producer.WithInstanceName("pr"))
	require.NoError(t, err)
	require.NoError(t, p.Start())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	for body, level := range map[string]int{"good": 0, "bad": 0, "late": 3} {
		m := primitive.NewMessage(topic, []byte(body))
		if level > 0 {
			m.WithDelayTimeLevel(level)
		}
		_, err := p.SendSync(ctx, m)
		require.NoError(t, err)
	}
	var mu sync.Mutex
	var tries []int32
	late := time.Duration(-1)
	c, err := rocketmq.NewPushConsumer(consumer.WithNameServer(primitive.NamesrvAddr{ns.addr}), consumer.WithGroupName(group), consumer.WithInstance("retry"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithMaxReconsumeTimes(2))
	require.NoError(t, err)
	require.NoError(t, c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range messages {
			switch string(m.Body) {
			case "bad":
				tries = append(tries, m.ReconsumeTimes)
				return consumer.ConsumeRetryLater, nil
			case "late":
				late = time.Since(began)
			}
		}
		return consumer.ConsumeSuccess, nil
	}))
	require.NoError(t, c.Start())
	eventually(t, patience, &javaProcess{log: &tail{}}, "a dead letter and a late message", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(deadLetters(t, b, group)) >= 1 && late >= 0
	})
	require.Equal(t, []string{"bad"}, deadLetters(t, b, group))
	mu.Lock()
	require.Equal(t, []int32{0, 1, 2}, tries)
	require.GreaterOrEqual(t, late, 2900*time.Millisecond)
	mu.Unlock()
	require.NoError(t, c.Shutdown())
	require.NoError(t, p.Shutdown())
}
