package namesrv_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/internal/route"
	"github.com/rocketstore/rocketstore/namesrv"
)

func TestASilentBrokerGoesAfterItsTime(t *testing.T) { // R-C-28, R-C-29
	inWorld(t, &namesrv.Options{Idle: time.Hour}, func(t *testing.T, w *world) {
		b := brokerA()
		p := w.peer()
		p.register(b) // at 0 s; scans come at 5, 15, … 125 s
		conn, err := p.c.Conn(t.Context(), "namesrv")
		require.NoError(t, err)
		time.Sleep(124 * time.Second)
		require.Equal(t, []string{b.addr}, w.server.LiveAddrs()) // over the time, but nobody looked yet
		require.NoError(t, conn.Err())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, w.server.LiveAddrs())
		require.Error(t, conn.Err()) // its connection was closed
		require.Nil(t, w.route("T1"))
		require.Equal(t, int64(1), w.server.Stats().Expired)
	})
}

func TestAtExactlyItsTimeABrokerStays(t *testing.T) { // R-C-29
	inWorld(t, &namesrv.Options{Idle: time.Hour}, func(t *testing.T, w *world) {
		time.Sleep(5 * time.Second)
		synctest.Wait()
		w.peer().register(brokerA()) // at 5 s, the scan of 125 s finds it exactly 120 s old
		time.Sleep(120 * time.Second)
		synctest.Wait()
		require.Len(t, w.server.LiveAddrs(), 1)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Empty(t, w.server.LiveAddrs())
	})
}

func TestTheClockOfTheTablesIsTheOneGiven(t *testing.T) {
	var mu sync.Mutex
	now := time.Unix(1000, 0)
	set := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	inWorld(t, &namesrv.Options{Now: clock}, func(t *testing.T, w *world) {
		w.peer().register(brokerA())
		time.Sleep(100 * time.Second) // ten scans, and no time has passed
		synctest.Wait()
		require.Len(t, w.server.LiveAddrs(), 1)
		set(121 * time.Second)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Empty(t, w.server.LiveAddrs())
	})
}

func TestABrokerMayBringItsOwnTimeout(t *testing.T) { // R-C-29, 5.x
	inWorld(t, &namesrv.Options{ScanEvery: 5 * time.Second}, func(t *testing.T, w *world) {
		b := brokerA()
		b.extra = remoting.Fields{remoting.Int("heartbeatTimeoutMillis", 10_000)}
		w.peer().register(b)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Len(t, w.server.LiveAddrs(), 1)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Empty(t, w.server.LiveAddrs())
	})
}

func TestGoodbyeCleansAllTables(t *testing.T) { // R-C-40, R-C-41
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, b, slave := w.peer(), brokerA(), brokerA()
		slave.id, slave.addr = 1, "10.0.0.9:10911"
		p.register(b)
		p.register(slave)
		other := brokerA()
		other.name, other.addr, other.topics = "b", "10.0.0.2:10911", other.topics[:1]
		p.register(other)

		stranger := b
		stranger.addr = "10.9.9.9:1"
		for _, who := range []broker{stranger, {cluster: "c1", name: "b", addr: b.addr}, {cluster: "c1", name: "a", id: 7, addr: b.addr}} {
			require.Equal(t, remoting.Success, p.ask(remoting.UnregisterBroker, who.fields()...).Code)
			require.Len(t, w.server.LiveAddrs(), 3) // nobody of that name, id and address
		}
		p.ask(remoting.UnregisterBroker, b.fields()...)
		require.Equal(t, map[int64]string{1: slave.addr}, w.route("T2").Brokers[0].Addrs) // R-C-43
		p.ask(remoting.UnregisterBroker, slave.fields()...)
		require.Nil(t, w.route("T2"))
		require.Equal(t, map[string]int32{"b": 4}, w.queues("T1"))
		p.ask(remoting.UnregisterBroker, other.fields()...)
		require.Zero(t, w.server.Stats().Topics)
		require.Zero(t, w.server.Stats().Clusters)
		require.Equal(t, int64(3), w.server.Stats().Unregistered)
	})
}

func TestALostConnectionTakesItsBrokersAlong(t *testing.T) { // R-C-39, R-C-42
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, b, slave := w.peer(), brokerA(), brokerA()
		slave.id, slave.addr = 1, "10.0.0.9:10911"
		p.register(b)
		w.peer().register(slave)
		again := w.peer()
		again.register(b) // the broker connected anew before its old connection was lost
		p.lose()
		require.Len(t, w.server.LiveAddrs(), 2)
		again.lose()
		require.Equal(t, []string{slave.addr}, w.server.LiveAddrs())
		require.Equal(t, map[int64]string{1: slave.addr}, w.route("T1").Brokers[0].Addrs)
		require.Equal(t, int64(1), w.server.Stats().Lost)
	})
}

func TestASilentConnectionCountsAsDeath(t *testing.T) { // R-C-39
	inWorld(t, &namesrv.Options{BrokerTimeout: time.Hour}, func(t *testing.T, w *world) {
		w.peer().register(brokerA())
		time.Sleep(119 * time.Second)
		require.Len(t, w.server.LiveAddrs(), 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Empty(t, w.server.LiveAddrs())
	})
}

func TestEventsTellOfBrokersThatComeAndGo(t *testing.T) { // R-G-07
	var mu sync.Mutex
	var seen []string
	o := &namesrv.Options{Events: func(e namesrv.Event) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, e.Kind.String()+" "+e.Cluster+"/"+e.Name)
	}}
	inWorld(t, o, func(t *testing.T, w *world) {
		p, b := w.peer(), brokerA()
		p.register(b)
		p.register(b)
		p.ask(remoting.UnregisterBroker, b.fields()...)
		p.register(b)
		p.lose()
		p.register(b)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, []string{"registered c1/a", "unregistered c1/a", "registered c1/a", "connection lost c1/a", "registered c1/a"}, seen)
	})
}

func TestWritePermissionIsWipedAndGivenBack(t *testing.T) { // R-C-45
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, b, other := w.peer(), brokerA(), brokerA()
		b.topics = append(b.topics, topic("TBW102", 8, 7))
		p.register(b)
		other.name, other.addr = "b", "10.0.0.2:10911"
		p.register(other)
		perms := func(topic string) map[string]int32 {
			m := map[string]int32{}
			for _, q := range w.route(topic).Queues {
				m[q.BrokerName] = q.Perm
			}
			return m
		}
		require.Equal(t, "3", p.ask(remoting.WipeWritePermission, remoting.String("brokerName", "a")).Fields.Get("wipeTopicCount"))
		require.Equal(t, map[string]int32{"a": 4, "b": 6}, perms("T1"))
		require.Equal(t, map[string]int32{"a": 5}, perms("TBW102"))
		p.register(b)
		require.Equal(t, map[string]int32{"a": 4, "b": 6}, perms("T1")) // it lasts over reports with the same data version
		require.Equal(t, "3", p.ask(remoting.AddWritePermission, remoting.String("brokerName", "a")).Fields.Get("addTopicCount"))
		require.Equal(t, map[string]int32{"a": 6}, perms("TBW102"))
		require.Equal(t, "0", p.ask(remoting.WipeWritePermission, remoting.String("brokerName", "nobody")).Fields.Get("wipeTopicCount"))
	})
}

func TestDeletedTopicsAreGone(t *testing.T) { // R-C-51
	inWorld(t, nil, func(t *testing.T, w *world) {
		p, other := w.peer(), brokerA()
		p.register(brokerA())
		other.cluster, other.name, other.addr = "c2", "b", "10.0.0.2:10911"
		p.register(other)
		p.ask(remoting.DeleteTopicInNameServer, remoting.String("topic", "T1"), remoting.String("clusterName", "c2"))
		require.Equal(t, map[string]int32{"a": 4}, w.queues("T1"))
		p.ask(remoting.DeleteTopicInNameServer, remoting.String("topic", "T1"))
		require.Nil(t, w.route("T1"))
		require.Equal(t, map[string]int32{"a": 8, "b": 8}, w.queues("T2"))
	})
}

// TestRouteAnswersAreCopies reads one route twice while it changes in between.
func TestRouteAnswersAreCopies(t *testing.T) { // R-C-50
	inWorld(t, nil, func(t *testing.T, w *world) {
		w.peer().register(brokerA())
		before := w.route("T1")
		before.Brokers[0].Addrs[0] = "changed"
		before.Queues[0].Perm = 0
		require.Equal(t, []route.QueueData{{BrokerName: "a", ReadQueueNums: 4, WriteQueueNums: 4, Perm: 6}}, w.route("T1").Queues)
	})
}
