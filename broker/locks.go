package broker

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// queueName names a queue of this broker.
type queueName struct {
	topic string
	id    int32
}

// lock says who may consume a queue in order.
type lock struct {
	client string
	until  time.Time
}

// locks are the queues that ordered consumers hold, by group.
type locks struct {
	timeout time.Duration
	mu      sync.Mutex
	held    map[string]map[queueName]lock
}

func newLocks(timeout time.Duration) *locks {
	return &locks{timeout: timeout, held: map[string]map[queueName]lock{}}
}

// take locks or renews queues for a client, and says which it has now.
func (l *locks) take(group, client string, queues []lockQueue, now time.Time) (got []lockQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held[group]
	if held == nil {
		held = map[queueName]lock{}
		l.held[group] = held
	}
	for _, q := range queues {
		if have, ok := held[q.queueName]; !ok || have.client == client || !now.Before(have.until) {
			held[q.queueName] = lock{client, now.Add(l.timeout)}
			got = append(got, q)
		}
	}
	return got
}

// release gives back the queues that a client holds.
func (l *locks) release(group, client string, queues []lockQueue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held[group]
	for _, q := range queues {
		if held[q.queueName].client == client {
			delete(held, q.queueName)
		}
	}
	if len(held) == 0 {
		delete(l.held, group)
	}
}

// inUse says whether somebody of a group consumes in order now.
func (l *locks) inUse(group string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, have := range l.held[group] {
		if now.Before(have.until) {
			return true
		}
	}
	return false
}

// lockQueue is a queue as a client names it.
type lockQueue struct {
	queueName
	broker string
}

// lockRequest is the body of 41 and 42.
type lockRequest struct {
	group, client string
	queues        []lockQueue
}

// Bounds of one request.
const (
	maxLockQueues = 1 << 16
	maxClientID   = 1 << 10 // bytes
)

// readLocks decodes the body of 41 and 42. An error matches fastjson.ErrSyntax, or says what is missing or too much.
func readLocks(body []byte) (*lockRequest, error) {
	var l lockRequest
	r := fastjson.NewReader(string(body))
	r.Object(func(key string) {
		switch key {
		case "consumerGroup":
			l.group = r.Text()
		case "clientId":
			l.client = r.Text()
		case "mqSet":
			r.Array(func() { l.queues = append(l.queues, readQueue(r)) })
		}
	})
	if err := r.End(); err != nil {
		return nil, err
	}
	if l.group == "" || l.client == "" || len(l.client) > maxClientID || len(l.queues) > maxLockQueues {
		return nil, fmt.Errorf("locks for %d queues of group %.80q, client %.80q: want both names, at most %d bytes and %d queues", len(l.queues), l.group, l.client,
			maxClientID, maxLockQueues)
	}
	return &l, nil
}

func readQueue(r *fastjson.Reader) (q lockQueue) {
	r.Object(func(key string) {
		switch key {
		case "topic":
			q.topic = strings.Clone(r.Text())
		case "brokerName":
			q.broker = strings.Clone(r.Text())
		case "queueId":
			q.id = r.Int32()
		}
	})
	return q
}

// lockQueues serves 41. Queues that do not exist are not locked: whoever asks cannot fill the memory with names.
func (b *Broker) lockQueues(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	l, err := readLocks(req.Body)
	if err != nil {
		return nil, err
	}
	var known []lockQueue
	_, ok, err := b.groups.find(l.group, !b.live().NoAutoGroups)
	if err != nil {
		return nil, err
	}
	for _, q := range l.queues {
		if t, there := b.topics.get(q.topic); ok && there && q.id >= 0 && q.id < max(t.readQueues, t.writeQueues) {
			known = append(known, q)
		}
	}
	var got []lockQueue
	if len(known) > 0 {
		got = b.locks.take(strings.Clone(l.group), strings.Clone(l.client), known, time.Now())
	}
	resp := req.Reply(remoting.Success)
	body := append(resp.Body, `{"lockOKMQSet":[`...)
	for i, q := range got {
		if i > 0 {
			body = append(body, ',')
		}
		body = fastjson.AppendString(append(body, `{"brokerName":`...), q.broker)
		body = fmt.Appendf(body, `,"queueId":%d,"topic":`, q.id)
		body = append(fastjson.AppendString(body, q.topic), '}')
	}
	resp.Body = append(body, "]}"...)
	return resp, nil
}

// unlockQueues serves 42.
func (b *Broker) unlockQueues(_ context.Context, _ *remoting.Conn, req *remoting.Command) (*remoting.Command, error) {
	l, err := readLocks(req.Body)
	if err != nil {
		return nil, err
	}
	b.locks.release(l.group, l.client, l.queues)
	return req.Reply(remoting.Success), nil
}
