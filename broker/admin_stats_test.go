package broker_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// statsOf asks for one figure of 315.
func (p *peer) statsOf(name, key string) string {
	p.w.t.Helper()
	return p.body(remoting.ViewBrokerStats, remoting.String("statsName", name), remoting.String("statsKey", key))
}

func TestFlowsAreCountedByMinuteHourAndDay(t *testing.T) { // R-G-34, protocol.md 2.1: 315
	o := small("4.9")
	o.Idle = 100 * time.Hour
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		none := func(name, key string) {
			t.Helper()
			resp := p.admin(remoting.SystemError, remoting.ViewBrokerStats, "", remoting.String("statsName", name), remoting.String("statsKey", key))
			require.Equal(t, fmt.Sprintf("The stats <%s> <%s> not exist", name, key), resp.Remark)
		}
		item := func(sum int, tps, avgpt string) string {
			return fmt.Sprintf(`{"avgpt":%s,"sum":%d,"tps":%s}`, avgpt, sum, tps)
		}
		three := func(day, hour, minute string) string {
			return fmt.Sprintf(`{"statsDay":%s,"statsHour":%s,"statsMinute":%s}`, day, hour, minute)
		}
		none("TOPIC_PUT_NUMS", "T")
		none("NOTHING", "T")
		none("GROUP_GET_NUMS", "T")
		p.puts("T", "a", "b", "c")
		time.Sleep(20 * time.Second)
		require.Equal(t, three(item(3, "0.15", "1.0"), item(3, "0.15", "1.0"), item(3, "0.15", "1.0")), p.statsOf("TOPIC_PUT_NUMS", "T"))
		require.Contains(t, p.statsOf("TOPIC_PUT_SIZE", "T"), fmt.Sprintf(`"sum":%d,`, w.broker.Stats().LogEnd))
		require.Equal(t, remoting.Success, p.send(outgoing{topic: "T", body: string(batchBody("d", "", "e", ""))}.request(remoting.SendBatchMessage)).Code)
		require.Equal(t, remoting.Success, p.pull(pulling{topic: "T", flags: subscribes}).Code)
		require.Contains(t, p.statsOf("GROUP_GET_NUMS", "T@CG"), `"statsMinute":{"avgpt":5.0,"sum":5,`)
		require.Contains(t, p.statsOf("TOPIC_PUT_NUMS", "T"), `"statsMinute":{"avgpt":1.25,"sum":5,`)
		require.Contains(t, p.statsOf("BROKER_PUT_NUMS", "DefaultCluster"), `"sum":5,`)
		require.Contains(t, p.statsOf("BROKER_GET_NUMS", "DefaultCluster"), `"sum":5,`)
		none("BROKER_GET_NUMS", "Other")
		none("GROUP_GET_NUMS", "T@Nobody")

		time.Sleep(2 * time.Minute) // out of the minute, still in the hour
		p.puts("T", "f")
		shown := p.statsOf("TOPIC_PUT_NUMS", "T")
		require.Contains(t, shown, `"statsMinute":{"avgpt":1.0,"sum":1,`)
		require.Contains(t, shown, `"statsHour":{"avgpt":1.2,"sum":6,`)
		time.Sleep(2 * time.Hour)
		shown = p.statsOf("TOPIC_PUT_NUMS", "T")
		require.Contains(t, shown, `"statsHour":{"avgpt":0.0,"sum":0,"tps":0.0}`)
		require.Contains(t, shown, `"statsDay":{"avgpt":1.2,"sum":6,`)
		time.Sleep(26 * time.Hour)
		require.Contains(t, p.statsOf("TOPIC_PUT_NUMS", "T"), `"statsDay":{"avgpt":0.0,"sum":0,`)

		p.admin(remoting.Success, remoting.DeleteTopicInBroker, "", remoting.String("topic", "T"))
		none("TOPIC_PUT_NUMS", "T")
		none("GROUP_GET_NUMS", "T@CG")
	})
}

func TestMessagesSentBackAreCounted(t *testing.T) { // protocol.md 2.1: 315
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		p.admin(remoting.Success, remoting.ConsumerSendMessageBack, "", remoting.Int("offset", 0), remoting.String("group", "CG"), remoting.Int("delayLevel", 0))
		require.Contains(t, p.statsOf("SNDBCK_PUT_NUMS", "T@CG"), `"sum":1,`)
		p.admin(remoting.Success, remoting.DeleteSubscriptionGroup, "", remoting.String("groupName", "CG"))
		p.admin(remoting.SystemError, remoting.ViewBrokerStats, "", remoting.String("statsName", "SNDBCK_PUT_NUMS"), remoting.String("statsKey", "T@CG"))
	})
}

func TestTheProgressOfAllGroupsIsShown(t *testing.T) { // R-G-34, protocol.md 6: 317
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		ordered := append(topicFields("O", 1, 1, 6), remoting.Bool("order", true))
		p.admin(remoting.Success, remoting.CreateTopic, "", ordered...)
		p.admin(remoting.Success, remoting.CreateTopic, "", topicFields("T", 1, 2, 6)...)
		p.puts("T", "a", "b", "c")
		p.puts("O", "d")
		stored := time.Now().UnixMilli()
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*", "O", "*"))
		require.Equal(t, remoting.Success, p.pull(pulling{topic: "T"}).Code)
		p.ask(remoting.UpdateConsumerOffset, queueFields("T", 0, remoting.Int("commitOffset", 1))...)
		p.ask(remoting.UpdateConsumerOffset, queueFields("O", 0, remoting.Int("commitOffset", 0))...)
		time.Sleep(30 * time.Second)
		const of = `{"brokerName":"broker-a","queueId":%d,"topic":%q}:{"brokerOffset":%d,"consumerOffset":%d,"lastTimestamp":%d}`
		o := `{"consumeTps":0.0,"offsetTable":{` + fmt.Sprintf(of, 0, "O", 1, 0, 0) + `}}`
		both := `{"CG":[` + o + `,{"consumeTps":0.1,"offsetTable":{` + fmt.Sprintf(of, 0, "T", 3, 1, stored) + "," + fmt.Sprintf(of, 1, "T", 0, 0, 0) + `}}]}`
		all := p.body(remoting.GetBrokerConsumeStats, remoting.Bool("isOrder", false))
		require.True(t, strings.HasPrefix(all, `{"brokerAddr":"127.0.0.1:10911","consumeStatsList":[{"CG":[`), all)
		require.Contains(t, all, both)
		require.Contains(t, all, `{"TOOLS_CONSUMER":[]}],"totalDiff":3}`)
		only := p.body(remoting.GetBrokerConsumeStats, remoting.Bool("isOrder", true))
		require.Contains(t, only, `{"CG":[`+o+`]}`)
		require.Contains(t, only, `"totalDiff":1}`)
		require.Contains(t, p.body(remoting.GetConsumeStats, remoting.String("consumerGroup", "CG")), `{"consumeTps":0.1,`)
	})
}

func TestConsumersAreAskedWhereTheyAre(t *testing.T) { // R-G-34, protocol.md 2.1: 223 and 221
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		status := func(want int32, client string) *remoting.Command {
			t.Helper()
			return p.admin(want, remoting.InvokeConsumerStatus, "", remoting.String("topic", "T"), remoting.String("group", "CG"), remoting.String("clientAddr", client))
		}
		require.Equal(t, "No Any Consumer online in the consumer group: [CG]", status(remoting.SystemError, "").Remark)
		var where sync.Map // by client: all are asked at once
		for i, body := range []string{`{"consumerTable":{},"messageQueueTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7}}`, `{"messageQueueTable":null}`, "no JSON", "", `{"messageQueueTable":7}`} {
			id := fmt.Sprintf("c%d", i)
			client := w.answering(func(req *remoting.Command) *remoting.Command {
				if req.Code != remoting.GetConsumerStatus || body == "" {
					return nil
				}
				resp := req.Reply(remoting.Success)
				resp.Body = []byte(body)
				where.Store(id, req.Fields.Get("topic")+" "+req.Fields.Get("group"))
				return resp
			})
			client.beat(heartbeat(id, "CG", "CLUSTERING", 1, "T", "*"))
		}
		const c0 = `"c0":{{"brokerName":"b","queueId":0,"topic":"T"}:7}`
		requireText(t, `{"consumerTable":{`+c0+`}}`, string(status(remoting.Success, "c0").Body))
		requireText(t, `{"consumerTable":{}}`, string(status(remoting.Success, "nobody").Body)) // as the original says it
		status(remoting.SystemError, "c2")
		status(remoting.SystemError, "c3")
		status(remoting.SystemError, "c4")
		requireText(t, `{"consumerTable":{`+c0+`,"c1":{}}}`, string(status(remoting.Success, "").Body)) // the others are left out
		asked, _ := where.Load("c1")
		require.Equal(t, "T CG", asked)
		old := w.peer()
		req := remoting.NewRequest(remoting.Heartbeat)
		req.Version, req.Body = 27, heartbeat("old", "CG", "CLUSTERING", 1, "T", "*")
		require.Equal(t, remoting.Success, old.send(req).Code)
		require.Contains(t, status(remoting.SystemError, "").Remark, "does not support this feature")
	})
}
