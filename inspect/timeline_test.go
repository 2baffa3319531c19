package inspect_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/commitlog"
	"github.com/rocketstore/rocketstore/inspect"
	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// tracedStore is a store with a message and the trace messages of its producer and a consumer.
func tracedStore(t testing.TB) tree {
	t.Helper()
	log := record(0, "body", "UNIQ_KEY", "ID1")
	for _, c := range []trace.Context{
		{Kind: trace.SubBefore, Time: 1700000000200, Region: "r", Group: "CG", RequestID: "q", Beans: []trace.Bean{{MessageID: "ID1", RetryTimes: 1}}},
		{Kind: trace.SubAfter, Time: 1700000000300, Group: "CG", RequestID: "q", Cost: 7, Success: true, Beans: []trace.Bean{{MessageID: "ID1"}}},
		{Kind: trace.Pub, Time: 1699999999999, Region: "r", Group: "PG", Cost: 3, Success: true, Beans: []trace.Bean{{Topic: "TopicA", MessageID: "ID1", StoreHost: "10.0.0.1:10911", BodyLength: 4, OffsetID: "x"}}},
	} {
		body := c.AppendTo(nil)
		p, err := message.NewProperties("KEYS", "ID1")
		require.NoError(t, err)
		r, err := commitlog.Decode(record(int64(len(log)), ""))
		require.NoError(t, err)
		r.Topic, r.Body, r.BodyCRC, r.Properties = []byte(trace.Topic), body, message.CRC(body), []byte(p)
		log = r.AppendTo(log)
	}
	s := newTree()
	s.log(0, 4096, log)
	return s
}

// R-A-68: the trace of a message is read from a store directory, without a broker.
func TestTraceJoinsTheRecordsAndTheTraceTopic(t *testing.T) {
	events, err := mustOpen(tracedStore(t)).Trace(t.Context(), "ID1", inspect.TraceOptions{}, func(f inspect.Finding) { t.Fatal(f) })
	require.NoError(t, err)
	var what []string
	for _, e := range events {
		what = append(what, e.What)
		require.Equal(t, "commitlog/00000000000000000000", e.File)
	}
	require.Equal(t, []string{"sent", "born", "stored", "consuming", "consumed"}, what)
	none, err := mustOpen(tracedStore(t)).Trace(t.Context(), "ID2", inspect.TraceOptions{}, func(inspect.Finding) {})
	require.NoError(t, err)
	require.Empty(t, none)
}

func ExampleDir_Trace() {
	events, err := mustOpen(exampleStore()).Trace(context.Background(), "0A00000100002A9F0000000000001000", inspect.TraceOptions{}, func(inspect.Finding) {})
	for _, e := range events {
		fmt.Println(e.What, e.Text, err)
	}
	// Output:
	// born at 10.0.0.1:10911 <nil>
	// stored TopicA/0/0 at 4096, on 10.0.0.1:10911 <nil>
}
