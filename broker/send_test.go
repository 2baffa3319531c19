package broker_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

func TestASendIsStoredAndAnswered(t *testing.T) { // R-F-06, R-A-64, R-D-134, protocol.md 4.1
	for _, code := range []int32{remoting.SendMessage, remoting.SendMessageV2} {
		inWorld(t, small("4.9"), func(t *testing.T, w *world) {
			p := w.peer()
			resp := p.send(outgoing{topic: "T", queue: 2, properties: "TAGS\x01a\x02KEYS\x01k\x02", body: "hello", sysFlag: message.FlagCompressed | message.FlagLZ4}.request(code))
			require.Equal(t, remoting.Success, resp.Code, resp.Remark)
			require.Equal(t, "2", resp.Fields.Get("queueId"))
			require.Equal(t, "0", resp.Fields.Get("queueOffset"))
			require.Equal(t, "DefaultRegion", resp.Fields.Get("MSG_REGION"))
			require.Equal(t, "true", resp.Fields.Get("TRACE_ON"))
			require.Equal(t, "7F00000100002A9F0000000000000000", resp.Fields.Get("msgId"))
			got := records(t, p.pull(pulling{topic: "T", queue: 2}))
			require.Len(t, got, 1)
			require.Equal(t, "hello", string(got[0].Body))
			require.Equal(t, int32(7), got[0].Flag)
			require.Equal(t, int64(1700000000000), got[0].BornTimestamp)
			require.True(t, got[0].SysFlag.Has(message.FlagCompressed|message.FlagLZ4)) // it is not looked into
		})
	}
}

// What is written in one copy is what was written one by one, whatever a client sends.
func TestStoredPropertiesAreThoseAddedOneByOne(t *testing.T) { // protocol.md 16
	pieces := []string{
		"UNIQ_KEY\x01u\x02", "WAIT\x01true\x02", "CLUSTER\x01other\x02", "TRACE_ON\x01false\x02", "MSG_REGION\x01r\x02", "XCLUSTER\x01WAIT\x02", "KEYS\x01k",
		"\x02", "\x01", "WAIT", "",
	}
	for _, line := range []string{"3.1", "4.9", "5.3"} {
		inWorld(t, small(line), func(t *testing.T, w *world) {
			random := rand.New(rand.NewPCG(5, 6))
			for range 5000 {
				text := []string{"UNIQ_KEY\x01id\x02"} // else each has an id of its own
				for range random.IntN(5) {
					text = append(text, pieces[random.IntN(len(pieces))])
				}
				p := message.Properties(strings.Join(text, ""))
				for _, drop := range []string{"", "WAIT"} {
					quick, slow, err := w.broker.Stored(p, drop)
					require.NoError(t, err)
					require.Equal(t, slow, quick, "%q without %q", p, drop)
				}
			}
		})
	}
}

func TestStoredPropertiesFollowTheLine(t *testing.T) { // protocol.md 16
	for dialect, want := range map[string]string{
		"3.1": "TAGS\x01a\x02WAIT\x01false\x02",
		"4.9": "TAGS\x01a\x02CLUSTER\x01DefaultCluster\x02",
		"5.3": "TAGS\x01a\x02WAIT\x01false\x02CLUSTER\x01DefaultCluster\x02UNIQ_KEY\x01U\x02MSG_REGION\x01DefaultRegion\x02TRACE_ON\x01true\x02",
	} {
		inWorld(t, small(dialect), func(t *testing.T, w *world) {
			p := w.peer()
			resp := p.send(outgoing{topic: "T", properties: "TAGS\x01a\x02WAIT\x01false\x02"}.request(remoting.SendMessage))
			require.Equal(t, remoting.Success, resp.Code, resp.Remark)
			got := records(t, p.pull(pulling{topic: "T"}))[0].Properties
			if id, ok := got.Get("UNIQ_KEY"); ok {
				require.Len(t, id, 32)
				require.Equal(t, id, resp.Fields.Get("transactionId"))
				got, _ = got.Set("UNIQ_KEY", "U")
			}
			require.Equal(t, want, string(got), dialect)
			if dialect == "3.1" {
				require.Len(t, resp.Fields, 3)
			}
		})
	}
}

func TestSendsAreCheckedInOrder(t *testing.T) { // R-D-134, R-G-16, R-G-31 (pop, any time), protocol.md 4.2
	o := small("4.9")
	o.RejectTransactions = true
	inWorld(t, o, func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "first")
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		for _, tt := range []struct {
			name string
			code int32
			m    outgoing
		}{
			{"blank topic", remoting.SystemError, outgoing{topic: " "}},
			{"a path", remoting.SystemError, outgoing{topic: "../x"}},
			{"long topic", remoting.SystemError, outgoing{topic: strings.Repeat("t", 128)}},
			{"system topic", remoting.NoPermission, outgoing{topic: "SCHEDULE_TOPIC_XXXX"}},
			{"half topic", remoting.NoPermission, outgoing{topic: "RMQ_SYS_TRANS_HALF_TOPIC"}},
			{"no default topic", remoting.TopicNotExist, outgoing{topic: "N", defaultTopic: "Absent"}},
			{"default topic that is none", remoting.TopicNotExist, outgoing{topic: "N", defaultTopic: "BenchmarkTest"}},
			{"queue that is not there", remoting.SystemError, outgoing{topic: "T", queue: 4}},
			{"retry of nobody", remoting.SubscriptionGroupNotExist, outgoing{topic: "%RETRY%Nobody"}},
			{"prepared", remoting.NoPermission, outgoing{topic: "T", sysFlag: message.FlagPrepared}},
			{"prepared by property", remoting.NoPermission, outgoing{topic: "T", properties: "TRAN_MSG\x01true\x02"}},
			{"commit", remoting.MessageIllegal, outgoing{topic: "T", sysFlag: message.FlagCommit}},
			{"body too long", remoting.MessageIllegal, outgoing{topic: "T", body: strings.Repeat("b", 4<<20+1)}},
			{"properties too long", remoting.MessageIllegal, outgoing{topic: "T", properties: message.Properties("k\x01" + strings.Repeat("v", 40000) + "\x02")}},
			{"any time", remoting.MessageIllegal, outgoing{topic: "T", properties: "TIMER_DELAY_SEC\x015\x02"}},
			{"any time and a level", remoting.Success, outgoing{topic: "T", properties: "TIMER_DELAY_SEC\x015\x02DELAY\x011\x02"}},
			{"any queue", remoting.Success, outgoing{topic: "T", queue: -1}},
		} {
			resp := p.put(tt.m)
			require.Equal(t, tt.code, resp.Code, "%s: %s", tt.name, resp.Remark)
			require.NotNil(t, resp.Fields, tt.name) // Java reads them without a look
		}
		require.Equal(t, remoting.SystemError, p.ask(remoting.SendMessageV2).Code) // nothing named
		require.Equal(t, remoting.RequestCodeNotSupported, p.ask(4711).Code)
		require.Equal(t, remoting.RequestCodeNotSupported, p.ask(200050).Code) // pop
	})
}

func TestTopicsAreMadeByTheirDefault(t *testing.T) { // R-F-07, protocol.md 8.4
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		for topic, queues := range map[string]int32{"Few": 2, "Many": 100} {
			require.Equal(t, remoting.Success, p.put(outgoing{topic: topic, defaultQueues: queues}).Code)
			most := min(queues, 8)
			require.Equal(t, remoting.SystemError, p.put(outgoing{topic: topic, queue: most}).Code)
			require.Equal(t, remoting.Success, p.put(outgoing{topic: topic, queue: most - 1}).Code)
		}
	})
	o := small("4.9")
	o.NoAutoTopics = true
	inWorld(t, o, func(t *testing.T, w *world) {
		require.Equal(t, remoting.TopicNotExist, w.peer().put(outgoing{topic: "T"}).Code)
	})
}

func TestWhatWasTriedTooOftenIsADeadLetter(t *testing.T) { // protocol.md 4.2, E4, E9
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		again := outgoing{topic: "%RETRY%CG", body: "again", reconsume: 3, most: 3, sysFlag: message.FlagPrepared, properties: "TRAN_MSG\x01true\x02"}
		require.Equal(t, remoting.Success, p.put(again).Code)
		got := records(t, p.pull(pulling{topic: "%RETRY%CG"}))
		require.Len(t, got, 1)
		require.Zero(t, got[0].SysFlag.Transaction())
		again.reconsume = 4
		again.properties = "DELAY\x013\x02"
		require.Equal(t, remoting.Success, p.put(again).Code)
		require.Equal(t, []string{"again"}, bodies(t, p.pull(pulling{topic: "%DLQ%CG"})))
	})
}

// batchBody makes the body of 320 from bodies and properties in turn.
func batchBody(parts ...string) []byte {
	var b []byte
	for i := 0; i < len(parts); i += 2 {
		b = binary.BigEndian.AppendUint32(b, uint32(22+len(parts[i])+len(parts[i+1])))
		b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
		b = binary.BigEndian.AppendUint32(b, 9)
		b = binary.BigEndian.AppendUint32(b, uint32(len(parts[i])))
		b = append(b, parts[i]...)
		b = binary.BigEndian.AppendUint16(b, uint16(len(parts[i+1])))
		b = append(b, parts[i+1]...)
	}
	return b
}

func TestABatchIsStoredWhole(t *testing.T) { // protocol.md 4.5
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "before")
		m := outgoing{topic: "T", properties: "WAIT\x01true\x02", body: string(batchBody("one", "TAGS\x01a", "two", "", "three", "KEYS\x01k\x02"))}
		resp := p.send(m.request(remoting.SendBatchMessage))
		require.Equal(t, remoting.Success, resp.Code, resp.Remark)
		require.Equal(t, "1", resp.Fields.Get("queueOffset"))
		require.Len(t, strings.Split(resp.Fields.Get("msgId"), ","), 3)
		got := records(t, p.pull(pulling{topic: "T", offset: 1}))
		require.Len(t, got, 3)
		const shared = "WAIT\x01true\x02CLUSTER\x01DefaultCluster\x02"
		for i, want := range []string{"TAGS\x01a\x02" + shared, shared, "KEYS\x01k\x02" + shared} {
			require.Equal(t, want, string(got[i].Properties))
			require.Equal(t, int32(9), got[i].Flag)
		}
		for name, body := range map[string]string{"empty": "", "cut": m.body[:50], "nonsense": strings.Repeat("\xff", 64)} {
			m.body = body
			require.Equal(t, remoting.MessageIllegal, p.send(m.request(remoting.SendBatchMessage)).Code, name)
		}
		m.body = string(batchBody("x", ""))
		m.properties += "DELAY\x013\x02" // it would be delivered at once
		require.Equal(t, remoting.MessageIllegal, p.send(m.request(remoting.SendBatchMessage)).Code)
		m.topic = "%RETRY%TOOLS_CONSUMER"
		require.Equal(t, remoting.MessageIllegal, p.send(m.request(remoting.SendBatchMessage)).Code)
	})
}

func TestCapturedSendsOfRealClientsAreStored(t *testing.T) { // R-F-06, R-D-149
	for _, code := range []int32{remoting.SendMessage, remoting.SendMessageV2, remoting.SendBatchMessage} {
		inWorld(t, small("5.3"), func(t *testing.T, w *world) {
			p := w.peer()
			for _, req := range captured(t, code) {
				if strings.HasPrefix(req.Fields.Get("b"), "RMQ_SYS_TRACE") || strings.Contains(req.Fields.Get("b"), "REPLY") || strings.HasPrefix(req.Fields.Get("b"), "%RETRY%") {
					continue // topics that are not there by themselves
				}
				req.Flag = 0
				resp := p.send(req)
				require.Equal(t, remoting.Success, resp.Code, "%+v: %s", req.Fields, resp.Remark)
				require.NotEmpty(t, resp.Fields.Get("msgId"))
			}
			require.Positive(t, w.broker.Stats().Sent)
		})
	}
}

func TestWhatWasReadIsStoredThoughTheConnectionEnds(t *testing.T) { // as when a client sends without an answer and stops
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		w.peer().puts("T", "first")
		for range 20 {
			p := w.peer()
			for range 10 {
				req := outgoing{topic: "T", body: "oneway"}.request(remoting.SendMessageV2)
				require.NoError(t, p.c.Oneway(context.Background(), "broker", req))
			}
			require.Equal(t, remoting.Success, p.ask(remoting.GetMaxOffset, queueFields("T", 0)...).Code) // all was read
			p.c.Disconnect("broker")
		}
		synctest.Wait()
		require.Equal(t, int64(201), w.broker.Stats().Sent)
	})
}
