package broker

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// adminOperation finds what serves a request code of administration, and those that go on to a client; nil if nothing does.
func adminOperation(code int32) operation {
	switch code {
	case remoting.CreateTopic:
		return (*Broker).createTopic
	case remoting.DeleteTopicInBroker:
		return (*Broker).deleteTopic
	case remoting.GetAllTopicConfig:
		return (*Broker).allTopics
	case remoting.UpdateBrokerConfig:
		return (*Broker).updateConfig
	case remoting.GetBrokerConfig:
		return (*Broker).getConfig
	case remoting.GetBrokerRuntimeInfo:
		return (*Broker).runtimeInfo
	case remoting.GetAllConsumerOffset:
		return (*Broker).allConsumerOffsets
	case remoting.GetAllDelayOffset:
		return (*Broker).allDelayOffsets
	case remoting.CreateSubscriptionGroup:
		return (*Broker).createGroup
	case remoting.GetAllSubscriptionGroups:
		return (*Broker).allGroups
	case remoting.DeleteSubscriptionGroup:
		return (*Broker).deleteGroup
	case remoting.GetTopicStats:
		return (*Broker).topicStats
	case remoting.GetConsumeStats:
		return (*Broker).consumeStats
	case remoting.GetConsumerConnections:
		return (*Broker).consumerConnections
	case remoting.GetProducerConnections:
		return (*Broker).producerConnections
	case remoting.QueryTopicConsumeByWho:
		return (*Broker).groupsOfTopic
	case remoting.QueryConsumeTimeSpan:
		return (*Broker).consumeTimeSpan
	case remoting.GetSystemTopicsFromBroker:
		return (*Broker).systemTopicList
	case remoting.GetConsumerRunningInfo, remoting.ConsumeMessageDirectly:
		return (*Broker).relay
	case remoting.SendReplyMessage, remoting.SendReplyMessageV2:
		return (*Broker).reply
	case remoting.InvokeResetOffset:
		return (*Broker).resetOffsets
	case remoting.InvokeConsumerStatus:
		return (*Broker).consumerStatus
	case remoting.ViewBrokerStats:
		return (*Broker).viewStats
	case remoting.GetBrokerConsumeStats:
		return (*Broker).brokerConsumeStats
	case remoting.CloneGroupOffset:
		return (*Broker).cloneOffsets
	case remoting.CleanExpiredQueues, remoting.CleanUnusedTopic, remoting.DeleteExpiredLog:
		return (*Broker).clean
	}
	return nil
}

// audit logs what an administrator changed. R-G-36.
func (b *Broker) audit(c *remoting.Conn, req *remoting.Command, what string, args ...any) {
	args = append([]any{"code", req.Code, "peer", c.RemoteAddr(), "accessKey", req.Fields.Get(remoting.FieldAccessKey)}, args...)
	b.opts.Logger.Info("admin: "+what, args...)
}

// appendQueue appends a MessageQueue as the Java tools name it.
func (b *Broker) appendQueue(text []byte, q queueName) []byte {
	o := fastjson.OpenObject(text)
	o.Text("brokerName", b.opts.Name)
	o.Int("queueId", int64(q.id))
	o.Text("topic", q.topic)
	return o.Close()
}

// appendQueueTable appends an object whose keys are queues, which the Java tools want in that form.
func appendQueueTable[T any](b *Broker, text []byte, queues []queueName, values []T, value func(text []byte, v T) []byte) []byte {
	o := fastjson.OpenObject(text)
	for i, q := range queues {
		o.Comma()
		o.B = value(append(b.appendQueue(o.B, q), ':'), values[i])
	}
	return o.Close()
}

// appendIntTable appends an object of numbers by number, in the order of the keys.
func appendIntTable(text []byte, table map[int32]int64) []byte {
	o := fastjson.OpenObject(text)
	for _, key := range slices.Sorted(maps.Keys(table)) {
		o.Int(strconv.Itoa(int(key)), table[key])
	}
	return o.Close()
}

func appendInt(text []byte, n int64) []byte { return strconv.AppendInt(text, n, 10) }

// withBody is a success with a body.
func withBody(req *remoting.Command, body []byte) (*remoting.Command, error) {
	resp := req.Reply(remoting.Success)
	resp.Body = body
	return resp, nil
}

// clean serves 306, 316 and 329: the rules of retention are applied at once, at any hour, and what hangs on deleted messages follows
// them.
func (b *Broker) clean(ctx context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	gone, err := b.store.Expire(ctx, rocketstore.ExpireOptions{})
	if err != nil {
		return nil, err
	}
	b.audit(c, req, "queues cleaned", "files", len(gone.Files), "queues", len(gone.Queues))
	return req.Reply(remoting.Success), nil
}
