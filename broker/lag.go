package broker

import (
	"context"
	"strings"
	"time"

	"github.com/rocketstore/rocketstore"
)

// Lag is how far a consumer group is behind on a topic.
type Lag struct {
	Group, Topic string
	// Messages is how many it has not taken over as consumed.
	Messages int64
	// Oldest is when the first of them was stored; the zero time when there is none.
	Oldest time.Time
}

// Lags says it of each group and topic of which offsets are stored. The error is the context's or [rocketstore.ErrClosed].
func (b *Broker) Lags(ctx context.Context) ([]Lag, error) {
	var lags []Lag
	at := map[[2]string]int{}
	for _, p := range b.store.ConsumerOffsets() {
		if _, known := b.topics.get(p.Topic); !known || p.Group == rocketstore.TransactionGroup {
			continue
		}
		key := [2]string{p.Group, p.Topic}
		i, ok := at[key]
		if !ok {
			i = len(lags)
			at[key], lags = i, append(lags, Lag{Group: p.Group, Topic: p.Topic})
		}
		first, end, err := b.bounds(ctx, p.Topic, p.QueueID)
		if err != nil {
			return nil, err
		}
		offset := max(p.Offset, first)
		if offset >= end {
			continue
		}
		lags[i].Messages += end - offset
		if ms := b.storeTime(ctx, queueName{p.Topic, p.QueueID}, offset); ms > 0 {
			if stored := time.UnixMilli(ms); lags[i].Oldest.IsZero() || stored.Before(lags[i].Oldest) {
				lags[i].Oldest = stored
			}
		}
	}
	return lags, nil
}

// DeadLetters is how many messages each group's dead-letter topic holds.
func (b *Broker) DeadLetters(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	for queue, err := range b.store.Queues(ctx) {
		if err != nil {
			return nil, err
		}
		if group, ok := strings.CutPrefix(queue.Topic, deadPrefix); ok {
			counts[group] += queue.Max - queue.Min
		}
	}
	return counts, nil
}
