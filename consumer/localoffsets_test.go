package consumer_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/consumer"
)

func TestBroadcastOffsetsHaveTheFormOfJava(t *testing.T) {
	offsets := map[consumer.Queue]int64{at("T", "broker-a", 1): 7, at("T", "broker-a", 0): 12}
	b := consumer.AppendOffsets(nil, offsets)
	want := `{
	"offsetTable":{{
			"brokerName":"broker-a",
			"queueId":0,
			"topic":"T"
		}:12,{
			"brokerName":"broker-a",
			"queueId":1,
			"topic":"T"
		}:7
	}
}`
	require.Equal(t, []byte(want), b)
	read, err := consumer.ParseOffsets(b)
	require.NoError(t, err)
	require.Equal(t, offsets, read)
}

func FuzzParseOffsets(f *testing.F) {
	f.Add([]byte(`{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:12}}`))
	f.Add([]byte(`{"offsetTable":{{"brokerName":"b"`))
	f.Fuzz(func(t *testing.T, b []byte) {
		offsets, err := consumer.ParseOffsets(b)
		if err != nil {
			return
		}
		again, err := consumer.ParseOffsets(consumer.AppendOffsets(nil, offsets))
		require.NoError(t, err)
		require.True(t, maps.Equal(offsets, again), "%v %v", offsets, again)
	})
}

func ExampleParseOffsets() {
	offsets, err := consumer.ParseOffsets([]byte(`{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:12}}`))
	fmt.Println(offsets[consumer.Queue{Topic: "T", BrokerName: "b"}], err)
	// Output: 12 <nil>
}
