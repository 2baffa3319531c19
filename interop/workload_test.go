//go:build interop

package interop_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/message"
)

// batchSize is how many messages a batch of the workload has.
const batchSize = 5

// step is what is put in one call: one message, or several of one queue as a batch.
type step []*message.Message

// kind says what a workload may hold.
type kind struct {
	batches, ipv6 bool
	uniqueKeys    bool // what clients of 4.x and later add
	longTopics    bool // retry topics of more than 127 bytes, which are stored as records of version 2
}

// workload is a sequence of messages that depends on its arguments alone: who names the writer, so that no two writers
// share keys, and from lets a writer go on where another run stopped.
func workload(who string, n int, k kind) []step {
	random := rand.New(rand.NewPCG(uint64(len(who)), uint64(n)))
	topics := []string{"Orders", "Orders", "Payments", "%RETRY%audit", "Notes-" + who}
	if k.longTopics {
		topics = append(topics, "%RETRY%"+strings.Repeat("longgroup_", 14), "%RETRY%"+strings.Repeat("g", 248))
	}
	var steps []step
	for i := 0; i < n; {
		topic, queue := topics[random.IntN(len(topics))], random.Int32N(3)
		count := 1
		if k.batches && random.IntN(10) == 0 {
			count = batchSize
		}
		var s step
		born, store := hosts(random, k)
		for range count {
			m := newMessage(random, who, i, topic, queue, k)
			m.BornHost, m.StoreHost = born, store
			if len(s) > 0 { // a batch has these once
				m.BornTimestamp, m.ReconsumeTimes = s[0].BornTimestamp, s[0].ReconsumeTimes
			}
			s = append(s, m)
			i++
		}
		steps = append(steps, s)
	}
	return steps
}

// hosts are the same for all messages of a batch.
func hosts(random *rand.Rand, k kind) (born, store message.Host) {
	text := [2]string{"192.168.1.201:40001", "10.20.30.40:10911"}
	if k.ipv6 && random.IntN(4) == 0 {
		text[0] = "[2001:db8::1]:40001"
	}
	if k.ipv6 && random.IntN(4) == 0 {
		text[1] = "[2001:db8::2]:10911"
	}
	born, err := message.ParseHost(text[0])
	if err != nil {
		panic(err)
	}
	store, err = message.ParseHost(text[1])
	if err != nil {
		panic(err)
	}
	return born, store
}

func newMessage(random *rand.Rand, who string, i int, topic string, queue int32, k kind) *message.Message {
	pairs := []string{"number", strconv.Itoa(i)}
	if k.uniqueKeys {
		pairs = append(pairs, message.PropertyUniqueKey, fmt.Sprintf("UNIQ-%s-%d", who, i))
	}
	if i%11 != 0 {
		pairs = append(pairs, message.PropertyKeys, fmt.Sprintf("key-%s-%d shared-%s-%d  schlüssel%d", who, i, who, i%7, i%3))
	}
	if i%3 != 0 {
		pairs = append(pairs, message.PropertyTags, fmt.Sprintf("Tag%d", i%5))
	}
	properties, err := message.NewProperties(pairs...)
	if err != nil {
		panic(err)
	}
	body := make([]byte, random.IntN(2000))
	for at := range body {
		body[at] = byte(random.Uint32())
	}
	if i%13 == 0 {
		body = body[:0]
	}
	return &message.Message{
		Topic: topic, QueueID: queue, Flag: int32(i) - 3, BornTimestamp: 1_700_000_000_000 + int64(i),
		ReconsumeTimes: int32(i % 4), Body: body, Properties: properties,
	}
}

// put lets the real store put the steps and gives the messages with their places.
func (j *jvm) put(t *testing.T, steps []step) []sent {
	t.Helper()
	var all []sent
	for single, rest := takeSingles(steps); len(single)+len(rest) > 0; single, rest = takeSingles(rest) {
		if len(single) > 0 {
			all = append(all, j.putCall(t, single, false)...)
		}
		if len(rest) > 0 {
			all = append(all, j.putCall(t, rest[0], true)...)
			rest = rest[1:]
		}
	}
	return all
}

// takeSingles gives the messages up to the first batch, and the steps from there on.
func takeSingles(steps []step) (single []*message.Message, rest []step) {
	for i, s := range steps {
		if len(s) > 1 {
			return single, steps[i:]
		}
		single = append(single, s[0])
	}
	return single, nil
}

func (j *jvm) putCall(t *testing.T, messages []*message.Message, batch bool) []sent {
	t.Helper()
	var list []map[string]any
	for _, m := range messages {
		list = append(list, map[string]any{
			"topic": m.Topic, "queueId": m.QueueID, "body": base64.StdEncoding.EncodeToString(m.Body),
			"flag": m.Flag, "sysFlag": int32(m.SysFlag), "bornTimestamp": m.BornTimestamp,
			"bornHost": m.BornHost.String(), "storeHost": m.StoreHost.String(),
			"reconsumeTimes": m.ReconsumeTimes, "properties": m.Properties.Map(),
		})
	}
	var a struct{ Results []javaPut }
	j.call(t, map[string]any{"cmd": "put", "messages": list, "batch": batch}, &a)
	for _, r := range a.Results {
		require.True(t, r.OK, "put: %s", r.Status)
	}
	if batch {
		return fromBatch(t, messages, a.Results[0])
	}
	require.Len(t, a.Results, len(messages))
	var all []sent
	for i, m := range messages {
		r := a.Results[i]
		all = append(all, sent{m, r.PhysicalOffset, r.QueueOffset, r.StoreTimestamp})
	}
	return all
}

// fromBatch finds the places of a batch's messages: its answer has one place and the message ids joined by commas.
func fromBatch(t *testing.T, messages []*message.Message, r javaPut) []sent {
	t.Helper()
	ids := strings.Split(r.MsgID, ",")
	require.Len(t, ids, len(messages))
	var all []sent
	for i, m := range messages {
		_, offset, err := message.ParseOffsetID(ids[i])
		require.NoError(t, err)
		all = append(all, sent{m, offset, r.QueueOffset + int64(i), r.StoreTimestamp})
	}
	return all
}
