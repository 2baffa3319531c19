package broker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// back makes request 36.
func back(offset int64, group string, level int, more ...remoting.Field) *remoting.Command {
	return remoting.NewRequest(remoting.ConsumerSendMessageBack, append([]remoting.Field{
		remoting.Int("offset", offset), remoting.String("group", group), remoting.Int("delayLevel", int64(level)),
	}, more...)...)
}

// newest is the last message of queue 0 of a topic.
func (p *peer) newest(topic string) *message.Message {
	p.w.t.Helper()
	f := p.ask(remoting.GetMaxOffset, queueFields(topic, 0)...).Fields.Reader()
	got := records(p.w.t, p.pull(pulling{topic: topic, offset: f.Int64("offset") - 1}))
	require.Len(p.w.t, got, 1)
	return got[0]
}

// offsetOf is the physical offset of the last message of queue 0 of a topic.
func (p *peer) offsetOf(topic string) int64 {
	p.w.t.Helper()
	f := p.ask(remoting.GetMaxOffset, queueFields(topic, 0)...).Fields.Reader()
	res, err := p.w.broker.Store().Get(p.w.t.Context(), getOf(topic, f.Int64("offset")-1))
	require.NoError(p.w.t, err)
	defer res.Release()
	require.Len(p.w.t, res.Records, 1)
	return res.Records[0].PhysicalOffset
}

func TestAMessageSentBackComesAgainLaterAndDiesInTheEnd(t *testing.T) { // R-D-010, R-D-018, R-F-12, R-F-15, protocol.md 8.2, E2, E9
	for _, dialect := range []string{"3.1", "4.9", "5.3"} {
		o := small(dialect)
		o.Store.DelayLevels = "1s 2s 3s 4s 5s 6s 7s"
		inWorld(t, o, func(t *testing.T, w *world) {
			p := w.peer()
			p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
			resp := p.put(outgoing{topic: "T", body: "hard", properties: "TAGS\x01a\x02KEYS\x01k\x02", sysFlag: message.FlagCompressed})
			require.Equal(t, remoting.Success, resp.Code, resp.Remark)
			first := p.newest("T")
			require.Equal(t, remoting.Success, p.send(back(p.offsetOf("T"), "CG", 0, remoting.Int("maxReconsumeTimes", 3))).Code)
			for n, wait := range []time.Duration{3 * time.Second, 4 * time.Second, 5 * time.Second} {
				time.Sleep(wait - 100*time.Millisecond)
				require.Equal(t, n, p.countOf("%RETRY%CG"), "before %v", wait)
				time.Sleep(1200 * time.Millisecond)
				require.Equal(t, n+1, p.countOf("%RETRY%CG"), "after %v", wait)
				again := p.newest("%RETRY%CG")
				require.Equal(t, int32(n+1), again.ReconsumeTimes)
				requireSameMessage(t, first, again)
				require.Equal(t, string(rune('3'+n)), propertyOf(again, "DELAY")) // it stays (E2)
				require.Equal(t, "%RETRY%CG", propertyOf(again, "REAL_TOPIC"))
				require.Equal(t, remoting.Success, p.send(back(p.offsetOf("%RETRY%CG"), "CG", 0, remoting.Int("maxReconsumeTimes", 3))).Code)
			}
			time.Sleep(time.Minute)
			require.Equal(t, 3, p.countOf("%RETRY%CG"))
			require.Equal(t, 1, p.countOf("%DLQ%CG"))
			dead := p.newest("%DLQ%CG")
			require.Equal(t, int32(4), dead.ReconsumeTimes)
			requireSameMessage(t, first, dead)
			require.Empty(t, propertyOf(dead, "DELAY"))
		})
	}
}

// requireSameMessage compares what retries must keep.
func requireSameMessage(t *testing.T, first, again *message.Message) {
	t.Helper()
	require.Equal(t, string(first.Body), string(again.Body))
	require.Equal(t, first.BornTimestamp, again.BornTimestamp)
	require.Equal(t, first.BornHost, again.BornHost)
	require.Equal(t, first.Flag, again.Flag)
	require.Equal(t, first.SysFlag.WithTransaction(0), again.SysFlag)
	require.Equal(t, propertyOf(first, "TAGS"), propertyOf(again, "TAGS"))
	require.Equal(t, propertyOf(first, "KEYS"), propertyOf(again, "KEYS"))
	require.Equal(t, "T", propertyOf(again, "RETRY_TOPIC"))
	require.Equal(t, "7F00000100002A9F0000000000000000", propertyOf(again, "ORIGIN_MESSAGE_ID"))
	require.Equal(t, "false", propertyOf(again, "WAIT"))
}

func propertyOf(m *message.Message, name string) string {
	v, _ := m.Properties.Get(name)
	return v
}

func (p *peer) countOf(topic string) int {
	p.w.t.Helper()
	f := p.ask(remoting.GetMaxOffset, queueFields(topic, 0)...).Fields.Reader()
	return int(f.Int64("offset"))
}

func TestSendingBackIsChecked(t *testing.T) { // protocol.md 8.2, E9
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "one")
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		require.Equal(t, remoting.SubscriptionGroupNotExist, p.send(back(0, "Nobody", 0)).Code)
		require.Equal(t, remoting.SubscriptionGroupNotExist, p.send(back(0, "../x", 0)).Code)
		for _, wrong := range []int64{-1, 3, 1 << 50} {
			require.Equal(t, remoting.SystemError, p.send(back(wrong, "CG", 0)).Code)
		}
		require.Equal(t, remoting.SystemError, p.ask(remoting.ConsumerSendMessageBack, remoting.String("group", "CG")).Code)
		require.Equal(t, remoting.Success, p.put(outgoing{topic: "T", sysFlag: message.FlagPrepared, properties: "TRAN_MSG\x01true\x02PGROUP\x01PG\x02"}).Code)
		require.Equal(t, remoting.SystemError, p.send(back(p.offsetOf("RMQ_SYS_TRANS_HALF_TOPIC"), "CG", 0)).Code) // nobody can have it
		require.Zero(t, p.countOf("%RETRY%CG"))
		require.Zero(t, p.countOf("%DLQ%CG"))

		require.Equal(t, remoting.Success, p.send(back(0, "CG", -1)).Code) // negative: it is dead at once
		require.Equal(t, 1, p.countOf("%DLQ%CG"))
		require.Equal(t, remoting.Success, p.send(back(0, "CG", 0, remoting.Int("maxReconsumeTimes", 0))).Code)
		require.Equal(t, 2, p.countOf("%DLQ%CG"))
		old := back(0, "CG", 1, remoting.Int("maxReconsumeTimes", 0)) // of a client that cannot say so
		old.Version = remoting.Version314
		require.Equal(t, remoting.Success, p.send(old).Code)
		require.Equal(t, 2, p.countOf("%DLQ%CG"))
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, p.countOf("%RETRY%CG"))
		huge := back(0, "CG", 1<<31-1)
		require.Equal(t, remoting.Success, p.send(huge).Code) // lowered to the highest level
		time.Sleep(2*time.Hour + 2*time.Second)
		require.Equal(t, 2, p.countOf("%RETRY%CG"))
		require.Equal(t, "18", propertyOf(p.newest("%RETRY%CG"), "DELAY"))
	})
	o := small("4.9")
	o.Permission = 4
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		require.Equal(t, remoting.NoPermission, p.send(back(0, "CG", 0)).Code)
		p.admin(remoting.Success, remoting.UpdateBrokerConfig, "brokerPermission=6")
		p.puts("T", "one")
		require.Equal(t, remoting.Success, p.send(back(0, "CG", 0)).Code) // what holds now counts
	})
}

func TestACommittedMessageThatIsSentBackStaysAMessage(t *testing.T) { // protocol.md E1, E4
	for _, dialect := range []string{"3.1", "4.9", "5.3"} {
		inWorld(t, small(dialect), func(t *testing.T, w *world) {
			p := w.peer()
			p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
			number, at := p.prepare("bought", "UNIQ_KEY\x01U1\x02")
			require.Equal(t, remoting.Success, p.send(endOf(number, at, 8)).Code)
			got := records(t, p.pull(pulling{topic: "T", queue: 1}))
			require.Len(t, got, 1)
			require.Equal(t, message.FlagCommit, got[0].SysFlag.Transaction())
			require.Equal(t, "true", propertyOf(got[0], "TRAN_MSG")) // the marks stay in its bytes (E1)
			require.Equal(t, "PG", propertyOf(got[0], "PGROUP"))
			if dialect != "3.1" {
				require.Equal(t, "T", propertyOf(got[0], "REAL_TOPIC"))
				require.Equal(t, "1", propertyOf(got[0], "REAL_QID"))
			}
			res, err := w.broker.Store().Get(t.Context(), getOf("T", 0, 1))
			require.NoError(t, err)
			place := res.Records[0].PhysicalOffset
			res.Release()
			require.Equal(t, remoting.Success, p.send(back(place, "CG", 1)).Code)
			time.Sleep(2 * time.Second)
			again := p.newest("%RETRY%CG")
			require.Zero(t, again.SysFlag.Transaction())
			require.Equal(t, "true", propertyOf(again, "TRAN_MSG"))
			// The client's own way, by send, with and without a try left.
			m := outgoing{topic: "%RETRY%CG", body: "bought", sysFlag: message.FlagPrepared, reconsume: 2, most: 3, properties: again.Properties}
			require.Equal(t, remoting.Success, p.put(m).Code)
			m.reconsume = 4
			require.Equal(t, remoting.Success, p.put(m).Code)
			time.Sleep(2 * time.Second)
			require.Equal(t, 2, p.countOf("%RETRY%CG"))
			require.Equal(t, 1, p.countOf("%DLQ%CG"))
			for _, err := range w.broker.Store().OpenTransactions(t.Context()) {
				require.NoError(t, err)
				t.Error("a transaction is open")
			}
		})
	}
}

func TestAGroupThatConsumesInOrderHasNoTryLeft(t *testing.T) { // protocol.md E9
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "first")
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		again := outgoing{topic: "%RETRY%CG", body: "again", reconsume: 3, most: 3, properties: "DELAY\x011\x02"}
		locks := remoting.NewRequest(remoting.LockBatchQueues)
		locks.Body = []byte(`{"consumerGroup":"CG","clientId":"c","mqSet":[{"topic":"T","brokerName":"broker-a","queueId":0}]}`)
		require.Equal(t, remoting.Success, p.send(locks).Code)
		require.Equal(t, remoting.Success, p.put(again).Code)
		require.Equal(t, 1, p.countOf("%DLQ%CG"))
		time.Sleep(w.broker.LockTime())
		require.Equal(t, remoting.Success, p.put(again).Code)
		time.Sleep(2 * time.Second)
		require.Equal(t, 1, p.countOf("%DLQ%CG"))
		require.Equal(t, 1, p.countOf("%RETRY%CG"))
	})
}

func TestAGroupWithoutRetriesDropsWhatIsSentBack(t *testing.T) { // protocol.md 8.2
	o := small("4.9")
	write(t, o.Store.FS, "config/subscriptionGroup.json", `{"dataVersion":{"counter":1,"timestamp":1},"subscriptionGroupTable":{"CG":{"groupName":"CG","consumeEnable":true,"retryQueueNums":0,"retryMaxTimes":16}}}`)
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "one")
		require.Equal(t, remoting.Success, p.send(back(0, "CG", 0)).Code)
		time.Sleep(time.Minute)
		require.Zero(t, p.countOf("%RETRY%CG"))
	})
}

func TestAChangedPermissionHoldsForWhatIsSentBack(t *testing.T) { // R-G-02, protocol.md 8.2
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		back := []remoting.Field{remoting.Int("offset", 0), remoting.String("group", "CG"), remoting.Int("delayLevel", 0)}
		p.admin(remoting.Success, remoting.UpdateBrokerConfig, "brokerPermission=4\n")
		p.admin(remoting.NoPermission, remoting.ConsumerSendMessageBack, "", back...)
		p.admin(remoting.Success, remoting.UpdateBrokerConfig, "brokerPermission=6\n")
		p.admin(remoting.Success, remoting.ConsumerSendMessageBack, "", back...)
	})
}
