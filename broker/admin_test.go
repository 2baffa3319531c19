package broker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// admin asks with a body, and wants a code.
func (p *peer) admin(want, code int32, body string, fields ...remoting.Field) *remoting.Command {
	p.w.t.Helper()
	req := remoting.NewRequest(code, fields...)
	req.Body = []byte(body)
	resp := p.send(req)
	require.Equal(p.w.t, want, resp.Code, resp.Remark)
	return resp
}

// body asks and wants success; it gives the answer's body.
func (p *peer) body(code int32, fields ...remoting.Field) string {
	p.w.t.Helper()
	return string(p.admin(remoting.Success, code, "", fields...).Body)
}

// requireText compares what looks like JSON but need not be.
func requireText(t *testing.T, want, got string) {
	t.Helper()
	require.Equal(t, want, got)
}

func topicFields(name string, read, write, perm int) []remoting.Field {
	return []remoting.Field{
		remoting.String("topic", name), remoting.String("defaultTopic", "TBW102"), remoting.Int("readQueueNums", int64(read)),
		remoting.Int("writeQueueNums", int64(write)), remoting.Int("perm", int64(perm)), remoting.String("topicFilterType", "SINGLE_TAG"),
	}
}

func TestTopicsAreMadeChangedAndDeleted(t *testing.T) { // R-G-34, R-G-16, protocol.md 6
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.admin(remoting.Success, remoting.CreateTopic, "", topicFields("T", 2, 2, 6)...)
		p.puts("T", "a")
		require.Equal(t, remoting.SystemError, p.put(outgoing{topic: "T", queue: 2}).Code)
		p.admin(remoting.Success, remoting.CreateTopic, "", topicFields("T", 3, 3, 6)...)
		require.Equal(t, remoting.Success, p.put(outgoing{topic: "T", queue: 2, body: "c"}).Code)
		stats := p.body(remoting.GetTopicStats, remoting.String("topic", "T"))
		now := time.Now().UnixMilli()
		requireText(t, fmt.Sprintf(`{"offsetTable":{`+
			`{"brokerName":"broker-a","queueId":0,"topic":"T"}:{"lastUpdateTimestamp":%d,"maxOffset":1,"minOffset":0},`+
			`{"brokerName":"broker-a","queueId":1,"topic":"T"}:{"lastUpdateTimestamp":0,"maxOffset":0,"minOffset":0},`+
			`{"brokerName":"broker-a","queueId":2,"topic":"T"}:{"lastUpdateTimestamp":%d,"maxOffset":1,"minOffset":0}}}`, now, now), stats)
		all := p.body(remoting.GetAllTopicConfig)
		require.Contains(t, all, `"topicName":"T"`)
		require.True(t, strings.HasPrefix(all, `{"dataVersion":{`), all)
		require.Contains(t, p.body(remoting.GetSystemTopicsFromBroker), `"TBW102"`)

		for name, fields := range map[string][]remoting.Field{
			"a path": topicFields("../x", 1, 1, 6), "the broker's own": topicFields("TBW102", 1, 1, 6), "system": topicFields("rmq_sys_x", 1, 1, 6),
			"too many queues": topicFields("U", 1<<20, 1, 6), "negative": topicFields("U", -1, 1, 6), "perm": topicFields("U", 1, 1, 64),
		} {
			require.Equal(t, remoting.SystemError, p.ask(remoting.CreateTopic, fields...).Code, name)
		}
		p.admin(remoting.SystemError, remoting.DeleteTopicInBroker, "", remoting.String("topic", "SELF_TEST_TOPIC"))
		p.admin(remoting.Success, remoting.DeleteTopicInBroker, "", remoting.String("topic", "T"))
		p.admin(remoting.Success, remoting.DeleteTopicInBroker, "", remoting.String("topic", "T"))
		require.Equal(t, remoting.TopicNotExist, p.pull(pulling{topic: "T"}).Code)
		p.admin(remoting.TopicNotExist, remoting.GetTopicStats, "", remoting.String("topic", "T"))
		p.puts("T", "b") // made anew, it goes on behind what is still there
		require.Equal(t, []string{"a", "b"}, bodies(t, p.pull(pulling{topic: "T"})))
		p.admin(remoting.Success, remoting.CleanUnusedTopic, "")
	})
}

func TestGroupsAreMadeChangedAndDeleted(t *testing.T) { // R-G-34, protocol.md 6
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		p.admin(remoting.Success, remoting.CreateSubscriptionGroup, `{"groupName":"CG","consumeEnable":false,"retryQueueNums":2,"retryMaxTimes":3}`)
		require.Equal(t, remoting.NoPermission, p.pull(pulling{topic: "T"}).Code)
		require.Contains(t, p.body(remoting.GetAllSubscriptionGroups), `"CG":{"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":false,`+
			`"consumeFromMinEnable":true,"groupName":"CG","notifyConsumerIdsChangedEnable":true,"retryMaxTimes":3,"retryQueueNums":2,"whichBrokerWhenConsumeSlowly":1}`)
		p.admin(remoting.Success, remoting.CreateSubscriptionGroup, `{"groupName":"CG"}`)
		require.Equal(t, remoting.Success, p.pull(pulling{topic: "T"}).Code)
		for _, body := range []string{`{"groupName":"a b"}`, `{}`, `[`, `{"groupName":"CG","retryQueueNums":100000}`} {
			p.admin(remoting.SystemError, remoting.CreateSubscriptionGroup, body)
		}
		p.ask(remoting.UpdateConsumerOffset, queueFields("T", 0, remoting.Int("commitOffset", 1))...)
		p.admin(remoting.Success, remoting.DeleteSubscriptionGroup, "", remoting.String("groupName", "CG"), remoting.Bool("removeOffset", true))
		require.NotContains(t, p.body(remoting.GetAllSubscriptionGroups), `"CG"`)
		requireText(t, `{"offsetTable":{}}`, p.body(remoting.GetAllConsumerOffset))
	})
}

func TestConfigurationIsShownAndChanged(t *testing.T) { // R-G-02, R-G-34
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		resp := p.admin(remoting.Success, remoting.GetBrokerConfig, "")
		require.Contains(t, string(resp.Body), "brokerName=broker-a\n")
		require.Contains(t, resp.Fields.Get("version"), `"counter":`)
		p.admin(remoting.Success, remoting.UpdateBrokerConfig, "autoCreateTopicEnable=false\nbrokerPermission=2\n")
		require.Equal(t, remoting.TopicNotExist, p.put(outgoing{topic: "New"}).Code)
		require.Equal(t, remoting.NoPermission, p.pull(pulling{topic: "T"}).Code)
		p.admin(remoting.Success, remoting.UpdateBrokerConfig, string(p.admin(remoting.Success, remoting.GetBrokerConfig, "").Body)) // the whole of it
		p.admin(remoting.Success, remoting.UpdateBrokerConfig, "autoCreateTopicEnable=true\nbrokerPermission=6\n")
		p.puts("New", "b")
		require.Equal(t, []string{"a"}, bodies(t, p.pull(pulling{topic: "T"})))
		for text, code := range map[string]int32{
			"brokerName=x": remoting.NoPermission, "brokerPermission=3": remoting.SystemError, "nothing=1": remoting.SystemError,
			"traceOn=perhaps": remoting.SystemError, `a=\u12`: remoting.SystemError,
		} {
			require.NotEmpty(t, p.admin(code, remoting.UpdateBrokerConfig, "traceOn=false\n"+text).Remark, text)
		}
		require.Contains(t, string(p.admin(remoting.Success, remoting.GetBrokerConfig, "").Body), "traceOn=true\n") // all or none
	})
}

// A change at run time is in the file that the broker was started with, so that it outlives a restart, as with the original:
// the content before is in the .bak. What the file says besides stays.
func TestChangedConfigurationOutlivesARestart(t *testing.T) { // R-G-02, R-G-34
	const before = "# our broker\nbrokerName=broker-a\nbrokerPermission = 6\nflowerColour=red\n"
	file := filepath.Join(t.TempDir(), "broker.conf")
	require.NoError(t, os.WriteFile(file, []byte(before), 0o600))
	o := small("4.9")
	o.ConfigFile = file
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.admin(remoting.SystemError, remoting.UpdateBrokerConfig, "brokerPermission=4\nnothing=1\n")
		p.admin(remoting.NoPermission, remoting.UpdateBrokerConfig, "brokerPermission=4\nlistenPort=1\n")
		read := func(file string) string {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			return string(text)
		}
		require.Equal(t, before, read(file)) // all or none
		p.admin(remoting.Success, remoting.UpdateBrokerConfig, "brokerPermission=4\nautoCreateTopicEnable=false\nbrokerName=broker-a\n")
		const after = "# our broker\nbrokerName=broker-a\nbrokerPermission=4\nflowerColour=red\nautoCreateTopicEnable=false\n"
		require.Equal(t, after, read(file))
		require.Equal(t, before, read(file+".bak"))
		w.stop()
		again := small("4.9")
		unknown, err := again.SetProperties(read(file))
		require.NoError(t, err)
		require.Equal(t, []string{"flowerColour"}, unknown)
		require.Equal(t, int32(4), again.Permission)
		require.True(t, again.NoAutoTopics)
	})
}

// What cannot be written is not taken: it would be gone after a restart.
func TestConfigurationThatCannotBeWrittenIsNotChanged(t *testing.T) {
	o := small("4.9")
	o.ConfigFile = t.TempDir() // a directory
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.admin(remoting.SystemError, remoting.UpdateBrokerConfig, "brokerPermission=4\n")
		require.Contains(t, string(p.admin(remoting.Success, remoting.GetBrokerConfig, "").Body), "brokerPermission=6\n")
	})
}

func TestRuntimeInfoHasWhatTheToolsRead(t *testing.T) { // protocol.md 16: mqadmin
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		stored := time.Now()
		p.puts("T", "a", "b", "c")
		p.pull(pulling{topic: "T"})
		time.Sleep(20 * time.Second)
		table := map[string]string{}
		r := fastjson.NewReader(p.body(remoting.GetBrokerRuntimeInfo))
		r.Object(func(string) { r.Object(func(key string) { table[key] = r.Text() }) })
		require.NoError(t, r.End())
		for name := range strings.FieldsSeq("putTps getTransferedTps sendThreadPoolQueueSize pullThreadPoolQueueSize sendThreadPoolQueueHeadWaitTimeMills " +
			"pullThreadPoolQueueHeadWaitTimeMills pageCacheLockTimeMills brokerVersionDesc msgPutTotalYesterdayMorning msgPutTotalTodayMorning " +
			"msgGetTotalYesterdayMorning msgGetTotalTodayMorning bootTimestamp brokerVersion") {
			require.NotEmpty(t, table[name], name)
		}
		require.Equal(t, "3", table["msgPutTotalTodayNow"])
		require.Equal(t, "3", table["msgGetTotalTodayNow"])
		require.Equal(t, strconv.FormatInt(stored.UnixMilli(), 10), table["earliestMessageTimeStamp"])
		require.Regexp(t, `^0\.00 0\.\d\d 0\.\d\d$`, table["putTps"])
		time.Sleep(24 * time.Hour) // over a midnight
		require.Contains(t, p.body(remoting.GetBrokerRuntimeInfo), `"msgPutTotalTodayMorning":"3"`)
	})
}

func TestProgressAndConnectionsAreShown(t *testing.T) { // R-G-34, protocol.md 16: 208, 203, 204, 300, 303
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.admin(remoting.Success, remoting.CreateTopic, "", topicFields("T", 1, 1, 6)...)
		p.puts("T", "a", "b", "c")
		stored := time.Now().UnixMilli()
		time.Sleep(time.Second)
		group := remoting.String("consumerGroup", "CG")
		p.admin(remoting.ConsumerNotOnline, remoting.GetConsumerConnections, "", group)
		p.admin(remoting.SystemError, remoting.GetProducerConnections, "", remoting.String("producerGroup", "Nobody"))
		p.beat(heartbeat("10.0.0.1@c", "CG", "CLUSTERING", 9, "T", "a || b"))
		p.ask(remoting.UpdateConsumerOffset, queueFields("T", 0, remoting.Int("commitOffset", 2))...)
		const queue = `{"brokerName":"broker-a","queueId":0,"topic":"T"}`
		requireText(t, fmt.Sprintf(`{"consumeTps":0.0,"offsetTable":{%s:{"brokerOffset":3,"consumerOffset":2,"lastTimestamp":%d}}}`, queue, stored),
			p.body(remoting.GetConsumeStats, group))
		requireText(t, `{"consumeTps":0.0,"offsetTable":{}}`, p.body(remoting.GetConsumeStats, group, remoting.String("topic", "TBW102"))) // not subscribed
		requireText(t, `{"groupList":["CG"]}`, p.body(remoting.QueryTopicConsumeByWho, remoting.String("topic", "T")))
		requireText(t, fmt.Sprintf(`{"consumeTimeSpanSet":[{"consumeTimeStamp":%[1]d,"delayTime":1000,"maxTimeStamp":%[1]d,"messageQueue":%[2]s,"minTimeStamp":%[1]d}]}`, stored, queue),
			p.body(remoting.QueryConsumeTimeSpan, remoting.String("topic", "T"), remoting.String("group", "CG")))
		requireText(t, `{"offsetTable":{"T@CG":{"0":2}}}`, p.body(remoting.GetAllConsumerOffset))
		shown := p.body(remoting.GetConsumerConnections, group)
		require.Contains(t, shown, `"clientId":"10.0.0.1@c","language":"JAVA","version":407}],"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",`+
			`"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","subscriptionTable":{"T":{"classFilterMode":false,"expressionType":"TAG",`+
			`"subString":"a || b","subVersion":9,"tagsSet":["a","b"],"topic":"T"}}`)
		require.Contains(t, p.body(remoting.GetProducerConnections, remoting.String("producerGroup", "PG")), `"clientId":"10.0.0.1@c"`)
		requireText(t, `{"offsetTable":{}}`, p.body(remoting.GetAllDelayOffset))
	})
}

func TestOffsetsAreResetAndCloned(t *testing.T) { // R-G-34, protocol.md 6 and 16: 222
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.admin(remoting.Success, remoting.CreateTopic, "", topicFields("T", 1, 1, 6)...)
		p.puts("T", "a", "b")
		time.Sleep(time.Minute)
		late := time.Now().UnixMilli()
		p.puts("T", "c", "d")
		reset := func(at int64, force bool) []remoting.Field {
			return []remoting.Field{remoting.String("topic", "T"), remoting.String("group", "CG"), remoting.Int("timestamp", at), remoting.Bool("isForce", force)}
		}
		p.admin(remoting.SystemError, remoting.InvokeResetOffset, "", reset(late, true)...) // nothing was ever committed
		p.ask(remoting.UpdateConsumerOffset, queueFields("T", 0, remoting.Int("commitOffset", 1))...)
		p.admin(remoting.ConsumerNotOnline, remoting.InvokeResetOffset, "", reset(late, true)...)
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		p.told()
		for _, tt := range []struct {
			at    int64
			force bool
			want  int
		}{{late, true, 2}, {late, false, 1}, {-1, true, 4}, {0, false, 0}} {
			resp := p.admin(remoting.Success, remoting.InvokeResetOffset, "", reset(tt.at, tt.force)...)
			requireText(t, fmt.Sprintf(`{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:%d}}`, tt.want), string(resp.Body))
			synctest.Wait()
			require.Equal(t, []string{"220 "}, p.told())
		}
		p.admin(remoting.Success, remoting.CloneGroupOffset, "", remoting.String("srcGroup", "CG"), remoting.String("destGroup", "Other"))
		require.Contains(t, p.body(remoting.GetAllConsumerOffset), `"T@Other":{"0":1}`)
		p.admin(remoting.SystemError, remoting.CloneGroupOffset, "", remoting.String("srcGroup", "CG"), remoting.String("destGroup", "../x"))
	})
}
