package consumer

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/rocketstore/rocketstore/internal/fastjson"
	"github.com/rocketstore/rocketstore/internal/remoting"
)

// The times of the original's queue locks: the broker keeps one for 60 s after its last renewal, so a member that did not hear of
// a renewal for half of that must not consume any more.
const (
	lockEvery = 20 * time.Second
	lockValid = 30 * time.Second
	lockRetry = 3 * time.Second
)

// isLocked says whether this member surely has the queue's lock.
func (p *process) isLocked() bool {
	at := p.lockedAt.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < lockValid
}

// lock asks for one queue and says whether this member has it now.
func (c *Consumer) lock(ctx context.Context, q Queue) bool {
	got, err := c.askLocks(ctx, q.BrokerName, []Queue{q})
	if err != nil {
		c.failed("queue not locked", err, "queue", q.String())
	}
	return slices.Contains(got, q)
}

// relock asks for a queue that is held and notes what came out.
func (c *Consumer) relock(p *process) bool {
	asked := time.Now()
	got, err := c.askLocks(p.ctx, p.queue.BrokerName, []Queue{p.queue})
	if err != nil {
		return false
	}
	return p.noteLock(asked, slices.Contains(got, p.queue))
}

// noteLock notes the answer to a request that was begun at a time: the lock counts from then.
func (p *process) noteLock(asked time.Time, got bool) bool {
	if got {
		p.lockedAt.Store(asked.UnixNano())
	} else {
		p.lockedAt.Store(0)
	}
	return got
}

// renewLocks renews the locks of all queues, one request for each broker. Where a broker does not answer, the lock stays valid as long
// as it was.
func (c *Consumer) renewLocks() {
	byBroker := map[string][]*process{}
	for _, p := range c.held() {
		byBroker[p.queue.BrokerName] = append(byBroker[p.queue.BrokerName], p)
	}
	for broker, list := range byBroker {
		var queues []Queue
		for _, p := range list {
			queues = append(queues, p.queue)
		}
		asked := time.Now()
		got, err := c.askLocks(c.ctx, broker, queues)
		if err != nil {
			c.failed("locks not renewed", err, "broker", broker)
			continue
		}
		for _, p := range list {
			if !p.noteLock(asked, slices.Contains(got, p.queue)) {
				c.opts.Logger.Warn("lock lost", "queue", p.queue.String())
			}
		}
	}
}

// lockTimeout limits one request.
const lockTimeout = time.Second

// askLocks sends request 41 for queues of one broker and gives those that this member has now.
func (c *Consumer) askLocks(ctx context.Context, broker string, queues []Queue) ([]Queue, error) {
	resp, err := c.callLocks(ctx, remoting.LockBatchQueues, broker, queues)
	if err != nil {
		return nil, err
	}
	return readLocked(resp.Body)
}

// unlock gives a queue's lock back (42).
func (c *Consumer) unlock(ctx context.Context, q Queue) {
	if _, err := c.callLocks(ctx, remoting.UnlockBatchQueues, q.BrokerName, []Queue{q}); err != nil {
		c.opts.Logger.Warn("lock not given back; it ends by itself", "queue", q.String(), "err", err)
	}
}

func (c *Consumer) callLocks(ctx context.Context, code int32, broker string, queues []Queue) (*remoting.Command, error) {
	addr, err := c.net.Master(broker)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	req := remoting.NewRequest(code)
	req.Body = appendLocks(nil, c.group, c.net.ID(), queues)
	return c.net.Do(ctx, addr, req)
}

// appendLocks appends the body of 41 and 42.
func appendLocks(b []byte, group, client string, queues []Queue) []byte {
	b = fastjson.AppendString(append(b, `{"clientId":`...), client)
	b = fastjson.AppendString(append(b, `,"consumerGroup":`...), group)
	b = append(b, `,"mqSet":[`...)
	for i, q := range queues {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQueue(b, q)
	}
	return append(b, "]}"...)
}

// appendQueue appends a queue as an object.
func appendQueue(b []byte, q Queue) []byte {
	b = fastjson.AppendString(append(b, `{"brokerName":`...), q.BrokerName)
	b = strconv.AppendInt(append(b, `,"queueId":`...), int64(q.QueueID), 10)
	b = fastjson.AppendString(append(b, `,"topic":`...), q.Topic)
	return append(b, '}')
}

// readLocked reads the answer to 41.
func readLocked(body []byte) (queues []Queue, err error) {
	r := fastjson.NewReader(string(body))
	r.Object(func(key string) {
		if key == "lockOKMQSet" {
			r.Array(func() { queues = append(queues, readQueue(r)) })
		}
	})
	return queues, r.End()
}
