//go:build interop

package interop_test

import (
	"context"
	"strconv"
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
)

// useGoClient sends and consumes with the real Go client.
func useGoClient(t *testing.T, namesrvs string) {
	t.Helper()
	rlog.SetLogLevel("error")
	const topic, count = "TopicGo", 20
	servers := primitive.NamesrvAddr(strings.Split(namesrvs, ";"))
	p, err := rocketmq.NewProducer(producer.WithNameServer(servers), producer.WithGroupName("PG_GO"), producer.WithInstanceName(t.Name()+"p"))
	require.NoError(t, err)
	require.NoError(t, p.Start())
	for i := range count {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		result, err := p.SendSync(ctx, primitive.NewMessage(topic, []byte("go-"+strconv.Itoa(i))))
		cancel()
		require.NoError(t, err)
		require.Equal(t, primitive.SendOK, result.Status)
	}
	require.NoError(t, p.Shutdown())

	c, err := rocketmq.NewPushConsumer(consumer.WithNameServer(servers), consumer.WithGroupName("CG_GO"), consumer.WithInstance(t.Name()+"c"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	require.NoError(t, err)
	var mu sync.Mutex
	seen := map[string]bool{}
	enough := make(chan struct{})
	done := sync.OnceFunc(func() { close(enough) })
	require.NoError(t, c.Subscribe(topic, consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range messages {
			if seen[string(m.Body)] = true; len(seen) == count {
				done()
			}
		}
		return consumer.ConsumeSuccess, nil
	}))
	require.NoError(t, c.Start())
	select {
	case <-enough:
	case <-time.After(patience):
	}
	require.NoError(t, c.Shutdown())
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, seen, count)
}
