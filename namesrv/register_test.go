package namesrv_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
)

func TestRegistrationsOfRealBrokersMakeRoutes(t *testing.T) { // R-C-16 to R-C-19, R-C-31, R-C-32, R-C-48
	for file, fields := range map[string]string{
		"java314_producer.json":         `{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"DefaultCluster"}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":7,"readQueueNums":8,"topicSynFlag":0,"topicSysFlag":0,"writeQueueNums":8}]}`,
		"java497_register.json":         `{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"DefaultCluster"}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":7,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}`,
		"java497_binary_acl_trace.json": `{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"DefaultCluster"}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":7,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}`,
		"java533_client.json":           `{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":7,"readQueueNums":8,"topicSysFlag":0,"writeQueueNums":8}]}`,
	} {
		t.Run(file, func(t *testing.T) {
			inWorld(t, nil, func(t *testing.T, w *world) {
				req := captured(t, file, "REGISTER_BROKER")[0]
				resp := w.peer().send(req)
				require.Equal(t, remoting.Success, resp.Code, resp.Remark)
				require.NotNil(t, resp.Fields)
				require.Empty(t, resp.Body)
				ask := remoting.NewRequest(remoting.GetRouteByTopic, remoting.String("topic", "TBW102"))
				ask.Version = req.Version
				require.Equal(t, fields, string(w.peer().send(ask).Body))
			})
		})
	}
}

func TestACapturedGoodbyeRemovesTheCapturedBroker(t *testing.T) { // R-C-41
	for _, file := range []string{"java497_register.json", "java533_client.json"} {
		inWorld(t, nil, func(t *testing.T, w *world) {
			p := w.peer()
			require.Equal(t, remoting.Success, p.send(captured(t, file, "REGISTER_BROKER")[0]).Code)
			require.Len(t, w.server.LiveAddrs(), 1)
			require.Equal(t, remoting.Success, p.send(captured(t, file, "UNREGISTER_BROKER")[0]).Code)
			require.Empty(t, w.server.LiveAddrs())
			require.Nil(t, w.route("TBW102"))
		})
	}
}

func TestTopicsFollowTheDataVersion(t *testing.T) { // R-C-32, R-C-33, R-C-34
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, b := w.peer(), brokerA()
		p.register(b)
		other := brokerA()
		other.name, other.addr = "b", "10.0.0.2:10911"
		w.peer().register(other)
		require.Equal(t, map[string]int32{"a": 4, "b": 4}, w.queues("T1"))

		b.topics = []route.TopicConfig{topic("T1", 16, 6)}
		p.register(b) // unchanged version: the topic is not touched
		require.Equal(t, map[string]int32{"a": 4, "b": 4}, w.queues("T1"))
		b.version++
		p.register(b) // changed: its entry is replaced, the other broker's stays
		require.Equal(t, map[string]int32{"a": 16, "b": 4}, w.queues("T1"))
		require.Equal(t, map[string]int32{"a": 8, "b": 8}, w.queues("T2")) // a report may be one topic only
	})
}

func TestAReportOfOneTopicDoesNotHideTheOthers(t *testing.T) { // protocol.md 3.1 and 15 E13
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, whole := w.peer(), brokerA()
		part := brokerA()
		part.topics = part.topics[:1]
		p.register(part) // the first thing that a restarted name server hears
		require.Nil(t, w.route("T2"))
		ask := remoting.NewRequest(remoting.QueryDataVersion, part.fields()...)
		ask.Body = route.DataVersion{Timestamp: 1}.AppendJSON(nil, false)
		require.Equal(t, "true", p.send(ask).Fields.Get("changed"))
		p.register(whole) // the same data version
		require.NotNil(t, w.route("T2"))
		require.Equal(t, "false", p.send(ask).Fields.Get("changed"))
	})
}

func TestASlaveChangesNoTopicsAndLearnsItsMaster(t *testing.T) { // R-C-17, R-C-32, R-C-35, R-C-37
	inWorld(t, nil, func(t *testing.T, w *world) {
		slave := brokerA()
		slave.id, slave.addr = 1, "10.0.0.9:10911"
		resp := w.peer().register(slave)
		require.Nil(t, w.route("T1"))
		require.Empty(t, resp.Fields.Get("masterAddr"))
		w.peer().register(brokerA())
		slave.topics, slave.version = []route.TopicConfig{topic("T1", 99, 6), topic("T3", 1, 6)}, 7
		resp = w.peer().register(slave)
		require.Equal(t, "10.0.0.1:10911", resp.Fields.Get("masterAddr"))
		require.Equal(t, "10.0.0.1:109112", resp.Fields.Get("haServerAddr"))
		require.Equal(t, map[string]int32{"a": 4}, w.queues("T1"))
		require.Nil(t, w.route("T3"))
		require.Equal(t, map[int64]string{0: "10.0.0.1:10911", 1: "10.0.0.9:10911"}, w.route("T1").Brokers[0].Addrs)
	})
}

func TestASlaveThatBecomesMasterLosesItsOldID(t *testing.T) { // R-C-36
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, b := w.peer(), brokerA()
		master := brokerA()
		master.addr = "10.0.0.9:10911"
		lost := w.peer()
		lost.register(master)
		b.id = 1
		p.register(b)
		lost.lose() // R-C-43: the topics stay, with the slave's address only
		require.Equal(t, map[int64]string{1: b.addr}, w.route("T1").Brokers[0].Addrs)
		b.id = 0
		p.register(b)
		require.Equal(t, map[int64]string{0: b.addr}, w.route("T1").Brokers[0].Addrs)
		require.Equal(t, []string{b.addr}, w.server.LiveAddrs())
	})
}

func TestABrokerThatMovesOrIsRenamedLeavesNothingBehind(t *testing.T) { // R-C-44
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, b := w.peer(), brokerA()
		b.filters = []string{"10.0.0.1:5000"}
		p.register(b)
		require.Equal(t, map[string][]string{b.addr: b.filters}, w.route("T1").FilterServers) // R-C-24
		b.addr = "10.0.0.7:10911"
		w.peer().register(b) // another process with its name and id
		require.Equal(t, map[int64]string{0: b.addr}, w.route("T1").Brokers[0].Addrs)
		p.lose() // the old one's connection does not matter any more
		require.NotNil(t, w.route("T1"))
		b.name = "renamed"
		w.peer().register(b)
		require.Equal(t, map[string]int32{"renamed": 4}, w.queues("T1"))
		b.cluster = "c2"
		w.peer().register(b)
		info, err := route.ParseCluster(p.ask(remoting.GetClusterInfo).Body)
		require.NoError(t, err)
		require.Equal(t, map[string][]string{"c2": {"renamed"}}, info.Clusters)
		b.filters = nil
		w.peer().register(b)
		require.Empty(t, w.route("T1").FilterServers)
	})
}

func TestADeposedMasterIsIgnored(t *testing.T) { // protocol.md 15 E13
	inWorld(t, nil, func(t *testing.T, w *world) {
		now, before := brokerA(), brokerA()
		now.state, before.state, before.addr = 5, 4, "10.0.0.2:10911"
		w.peer().register(now)
		w.peer().register(before)
		require.Equal(t, map[int64]string{0: now.addr}, w.route("T1").Brokers[0].Addrs)
		before.state = 6
		w.peer().register(before)
		require.Equal(t, map[int64]string{0: before.addr}, w.route("T1").Brokers[0].Addrs)
	})
}

func TestAWrongChecksumChangesNothing(t *testing.T) { // R-C-38
	for _, compressed := range []bool{false, true} {
		inWorld(t, nil, func(t *testing.T, w *world) {
			b := brokerA()
			b.compressed = compressed
			req := b.registration(t)
			req.Fields.Set("bodyCrc32", "12345")
			resp := w.peer().send(req)
			require.Equal(t, remoting.SystemError, resp.Code)
			require.Equal(t, "crc32 not match", resp.Remark)
			require.Empty(t, w.server.LiveAddrs())
			for _, unchecked := range []string{"0", ""} {
				req.Fields.Set("bodyCrc32", unchecked)
				require.Equal(t, remoting.Success, w.peer().send(req).Code)
			}
			require.NotNil(t, w.route("T1"))
		})
	}
}

func TestTheOldestFormOfABodyIsRead(t *testing.T) {
	inWorld(t, nil, func(t *testing.T, w *world) {
		b := brokerA()
		b.from = 36
		w.peer().register(b)
		require.NotNil(t, w.route("T2"))
		b.from, b.topics = 55, nil
		req := b.registration(t)
		req.Body = nil
		req.Fields.Delete("bodyCrc32")
		require.Equal(t, remoting.Success, w.peer().send(req).Code) // no body: no topics, version 0
		require.NotNil(t, w.route("T2"))
	})
}

func TestTheAnswerCarriesTheOrderedTopics(t *testing.T) { // R-C-37
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.peer()
		require.Empty(t, p.register(brokerA()).Body)
		put(p, "ORDER_TOPIC_CONFIG", "T1", "a:4")
		table, err := route.ParseTable(p.register(brokerA()).Body)
		require.NoError(t, err)
		require.Equal(t, map[string]string{"T1": "a:4"}, table)
	})
}

func TestAReportKeepsABrokerAlive(t *testing.T) { // R-C-27, R-C-33
	for name, report := range map[string]func(p *peer, b broker){
		"registration":           func(p *peer, b broker) { p.register(b) },
		"question of a version":  func(p *peer, b broker) { require.Equal(p.w.t, "false", compare(p, b).Fields.Get("changed")) },
		"heartbeat, with answer": func(p *peer, b broker) { p.ask(remoting.BrokerHeartbeat, b.fields()...) },
		"heartbeat, oneway": func(p *peer, b broker) {
			require.NoError(p.w.t, p.c.Oneway(p.w.t.Context(), "namesrv", remoting.NewRequest(remoting.BrokerHeartbeat, b.fields()...)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, nil, func(t *testing.T, w *world) {
				p, b := w.peer(), brokerA()
				p.register(b)
				for range 10 {
					time.Sleep(100 * time.Second)
					report(p, b)
				}
				require.NotNil(t, w.route("T1"))
				if name != "registration" {
					time.Sleep(200 * time.Second)
					require.Nil(t, w.route("T1"))
				}
			})
		})
	}
}

// compare asks whether a broker has to register.
func compare(p *peer, b broker) *remoting.Command {
	p.w.t.Helper()
	req := remoting.NewRequest(remoting.QueryDataVersion, b.fields()...)
	req.Body = route.DataVersion{Timestamp: 1, Counter: b.version}.AppendJSON(nil, false)
	return p.send(req)
}

func TestAVersionThatDiffersAsksForARegistration(t *testing.T) { // protocol.md 3, request 322
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, b := w.peer(), brokerA()
		resp := compare(p, b)
		require.Equal(t, "true", resp.Fields.Get("changed"))
		require.Empty(t, resp.Body)
		p.register(b)
		b.version = 5
		resp = compare(p, b)
		require.Equal(t, "true", resp.Fields.Get("changed"))
		stored, err := route.ParseDataVersion(resp.Body)
		require.NoError(t, err)
		require.Equal(t, route.DataVersion{Timestamp: 1}, stored)
	})
}

func TestTopicsMayBeAddedOneByOne(t *testing.T) { // protocol.md 16, request 217
	inWorld(t, nil, func(t *testing.T, w *world) {
		p := w.peer()
		p.register(brokerA())
		req := remoting.NewRequest(remoting.RegisterTopic, remoting.String("topic", "New"))
		req.Body = (&route.Topic{Queues: []route.QueueData{{BrokerName: "a", ReadQueueNums: 3}, {BrokerName: "nobody"}}}).AppendJSON(nil, route.Form{})
		require.Equal(t, remoting.Success, p.send(req).Code)
		require.Equal(t, map[string]int32{"a": 3}, w.queues("New"))
	})
}

func TestServersBesideEachOtherNeverTalk(t *testing.T) { // R-C-05, R-C-22, R-C-23
	synctest.Test(t, func(t *testing.T) {
		one, two := newWorld(t, nil), newWorld(t, nil)
		one.peer().register(brokerA())
		require.NotNil(t, one.route("T1"))
		require.Nil(t, two.route("T1"))
		two.peer().register(brokerA()) // the next report fills it
		require.NotNil(t, two.route("T1"))
		require.Equal(t, slices.Collect(maps.Values(one.route("T1").Brokers[0].Addrs)), two.server.LiveAddrs())
	})
}
