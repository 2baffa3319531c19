package bench

import (
	"context"
	"strconv"

	"github.com/rocketstore/rocketstore"
	"github.com/rocketstore/rocketstore/message"
)

// Workload makes the messages of a benchmark: the same ones whoever asks, so that stores that were filled with it can be
// compared. The zero value has the defaults.
type Workload struct {
	Topic  string // default "Bench"
	Queues int32  // taken in turn; default 4
	Body   int    // bytes
	NoKeys bool   // no KEYS, so nothing for the index
	Keys   int64  // how many different keys there are; default: each message its own

	body []byte // shared by all messages
}

// Message is message number n. All share one body.
func (w *Workload) Message(n int64) *message.Message {
	if len(w.body) != w.Body {
		w.body = w.BodyOf()
	}
	m := &message.Message{Topic: w.topic(), Body: w.body, QueueID: int32(n % int64(max(w.Queues, 1)))}
	if w.Queues == 0 {
		m.QueueID = int32(n % 4)
	}
	more := ""
	if !w.NoKeys {
		more = message.PropertyKeys + "\x01" + w.Key(n) + "\x02"
	}
	m.Properties = message.Properties(more + message.PropertyTags + "\x01tag\x02")
	return m
}

func (w *Workload) topic() string {
	if w.Topic == "" {
		return "Bench"
	}
	return w.Topic
}

// Key is the key of message number n.
func (w *Workload) Key(n int64) string {
	if w.Keys > 0 {
		n %= w.Keys
	}
	return "k" + strconv.FormatInt(n, 10)
}

// BodyOf makes the body of each message: bytes that do not compress, the same each time.
func (w *Workload) BodyOf() []byte {
	b := make([]byte, w.Body)
	state := uint64(7)
	for i := range b {
		state = state*6364136223846793005 + 1442695040888963407
		b[i] = byte(state >> 56)
	}
	return b
}

// Fill puts n messages and waits until each is in its queue and in the index. It gives the end of the log.
func (w *Workload) Fill(ctx context.Context, s *rocketstore.Store, n int64) (end int64, err error) {
	for i := range n {
		r, err := s.Put(ctx, w.Message(i))
		if err != nil {
			return end, err
		}
		end = r.PhysicalOffset + int64(r.Size)
	}
	return end, s.WaitDispatched(ctx, end)
}
