package broker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// answering is a client that answers what it is asked; nil is silence.
func (w *world) answering(answer func(req *remoting.Command) *remoting.Command) *peer {
	w.t.Helper()
	p := &peer{w: w}
	c, err := remoting.NewClient(&remoting.ClientOptions{
		Dial: w.pipe.Dial, Idle: 24 * time.Hour,
		Handler: func(_ context.Context, _ *remoting.Conn, req *remoting.Command) *remoting.Command { return answer(req) },
	})
	require.NoError(w.t, err)
	p.c = c
	w.t.Cleanup(c.Close)
	return p
}

func TestRequestsAreRelayedToAConsumer(t *testing.T) { // protocol.md E7
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		p := w.peer()
		p.puts("T", "a")
		silent := false
		client := w.answering(func(req *remoting.Command) *remoting.Command {
			if req.Code != remoting.GetConsumerRunningInfo && req.Code != remoting.ConsumeMessageDirectly || silent {
				return nil
			}
			resp := req.Reply(remoting.Success, remoting.String("seen", req.Fields.Get("jstackEnable")+req.Fields.Get("brokerName")+req.Fields.Get(remoting.FieldAccessKey)))
			if len(req.Body) > 0 {
				resp.Body = records(t, req)[0].Body
			}
			return resp
		})
		client.beat(heartbeat("c", "CG", "CLUSTERING", 1, "T", "*"))
		fields := func(id string, more ...remoting.Field) []remoting.Field {
			return append([]remoting.Field{remoting.String("consumerGroup", "CG"), remoting.String("clientId", id), remoting.String(remoting.FieldAccessKey, "secret")}, more...)
		}
		resp := p.admin(remoting.Success, remoting.GetConsumerRunningInfo, "", fields("c", remoting.Bool("jstackEnable", true))...)
		require.Equal(t, "true", resp.Fields.Get("seen"))
		resp = p.admin(remoting.Success, remoting.ConsumeMessageDirectly, "", fields("c", remoting.String("msgId", "7F00000100002A9F0000000000000000"))...)
		require.Equal(t, "broker-a", resp.Fields.Get("seen"))
		require.Equal(t, "a", string(resp.Body))
		p.admin(remoting.SystemError, remoting.ConsumeMessageDirectly, "", fields("c", remoting.String("msgId", "7F00000100002A9F0000000000000001"))...)
		p.admin(remoting.SystemError, remoting.ConsumeMessageDirectly, "", fields("c", remoting.String("msgId", "x"))...)
		p.admin(remoting.SystemError, remoting.GetConsumerRunningInfo, "", fields("nobody")...)
		silent = true
		p.admin(remoting.ConsumeMessageTimeout, remoting.GetConsumerRunningInfo, "", fields("c")...)
	})
}

func TestRepliesGoToTheirRequester(t *testing.T) { // R-G-32, protocol.md 4.7
	inWorld(t, small("4.9"), func(t *testing.T, w *world) {
		const topic = "DefaultCluster_REPLY_TOPIC"
		p := w.peer()
		var pushed []*remoting.Command
		code := remoting.Success
		requester := w.answering(func(req *remoting.Command) *remoting.Command {
			if req.Code != remoting.PushReplyMessage {
				return nil
			}
			pushed = append(pushed, req)
			return req.Reply(code)
		})
		requester.beat(heartbeat("requester", "CG", "CLUSTERING", 1))
		send := func(code int32, to string) *remoting.Command {
			properties := message.Properties("MSG_TYPE\x01reply\x02CORRELATION_ID\x01id\x02")
			if to != "" {
				properties += message.Properties("REPLY_TO_CLIENT\x01" + to + "\x02")
			}
			m := outgoing{topic: topic, body: "answer", properties: properties}.request(remoting.SendMessageV2)
			if code == remoting.SendReplyMessage {
				m = outgoing{topic: topic, body: "answer", properties: properties}.request(remoting.SendMessage)
			}
			m.Code = code
			return p.send(m)
		}
		for i, code := range []int32{remoting.SendReplyMessage, remoting.SendReplyMessageV2} {
			resp := send(code, "requester")
			require.Equal(t, remoting.Success, resp.Code, resp.Remark)
			require.NotEmpty(t, resp.Fields.Get("msgId"))
			require.Len(t, pushed, i+1)
			require.Equal(t, remoting.PushReplyMessage, pushed[i].Code)
			require.Equal(t, "answer", string(pushed[i].Body))
			require.Equal(t, topic, pushed[i].Fields.Get("topic"))
			id, _ := message.Properties(pushed[i].Fields.Get("properties")).Get("CORRELATION_ID")
			require.Equal(t, "id", id)
		}
		require.Equal(t, []string{"answer", "answer"}, bodies(t, p.pull(pulling{topic: topic})))
		require.Equal(t, remoting.SystemError, send(remoting.SendReplyMessage, "nobody").Code)
		require.Equal(t, remoting.SystemError, send(remoting.SendReplyMessage, "").Code)
		code = remoting.SystemError
		require.Equal(t, remoting.SystemError, send(remoting.SendReplyMessage, "requester").Code)
		require.Equal(t, int64(2), w.broker.Stats().Sent) // what nobody took is not stored
	})
}
