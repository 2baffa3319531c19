package route_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/route"
)

// body is the body of a captured frame.
type body struct {
	Name            string
	Header          struct{ Code, Version, Flag int32 }
	BodyText        string
	BodyInflatedHex string
	HeaderLength    int
	Hex             string
}

func (b *body) raw(t testing.TB) []byte {
	t.Helper()
	frame, err := hex.DecodeString(b.Hex)
	require.NoError(t, err)
	return frame[8+b.HeaderLength:]
}

// captured returns the bodies of the frames named name, keyed by file.
func captured(t testing.TB, name string, response bool) map[string]body {
	t.Helper()
	files, err := filepath.Glob("../../testdata/wire/*.json")
	require.NoError(t, err)
	found := map[string]body{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var list struct{ Frames []body }
		require.NoError(t, json.Unmarshal(text, &list))
		for _, f := range list.Frames {
			if f.Name == name && (f.Header.Flag&1 == 1) == response && len(f.raw(t)) > 0 {
				found[filepath.Base(file)] = f
			}
		}
	}
	require.NotEmpty(t, found)
	return found
}

func TestCapturedRoutesAreUnderstoodAndWrittenAlike(t *testing.T) { // R-C-48
	off := false
	brokers := func(cluster string, acting *bool) []route.BrokerData {
		return []route.BrokerData{{Cluster: cluster, BrokerName: "broker-a", Addrs: map[int64]string{0: "127.0.0.1:20911"}, ActingMaster: acting}}
	}
	queues := func(perm, n int32) []route.QueueData {
		return []route.QueueData{{BrokerName: "broker-a", Perm: perm, ReadQueueNums: n, WriteQueueNums: n}}
	}
	want := map[string]*route.Topic{
		"java497_route.json":    {Brokers: brokers("DefaultCluster", nil), Queues: queues(6, 4), FilterServers: map[string][]string{}},
		"java314_producer.json": {Brokers: brokers("", nil), Queues: queues(7, 8), FilterServers: map[string][]string{}},
		"java533_client.json":   {Brokers: brokers("DefaultCluster", &off), Queues: queues(7, 8), FilterServers: map[string][]string{}},
	}
	got := captured(t, "GET_ROUTEINFO_BY_TOPIC", true)
	require.Len(t, got, len(want))
	for file, b := range got {
		parsed, err := route.ParseTopic(b.raw(t))
		require.NoError(t, err, file)
		require.Equal(t, want[file], parsed, file)
		ours := parsed.AppendJSON(nil, route.FormFor(b.Header.Version, false))
		if file == "java314_producer.json" {
			// The name that old clients read is there, and the one that new ones read too.
			ours = []byte(dropOnce(t, string(ours), `"topicSysFlag":0,`))
		}
		require.Equal(t, string(b.raw(t)), string(ours), file)
	}
}

func dropOnce(t *testing.T, s, part string) string {
	t.Helper()
	require.Contains(t, s, part)
	at := slices.Index([]byte(s), part[0])
	for s[at:at+len(part)] != part {
		at++
	}
	return s[:at] + s[at+len(part):]
}

func TestTheFormFollowsTheAsker(t *testing.T) { // R-C-48
	topic := &route.Topic{
		OrderConf: "a:4;b:4",
		Queues:    []route.QueueData{{BrokerName: "a", ReadQueueNums: 4, WriteQueueNums: 8, Perm: 6, SysFlag: 1}},
		Brokers:   []route.BrokerData{{Cluster: "c", BrokerName: "a", Addrs: map[int64]string{1: "h:2", 0: "h:1"}, Zone: "z"}},
	}
	quoted := `{"brokerDatas":[{"brokerAddrs":{"0":"h:1","1":"h:2"},"brokerName":"a","cluster":"c","zoneName":"z"}],"filterServerTable":{},` +
		`"orderTopicConf":"a:4;b:4","queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,"topicSysFlag":1,"writeQueueNums":8}]}`
	bare := `{"brokerDatas":[{"brokerAddrs":{0:"h:1",1:"h:2"},"brokerName":"a","cluster":"c","zoneName":"z"}],"filterServerTable":{},` +
		`"orderTopicConf":"a:4;b:4","queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":4,"topicSynFlag":1,"topicSysFlag":1,"writeQueueNums":8}]}`
	for _, tt := range []struct {
		version  int32
		standard bool
		want     string
	}{{55, false, bare}, {317, false, bare}, {400, false, bare}, {401, false, quoted}, {479, false, quoted}, {317, true, quoted}} {
		ours := topic.AppendJSON(nil, route.FormFor(tt.version, tt.standard))
		require.Equal(t, tt.want, string(ours))
		back, err := route.ParseTopic(ours)
		require.NoError(t, err)
		back.FilterServers = nil
		require.Equal(t, topic, back)
	}
}

func TestCapturedClusterIsUnderstoodAndWrittenAlike(t *testing.T) {
	for file, b := range captured(t, "GET_BROKER_CLUSTER_INFO", true) {
		c, err := route.ParseCluster(b.raw(t))
		require.NoError(t, err, file)
		require.Equal(t, map[string][]string{"DefaultCluster": {"broker-a"}}, c.Clusters)
		require.Equal(t, "127.0.0.1:20911", c.Brokers["broker-a"].Addrs[route.MasterID])
		require.Equal(t, string(b.raw(t)), string(c.AppendJSON(nil, route.Form{BareKeys: true})))
	}
}

func TestCapturedTopicListIsUnderstoodAndWrittenAlike(t *testing.T) {
	for file, b := range captured(t, "GET_ALL_TOPIC_LIST_FROM_NAMESERVER", true) {
		l, err := route.ParseTopicList(b.raw(t))
		require.NoError(t, err, file)
		require.Len(t, l.Topics, 14)
		require.Equal(t, string(b.raw(t)), string(l.AppendJSON(nil)))
	}
	l, err := route.ParseTopicList((&route.TopicList{Topics: []string{"c", "b"}, BrokerAddr: "h:1"}).AppendJSON(nil))
	require.NoError(t, err)
	require.Equal(t, &route.TopicList{Topics: []string{"c", "b"}, BrokerAddr: "h:1"}, l)
}

func TestCapturedRegistrationsAreUnderstoodInEveryForm(t *testing.T) { // R-C-31
	topics := map[string]int{
		"java314_producer.json": 6, "java497_register.json": 9, "java497_binary_acl_trace.json": 9, "java533_client.json": 14,
	}
	got := captured(t, "REGISTER_BROKER", false)
	require.Len(t, got, len(topics))
	for file, b := range got {
		t.Run(file, func(t *testing.T) {
			form := route.RegistrationForm{Version: b.Header.Version, Compressed: b.BodyInflatedHex != ""}
			g, err := route.ParseRegistration(b.raw(t), form)
			require.NoError(t, err)
			require.Len(t, g.Topics, topics[file])
			require.NotZero(t, g.DataVersion.Timestamp) // also when it is spelt timestatmp
			require.Empty(t, g.FilterServers)
			i := slices.IndexFunc(g.Topics, func(c route.TopicConfig) bool { return c.Name == "TBW102" })
			tbw := g.Topics[i]
			require.Equal(t, file == "java533_client.json", tbw.Attributes != nil)
			tbw.Attributes = nil
			require.Equal(t, route.TopicConfig{Name: "TBW102", ReadQueueNums: 8, WriteQueueNums: 8, Perm: 7, FilterType: "SINGLE_TAG"}, tbw)
			for _, to := range []route.RegistrationForm{
				form, {Version: 407}, {Version: 55, Misspelt: true}, {Version: 479}, {Compressed: true, Version: 407}, {Version: 36},
			} {
				ours, err := g.Append(nil, to)
				require.NoError(t, err)
				back, err := route.ParseRegistration(ours, to)
				require.NoError(t, err)
				require.Equal(t, g, back)
			}
		})
	}
}

func TestChecksumIsTheCapturedOne(t *testing.T) { // R-C-38
	files, err := filepath.Glob("../../testdata/wire/*.json")
	require.NoError(t, err)
	checked := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var list struct {
			Frames []struct {
				body
				Header struct{ ExtFields map[string]string }
			}
		}
		require.NoError(t, json.Unmarshal(text, &list))
		for _, f := range list.Frames {
			if crc := f.Header.ExtFields["bodyCrc32"]; crc != "" {
				checked++
				require.Equal(t, crc, strconv.Itoa(int(route.Checksum(f.raw(t)))))
			}
		}
	}
	require.Equal(t, 3, checked)
}

func TestTheCompressedFormIsJavasByteForByte(t *testing.T) {
	b := captured(t, "REGISTER_BROKER", false)["java497_binary_acl_trace.json"]
	g, err := route.ParseRegistration(b.raw(t), route.RegistrationForm{Compressed: true})
	require.NoError(t, err)
	ours, err := g.Append(nil, route.RegistrationForm{Compressed: true})
	require.NoError(t, err)
	require.Equal(t, b.BodyInflatedHex, hex.EncodeToString(inflated(t, ours)))
}

func TestTheFormOfABodyIsToldByItsMembers(t *testing.T) {
	b := captured(t, "REGISTER_BROKER", false)["java533_client.json"]
	want, err := route.ParseRegistration(b.raw(t), route.RegistrationForm{Version: 479})
	require.NoError(t, err)
	got, err := route.ParseRegistration(b.raw(t), route.RegistrationForm{}) // what an embedded Java broker says of itself
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestAnEmptyRegistrationHasNoTopics(t *testing.T) {
	g, err := route.ParseRegistration(nil, route.RegistrationForm{Version: 407})
	require.NoError(t, err)
	require.Equal(t, &route.Registration{}, g)
}

func TestTablesAndVersionsGoThere(t *testing.T) {
	table, err := route.ParseTable(route.AppendTable(nil, map[string]string{"b": "2", "a": "\x01"}))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"b": "2", "a": "\x01"}, table)
	v := route.DataVersion{StateVersion: 1, Timestamp: 2, Counter: 3}
	for _, misspelt := range []bool{false, true} {
		back, err := route.ParseDataVersion(v.AppendJSON(nil, misspelt))
		require.NoError(t, err)
		require.Equal(t, v, back)
	}
	group := route.AppendMemberGroup(nil, &route.BrokerData{Cluster: "c", BrokerName: "b", Addrs: map[int64]string{0: "h:1"}}, route.Form{})
	want := `{"brokerMemberGroup":{"brokerAddrs":{"0":"h:1"},"brokerName":"b","cluster":"c"}}`
	require.Equal(t, want, string(group))
}

func TestBadJSONIsRefused(t *testing.T) {
	for name, parse := range map[string]func(b []byte) error{
		"topic":   func(b []byte) error { _, err := route.ParseTopic(b); return err },
		"cluster": func(b []byte) error { _, err := route.ParseCluster(b); return err },
		"list":    func(b []byte) error { _, err := route.ParseTopicList(b); return err },
		"table":   func(b []byte) error { _, err := route.ParseTable(b); return err },
		"version": func(b []byte) error { _, err := route.ParseDataVersion(b); return err },
	} {
		for _, text := range []string{"", "[]", "{", "{}x"} {
			require.ErrorIs(t, parse([]byte(text)), fastjson.ErrSyntax, name)
		}
	}
	_, err := route.ParseTopic([]byte(`{"brokerDatas":[{"brokerAddrs":{"zero":"h:1"}}]}`))
	require.ErrorIs(t, err, fastjson.ErrSyntax)
}

func TestBadRegistrationsAreRefused(t *testing.T) {
	sized := func(s string) string { return string([]byte{0, 0, 0, byte(len(s))}) + s }
	for name, tt := range map[string]struct{ want, plain string }{
		"no data version":      {"too early", ""},
		"data version cut":     {"too early", "\x00\x00\x00\x05{}"},
		"negative length":      {"too early", "\xff\xff\xff\xff{}"},
		"data version no JSON": {"data version", sized("x")},
		"negative topics":      {"-1 topics", sized("{}") + "\xff\xff\xff\xff"},
		"more topics than are": {"too early", sized("{}") + "\x7f\xff\xff\xff" + sized("T 1 1 6 SINGLE_TAG")},
		"four fields":          {"five fields", sized("{}") + "\x00\x00\x00\x01" + sized("T 1 1 6")},
		"no number":            {"invalid syntax", sized("{}") + "\x00\x00\x00\x01" + sized("T 1 x 6 SINGLE_TAG")},
		"bad attributes":       {"attributes", sized("{}") + "\x00\x00\x00\x01" + sized("T 1 1 6 SINGLE_TAG {")},
		"no filter servers":    {"too early", sized("{}") + "\x00\x00\x00\x00"},
		"bad filter servers":   {"filter servers", sized("{}") + "\x00\x00\x00\x00" + sized("{}")},
		"a bomb":               {"more than 1000 bytes", string(make([]byte, 2000))},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := route.ParseRegistration(deflated(t, tt.plain), route.RegistrationForm{Compressed: true, MaxBytes: 1000})
			require.ErrorIs(t, err, route.ErrRegistration)
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, err := route.ParseRegistration([]byte("not zlib"), route.RegistrationForm{Compressed: true})
	require.ErrorIs(t, err, route.ErrRegistration)
	whole := deflated(t, sized("{}"))
	_, err = route.ParseRegistration(whole[:len(whole)-3], route.RegistrationForm{Compressed: true})
	require.ErrorIs(t, err, route.ErrRegistration)
	_, err = route.ParseRegistration([]byte(`{"topicConfigSerializeWrapper":[]}`), route.RegistrationForm{Version: 407})
	require.ErrorIs(t, err, route.ErrRegistration)
}

func TestBrokerDataIsCopiedWhole(t *testing.T) {
	d := route.BrokerData{BrokerName: "b", Addrs: map[int64]string{2: "h:3", 1: "h:2"}}
	c := d.Clone()
	c.Addrs[1] = "other"
	require.Equal(t, "h:2", d.SelectAddr())
	require.Empty(t, (&route.BrokerData{}).SelectAddr())
}
