package broker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

func (p *peer) members(group string) *remoting.Command {
	return p.ask(remoting.GetConsumerListByGroup, remoting.String("consumerGroup", group))
}

func TestMembersAreToldOfEachOther(t *testing.T) { // R-F-11, protocol.md 5.1 to 5.3, E8, trap 7
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		a, b, asker := w.peer(), w.peer(), w.peer()
		require.Equal(t, remoting.SystemError, asker.members("CG").Code)
		a.beat(heartbeat("b@1", "CG", "CLUSTERING", 1, "T", "*", "%RETRY%CG", "*"))
		require.Equal(t, []string{"40 CG"}, a.told())
		b.beat(heartbeat("a@2", "CG", "CLUSTERING", 1, "T", "*", "%RETRY%CG", "*"))
		require.Equal(t, []string{"40 CG"}, a.told())
		require.Equal(t, []string{"40 CG"}, b.told())
		require.JSONEq(t, `{"consumerIdList":["a@2","b@1"]}`, string(asker.members("CG").Body))

		a.beat(heartbeat("b@1", "CG", "CLUSTERING", 2, "T", "x", "%RETRY%CG", "*")) // a newer version alone is silent
		require.Empty(t, a.told())
		a.beat(heartbeat("b@1", "CG", "CLUSTERING", 3, "T", "*", "U", "*", "%RETRY%CG", "*"))
		require.Len(t, a.told(), 1)
		require.Len(t, b.told(), 1)

		resp := b.ask(remoting.UnregisterClient, remoting.String("clientID", "a@2"), remoting.String("consumerGroup", "CG"))
		require.Equal(t, remoting.Success, resp.Code)
		require.Len(t, a.told(), 1)
		require.Empty(t, b.told())
		b.beat(heartbeat("a@2", "CG", "CLUSTERING", 3, "T", "*", "U", "*", "%RETRY%CG", "*"))
		require.Len(t, a.told(), 1)
		b.lose() // as the Go client ends
		require.Equal(t, []string{"40 CG"}, a.told())
		require.JSONEq(t, `{"consumerIdList":["b@1"]}`, string(asker.members("CG").Body))
		a.lose()
		require.Equal(t, remoting.SystemError, asker.members("CG").Code)
		require.Zero(t, w.broker.Stats().ConsumerGroups)
		require.Zero(t, w.broker.Stats().ProducerGroups)
	})
}

func TestNoticesCanBeSwitchedOff(t *testing.T) { // protocol.md E8
	o := small("4.9")
	o.NoNotify = true
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		require.Empty(t, p.told())
	})
}

func TestAHeartbeatMakesGroupAndRetryTopic(t *testing.T) { // protocol.md 5.1, trap 13
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		before := w.broker.Stats()
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		require.Equal(t, before.Topics+1, w.broker.Stats().Topics)
		require.Equal(t, before.Groups+1, w.broker.Stats().Groups)
		require.Equal(t, remoting.PullNotFound, p.pull(pulling{topic: "%RETRY%CG"}).Code)
		p.beat(heartbeat("c", "../up", "CLUSTERING", 1, "T", "*")) // no name for a group
		require.Equal(t, before.Groups+1, w.broker.Stats().Groups)
	})
}

func TestSilentClientsAreDropped(t *testing.T) { // R-F-16, protocol.md 5.1
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		a, b := w.peer(), w.peer()
		body := heartbeat("c", "CG", "CLUSTERING", 1, "T", "*")
		a.beat(body)
		b.beat(heartbeat("d", "CG", "CLUSTERING", 1, "T", "*"))
		for range 5 {
			time.Sleep(30 * time.Second)
			a.beat(body)
		}
		synctest.Wait()
		require.JSONEq(t, `{"consumerIdList":["c"]}`, string(a.members("CG").Body))
	})
}

func TestCapturedHeartbeatsOfRealClients(t *testing.T) { // R-F-11, R-D-149
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		for _, code := range []int32{remoting.Heartbeat, remoting.UnregisterClient} {
			p := w.peer()
			for _, req := range captured(t, code) {
				req.Flag = 0
				require.Equal(t, remoting.Success, p.send(req).Code)
			}
		}
		require.Positive(t, w.broker.Stats().ConsumerGroups)
	})
}

func lockBody(client string) []byte {
	return []byte(`{"consumerGroup":"CG","clientId":"` + client + `","mqSet":[{"brokerName":"broker-a","queueId":0,"topic":"T"},` +
		`{"topic":"T","brokerName":"broker-a","queueId":1},{"topic":"T","brokerName":"broker-a","queueId":77},{"topic":"Absent","brokerName":"broker-a","queueId":0}]}`)
}

func TestQueuesAreLockedForOneClient(t *testing.T) { // R-D-111, protocol.md 5.4
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		lock := func(code int32, client string) string {
			req := remoting.NewRequest(code)
			req.Body = lockBody(client)
			resp := p.send(req)
			require.Equal(t, remoting.Success, resp.Code, resp.Remark)
			return string(resp.Body)
		}
		const both = `{"lockOKMQSet":[{"brokerName":"broker-a","queueId":0,"topic":"T"},{"brokerName":"broker-a","queueId":1,"topic":"T"}]}`
		require.JSONEq(t, both, lock(remoting.LockBatchQueues, "a"))
		require.JSONEq(t, `{"lockOKMQSet":[]}`, lock(remoting.LockBatchQueues, "b"))
		time.Sleep(50 * time.Second)
		require.JSONEq(t, both, lock(remoting.LockBatchQueues, "a")) // renewed
		time.Sleep(50 * time.Second)
		require.JSONEq(t, `{"lockOKMQSet":[]}`, lock(remoting.LockBatchQueues, "b"))
		time.Sleep(10 * time.Second)
		require.JSONEq(t, both, lock(remoting.LockBatchQueues, "b")) // its time was over
		lock(remoting.UnlockBatchQueues, "a")                        // not its own
		require.JSONEq(t, `{"lockOKMQSet":[]}`, lock(remoting.LockBatchQueues, "a"))
		lock(remoting.UnlockBatchQueues, "b")
		require.JSONEq(t, both, lock(remoting.LockBatchQueues, "a"))
		require.Equal(t, time.Minute, w.broker.LockTime())
	})
}
