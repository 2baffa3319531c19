package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/rocketstore/rocketstore/internal/remoting"
	"github.com/rocketstore/rocketstore/message"
)

// batchItem is one message of a batch's body:
//
//	size  field
//	4     total size, this field included
//	4     magic, 0
//	4     body CRC, 0
//	4     flag
//	4     length of the body
//	…     body
//	2     length of the properties
//	…     properties
type batchItem struct {
	flag       int32
	body       []byte
	properties string
}

// batchOverhead is the size of an item without body and properties.
const batchOverhead = 22

// maxBatch bounds the messages of one batch.
const maxBatch = 1 << 16

var errBatch = errors.New("bad batch body")

// readBatch decodes the body of 320; the bodies alias it. Errors match errBatch.
func readBatch(b []byte) ([]batchItem, error) {
	var items []batchItem
	for len(b) > 0 {
		if len(items) == maxBatch {
			return nil, fmt.Errorf("%w: more than %d messages", errBatch, maxBatch)
		}
		item, size, err := readBatchItem(b)
		if err != nil {
			return nil, fmt.Errorf("%w: message %d: %w", errBatch, len(items), err)
		}
		items = append(items, item)
		b = b[size:]
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("%w: it is empty", errBatch)
	}
	return items, nil
}

var errLengths = errors.New("its lengths do not add up")

func readBatchItem(b []byte) (item batchItem, size int, err error) {
	if len(b) < batchOverhead {
		return item, 0, errLengths
	}
	total, length := int64(int32(binary.BigEndian.Uint32(b))), int64(int32(binary.BigEndian.Uint32(b[16:])))
	if total < batchOverhead || total > int64(len(b)) || length < 0 || length > total-batchOverhead {
		return item, 0, errLengths
	}
	item.flag = int32(binary.BigEndian.Uint32(b[12:]))
	item.body = b[20 : 20+length]
	rest := b[20+length : total]
	properties := int64(int16(binary.BigEndian.Uint16(rest)))
	if properties != int64(len(rest)-2) {
		return item, 0, errLengths
	}
	item.properties = string(rest[2:])
	return item, int(total), nil
}

// sendBatch stores a batch, all or none.
func (b *Broker) sendBatch(ctx context.Context, req *remoting.Command, s *sendRequest, common message.Message) (*remoting.Command, error) {
	if strings.HasPrefix(s.topic, retryPrefix) || strings.HasPrefix(s.topic, deadPrefix) {
		return nil, refused(remoting.MessageIllegal, "batch request does not support retry group %s", s.topic)
	}
	items, err := readBatch(req.Body)
	if err != nil {
		return nil, refused(remoting.MessageIllegal, "%v", err)
	}
	shared, err := b.stored(s.properties)
	if err != nil {
		return nil, refused(remoting.MessageIllegal, "%v", err)
	}
	if delay, _ := shared.Get(message.PropertyDelay); delay != "" && delay != "0" {
		return nil, refused(remoting.MessageIllegal, "a batch cannot be delayed: %s %s", message.PropertyDelay, delay)
	}
	batch, all := make([]*message.Message, len(items)), make([]message.Message, len(items))
	for i, item := range items {
		m := &all[i]
		*m = common
		m.Flag, m.Body = item.flag, item.body
		m.Properties = message.Properties(item.properties)
		if n := len(m.Properties); n > 0 && m.Properties[n-1] != '\x02' {
			m.Properties += "\x02"
		}
		m.Properties += shared
		batch[i] = m
	}
	results, err := b.store.PutBatch(ctx, batch)
	code, err := putCode(err, b.lacksSlave(batch[0]))
	if err != nil {
		return nil, err
	}
	ids, records := make([]string, len(results)), int64(0)
	for i := range results {
		ids[i] = results[i].MessageID()
		records += int64(results[i].Size)
	}
	b.countSent(common.Topic, int64(len(items)), len(req.Body), records)
	return b.sendReply(req, code, strings.Join(ids, ","), common.QueueID, results[0].QueueOffset), nil
}
