package namesrv_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/namesrv"
)

func TestAnUnknownTopicIsAnsweredWithItsName(t *testing.T) { // R-C-47
	inWorld(t, nil, func(t *testing.T, w *world) {
		for _, file := range []string{"go_producer.json", "java314_producer.json", "java497_route.json", "java497_binary_acl_trace.json"} {
			req := captured(t, file, "GET_ROUTEINFO_BY_TOPIC")[0]
			resp := w.peer().send(req)
			require.Equal(t, remoting.TopicNotExist, resp.Code)
			require.Contains(t, resp.Remark, req.Fields.Get("topic"))
			require.Equal(t, req.Codec, resp.Codec)
		}
		require.Equal(t, int64(4), w.server.Stats().RoutesAbsent)
	})
}

func TestTheRouteHasTheFormThatTheAskerNeeds(t *testing.T) { // R-C-48
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.peer()
		p.register(brokerA())
		for _, tt := range []struct {
			version  int32
			fields   remoting.Fields
			standard bool
		}{
			{55, nil, false},
			{317, nil, false},
			{400, nil, false},
			{401, nil, true},
			{407, nil, true},
			{479, nil, true},
			{317, remoting.Fields{remoting.String("acceptStandardJsonOnly", "true")}, true},
		} {
			for code, field := range map[int32]remoting.Field{
				remoting.GetRouteByTopic: remoting.String("topic", "T1"), remoting.GetClusterInfo: {},
			} {
				req := remoting.NewRequest(code, append(tt.fields, field)...)
				req.Version = tt.version
				body := p.send(req).Body
				require.Equal(t, tt.standard, json.Valid(body), "%d %s", tt.version, body)
				require.NotContains(t, string(body), " ") // the Go client cuts the text by hand
			}
		}
	})
}

func TestClusterAndTopicListsTellWhatThereIs(t *testing.T) { // R-C-51
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, b := w.peer(), brokerA()
		names := func(code int32, fields ...remoting.Field) []string {
			t.Helper()
			l, err := route.ParseTopicList(p.ask(code, fields...).Body)
			require.NoError(t, err)
			return l.Topics
		}
		require.Empty(t, names(remoting.GetAllTopics))
		b.topics[0].SysFlag = 1
		b.topics[1].SysFlag = 2
		b.topics = append(b.topics, topic("T0", 1, 6))
		p.register(b)
		other := brokerA()
		other.cluster, other.name, other.addr, other.topics = "c2", "b", "10.0.0.2:10911", []route.TopicConfig{topic("T9", 1, 6)}
		p.register(other)

		require.Equal(t, []string{"T0", "T1", "T2", "T9"}, names(remoting.GetAllTopics))
		require.Equal(t, []string{"T0", "T1", "T2"}, names(remoting.GetTopicsByCluster, remoting.String("cluster", "c1")))
		require.Equal(t, []string{"T9"}, names(remoting.GetTopicsByCluster, remoting.String("cluster", "c2")))
		require.Empty(t, names(remoting.GetTopicsByCluster, remoting.String("cluster", "c3")))
		require.Equal(t, []string{"T1"}, names(remoting.GetUnitTopics))
		require.Equal(t, []string{"T2"}, names(remoting.GetUnitSubTopics))
		require.Equal(t, []string{"T2"}, names(remoting.GetUnitSubNotUnitTopics))
		system, err := route.ParseTopicList(p.ask(remoting.GetSystemTopics).Body)
		require.NoError(t, err)
		require.Equal(t, &route.TopicList{Topics: []string{"c1", "c2", "a", "b"}, BrokerAddr: b.addr}, system)

		info, err := route.ParseCluster(p.ask(remoting.GetClusterInfo).Body)
		require.NoError(t, err)
		require.Equal(t, map[string][]string{"c1": {"a"}, "c2": {"b"}}, info.Clusters)
		require.Equal(t, map[int64]string{0: b.addr}, info.Brokers["a"].Addrs)
		group := func(cluster, name string) string {
			return string(p.ask(remoting.GetBrokerMemberGroup, remoting.String("clusterName", cluster), remoting.String("brokerName", name)).Body)
		}
		require.JSONEq(t, `{"brokerMemberGroup":{"brokerAddrs":{"0":"10.0.0.1:10911"},"brokerName":"a","cluster":"c1"}}`, group("c1", "a"))
		require.JSONEq(t, `{"brokerMemberGroup":{"brokerAddrs":{},"brokerName":"a","cluster":"c2"}}`, group("c2", "a"))
	})
}

func TestACapturedTopicListQuestionIsAnswered(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.peer()
		p.send(captured(t, "java497_register.json", "REGISTER_BROKER")[0])
		for name, want := range map[string]string{
			"GET_ALL_TOPIC_LIST_FROM_NAMESERVER": "", "WIPE_WRITE_PERM_OF_BROKER": "9", "ADD_WRITE_PERM_OF_BROKER": "9",
		} {
			resp := p.send(captured(t, "java497_admin.json", name)[0])
			require.Equal(t, remoting.Success, resp.Code, name)
			if want != "" {
				require.Equal(t, want, resp.Fields[0].Value, name)
			}
		}
	})
}

func TestUnknownCodesAreRefused(t *testing.T) { // R-C-53
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.peer()
		for _, code := range []int32{0, 10, 34, 999, 200050, -5} {
			resp := p.ask(code)
			require.Equal(t, remoting.RequestCodeNotSupported, resp.Code)
			require.Contains(t, resp.Remark, "not supported")
		}
		require.Equal(t, map[int32]int64{-1: 6}, w.server.Stats().Requests)
	})
}

func TestMissingFieldsAreNamed(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.peer()
		for code, field := range map[int32]string{
			remoting.RegisterBroker: "clusterName", remoting.UnregisterBroker: "clusterName", remoting.BrokerHeartbeat: "brokerAddr",
			remoting.QueryDataVersion: "clusterName", remoting.GetRouteByTopic: "topic", remoting.GetBrokerMemberGroup: "clusterName",
			remoting.GetTopicsByCluster: "cluster", remoting.RegisterTopic: "topic", remoting.DeleteTopicInNameServer: "topic",
			remoting.WipeWritePermission: "brokerName", remoting.AddWritePermission: "brokerName", remoting.GetKVConfig: "namespace",
			remoting.DeleteKVConfig: "namespace", remoting.GetKVList: "namespace",
		} {
			resp := p.ask(code)
			require.Equal(t, remoting.SystemError, resp.Code, code)
			require.Contains(t, resp.Remark, field+" is missing")
		}
	})
}

func TestAServerThatWaitsForItsTablesSaysSo(t *testing.T) { // protocol.md 3, request 105 of 5.x
	inWorld(t, &namesrv.Options{WaitForService: true}, func(t *testing.T, w *world) {
		p := w.peer()
		p.register(brokerA())
		resp := p.ask(remoting.GetRouteByTopic, remoting.String("topic", "T1"))
		require.Equal(t, remoting.SystemError, resp.Code)
		require.Equal(t, "name server not ready", resp.Remark)
		time.Sleep(45 * time.Second)
		require.NotNil(t, w.route("T1"))
	})
}
