package trace_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/message"
	"github.com/rocketstore/rocketstore/trace"
)

// bodies are those of the trace messages that the real 4.9.7 client sent.
func bodies(t testing.TB) (found []string) {
	t.Helper()
	text, err := os.ReadFile("../testdata/wire/java497_binary_acl_trace.json")
	require.NoError(t, err)
	var file struct {
		Frames []struct {
			Kind       string
			BodyLength int
			Header     struct{ ExtFields map[string]string }
			Hex        string
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	for _, f := range file.Frames {
		if f.Kind == "request" && f.Header.ExtFields["b"] == trace.Topic {
			b, err := hex.DecodeString(f.Hex)
			require.NoError(t, err)
			found = append(found, string(b[len(b)-f.BodyLength:]))
		}
	}
	require.NotEmpty(t, found)
	return found
}

func decodeAll(t testing.TB, body string) (list []trace.Context) {
	t.Helper()
	for c, err := range trace.Decode([]byte(body)) {
		require.NoError(t, err)
		list = append(list, c)
	}
	return list
}

func TestWhatJavaSentIsReadAndWrittenTheSame(t *testing.T) { // R-A-50, R-A-51, R-A-52
	kinds := map[trace.Kind]int{}
	for _, body := range bodies(t) {
		var again []byte
		for _, c := range decodeAll(t, body) {
			kinds[c.Kind]++
			again = c.AppendTo(again)
		}
		require.Equal(t, body, string(again))
	}
	require.Positive(t, kinds[trace.Pub])
	require.Positive(t, kinds[trace.SubBefore])
	require.Positive(t, kinds[trace.SubAfter])
}

// record joins fields as on the wire.
func record(fields ...string) string { return strings.Join(fields, "\x01") + "\x02" }

func TestAPubRecordHasItsFieldsInOrder(t *testing.T) { // R-A-50
	c := trace.Context{Kind: trace.Pub, Time: 1, Region: "R", Group: "G", Cost: 6, Success: true, Beans: []trace.Bean{{
		Topic: "T", MessageID: "M", Keys: "k2 k3", StoreHost: "127.0.0.1:1", BodyLength: 14, Type: trace.Delay, OffsetID: "O",
	}}}
	want := record("Pub", "1", "R", "G", "T", "M", "null", "k2 k3", "127.0.0.1:1", "14", "6", "3", "O", "true")
	require.Equal(t, want, string(c.AppendTo(nil)))
	require.Equal(t, []trace.Context{c}, decodeAll(t, want))
}

func TestConsumeRecordsAreOneForEachBean(t *testing.T) { // R-A-51, R-A-52
	c := trace.Context{Kind: trace.SubBefore, Time: 1, Group: "G", RequestID: "Q", Beans: []trace.Bean{{MessageID: "M", RetryTimes: 2}, {MessageID: "N", Keys: "k"}}}
	require.Equal(t, record("SubBefore", "1", "null", "G", "Q", "M", "2", "null")+record("SubBefore", "1", "null", "G", "Q", "N", "0", "k"), string(c.AppendTo(nil)))
	c.Kind, c.Cost, c.Code = trace.SubAfter, 4, trace.CodeFailed
	require.Equal(t, record("SubAfter", "Q", "M", "4", "false", "null", "4", "1", "G")+record("SubAfter", "Q", "N", "4", "false", "k", "4", "1", "G"), string(c.AppendTo(nil)))
}

func TestAnEndOfATransactionIsWrittenAndRead(t *testing.T) { // R-A-53
	c := trace.Context{Kind: trace.EndTransaction, Time: 1, Region: "R", Group: "G", Beans: []trace.Bean{{
		Topic: "T", MessageID: "M", Tags: "A", Keys: "k", StoreHost: "h:1", Type: trace.Commit, TransactionID: "M", State: trace.StateCommit, FromCheck: true,
	}}}
	want := record("EndTransaction", "1", "R", "G", "T", "M", "A", "k", "h:1", "2", "M", "COMMIT_MESSAGE", "true")
	require.Equal(t, want, string(c.AppendTo(nil)))
	require.Equal(t, []trace.Context{c}, decodeAll(t, want))
	r := trace.Context{Kind: trace.Recall, Time: 1, Region: "R", Group: "G", Success: true, Beans: []trace.Bean{{Topic: "T", MessageID: "M"}}}
	require.Equal(t, []trace.Context{r}, decodeAll(t, string(r.AppendTo(nil))))
}

func TestRecordsOfAllVersionsAreRead(t *testing.T) { // R-A-54
	for _, tt := range []struct {
		record string
		check  func(t *testing.T, c trace.Context)
	}{
		{record("Pub", "1", "R", "G", "T", "M", "A", "k", "h", "9", "8", "1", "true"), func(t *testing.T, c trace.Context) {
			require.True(t, c.Success)
			require.Empty(t, c.Beans[0].OffsetID)
			require.Equal(t, trace.Half, c.Beans[0].Type)
		}},
		{record("Pub", "1", "R", "G", "T", "M", "A", "k", "h", "9", "8", "0", "O", "false", "client"), func(t *testing.T, c trace.Context) {
			require.False(t, c.Success)
			require.Equal(t, "O", c.Beans[0].OffsetID)
			require.Equal(t, "client", c.Beans[0].ClientHost)
		}},
		{record("SubBefore", "1", "R", "G", "Q", "M", "3", "k", "client"), func(t *testing.T, c trace.Context) {
			require.Equal(t, 3, c.Beans[0].RetryTimes)
			require.Equal(t, "client", c.Beans[0].ClientHost)
		}},
		{record("SubAfter", "Q", "M", "4", "true", "k"), func(t *testing.T, c trace.Context) { require.True(t, c.Success) }},
		{"SubAfter\x01Q\x01M\x014\x01true\x01k\x012", func(t *testing.T, c trace.Context) { require.Equal(t, 2, c.Code) }},
		{record("SubAfter", "Q", "M", "4", "true", "k", "0", "7", "G"), func(t *testing.T, c trace.Context) {
			require.EqualValues(t, 7, c.Time)
			require.Equal(t, "G", c.Group)
		}},
	} {
		list := decodeAll(t, record("Future", "x")+tt.record)
		require.Len(t, list, 1)
		tt.check(t, list[0])
	}
}

func TestABadRecordIsAnErrorAndTheNextIsRead(t *testing.T) { // R-A-54
	for _, bad := range []string{
		record("Pub", "1", "R"), record("SubBefore", "x", "R", "G", "Q", "M", "3", "k"), record("SubAfter", "Q"),
		record("Pub", "1", "R", "G", "T", "M", "A", "k", "h", "99999999999", "8", "1", "true"), record("EndTransaction"), record("Recall", "1"),
	} {
		n := 0
		for c, err := range trace.Decode([]byte(bad + record("SubAfter", "Q", "M", "4", "true", "k"))) {
			if n++; n == 1 {
				require.ErrorIs(t, err, trace.ErrRecord)
			} else {
				require.NoError(t, err)
				require.Equal(t, "Q", c.RequestID)
			}
		}
		require.Equal(t, 2, n)
	}
}

func FuzzDecode(f *testing.F) { // R-A-54
	for _, body := range bodies(f) {
		f.Add([]byte(body))
	}
	f.Add([]byte(record("EndTransaction", "1", "R", "G", "T", "M", "A", "k", "h:1", "2", "M", "COMMIT_MESSAGE", "true")))
	f.Fuzz(func(t *testing.T, b []byte) {
		for c, err := range trace.Decode(b) {
			if err != nil {
				require.ErrorIs(t, err, trace.ErrRecord)
				continue
			}
			require.Len(t, decodeAll(t, string(c.AppendTo(nil))), 1)
		}
	})
}

// history is what a message that is tried twice leaves behind, out of order.
func history() []trace.Context {
	bean := []trace.Bean{{Topic: "T", MessageID: "M", StoreHost: "h:1", BodyLength: 4, OffsetID: "O"}}
	return []trace.Context{
		{Kind: trace.SubAfter, Time: 60, Group: "CG", RequestID: "2", Cost: 10, Success: true, Beans: bean},
		{Kind: trace.SubBefore, Time: 20, Group: "CG", RequestID: "1", Beans: bean},
		{Kind: trace.SubBefore, Time: 50, Group: "CG", RequestID: "2", Beans: []trace.Bean{{MessageID: "M", RetryTimes: 1}}},
		{Kind: trace.Pub, Time: 10, Group: "PG", Cost: 3, Success: true, Beans: bean},
		{Kind: trace.Pub, Time: 10, Group: "PG", Cost: 3, Success: true, Beans: bean},
		{Kind: trace.Pub, Time: 11, Beans: []trace.Bean{{MessageID: "other"}}},
		{Kind: trace.EndTransaction, Time: 15, Group: "PG", Beans: []trace.Bean{{MessageID: "M", State: trace.StateCommit}}},
		{Kind: trace.Recall, Time: 16, Beans: bean},
	}
}

func TestATimelineJoinsTheRecordsOfOneMessage(t *testing.T) { // R-A-66
	line := trace.NewTimeline("M", history())
	require.Len(t, line.Sends, 1)
	require.Len(t, line.Ends, 1)
	require.Len(t, line.Recalls, 1)
	require.Len(t, line.Consumes, 2)
	require.Nil(t, line.Consumes[0].After)
	require.Equal(t, "CG", line.Consumes[1].Group())
	require.EqualValues(t, 10, line.Consumes[1].After.Cost)
	require.False(t, line.Empty())
	require.True(t, trace.NewTimeline("X", history()).Empty())
	batch := trace.Context{Kind: trace.Pub, Beans: []trace.Bean{{MessageID: "A,B", Keys: "k1  k2"}}}
	require.Len(t, trace.NewTimeline("B", []trace.Context{batch}).Sends, 1)
	require.Equal(t, []string{"A", "B", "k1", "k2"}, slices.Collect(batch.Keys)) // R-A-48
}

func TestTheJSONViewHasTheArticlesFields(t *testing.T) { // R-A-67
	host, err := message.ParseHost("127.0.0.1:5")
	require.NoError(t, err)
	m := &message.Received{Message: message.Message{Topic: "T", BornTimestamp: 9, BornHost: host, StoreHost: host}, StoreTimestamp: 12}
	m.Properties, err = message.NewProperties("UNIQ_KEY", "M")
	require.NoError(t, err)
	text, err := trace.NewTimeline("M", history()).JSON(m)
	require.NoError(t, err)
	require.JSONEq(t, `{"msgId":"M","topic":"T","bornHost":"127.0.0.1:5","storeHost":"127.0.0.1:5","bornTimestamp":9,"storeTimestamp":12,"costTime":3}`, string(text))
}

func ExampleDecode() {
	body := "Pub\x011795984018560\x01DefaultRegion\x01PG\x01T\x017F000001418D5FFD2B279495647F0001\x01TagB\x01k2 k3\x01127.0.0.1:10911" +
		"\x016\x0114\x010\x017F00000100002A9F00000000000000BE\x01true\x02"
	for c, err := range trace.Decode([]byte(body)) {
		fmt.Println(c.Kind, c.Group, c.Beans[0].Topic, c.Cost, c.Success, err)
	}
	// Output: Pub PG T 14 true <nil>
}

func ExampleTimeline_WriteText() {
	var out strings.Builder
	if err := trace.NewTimeline("M", history()).WriteText(&out); err != nil {
		fmt.Println(err)
	}
	fmt.Print(out.String())
	// Output:
	// message M
	// 1970-01-01 00:00:00.010  sent         group PG to topic T on h:1, 4 bytes, 3 ms, normal, success, offset id O
	// 1970-01-01 00:00:00.015  transaction  group PG, COMMIT_MESSAGE by the producer
	// 1970-01-01 00:00:00.016  recalled     group , failure
	// 1970-01-01 00:00:00.020  consumed     group CG, attempt 1, no end known
	// 1970-01-01 00:00:00.050  consumed     group CG, attempt 2, 10 ms, success
}
