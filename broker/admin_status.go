package broker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// consumerStatusSince is the version ordinal (3.0.7) from which clients answer 221.
const consumerStatusSince = 28

// consumerStatus serves 223: it asks the clients of a group, or one of them, where they are in a topic's queues (221). One that
// does not answer is left out, unless none does.
func (b *Broker) consumerStatus(ctx context.Context, c *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	f := req.Fields.Reader()
	topic, group, wanted := f.Text("topic"), f.Text("group"), req.Fields.Get("clientAddr")
	if err := f.Err(); err != nil {
		return nil, err
	}
	members := b.clients.members(group)
	if len(members) == 0 {
		return req.Refuse(remoting.SystemError, "No Any Consumer online in the consumer group: [%s]", group), nil
	}
	asked := members[:0]
	for _, m := range members {
		if m.version < consumerStatusSince {
			return req.Refuse(remoting.SystemError, "the client does not support this feature. version=%d", m.version), nil
		}
		if wanted == "" || m.id == wanted {
			asked = append(asked, m)
		}
	}
	answers, err := b.askStatus(ctx, asked, topic, group)
	if len(answers) == 0 && err != nil {
		return nil, err
	}
	o := fastjson.OpenObject(nil)
	table := fastjson.OpenObject(o.Key("consumerTable"))
	for _, id := range slices.Sorted(maps.Keys(answers)) {
		table.B = append(table.Key(id), answers[id]...)
	}
	o.B = table.Close()
	return withBody(req, o.Close())
}

// askStatus asks all of these clients at once, and gives what each said about its queues, by its id.
func (b *Broker) askStatus(ctx context.Context, members []connected, topic, group string) (answers map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	var mu sync.Mutex // of the results
	answers = map[string]string{}
	var asking sync.WaitGroup
	slots := make(chan struct{}, maxAskedAtOnce)
	for _, m := range members {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			answer, failed := m.conn.Call(ctx, remoting.NewRequest(remoting.GetConsumerStatus, remoting.String("topic", topic), remoting.String("group", group)))
			if failed == nil && answer.Code != remoting.Success {
				failed = fmt.Errorf("code %d: %s", answer.Code, answer.Remark)
			}
			var queues string
			if failed == nil {
				queues, failed = readStatus(answer.Body)
			}
			mu.Lock()
			defer mu.Unlock()
			if failed != nil {
				b.opts.Logger.Warn("consumer does not say where it is", "group", group, "client", m.id, "err", failed)
				err = fmt.Errorf("consumer <%s> <%s>: %w", group, m.id, failed)
				return
			}
			answers[m.id] = queues
		})
	}
	asking.Wait()
	return answers, err
}

// maxAskedAtOnce is how many clients are asked at once.
const maxAskedAtOnce = 64

// readStatus gives the object of queues and offsets of an answer to 221, as it stands there. An error matches fastjson.ErrSyntax.
func readStatus(body []byte) (queues string, err error) {
	queues = "{}"
	r := fastjson.NewReader(string(body))
	r.Object(func(key string) {
		if key != "messageQueueTable" || r.Null() {
			return
		}
		if queues = r.Raw(); !strings.HasPrefix(queues, "{") {
			r.Fail(fmt.Errorf("%w: messageQueueTable is no object", fastjson.ErrSyntax))
		}
	})
	return queues, r.End()
}
