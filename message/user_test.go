package message_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/message"
)

func TestTheSystemsPropertyNamesAreThoseOfTheOriginal(t *testing.T) { // R-D-012
	names := message.SystemProperties()
	require.True(t, slices.IsSorted(names))
	require.Equal(t, names, slices.Compact(slices.Clone(names)))
	for _, name := range []string{
		"KEYS", "TAGS", "WAIT", "DELAY", "RETRY_TOPIC", "REAL_TOPIC", "REAL_QID", "TRAN_MSG", "PGROUP", "MIN_OFFSET", "MAX_OFFSET",
		"BUYER_ID", "ORIGIN_MESSAGE_ID", "TRANSFER_FLAG", "CORRECTION_FLAG", "MQ2_FLAG", "RECONSUME_TIME", "MSG_REGION", "TRACE_ON",
		"UNIQ_KEY", "MAX_RECONSUME_TIMES", "CONSUME_START_TIME", "TRAN_PREPARED_QUEUE_OFFSET", "TRANSACTION_CHECK_TIMES",
		"CHECK_IMMUNITY_TIME_IN_SECONDS", "INSTANCE_ID", "CORRELATION_ID", "REPLY_TO_CLIENT", "TTL", "ARRIVE_TIME", "PUSH_REPLY_TIME",
		"CLUSTER", "MSG_TYPE",
	} {
		require.Contains(t, names, name)
		var m message.Message
		require.ErrorIs(t, m.SetProperty(name, "x"), message.ErrReserved) // R-D-004
	}
}

func TestSettersKeepWhatTheyAreGiven(t *testing.T) { // R-D-001, R-D-004, R-D-006, R-D-007, R-D-009
	m := message.Message{Topic: "T", Flag: -7, Body: []byte{0, 1, 2, 255}}
	require.Empty(t, m.Property("none"))
	require.True(t, m.Waits())
	require.NoError(t, m.SetTag("A"))
	require.NoError(t, m.SetKeys("k1", "k2"))
	require.NoError(t, m.SetProperty("mine", "v w"))
	m.SetDelayLevel(3)
	m.SetWait(false)
	require.Equal(t, map[string]string{"TAGS": "A", "KEYS": "k1 k2", "mine": "v w", "DELAY": "3", "WAIT": "false"}, m.Properties.Map())
	require.Equal(t, []string{"k1", "k2"}, m.Keys())
	require.Equal(t, 3, m.DelayLevel())
	require.False(t, m.Waits())
	require.NoError(t, m.SetTag(""))
	require.NoError(t, m.SetKeys())
	m.SetDelayLevel(0)
	require.Equal(t, map[string]string{"mine": "v w", "WAIT": "false"}, m.Properties.Map())
	require.Zero(t, m.DelayLevel())
	for _, bad := range []string{"a\x01b", "a\x02b", ""} {
		require.ErrorIs(t, m.SetProperty("mine", bad), message.ErrProperty)
		require.ErrorIs(t, m.SetProperty(bad, "v"), message.ErrProperty)
	}
	require.ErrorIs(t, m.SetKeys("a b"), message.ErrProperty)
	require.Empty(t, m.TransactionID())
	for _, pairs := range [][]string{{"TRAN_MSG", "true", "UNIQ_KEY", "U"}, {"__transactionId__", "U"}} {
		var err error
		m.Properties, err = message.NewProperties(pairs...)
		require.NoError(t, err)
		require.Equal(t, "U", m.TransactionID())
	}
}

func ExampleMessage_SetKeys() {
	m := message.Message{Topic: "orders", Body: []byte("paid")}
	if err := m.SetKeys("order-1", "customer-9"); err != nil {
		fmt.Println(err)
	}
	m.SetDelayLevel(2)
	fmt.Println(m.Keys(), m.DelayLevel())
	// Output: [order-1 customer-9] 2
}
