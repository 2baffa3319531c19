package namesrv_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/namesrv"
)

// step is one thing that happens to a name server.
type step struct {
	What    string
	Peer    int
	Broker  broker
	Seconds int
	Cluster string
}

// steps draws what may happen: brokers of few names, ids and addresses report, change role, name and cluster, say
// goodbye, lose their connections and fall silent, in any order, over few connections.
func steps() *rapid.Generator[[]step] {
	what := []string{"register", "register", "register", "unregister", "lose", "silence", "heartbeat", "compare", "delete", "wipe", "add topic"}
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
		pick := func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, label) }
		b := broker{
			cluster: fmt.Sprintf("c%d", pick("cluster", 2)), name: fmt.Sprintf("b%d", pick("name", 3)), addr: fmt.Sprintf("h:%d", pick("addr", 4)),
			id: int64(pick("id", 2)), version: int64(pick("version", 2)), state: int64(pick("state", 2)),
		}
		for i := range pick("topics", 4) {
			b.topics = append(b.topics, topic(fmt.Sprintf("t%d", i), int32(pick("queues", 3)), 6))
		}
		if pick("filters", 3) == 0 {
			b.filters = []string{"f:1"}
		}
		return step{rapid.SampledFrom(what).Draw(rt, "what"), pick("peer", 3), b, pick("seconds", 40), []string{"", "c0"}[pick("where", 2)]}
	}), 1, 40)
}

func (s step) run(p *peer) {
	switch s.What {
	case "register":
		p.register(s.Broker)
	case "unregister":
		p.ask(remoting.UnregisterBroker, s.Broker.fields()...)
	case "lose":
		p.lose()
	case "silence":
		time.Sleep(time.Duration(s.Seconds) * time.Second)
	case "heartbeat":
		p.ask(remoting.BrokerHeartbeat, s.Broker.fields()...)
	case "compare":
		compare(p, s.Broker)
	case "delete":
		p.ask(remoting.DeleteTopicInNameServer, remoting.String("topic", "t1"), remoting.String("clusterName", s.Cluster))
	case "wipe":
		p.ask(remoting.WipeWritePermission, remoting.String("brokerName", s.Broker.name))
	case "add topic":
		req := remoting.NewRequest(remoting.RegisterTopic, remoting.String("topic", "t1"))
		req.Body = (&route.Topic{Queues: []route.QueueData{{BrokerName: s.Broker.name}}}).AppendJSON(nil, route.Form{})
		p.send(req)
	}
}

func TestTablesStayConsistentWhateverHappens(t *testing.T) { // R-C-44
	rapid.Check(t, func(rt *rapid.T) {
		list := steps().Draw(rt, "steps")
		var wrong []string
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, &namesrv.Options{BrokerTimeout: 30 * time.Second})
			peers := []*peer{w.peer(), w.peer(), w.peer()}
			for i := 0; i < len(list) && wrong == nil; i++ {
				list[i].run(peers[list[i].Peer])
				synctest.Wait()
				wrong = w.server.Inconsistencies()
			}
		})
		require.Empty(rt, wrong)
	})
}
