package consumer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumer"
)

func TestLocksAreAskedForAsTheOriginalDoes(t *testing.T) { // protocol 5.4
	body := consumer.AppendLocks("CG", "10.0.0.1@x", []consumer.Queue{at("T", "a", 1), at("T", "a", 2)})
	require.JSONEq(t, `{"consumerGroup":"CG","clientId":"10.0.0.1@x","mqSet":[{"topic":"T","brokerName":"a","queueId":1},{"topic":"T","brokerName":"a","queueId":2}]}`, string(body))
}

func FuzzReadLocked(f *testing.F) {
	f.Add([]byte(`{"lockOKMQSet":[{"topic":"T","brokerName":"a","queueId":1}]}`))
	f.Add([]byte(`{"lockOKMQSet":[{`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if queues, err := consumer.ReadLocked(b); err == nil {
			require.LessOrEqual(t, len(queues), len(b))
		}
	})
}
