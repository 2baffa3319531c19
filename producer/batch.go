package producer

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/rocketstore/rocketstore/internal/client"
	"github.com/rocketstore/rocketstore/message"
)

// SendBatch sends messages of one topic in one request, which the broker stores as a whole. The result's ids are those of all messages,
// joined by commas, and their queue offsets are consecutive from the result's on. Messages of a batch are not compressed, must not be
// delayed or prepared, and must agree on whether they wait; the request's body, which is theirs with their properties and headers, must
// not exceed the size limit, as the original has it. [Split] parts a list that is too large.
func (p *Producer) SendBatch(ctx context.Context, messages []*message.Message) (Result, error) {
	return p.batch(ctx, messages, target{})
}

// SendBatchTo is SendBatch to one queue, which is tried once.
func (p *Producer) SendBatchTo(ctx context.Context, messages []*message.Message, q Queue) (Result, error) {
	return p.batch(ctx, messages, target{queue: &q})
}

func (p *Producer) batch(ctx context.Context, messages []*message.Message, t target) (Result, error) {
	r, err := p.prepareBatch(messages)
	if err != nil {
		return Result{}, err
	}
	return p.wait(ctx, messages[0], r, t)
}

// AsyncBatch is SendBatch as [Producer.Async] is Send.
func (p *Producer) AsyncBatch(ctx context.Context, messages []*message.Message, done Callback) error {
	r, err := p.prepareBatch(messages)
	if err != nil {
		return err
	}
	return p.begin(ctx, messages[0], r, target{}, done)
}

// prepareBatch checks messages and makes one body of them:
//
//	size  field, for each message
//	4     22 and the lengths of body and properties
//	4, 4  0, 0 (magic and CRC, for the broker to fill in)
//	4     flag
//	4+n   length and body
//	2+p   length and properties
func (p *Producer) prepareBatch(messages []*message.Message) (*prepared, error) {
	if len(messages) == 0 {
		return nil, fmt.Errorf("%w: an empty batch", ErrInvalidMessage)
	}
	ids := make([]string, 0, len(messages))
	r := &prepared{batch: true}
	for i, m := range messages {
		if err := p.checkOfBatch(messages, i); err != nil {
			return nil, fmt.Errorf("message %d of the batch: %w", i, err)
		}
		one := &prepared{topic: p.client.Namespace().Wrap(m.Topic)}
		properties, err := p.properties(m, one, nil)
		if err != nil {
			return nil, fmt.Errorf("message %d of the batch: %w", i, err)
		}
		ids = append(ids, one.id)
		r.topic = one.topic
		r.body = binary.BigEndian.AppendUint32(r.body, uint32(batchOverhead+len(m.Body)+len(properties)))
		r.body = append(r.body, make([]byte, 8)...)
		r.body = binary.BigEndian.AppendUint32(r.body, uint32(m.Flag))
		r.body = binary.BigEndian.AppendUint32(r.body, uint32(len(m.Body)))
		r.body = append(r.body, m.Body...)
		r.body = binary.BigEndian.AppendUint16(r.body, uint16(len(properties)))
		r.body = append(r.body, properties...)
		if len(r.body) > p.opts.MaxMessageSize {
			return nil, tooLarge("a batch of more than %d bytes with message %d of %d (MaxMessageSize; the broker has a limit of its own)",
				p.opts.MaxMessageSize, i+1, len(messages))
		}
	}
	r.id = strings.Join(ids, ",")
	r.properties = string(appendProperty(nil, message.PropertyWait, strconv.FormatBool(messages[0].Waits())))
	return r, nil
}

// batchOverhead is what a batch's entry has besides body and properties, bytes.
const batchOverhead = 22

func (p *Producer) checkOfBatch(messages []*message.Message, i int) error {
	m, first := messages[i], messages[0]
	if m == nil || first == nil {
		return fmt.Errorf("%w: no message", ErrInvalidMessage)
	}
	if i == 0 {
		if err := p.checkTopic(p.client.Namespace().Wrap(m.Topic)); err != nil {
			return err
		}
	}
	if err := p.checkBody(m.Body); err != nil {
		return err
	}
	reason := ""
	switch {
	case m.Topic != first.Topic:
		reason = fmt.Sprintf("its topic is %s, the first one's %s", m.Topic, first.Topic)
	case m.Waits() != first.Waits():
		reason = "it and the first one do not agree on waiting"
	case m.Property(message.PropertyDelay) != "" && m.Property(message.PropertyDelay) != "0":
		reason = "it has a delay"
	case strings.HasPrefix(m.Topic, client.RetryPrefix):
		reason = "its topic is one of retries"
	case m.Property(message.PropertyTransactionPrepared) == "true":
		reason = "it is part of a transaction"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s", ErrInvalidMessage, reason)
}

// Split yields the messages in batches whose bodies, properties and headers have at most size bytes; a message that is larger makes a
// batch of its own. Up to 1 MB is a good size.
func Split(messages []*message.Message, size int) iter.Seq[[]*message.Message] {
	return func(yield func([]*message.Message) bool) {
		for begin := 0; begin < len(messages); {
			end, sum := begin, 0
			for end < len(messages) {
				sum += sizeInBatch(messages[end])
				if end > begin && sum > size {
					break
				}
				end++
			}
			if !yield(slices.Clip(messages[begin:end])) {
				return
			}
			begin = end
		}
	}
}

// sizeInBatch is what a message takes in a batch, with the unique id and WAIT that are added.
func sizeInBatch(m *message.Message) int {
	const added = len("\x02UNIQ_KEY\x01") + 32 + len("\x02WAIT\x01true")
	return batchOverhead + len(m.Body) + len(m.Properties) + added
}
