package producer

import (
	"strconv"
	"sync"

	"github.com/rocketstore/rocketstore/internal/remoting"
)

// oldBrokers are the addresses whose brokers know the long form of requests only: 3.1.
type oldBrokers struct{ table sync.Map }

// short says whether a broker is sent requests whose fields have names of one letter.
func (p *Producer) short(addr string) bool {
	if !p.opts.Dialect.ClientShortNames {
		return false
	}
	if v := p.client.Version(addr); v > 0 && v < remoting.Version326 {
		return false
	}
	_, old := p.old.table.Load(addr)
	return !old
}

// knows says whether it is known how requests to a broker are to look.
func (p *Producer) knows(addr string) bool {
	return !p.opts.Dialect.ClientShortNames || p.client.Met(addr)
}

// fallBack notes that a broker does not know what it was sent, and says whether there is an older form to send it in.
func (s *send) fallBack(addr string) bool {
	if !s.short || s.prepared.batch {
		return false
	}
	s.p.old.table.Store(addr, true)
	return true
}

// request makes the request of a send to a queue.
func (s *send) request(q Queue) *remoting.Command {
	r, short := s.prepared, s.short
	code := remoting.SendMessageV2
	switch {
	case r.batch:
		code, short = remoting.SendBatchMessage, true
	case r.reply && short:
		code = remoting.SendReplyMessageV2
	case r.reply:
		code = remoting.SendReplyMessage
	case !short:
		code = remoting.SendMessage
	}
	names := longNames()
	if short {
		names = shortNames()
	}
	tries := r.reconsumed
	if tries == "" {
		tries = "0"
	}
	values := [...]string{
		s.p.group, r.topic, s.p.opts.DefaultTopic, itoa(s.p.opts.DefaultTopicQueues), itoa(q.QueueID), itoa(int32(r.sysFlag)), s.born,
		itoa(r.flag), r.properties, tries, "false", r.maxTries, strconv.FormatBool(r.batch), q.BrokerName,
	}
	fields := remoting.Fields(s.fields[:0])
	for i, value := range values {
		if names[i] != "" && (value != "" || i == 8) {
			fields = append(fields, remoting.Field{Name: names[i], Value: value})
		}
	}
	if !short {
		fields = append(fields, remoting.Field{Name: "isUnitMode", Value: "false"}) // 3.1's spelling
	}
	s.req = *remoting.NewRequest(code)
	s.req.Fields, s.req.Body = fields, r.body
	return &s.req
}

// maxFields is how many fields a send has at most.
const maxFields = 15

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// shortNames and longNames are the names of a send's fields in one order.
func shortNames() *[14]string {
	return &[...]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"}
}

func longNames() *[14]string {
	return &[...]string{
		"producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp", "flag", "properties",
		"reconsumeTimes", "unitMode", "maxReconsumeTimes", "batch", "bname",
	}
}
