package route_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/route"
)

func deflated(t testing.TB, plain string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, err := io.WriteString(w, plain)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func inflated(t testing.TB, b []byte) []byte {
	t.Helper()
	r, err := zlib.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	plain, err := io.ReadAll(r)
	require.NoError(t, err)
	return plain
}

func FuzzParseRegistration(f *testing.F) {
	for _, b := range captured(f, "REGISTER_BROKER", false) {
		if b.BodyInflatedHex == "" {
			f.Add(b.raw(f), b.Header.Version)
		}
	}
	f.Add([]byte(`{"topicConfigTable":{"T":{"perm":6}}}`), int32(36))
	f.Fuzz(func(t *testing.T, body []byte, version int32) {
		form := route.RegistrationForm{Version: version}
		g, err := route.ParseRegistration(body, form)
		if err != nil {
			require.ErrorIs(t, err, route.ErrRegistration)
			return
		}
		again, err := g.Append(nil, form)
		require.NoError(t, err)
		back, err := route.ParseRegistration(again, form)
		require.NoError(t, err)
		require.Equal(t, g.DataVersion, back.DataVersion)
		require.Len(t, back.Topics, len(g.Topics))
	})
}

func FuzzParseCompressedRegistration(f *testing.F) {
	b := captured(f, "REGISTER_BROKER", false)["java497_binary_acl_trace.json"]
	f.Add(inflated(f, b.raw(f)))
	f.Fuzz(func(t *testing.T, plain []byte) {
		g, err := route.ParseRegistration(deflated(t, string(plain)), route.RegistrationForm{Compressed: true})
		if err != nil {
			require.ErrorIs(t, err, route.ErrRegistration)
			return
		}
		again, err := g.Append(nil, route.RegistrationForm{Compressed: true})
		require.NoError(t, err)
		_, err = route.ParseRegistration(again, route.RegistrationForm{Compressed: true})
		require.NoError(t, err)
	})
}

func FuzzParseTopic(f *testing.F) {
	for _, b := range captured(f, "GET_ROUTEINFO_BY_TOPIC", true) {
		f.Add(b.raw(f))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		topic, err := route.ParseTopic(b)
		if err != nil {
			return
		}
		for _, form := range []route.Form{{}, {BareKeys: true}} {
			_, err := route.ParseTopic(topic.AppendJSON(nil, form))
			require.NoError(t, err)
		}
	})
}

func FuzzParseCluster(f *testing.F) {
	for _, b := range captured(f, "GET_BROKER_CLUSTER_INFO", true) {
		f.Add(b.raw(f))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := route.ParseCluster(b); err == nil {
			_, err = route.ParseCluster(c.AppendJSON(nil, route.Form{}))
			require.NoError(t, err)
		}
	})
}

func ExampleTopic_AppendJSON() {
	t := &route.Topic{
		Queues:  []route.QueueData{{BrokerName: "broker-a", ReadQueueNums: 4, WriteQueueNums: 4, Perm: route.PermRead | route.PermWrite}},
		Brokers: []route.BrokerData{{Cluster: "c", BrokerName: "broker-a", Addrs: map[int64]string{route.MasterID: "10.0.0.1:10911"}}},
	}
	fmt.Printf("%s\n", t.AppendJSON(nil, route.FormFor(407, false)))
	// Output:
	// {"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.1:10911"},"brokerName":"broker-a","cluster":"c"}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}
}

func ExampleParseRegistration() {
	body := []byte(`{"topicConfigSerializeWrapper":{"dataVersion":{"counter":3,"timestatmp":9},"topicConfigTable":{"T":{"perm":6,"readQueueNums":4}}}}`)
	g, err := route.ParseRegistration(body, route.RegistrationForm{Version: 55})
	fmt.Println(g.DataVersion.Timestamp, g.Topics[0].Name, g.Topics[0].ReadQueueNums, err)
	// Output: 9 T 4 <nil>
}
